"""The cost of attention wider than the network, H d_a > d (Wies et al. 2021, section 5.3, figures 4 and 6).

Input: rows of `depth, width, heads, attention_dim, ff_width, seed, test_loss, block_params, total_params, step_flops`;
an empty `ff_width` is 4 d, any other must be 4 H d_a. Networks differ in shape alone: they have one vocabulary, text
and recipe, where the table says.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from shapelaw.fits.curves import SIZE_LABELS, SizeAxis
from shapelaw.fits.inputs import read_table
from shapelaw.fits.noise import noise_sentence
from shapelaw.fits.redundancy import RedundancyStatus, interval_words
from shapelaw.report.plots import short_number
from shapelaw.report.tables import OPEN, plain_rows
from shapelaw.report.write import Results, Table
from shapelaw.studies.attention_ratio import figures, tables
from shapelaw.studies.attention_ratio.analysis import Found, RatioAnalysis, analyse_runs, check_ratio_runs
from shapelaw.studies.attention_ratio.answer import answer
from shapelaw.studies.attention_ratio.study import NAME

_SIZE = {"size": ".4g", "ratio": "g"}
_LARGER = {
    OPEN: "the first is not told from the second",
    tables.NO_NOISE: "which is larger is not known without a noise estimate",
}
_LOSSES = dict.fromkeys(("test_loss", "loss_low", "loss_high", "over_depths"), ".4f")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the size at which networks are compared."""
    parser.add_argument(
        "--size",
        choices=[axis.value for axis in SizeAxis],
        default=SizeAxis.BLOCK.value,
        help="parameters of the blocks (default), all parameters, or FLOPs; redundancies are given for all three",
    )


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return present(analyse(arguments.input, SizeAxis(arguments.size)))


def analyse(runs: Path, axis: SizeAxis = SizeAxis.BLOCK) -> RatioAnalysis:
    """Read a table of runs (.csv or .parquet) and analyse it.

    Raises:
        UserError: the table can't be used.
    """
    return analyse_runs(check_ratio_runs(read_table(runs), str(runs)), axis)


def present(analysis: RatioAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    equal = SIZE_LABELS[analysis.axis]
    spread = tables.spread_table(analysis)
    made = {
        "losses": Table(
            tables.losses_table(analysis),
            "Test loss of every network, in nats per token.",
            {"test_loss": ".4f", "ratio": "g"},
        ),
        "best_depth": Table(
            tables.best_depth_table(analysis),
            f"The best depth of every ratio at equal {equal}, its loss with the 95% interval of its seeds.",
            _SIZE | _LOSSES,
        ),
        "redundancy": Table(
            tables.redundancy_table(analysis),
            "Redundancy: how much smaller a network of ratio 1 reaches the same loss, with 68% intervals.",
            _SIZE | dict.fromkeys(("redundancy", "low", "high"), ".3f"),
        ),
        "monotony": Table(
            tables.monotony_table(analysis),
            f"Does the loss fall anywhere as the ratio grows, at equal {equal}?",
            {"size": ".4g"} | dict.fromkeys(("largest_fall", "largest_fall_err"), ".4f"),
        ),
        "spread": Table(
            spread,
            f"Range of the loss over ratios and over depths at equal {equal}, with 68% intervals.",
            {"size": ".4g"}
            | {name: ".4f" for name in spread.columns if name.startswith(("over_", "difference"))},
        ),
        "comparison": Table(
            tables.comparison_table(analysis),
            "Ours beside the published statements (Wies et al. 2021).",
            dict.fromkeys(("ours", "low", "high"), ".3f"),
        ),
    }
    drawn = {
        "losses": figures.losses_figure(analysis),
        "depths": figures.depths_figure(analysis),
        "redundancy": figures.redundancy_figure(analysis),
    }
    return Results(made, drawn, _fit(analysis), summary(analysis), answer=answer(made))


def summary(analysis: RatioAnalysis) -> str:
    """Each ratio's best depth and redundancy on the main size axis, the order of the losses and the spreads."""
    lines = [noise_sentence(analysis.noise)]
    lines += [_redundancy_line(one, analysis) for one in analysis.on_axis if one.redundancy is not None]
    for (feed_forward, size), test in analysis.monotony.items():
        said = str(test.verdict)
        if not math.isnan(test.falls_p):
            said += f" (p of a fall = {test.falls_p:.2g}, of a rise = {test.rises_p:.2g})"
        lines.append(f"d_ff = {feed_forward}, size {short_number(size)}: the loss against the ratio: {said}.")
    for row in tables.spread_table(analysis).to_dict("records"):
        lines.append(
            f"d_ff = {row['feed_forward']}, size {short_number(row['size'])}: the loss spreads by "
            f"{row['over_ratios']:.4f} over ratios and by {row['over_depths']:.4f} over depths; "
            f"{_LARGER.get(row['verdict'], 'the first is ' + str(row['verdict']))}."
        )
    return "\n".join(lines)


def _redundancy_line(one: Found, analysis: RatioAnalysis) -> str:
    found, noise = one.redundancy, analysis.noise
    assert found is not None
    also = () if noise is None else one.at.also_best(noise)
    others = f" (or {', '.join(map(str, also))})" if also else ""
    interval = "" if math.isnan(found.low) else f" ({interval_words(found.low, found.high)})"
    wasted = f"{found.value:.0%}{interval}, {found.status}"
    if found.status is RedundancyStatus.TOO_FEW_POINTS:
        wasted = str(found.status)
    return (
        f"d_ff = {one.feed_forward}, H d_a / d = {one.ratio:g}, size {short_number(one.at.size)}: best depth "
        f"{one.at.best_depth}{others}; redundancy in {SIZE_LABELS[one.axis]} {wasted}."
    )


def _fit(analysis: RatioAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
    return {
        "study": NAME,
        "model": "1 - size of the best network of ratio 1 with equal loss / size, by monotone interpolation",
        "status": tables.NO_NOISE if analysis.noise is None else "measured",
        "noise": None if analysis.noise is None else analysis.noise.std,
        "redundancy": plain_rows(tables.redundancy_table(analysis)),
        "monotony": plain_rows(tables.monotony_table(analysis)),
        "spread": plain_rows(tables.spread_table(analysis)),
    }
