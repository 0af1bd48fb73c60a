"""The tables, figures and fit.json of transitions between depths, from runs or from transitions that are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from shapelaw.fits.inputs import check_bootstrap, check_transitions, read_table
from shapelaw.fits.line import overall_status
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.studies.grid.cells import Value, frame_of, name_of
from shapelaw.studies.transitions import tables as tabled
from shapelaw.studies.transitions.analysis import Options, Runs, TransitionAnalysis, analyse_transitions
from shapelaw.studies.transitions.figures import figures_of
from shapelaw.studies.transitions.sentences import answer, summary

Cells = Sequence[tuple[Mapping[str, Value], TransitionAnalysis]]  # what names a cell, and its analysis
SHAPE_FORMATS = {
    **dict.fromkeys(("depth", "depth_err", "depth_low", "depth_high"), ".1f"),
    **dict.fromkeys(("width", "width_err", "width_low", "width_high"), ".0f"),
    "unreached": ".1%",
}
WIDTHS = ("width", "width_err", "width_low", "width_high", "bound", "bound_err")
WIDTH_FORMATS = dict.fromkeys((*WIDTHS, "reportable_low", "reportable_high", "noise_scale"), ".1f")
GAP_FORMATS = dict.fromkeys(("width", "deeper_width"), ".1f") | dict.fromkeys(
    ("loss", "deeper_loss", "deeper_by", "deeper_by_err"), ".4f"
)


def _of_runs(made: Callable[[Runs], pd.DataFrame]) -> Callable[[TransitionAnalysis], pd.DataFrame]:
    """A table that is made of what needs runs."""

    def of(analysis: TransitionAnalysis) -> pd.DataFrame:
        assert analysis.runs is not None
        return made(analysis.runs)

    return of


TABLES = {
    "transitions": TableOf(
        lambda one: one.transitions,
        "The width at which each depth is overtaken by the next greater one.",
        WIDTH_FORMATS,
    ),
    "fit": TableOf(tabled.fit_table, "Weighted fit of log d = a + b L."),
    "projection": TableOf(
        lambda one: tabled.projection_table(one.fit, one.forms),
        "Best depth and width for the sizes of GPT-3 and for 1T parameters.",
        SHAPE_FORMATS | {"params": ".3g", "non_embedding_params": ".3g"},
    ),
    "forms": TableOf(
        lambda one: tabled.forms_table(one.forms),
        "Forms of the transition width, weighted by how well they predict left-out points.",
        {"weight": ".3f"} | {f"N_{depth}": ".3g" for depth in tabled.FORM_DEPTHS},
    ),
    "comparison": TableOf(
        tabled.comparison_table, "Our numbers beside the published ones (Levine et al. 2020)."
    ),
}
TABLES_OF_RUNS = {
    "size_axes": TableOf(
        _of_runs(lambda runs: runs.size_axes),
        "The transitions at equal parameters of the blocks, all parameters, and FLOPs.",
        WIDTH_FORMATS,
    ),
    "seed_noise": TableOf(_of_runs(tabled.seed_noise_table), "Spread of the loss over seeds."),
    "best_depth": TableOf(
        _of_runs(lambda runs: tabled.best_depth_table(tabled.rank_depths(runs.curves, runs.noise))),
        "The best depth in each range of sizes.",
        {"size_low": ".3g", "size_high": ".3g", "certain": ".0%"},
    ),
}


def analyse(transitions: Path, options: Options | None = None) -> TransitionAnalysis:
    """Read a table of transitions (.csv or .parquet; `depth, width, width_err`) and fit them.

    Raises:
        UserError: the table can't be used.
    """
    options = options or Options()
    check_bootstrap(options.noise, options.draws)
    given = check_transitions(read_table(transitions), str(transitions))
    return analyse_transitions(given, options.method)


def present(analysis: TransitionAnalysis) -> Results:
    """The tables, figures and fit.json of one analysis; from transitions alone without those that need runs."""
    return present_cells([({}, analysis)])


def present_cells(cells: Cells) -> Results:
    """The same of several cells: tables with the columns that tell them apart, and their panels in each figure."""
    wanted = TABLES if cells[0][1].runs is None else TABLES | TABLES_OF_RUNS
    own = [(name_of(values), values, tables_of(wanted, wanted, one), one) for values, one in cells]
    drawn = figures_of({name: one for name, _, _, one in own})
    if len(own) == 1:
        ((_, _, tables, one),) = own
        return Results(tables, drawn, _fit(one), summary(one), answer=answer(tables))
    tables = {
        name: Table(
            frame_of((values, made[name].frame) for _, values, made, _ in own), table.caption, table.formats
        )
        for name, table in own[0][2].items()
    }
    fits = [{"cell": dict(values), **_fit(one)} for _, values, _, one in own]
    status = overall_status([one.fit.status.value for _, _, _, one in own])
    told = "\n".join(f"{name}: {line}" for name, _, _, one in own for line in summary(one).splitlines())
    answers = {name: answer(made) for name, _, made, _ in own}
    return Results(tables, drawn, {"status": status, "cells": fits}, told, answer=_answer(answers))


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
