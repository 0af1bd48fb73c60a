"""The degree of the building block: the polynomial degree of a layer that learns best at equal parameters.

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

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapelaw.fits.inputs import read_table
from shapelaw.fits.paired import Mean
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Results, Table
from shapelaw.studies.block_degree import figures, ranks
from shapelaw.studies.block_degree import pooled as pooling
from shapelaw.studies.block_degree import tables as tabled
from shapelaw.studies.block_degree.analysis import Difference, Tuned, check_runs, differences, tune
from shapelaw.studies.block_degree.answer import answer

STUDY = "block_degree"


@dataclass(frozen=True)
class DegreeAnalysis:
    """The comparisons over several targets, the tuned networks, each one's difference from degree 3 on each target, its
    rank, and how losses correlate with ranks."""

    pooled: list[pooling.Pooled]
    tuned: list[Tuned]
    differences: list[Difference]
    ranked: list[ranks.Ranked]
    correlations: list[ranks.Correlation]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the time limit for an exact rank."""
    parser.add_argument(
        "--rank-seconds",
        type=float,
        default=ranks.SECONDS,
        help="of one core, for the exact separation rank of a network; a longer one gets its upper bound (default: "
        f"{ranks.SECONDS:g})",
    )


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table is missing or wrong.
    """
    return present(analyse(arguments.input, arguments.rank_seconds))


def analyse(runs: Path, rank_seconds: float = ranks.SECONDS) -> DegreeAnalysis:
    """Read a table of runs (.csv or .parquet) and analyse it.

    Args:
        runs: one row per run; columns as in `analysis.COLUMNS`.
        rank_seconds: seconds of one core for the exact separation rank of a network.

    Raises:
        UserError: the table is missing or wrong.
    """
    checked = check_runs(read_table(runs), str(runs))
    tuned = tune(checked)
    ranked = ranks.rank_networks(tuned, rank_seconds)
    pooled = pooling.pooled(checked)
    return DegreeAnalysis(pooled, tuned, differences(tuned), ranked, ranks.correlations(ranked))


def present(analysis: DegreeAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    tuned = analysis.tuned
    drawn = {
        "losses": figures.losses_figure(tuned),
        "differences": figures.differences_figure(analysis.differences),
        "speed": figures.speed_figure(tuned),
        "mixtures": figures.mixtures_figure(tuned),
        "rank": ranks.rank_figure(analysis.ranked),
    }
    tables = _tables(analysis)
    return Results(tables, drawn, _fit(analysis), summary(analysis), answer=answer(tables))


def summary(analysis: DegreeAnalysis) -> str:
    """The findings, one sentence per line."""
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


def _tables(analysis: DegreeAnalysis) -> dict[str, Table]:
    tuned = analysis.tuned
    return {
        "pooled": Table(
            pooling.pooled_table(analysis.pooled),
            "Each network's loss over that of degree 3, over several targets; the seeds are the independent draws.",
        ),
        "losses": Table(
            tabled.losses_table(tuned),
            "Final held-out loss, geometric mean over seeds.",
        ),
        "differences": Table(
            tabled.differences_table(analysis.differences),
            "Each network's loss over that of degree 3 on the same seeds.",
        ),
        "speed": Table(
            tabled.speed_table(tuned),
            "Training steps to a held-out loss at the rate that is best for the final loss; geometric mean over seeds.",
        ),
        "mixtures": Table(
            tabled.mixtures_table(tuned),
            "The mean degree at which learned mixtures of two degrees settle.",
        ),
        "rank_losses": Table(
            ranks.rank_losses_table(analysis.ranked),
            "Held-out loss beside the exact separation rank of the network's polynomial.",
        ),
        "rank_correlation": Table(
            ranks.rank_correlation_table(analysis.correlations),
            "Rank correlation of the held-out loss with theory's numbers; a row without R is over all targets.",
        ),
    }


def _fit(analysis: DegreeAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
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
