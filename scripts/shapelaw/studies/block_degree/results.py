"""The degree of the building block: which polynomial degree of a layer learns best at equal parameters?

Navon 2021, "Attention is optimal building block": `d^(1/d)` is largest at e, so 3 is the best integer (conclusion 1.1),
and a fractional degree near e would be better still (task 3). From runs of product networks on sums of R separable
products (section 3.4) and on digits (section 3.3):

    pooled            each network against degree 3 over several targets at once, the answer in one line
    losses            the final held-out loss of every degree, each at its own learning rate
    differences       each degree against 3, over the same seeds
    speed             steps to given losses
    mixtures          where a learned mixture of two degrees settles, against e
    rank_losses       each network's loss beside the exact separation rank of its polynomial
    rank_correlation  whether the loss follows that rank
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from shapelaw.fits.inputs import read_table
from shapelaw.fits.paired import Mean
from shapelaw.report.plots import save_figure
from shapelaw.report.tables import plain_rows, write_table, writing_to
from shapelaw.studies.block_degree import figures, ranks
from shapelaw.studies.block_degree import pooled as pooling
from shapelaw.studies.block_degree import tables as tabled
from shapelaw.studies.block_degree.analysis import Difference, Tuned, check_runs, differences, tune

STUDY = "block_degree"


@dataclass(frozen=True)
class Analysis:
    """The comparisons over several targets, the tuned networks, each one's difference from degree 3 on each target, its
    rank, and how losses correlate with ranks."""

    pooled: list[pooling.Pooled]
    tuned: list[Tuned]
    differences: list[Difference]
    ranked: list[ranks.Ranked]
    correlations: list[ranks.Correlation]


def analyse(runs: Path, out: Path, rank_seconds: float = ranks.SECONDS) -> Analysis:
    """Read a table of runs (.csv or .parquet), and write all tables and figures into the folder `out`.

    Args:
        runs: one row a run; columns as in `analysis.COLUMNS`.
        out: the folder.
        rank_seconds: of one core, for the exact separation rank of a network.

    Written: pooled, losses, differences, speed, mixtures, rank_losses and rank_correlation as .csv, .md and .tex;
    fit.json; the figures losses, differences, speed, mixtures and rank as .svg and .png.

    Raises:
        UserError: the input can't be used, or the folder can't be written.
    """
    checked = check_runs(read_table(runs), str(runs))
    tuned = tune(checked)
    ranked = ranks.rank_networks(tuned, rank_seconds)
    analysis = Analysis(
        pooling.pooled(checked), tuned, differences(tuned), ranked, ranks.correlations(ranked)
    )
    with writing_to(out):
        for name, (caption, table) in _tables(analysis).items():
            label = f"tab:{STUDY}-{name}".replace("_", "-")
            write_table(table, out / name, caption=caption, label=label)
        (out / "fit.json").write_text(json.dumps(_fit(analysis), indent=1, allow_nan=False) + "\n")
        save_figure(figures.losses_figure(tuned), out / "losses")
        save_figure(figures.differences_figure(analysis.differences), out / "differences")
        save_figure(figures.speed_figure(tuned), out / "speed")
        save_figure(figures.mixtures_figure(tuned), out / "mixtures")
        save_figure(ranks.rank_figure(ranked), out / "rank")
    return analysis


def summary(analysis: Analysis) -> str:
    """What was found, a sentence a line."""
    lines = pooling.summary(analysis.pooled)
    lines += [
        f"{one.tuned.task.name}: {one.tuned.name} against 3: loss times {math.exp(one.log_ratio.value):.3g}"
        f"{_interval(one.log_ratio)}, {one.verdict}."
        for one in analysis.differences
    ] or ["No degree can be compared: the runs have no network of degree 3, or nothing beside it."]
    for one in analysis.correlations:
        if not math.isnan(one.found.low):
            inputs, width, matrices, _ = one.setting
            target = "all R" if one.target_rank is None else f"R = {one.target_rank}"
            lines.append(
                f"{inputs} inputs, {matrices} matrices of {width} x {width}, {target}: rank correlation of loss and "
                f"{one.against} {one.found.value:.2f} ({one.found.low:.2f} to {one.found.high:.2f}, "
                f"p = {one.found.p_value:.2g}, {one.found.networks} networks), {one.found.verdict}."
            )
    return "\n".join(lines)


def _interval(mean: Mean) -> str:
    if math.isnan(mean.low):
        return ""
    return f" ({math.exp(mean.low):.3g} to {math.exp(mean.high):.3g}, {mean.seeds} seeds)"


def _tables(analysis: Analysis) -> dict[str, tuple[str, pd.DataFrame]]:
    tuned = analysis.tuned
    return {
        "pooled": (
            "Each network against degree 3 over several targets; seeds are the independent draws.",
            pooling.pooled_table(analysis.pooled),
        ),
        "losses": ("Final held-out loss, geometric mean over seeds.", tabled.losses_table(tuned)),
        "differences": (
            "Each network against degree 3, on the same seeds.",
            tabled.differences_table(analysis.differences),
        ),
        "speed": (
            "Training steps to a held-out loss at the rate that is best for the final one, geometric mean over seeds.",
            tabled.speed_table(tuned),
        ),
        "mixtures": ("Where learned mixtures of two degrees settle.", tabled.mixtures_table(tuned)),
        "rank_losses": (
            "Held-out loss beside the exact separation rank of the network's polynomial.",
            ranks.rank_losses_table(analysis.ranked),
        ),
        "rank_correlation": (
            "Rank correlation of the held-out loss with what theory gives; without R over all targets.",
            ranks.rank_correlation_table(analysis.correlations),
        ),
    }


def _fit(analysis: Analysis) -> dict[str, Any]:
    """What fit.json holds."""
    compared = any(not math.isnan(one.log_ratio.p_value) for one in analysis.differences)
    return {
        "study": STUDY,
        "model": "log loss of a network minus log loss of degree 3, mean over seeds, Student's 95% interval",
        "status": "converged" if compared else "too few points",
        "networks": len(analysis.tuned),
        "pooled": plain_rows(pooling.pooled_table(analysis.pooled)),
        "differences": plain_rows(tabled.differences_table(analysis.differences)),
        "mixtures": plain_rows(tabled.mixtures_table(analysis.tuned)),
        "rank_correlation": plain_rows(ranks.rank_correlation_table(analysis.correlations)),
    }


__all__ = ["STUDY", "Analysis", "analyse", "summary"]
