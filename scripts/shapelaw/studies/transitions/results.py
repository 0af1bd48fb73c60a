"""Transitions between depths as results, from runs or from transitions that are known: options, tables, sentences."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from shapelaw.errors import Parts
from shapelaw.fits.crossing import BOOTSTRAP, shared_sizes
from shapelaw.fits.curves import PAPER_RULE, Curve, TransitionStatus, adjacent_pairs, status_sentence
from shapelaw.fits.inputs import check_bootstrap, read_table
from shapelaw.fits.line import FitStatus, overall_status
from shapelaw.fits.noise import SIGNIFICANT, chance_words, noise_sentence
from shapelaw.fits.projection import why_no_projection, widened
from shapelaw.report.write import Answer, Made, Results, Table, TableOf, assembled, tables_of, without
from shapelaw.specs.sizes import LEAST_SIZES, SizeAxis
from shapelaw.studies.grid.cells import Value, name_of, tables_of_cells
from shapelaw.studies.study import DEPTH_WIDTH, published, published_log_width, published_of
from shapelaw.studies.transitions import tables as tabled
from shapelaw.studies.transitions.analysis import (
    PUBLISHED,
    WIDTH,
    Options,
    TransitionAnalysis,
    analyse_transitions,
    check_transitions,
    published_transitions,
)
from shapelaw.studies.transitions.figures import figures_of

T = TypeVar("T")
Cells = Sequence[tuple[Mapping[str, Value], TransitionAnalysis]]  # what names a cell, and its analysis
SHAPE_FORMATS = {
    **dict.fromkeys(("depth", "depth_err", "depth_low", "depth_high"), ".1f"),
    **dict.fromkeys(("width", "width_err", "width_low", "width_high"), ".0f"),
    "unreached": ".1%",
}
WIDTHS = ("width", "width_err", "width_low", "width_high", "bound", "bound_err")
PAIR_FORMATS = {
    **dict.fromkeys((*WIDTHS, "reportable_low", "reportable_high", "noise_scale"), ".1f"),
    **dict.fromkeys(("mid_depth", "depth_ratio", "correlation", "lag"), ".2f"),
}
GAP_FORMATS = dict.fromkeys(("width", "deeper_width"), ".1f") | dict.fromkeys(
    ("loss", "deeper_loss", "deeper_by", "deeper_by_err"), ".4f"
)
SHAPE_NUMBERS = ("params", "depth_err", "width_err", "unreached", "published_depth", "published_width")
# of a fit, in its CSV file alone
FIT_NUMBERS = ("cov_aa", "cov_ab", "cov_bb", "chi2", "r_squared", "dof", "message")
TABLES = {
    "transitions": TableOf(
        lambda one: tabled.told_by_pair(one.transitions),
        "The width at which each depth is overtaken by the next greater one, with the 68% interval by the bootstrap, "
        "and with the two trained sizes on its sides by the paper's rule; with the middle of the two depths.",
        PAIR_FORMATS,
        tabled.read_transitions,
        counted=True,
    ),
    "fit": TableOf(
        tabled.fit_table, "Weighted fit of log d = a + b L.", read=without(*FIT_NUMBERS), counted=True
    ),
    "projection": TableOf(
        lambda one: tabled.projection_table(one.fit, one.forms),
        "Best depth and width for the sizes of GPT-3 and for 1T parameters.",
        SHAPE_FORMATS,
        without(*SHAPE_NUMBERS),
    ),
    "forms": TableOf(
        lambda one: tabled.forms_table(one.forms),
        "Forms of the transition width, weighted by how well they predict left-out points, and the parameters from "
        "which depth 80 is overtaken.",
        {"weight": ".3f"},
        tabled.read_forms,
    ),
    "comparison": TableOf(
        tabled.comparison_table, "Our numbers beside the published ones (Levine et al. 2020)."
    ),
}
METHODS = {"bootstrap": BOOTSTRAP, "paper": PAPER_RULE}
SHOWN = 3  # crossings in one line
ANSWERING = ("fit", "transitions")  # tables that the answer is read from
THROUGHOUT = (TransitionStatus.SHALLOWER_BETTER, TransitionStatus.DEEPER_BETTER)  # one depth is better
NO_SEED_NOISE = (
    "Seed noise: no shape has more than one seed, so nothing can be called significant (give --noise)."
)
NO_COMMON_SIZES = (
    "No two depths have four sizes in common, so there are no curves of equal depth to compare; "
    "`shapelaw fit` fits one surface through all shapes, wherever they lie, with the same options for its runs."
)


TABLES_OF_RUNS = {
    "size_axes": replace(
        TABLES["transitions"],
        frame=lambda one: tabled.told_by_pair(one.compared.size_axes),
        caption="The transitions at equal parameters of the blocks, all parameters, and FLOPs.",
    ),
    "seed_noise": TableOf(
        lambda one: tabled.seed_noise_table(one.compared), "Spread of the loss over seeds."
    ),
    "best_depth": TableOf(
        lambda one: tabled.best_depth_table(tabled.rank_depths(one.compared.curves, one.compared.noise)),
        "The best depth in each range of sizes.",
        {"certain": ".0%"},
    ),
}


def analyse(transitions: Path, options: Options | None = None) -> TransitionAnalysis:
    """Read a table of transitions (.csv or .parquet; `depth, width, width_err`), or the published ones, and fit them.

    Raises:
        UserError: the table can't be used.
    """
    options = options or Options()
    check_bootstrap(options.noise, options.draws)
    table = published_transitions() if str(transitions) == PUBLISHED else read_table(transitions)
    given = check_transitions(table, str(transitions))
    return analyse_transitions(given, options.method)


def present(analysis: TransitionAnalysis) -> Results:
    """The tables, figures and fit.json of one analysis; from transitions alone without those that need runs."""
    return present_cells([({}, analysis)], Parts())


def present_cells(cells: Cells, parts: Parts) -> Results:
    """The same of several cells: tables with the columns that tell them apart, and their panels in each figure.

    Args:
        parts: what of the cells' analysis failed.
    """
    wanted = TABLES if cells[0][1].runs is None else TABLES | TABLES_OF_RUNS
    figures = figures_of({name_of(values): one for values, one in cells})

    def each(make: Callable[[tuple[Mapping[str, Value], TransitionAnalysis]], T]) -> list[tuple[Any, T]]:
        return parts.each(cells, make, lambda cell: name_of(cell[0]))

    def stacked(name: str) -> Table:
        tables = each(lambda cell: wanted[name].of(cell[1]))
        return tables_of_cells((values, {name: table}) for (values, _), table in tables)[name]

    def told(_: object) -> list[str]:
        lines = each(lambda cell: summary(cell[1]).splitlines())
        return [
            f"{name_of(values)}: {line}" if values else line for (values, _), some in lines for line in some
        ]

    def answered(made: Made) -> Answer:
        if len(cells) == 1:
            return answer(made)
        answers = each(lambda cell: answer(tables_of(TABLES, ANSWERING, cell[1])))
        return _answer({name_of(values): one for (values, _), one in answers})

    def fitted(_: object) -> dict[str, Any]:
        if len(cells) == 1:
            return _fit(cells[0][1])
        status = overall_status([one.fit.status.value for _, one in cells])
        return {"status": status, "cells": [{"cell": dict(values), **_fit(one)} for values, one in cells]}

    tables = {name: partial(stacked, name) for name in wanted}
    return assembled(parts, tables, figures, {"transitions": told}, fitted, answered)


def _answer(answers: Mapping[str, Answer]) -> Answer:
    """What is answered for each cell, in one line, those that are decided first."""
    in_order = sorted(answers.items(), key=lambda pair: not pair[1].decided)
    said = " ".join(f"{name}: {one.sentence}" for name, one in in_order)
    return Answer(said, in_order[0][1].decided, in_order[0][1].published)


def _fit(analysis: TransitionAnalysis) -> dict[str, Any]:
    """The content of fit.json: the main fit, and those of the other methods."""
    main = {"model": "log(width) = a + b*depth", "method": analysis.method, **analysis.fit.to_dict()}
    others = {name: fit.to_dict() for name, fit in analysis.fits.items() if name != analysis.method}
    return main | {"other_methods": others}


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
        "--noise",
        type=float,
        metavar="STD",
        help="standard deviation of one run's loss over seeds, in place of the one pooled over repeated seeds; "
        "needed where no shape has two seeds",
    )
    add_size_options(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")


def add_axes_option(parser: argparse.ArgumentParser) -> None:
    """Add what a grid lists."""
    parser.add_argument(
        "--axes",
        nargs="*",
        metavar="NAME",
        help="columns that the grid lists, each of which splits its runs into cells (default: those that take several "
        "values at one depth and width)",
    )


def add_size_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the studies that find transitions in several settings: the size and the bootstrap's draws."""
    parser.add_argument(
        "--size",
        choices=[axis.value for axis in SizeAxis],
        default=SizeAxis.BLOCK.value,
        help="size in which compared networks are equal: parameters of the blocks (block_params or 12 L d^2, default), "
        "all parameters (total_params) or FLOPs of a step (step_flops); the others are reported too",
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=Options.draws,
        help=f"bootstrap draws (default: {Options.draws:,}); with fewer, more results are undecided",
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


def summary(analysis: TransitionAnalysis) -> str:
    """What no table of transitions says: the noise, the fit or why there is none."""
    runs, lines = analysis.runs, []
    if runs is not None:
        lines.append(NO_SEED_NOISE if runs.noise is None else noise_sentence(runs.noise))
        if no_common_sizes(runs.curves):
            return "\n".join([*lines, NO_COMMON_SIZES])
    for method, fit in analysis.fits.items():
        main = ", the main fit" if method == analysis.method and len(analysis.fits) > 1 else ""
        reason = why_no_projection(fit)
        if not fit.usable:
            lines.append(f"Fit ({method}{main}): no fit is possible, {fit.status}: {fit.message}.")
        else:
            wide = widened(fit)
            values = f"a = {fit.a:.4f} ± {wide.a_err:.4f}, b = {fit.b:.5f} ± {wide.b_err:.5f}"
            wider = "" if wide is fit else ": here they are widened to that scatter"
            lines.append(f"Fit ({method}{main}): log d = a + b L with {values}; {fit.message}{wider}.")
            if reason:
                lines.append(f"Projection ({method}): {reason}.")
    return "\n".join(lines)


def no_common_sizes(curves: Mapping[int, Curve]) -> bool:
    """True where no two adjacent depths have the sizes in common that a comparison needs."""
    common = [min(map(len, shared_sizes(*pair)[1])) for pair in adjacent_pairs(curves)]
    return max(common, default=0) < LEAST_SIZES


def answer(tables: Mapping[str, Table]) -> Answer:
    """The widths at which depths are overtaken and the law through them; else why there is none.

    Args:
        tables: those of `ANSWERING`.
    """
    fit, transitions = tables["fit"].frame.iloc[0], tables["transitions"].frame
    mine = transitions[transitions["method"] == fit["method"]]
    said = overtaken(mine if len(mine) else transitions)
    law = ""
    if fit["status"] == FitStatus.CONVERGED:
        values = [f"{name} = {fit[name]:.4g} \u00b1 {fit[f'{name}_err']:.2g}" for name in ("a", "b")]
        law = f"Law: log d = a + b L, {', '.join(values)}."
        if fit["p_value"] < SIGNIFICANT:
            law = f"Law: a line log d = a + b L fits badly ({chance_words(fit['p_value'])}); other forms: table forms."
    found = mine[mine["status"] == TransitionStatus.CROSSING].to_dict("records")
    return replace(said, published=_published([row["depth"] for row in found[:SHOWN]]), more=law)


def overtaken(transitions: pd.DataFrame) -> Answer:
    """The widths at which depths are overtaken by deeper ones, of all methods that of the bootstrap where it is there.

    Where none is: of two depths one of which is better throughout that is the answer, else it is undecided.

    Args:
        transitions: the study's table, of one method or of all.
    """
    mine = transitions[transitions["method"] == BOOTSTRAP]
    mine = mine if len(mine) else transitions
    found = mine[mine["status"] == TransitionStatus.CROSSING].to_dict("records")
    if not found:
        clear = mine[mine["status"].isin(THROUGHOUT)]
        return Answer(_why_none(mine if clear.empty else clear), not clear.empty)
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    said = "; ".join(map(_overtaken, found[:SHOWN]))
    return Answer(f"{said[0].upper()}{said[1:]}{more}.", True)


def undecided(transitions: pd.DataFrame) -> str:
    """A sentence on how many of the bootstrap's transitions are undecided, and why; empty where none is.

    Args:
        transitions: a table of all methods.
    """
    mine = transitions[transitions["method"] == BOOTSTRAP]
    some = mine[~mine["status"].isin((TransitionStatus.CROSSING, *THROUGHOUT))]
    if some.empty:
        return ""
    many = f"{len(some)} of {len(mine)} comparisons of two depths"
    why = ", ".join(status_sentence({"status": status}) for status in some["status"].unique())
    return f"The size from which depth pays is undecided in {many}: {why}."


def _overtaken(row: Mapping[Hashable, Any]) -> str:
    interval = (
        "" if pd.isna(row["width_low"]) else f" (68%: {row['width_low']:.0f} to {row['width_high']:.0f})"
    )
    deeper = "a deeper one" if pd.isna(row["deeper_depth"]) else f"depth {row['deeper_depth']:.0f}"
    return f"{deeper} overtakes depth {row['depth']:.0f} at width {row['width']:.0f}{interval}"


def _published(depths: Sequence[float]) -> str:
    """The published widths at some depths, by the line where none was measured, and the line."""
    known, words = published_of(DEPTH_WIDTH, WIDTH), ""
    for depth in depths:
        place = f"{depth:.0f}"
        width = known[place].number if place in known else math.exp(published_log_width(depth))
        words += f"{', ' if words else ''}width {width:.0f} at depth {place}"
    a, b = (published(DEPTH_WIDTH, name).number for name in ("a", "b"))
    return f"{words}{'; ' if words else ''}log d = {a:.3f} + {b:.4f} L (Levine et al. 2020)."


def _why_none(mine: pd.DataFrame) -> str:
    if mine.empty:
        return "No two depths can be compared."
    row = mine.iloc[0].to_dict()
    return f"Depth {row['depth']:.0f} against {row['deeper_depth']:.0f}: {status_sentence(row)}."
