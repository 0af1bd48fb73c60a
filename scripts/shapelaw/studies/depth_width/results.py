"""Depth against width: where does a deeper network start to win, and what follows for larger ones?

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

import json
import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import SIZE_LABELS, Side, SizeAxis, TransitionStatus
from shapelaw.fits.inputs import check_runs, check_transitions, read_table
from shapelaw.fits.projection import SCATTERED, why_no_projection
from shapelaw.report.plots import save_figure
from shapelaw.report.tables import write_table, writing_to
from shapelaw.studies.depth_width import figures
from shapelaw.studies.depth_width import tables as tabled
from shapelaw.studies.depth_width.analysis import (
    Analysis,
    Options,
    Runs,
    analyse_runs,
    analyse_transitions,
    crossings,
)

# runs this much further off their curves than seeds are from each other are worth a word
NOTABLE_SCALE = 1.5
_SHAPE_FORMATS = {"depth": ".1f", "depth_err": ".1f", "width": ".0f", "width_err": ".0f"}
_SHAPE_FORMATS |= {"depth_low": ".1f", "depth_high": ".1f", "width_low": ".0f", "width_high": ".0f"}
_SHAPE_FORMATS |= {"unreached": ".1%"}
_WIDTH_FORMATS = dict.fromkeys(
    (
        *("width", "width_err", "width_low", "width_high", "bound", "bound_err"),
        *("reportable_low", "reportable_high", "noise_scale"),
    ),
    ".1f",
)


def analyse(
    out: Path, *, runs: Path | None = None, transitions: Path | None = None, options: Options | None = None
) -> Analysis:
    """Read one table (.csv or .parquet), analyse it, and write all tables and figures into the folder `out`.

    Exactly one of `runs` (`depth, width, seed, test_loss` and maybe `params`) and `transitions` (`depth, width,
    width_err`) is given. Written: transitions, fit, projection, comparison and, from runs, seed_noise and best_depth,
    each as .csv, .md and .tex; fit.json; figures as .svg and .png.

    Raises:
        UserError: the table can't be used, or not exactly one is given.
    """
    options = options or Options()
    if (runs is None) == (transitions is None):
        raise UserError("Give either a table of runs or a table of transitions.")
    if options.noise is not None and not 0 < options.noise < float("inf"):
        raise UserError(f"The noise is {options.noise}; it is a standard deviation of the loss, above zero.")
    if options.draws < 100:
        raise UserError(f"{options.draws} bootstrap draws are too few for a 68% interval; give 100 or more.")
    if runs is not None:
        analysis = analyse_runs(
            check_runs(read_table(runs), str(runs), loss=options.loss, size=options.size), options
        )
    else:
        assert transitions is not None
        given = check_transitions(read_table(transitions), str(transitions))
        analysis = analyse_transitions(given, options.method)
    write(analysis, out)
    return analysis


def write(analysis: Analysis, out: Path) -> list[Path]:
    """Write the tables, fit.json and the figures of an analysis into the folder `out`; returns their paths.

    Raises:
        UserError: the folder can't be written.
    """
    with writing_to(out):
        return _write_tables(analysis, out) + _write_figures(analysis, out)


def summary(analysis: Analysis) -> str:
    """What was found, in sentences, one a line: each transition, the fit or why there is none, the noise."""
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


def _transition_sentence(row: Mapping[Hashable, Any], runs: Runs | None) -> str:
    """One transition with its size axis, its noise, its cautions, and what the other axes make of it."""
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


def _forms_sentence(analysis: Analysis) -> str:
    """What the projection's error leaves out: how other forms that fit project, with their weights."""
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


def _what_could_be_found(analysis: Analysis) -> list[str]:
    """For each crossing beside the published line: how far from it a crossing could have been and still be reported."""
    lines = []
    found = crossings(analysis.transitions, analysis.method)
    for row in found[found["reportable_low"].notna()].to_dict("records"):
        line = tabled.published_line(row["depth"])
        low, high = (row[name] / line - 1 for name in ("reportable_low", "reportable_high"))
        lines.append(
            f"The published line has {line:.0f} at depth {row['depth']:.0f}, {row['width'] / line - 1:+.0%} for ours; "
            f"any crossing that these sizes could report lies between {row['reportable_low']:.0f} and "
            f"{row['reportable_high']:.0f}, {low:+.0%} to {high:+.0%} from it."
        )
    return lines


def _write_tables(analysis: Analysis, out: Path) -> list[Path]:
    files = write_table(
        analysis.transitions,
        out / "transitions",
        formats=_WIDTH_FORMATS,
        caption="Width at which a depth is overtaken by the next greater one.",
        label="tab:transitions",
    )
    fit_json = out / "fit.json"
    main = {"model": "log(width) = a + b*depth", "method": analysis.method, **analysis.fit.to_dict()}
    others = {name: fit.to_dict() for name, fit in analysis.fits.items() if name != analysis.method}
    fit_json.write_text(
        json.dumps(main | {"other_methods": others}, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    files += [fit_json]
    files += write_table(
        tabled.fit_table(analysis), out / "fit", caption="Weighted fit of log d = a + b L.", label="tab:fit"
    )
    files += write_table(
        tabled.projection_table(analysis.fit, analysis.forms),
        out / "projection",
        formats=_SHAPE_FORMATS | {"params": ".3g", "non_embedding_params": ".3g"},
        caption="Best depth and width for the sizes of GPT-3 and for 1T parameters.",
        label="tab:projection",
    )
    files += write_table(
        tabled.forms_table(analysis.forms),
        out / "forms",
        formats={"weight": ".3f"} | {f"N_{depth}": ".3g" for depth in tabled.FORM_DEPTHS},
        caption="Forms of the transition width, weighted by how well they predict left-out points.",
        label="tab:forms",
    )
    files += write_table(
        tabled.comparison_table(analysis),
        out / "comparison",
        caption="Ours beside the published numbers (Levine et al. 2020).",
        label="tab:comparison",
    )
    if analysis.runs is not None:
        files += write_table(
            analysis.runs.size_axes,
            out / "size_axes",
            formats=_WIDTH_FORMATS,
            caption="The transitions at equal parameters of the blocks, all parameters, and FLOPs.",
            label="tab:size-axes",
        )
        files += write_table(
            tabled.seed_noise_table(analysis.runs),
            out / "seed_noise",
            caption="Spread of the loss over seeds.",
            label="tab:seed-noise",
        )
        files += write_table(
            tabled.best_depth_table(tabled.rank_depths(analysis.runs.curves, analysis.runs.noise)),
            out / "best_depth",
            formats={"params_low": ".3g", "params_high": ".3g", "certain": ".0%"},
            caption="Best depth of each range of sizes.",
            label="tab:best-depth",
        )
    return files


def _write_figures(analysis: Analysis, out: Path) -> list[Path]:
    drawn = {
        "transition_width": figures.transition_width_figure(analysis),
        "transition_size": figures.transition_size_figure(analysis),
        "extrapolation": figures.extrapolation_figure(analysis),
    }
    if analysis.runs is not None:
        drawn["loss_adjacent"] = figures.loss_figure(
            analysis.runs.adjacent, analysis.runs.loss_label, analysis.runs.size
        )
        drawn["loss_doubled"] = figures.loss_figure(
            analysis.runs.doubled, analysis.runs.loss_label, analysis.runs.size
        )
        drawn["best_depth"] = figures.best_depth_figure(analysis.runs)
    return [path for name, figure in drawn.items() for path in save_figure(figure, out / name)]


__all__ = [
    "BOOTSTRAP",
    "Analysis",
    "Options",
    "analyse",
    "analyse_runs",
    "analyse_transitions",
    "summary",
    "write",
]
