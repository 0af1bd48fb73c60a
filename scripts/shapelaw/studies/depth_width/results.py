"""Depth against width: where a deeper network starts to win, and what follows for larger ones.

Levine et al. 2020, "Limits to Depth Efficiencies of Self-Attention", section 5 and appendix D. From the test losses
of a grid of depths and widths: the transition of each pair of adjacent depths by the paper's rule and by a bootstrap
of the smooth loss curves, the line `log d = a + b L` through them, `N_transition(L)`, and the shapes that it projects
for larger sizes, with the published numbers beside ours.

    paper                    here
    figure 1b, 2             loss_doubled: test loss against size, depths (L, 2L); loss_adjacent: adjacent depths
    figure 3a, table 4a      transition_width, transitions
    figure 3b, eq. 10        transition_size
    figure 3c                best_depth
    figure 4, table 1        extrapolation, projection
    table 3                  seed_noise
    eq. 11, section 5.2.2    fit, comparison
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from shapelaw.errors import UserError
from shapelaw.fits.crossing import BOOTSTRAP, MIN_SIZES
from shapelaw.fits.curves import (
    SIZE_LABELS,
    Curve,
    Side,
    SizeAxis,
    TransitionStatus,
    adjacent_pairs,
    shared_range,
    sizes_in,
)
from shapelaw.fits.inputs import check_bootstrap, check_runs, check_transitions, read_table
from shapelaw.fits.projection import SCATTERED, why_no_projection
from shapelaw.fits.transitions import PAPER_RULE
from shapelaw.report.write import Results, Table
from shapelaw.studies.depth_width import figures
from shapelaw.studies.depth_width import tables as tabled
from shapelaw.studies.depth_width.analysis import (
    Options,
    Runs,
    TransitionAnalysis,
    analyse_runs,
    analyse_transitions,
    crossings,
)

METHODS = {"bootstrap": BOOTSTRAP, "paper": PAPER_RULE}
# worth a sentence: runs that lie off their curves by this many times the seed noise
NOTABLE_SCALE = 1.5
NO_COMMON_SIZES = (
    "No two depths have four sizes in common, so there are no curves of equal depth to compare; "
    "scripts/fit_surface.py fits one surface through all shapes, wherever they lie, with the same options for its runs."
)
_SHAPE_FORMATS = {"depth": ".1f", "depth_err": ".1f", "width": ".0f", "width_err": ".0f"}
_SHAPE_FORMATS |= {"depth_low": ".1f", "depth_high": ".1f", "width_low": ".0f", "width_high": ".0f"}
_SHAPE_FORMATS |= {"unreached": ".1%"}
WIDTH_FORMATS = dict.fromkeys(
    (
        *("width", "width_err", "width_low", "width_high", "bound", "bound_err"),
        *("reportable_low", "reportable_high", "noise_scale"),
    ),
    ".1f",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of how transitions are found and compared."""
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="bootstrap",
        help="method whose transitions the main fit, the projection and the figures use (default: bootstrap; the "
        "paper's rule gives half the distance of two sizes, which is not a standard error); both are fitted",
    )
    parser.add_argument(
        "--loss",
        metavar="COLUMN",
        help="the column to compare: test_loss (nats per token, default), bits_per_byte, or one of your own",
    )
    parser.add_argument(
        "--size",
        choices=[axis.value for axis in SizeAxis],
        default=SizeAxis.BLOCK.value,
        help="size in which compared networks are equal: parameters of the blocks (block_params or 12 L d^2, default), "
        "all parameters (total_params) or FLOPs of a step (step_flops); transitions at the others stand beside",
    )
    parser.add_argument(
        "--noise",
        type=float,
        metavar="STD",
        help="standard deviation of one run's loss over seeds, in place of the one pooled over repeated seeds; "
        "needed where no shape has two seeds",
    )
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap draws (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")


def add_size_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the studies that find transitions in several settings: the size and the bootstrap's draws."""
    parser.add_argument(
        "--size",
        choices=[axis.value for axis in SizeAxis],
        default=SizeAxis.BLOCK.value,
        help="parameters of the blocks (default), all parameters, or FLOPs; the others stand beside",
    )
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap draws (default: 2000)")


def transition_sentences(setting: str, analysis: TransitionAnalysis) -> Iterator[str]:
    """Each of the bootstrap's transitions of one setting in words, without a full stop, from a study of several."""
    assert analysis.runs is not None
    for row in analysis.bootstrap_rows:
        if row["status"] == TransitionStatus.CROSSING:
            found = f"width {row['width']:.1f} ({row['width_low']:.1f} to {row['width_high']:.1f})"
        else:
            bound = f", {row['side']} {row['bound']:.0f}" if isinstance(row["side"], str) else ""
            found = f"{row['status']}{bound}"
        yield (
            f"{setting}: depth {row['depth']} against {row['deeper_depth']}: {found} at equal "
            f"{SIZE_LABELS[analysis.runs.size]}"
        )


def options_of(arguments: argparse.Namespace) -> Options:
    """The options of a command line."""
    return Options(
        arguments.loss or Options.loss,
        arguments.noise,
        METHODS[arguments.method],
        arguments.draws,
        arguments.seed,
        SizeAxis(arguments.size),
    )


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return present(analyse(runs=arguments.input, options=options_of(arguments)))


def analyse(
    *, runs: Path | None = None, transitions: Path | None = None, options: Options | None = None
) -> TransitionAnalysis:
    """Read one table (.csv or .parquet) and analyse it.

    Exactly one of `runs` (`depth, width, seed, test_loss` and maybe `block_params`) and `transitions` (`depth, width,
    width_err`) is given.

    Raises:
        UserError: the table can't be used, or not exactly one is given.
    """
    options = options or Options()
    if (runs is None) == (transitions is None):
        raise UserError("Give either a table of runs or a table of transitions.")
    check_bootstrap(options.noise, options.draws)
    if runs is not None:
        checked = check_runs(read_table(runs), str(runs), loss=options.loss, size=options.size)
        return analyse_runs(checked, options)
    assert transitions is not None
    given = check_transitions(read_table(transitions), str(transitions))
    return analyse_transitions(given, options.method)


def present(analysis: TransitionAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis; from transitions alone without those that need runs."""
    return Results(_tables(analysis), _figures(analysis), _fit(analysis), summary(analysis))


def summary(analysis: TransitionAnalysis) -> str:
    """The findings in sentences, one a line: each transition, the fit or why there is none, the noise."""
    lines = []
    if analysis.runs is not None:
        noise = analysis.runs.noise
        if noise is None:
            lines.append(
                "Seed noise: no shape has more than one seed, so nothing can be called significant (give --noise)."
            )
        else:
            measured = "as given" if math.isinf(noise.dof) else f"{noise.dof:.0f} degrees of freedom"
            lines.append(f"Seed noise: {noise.std:.3g} per run, {measured}.")
    if analysis.runs is not None and no_common_sizes(analysis.runs.curves):
        lines.append(NO_COMMON_SIZES)
        return "\n".join(lines)
    for row in analysis.transitions.to_dict("records"):
        lines.append(_transition_sentence(row, analysis.runs))
    lines += _what_could_be_found(analysis)
    for method, fit in analysis.fits.items():
        main = ", the main fit" if method == analysis.method and len(analysis.fits) > 1 else ""
        reason = why_no_projection(fit)
        if not fit.usable:
            lines.append(f"Fit ({method}{main}): no fit is possible, {fit.status}: {fit.message}.")
        else:
            values = f"a = {fit.a:.4f} ± {fit.a_err:.4f}, b = {fit.b:.5f} ± {fit.b_err:.5f}"
            lines.append(f"Fit ({method}{main}): log d = a + b L with {values}; {fit.message}.")
            if reason:
                lines.append(f"Projection ({method}): {reason}.")
    if analysis.forms:
        lines.append(_forms_sentence(analysis))
    return "\n".join(lines)


def no_common_sizes(curves: Mapping[int, Curve]) -> bool:
    """True where no two adjacent depths have the sizes in common that a comparison needs."""
    common = [
        min(len(sizes_in(curve, *shared_range(*pair))) for curve in pair) for pair in adjacent_pairs(curves)
    ]
    return max(common, default=0) < MIN_SIZES


def _transition_sentence(row: Mapping[Hashable, Any], runs: Runs | None) -> str:
    """One transition with its size axis, its noise, its cautions, and the transition on the other axes."""
    deeper = "" if pd.isna(row["deeper_depth"]) else f" against {row['deeper_depth']}"
    text = f"Depth {row['depth']}{deeper} ({row['method']}): {_found(row)}"
    if runs is not None:
        text += f", at equal {SIZE_LABELS[runs.size]}"
        if row["method"] == BOOTSTRAP:
            others = runs.size_axes[
                (runs.size_axes["depth"] == row["depth"]) & (runs.size_axes["size_axis"] != runs.size.value)
            ]
            beside = [
                f"{_found(other)} at equal {SIZE_LABELS[SizeAxis(other['size_axis'])]}"
                for other in others.to_dict("records")
            ]
            text += f" ({'; '.join(beside)})" if beside else ""
    if row["noise_scale"] > NOTABLE_SCALE:
        text += f"; runs lie {row['noise_scale']:.1f} times the seed noise off smooth curves"
    if isinstance(row["caution"], str) and row["caution"]:
        text += f"; doubtful: {row['caution']}"
    return text + "."


def _found(row: Mapping[Hashable, Any]) -> str:
    if row["status"] == TransitionStatus.CROSSING:
        return f"width {row['width']:.1f} ± {row['width_err']:.1f}"
    side = {Side.ABOVE: "above", Side.BELOW: "below", Side.AT: "about"}.get(row["side"])
    return str(row["status"]) + (f", {side} {row['bound']:.0f}" if side else "")


def _forms_sentence(analysis: TransitionAnalysis) -> str:
    """The uncertainty that the projection's error leaves out: projections of other forms, with their weights."""
    table = tabled.forms_table(analysis.forms)
    parts = [
        f"{row['form']} {row['N_80']:.3g} ± {row['N_80_err']:.0%} (weight {row['weight']:.2f}, "
        f"chi2 {row['chi2']:.2f} with {row['dof']} dof)"
        for row in table.to_dict("records")
        if row["p_value"] >= SCATTERED or row["form"] == table["form"].iloc[0]
    ]
    return (
        "Projection: errors are conditional on the line. N_transition(80) by form: " + "; ".join(parts) + "."
    )


def _what_could_be_found(analysis: TransitionAnalysis) -> list[str]:
    """A sentence for each crossing: its distance from the published line, and the range that could be reported."""
    lines = []
    found = crossings(analysis.transitions, analysis.method)
    for row in found[found["reportable_low"].notna()].to_dict("records"):
        line = tabled.published_line(row["depth"])
        low, high = (row[name] / line - 1 for name in ("reportable_low", "reportable_high"))
        lines.append(
            f"At depth {row['depth']:.0f} the published line gives {line:.0f}, and ours differs by "
            f"{row['width'] / line - 1:+.0%}; these sizes can only report crossings between "
            f"{row['reportable_low']:.0f} and {row['reportable_high']:.0f} ({low:+.0%} to {high:+.0%})."
        )
    return lines


def _fit(analysis: TransitionAnalysis) -> dict[str, Any]:
    """The content of fit.json: the main fit, and those of the other methods."""
    main = {"model": "log(width) = a + b*depth", "method": analysis.method, **analysis.fit.to_dict()}
    others = {name: fit.to_dict() for name, fit in analysis.fits.items() if name != analysis.method}
    return main | {"other_methods": others}


def _tables(analysis: TransitionAnalysis) -> dict[str, Table]:
    tables = {
        "transitions": Table(
            analysis.transitions,
            "The width at which each depth is overtaken by the next greater one.",
            WIDTH_FORMATS,
        ),
        "fit": Table(tabled.fit_table(analysis), "Weighted fit of log d = a + b L."),
        "projection": Table(
            tabled.projection_table(analysis.fit, analysis.forms),
            "Best depth and width for the sizes of GPT-3 and for 1T parameters.",
            _SHAPE_FORMATS | {"params": ".3g", "non_embedding_params": ".3g"},
        ),
        "forms": Table(
            tabled.forms_table(analysis.forms),
            "Forms of the transition width, weighted by how well they predict left-out points.",
            {"weight": ".3f"} | {f"N_{depth}": ".3g" for depth in tabled.FORM_DEPTHS},
        ),
        "comparison": Table(
            tabled.comparison_table(analysis), "Our numbers beside the published ones (Levine et al. 2020)."
        ),
    }
    runs = analysis.runs
    if runs is None:
        return tables
    return tables | {
        "size_axes": Table(
            runs.size_axes,
            "The transitions at equal parameters of the blocks, all parameters, and FLOPs.",
            WIDTH_FORMATS,
        ),
        "seed_noise": Table(tabled.seed_noise_table(runs), "Spread of the loss over seeds."),
        "best_depth": Table(
            tabled.best_depth_table(tabled.rank_depths(runs.curves, runs.noise)),
            "The best depth in each range of sizes.",
            {"size_low": ".3g", "size_high": ".3g", "certain": ".0%"},
        ),
    }


def _figures(analysis: TransitionAnalysis) -> dict[str, Figure]:
    drawn = {
        "transition_width": figures.transition_width_figure(analysis),
        "transition_size": figures.transition_size_figure(analysis),
        "extrapolation": figures.extrapolation_figure(analysis),
    }
    runs = analysis.runs
    if runs is None:
        return drawn
    return drawn | {
        "loss_adjacent": figures.loss_figure(runs.adjacent, runs.loss_label, runs.size),
        "loss_doubled": figures.loss_figure(runs.doubled, runs.loss_label, runs.size),
        "best_depth": figures.best_depth_figure(runs),
    }
