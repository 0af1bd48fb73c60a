"""What a grid says: the transitions of every cell, the effect of every axis, and the best shape of every size.

Input: rows of `depth, width, seed, test_loss`, and of what a grid varies by the names of `specs/kinds.py`: heads,
vocab_size, embedding_rank, block, steps and others; `block_params`, `total_params`, `step_flops` and `bits_per_byte`
where the table has them. Losses of several vocabularies or texts compare in bits per byte alone.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pandas as pd

from shapelaw.errors import Parts
from shapelaw.fits.line import overall_status
from shapelaw.fits.noise import SIGNIFICANT, chance_words, noise_sentence
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span
from shapelaw.report.plots import ACCENT, INK, PAGE, ordered_looks
from shapelaw.report.reading import decimals_of
from shapelaw.report.tables import grouped, plain_rows
from shapelaw.report.write import Answer, Made, Results, Table, TableOf, assembled, without
from shapelaw.specs.runs import phrase_of
from shapelaw.specs.sizes import SIZE_LABELS, SizeAxis
from shapelaw.studies.grid import tables
from shapelaw.studies.grid.analysis import (
    BITS,
    LOSS,
    CellAnalysis,
    GridAnalysis,
    analyse_grid,
    is_known,
    within,
)
from shapelaw.studies.grid.cells import Cell, Cells, plain, said
from shapelaw.studies.grid.tables import DIFFERENCE
from shapelaw.studies.study_runs import study_runs
from shapelaw.studies.transitions import results as transitions
from shapelaw.studies.transitions.analysis import Options, TransitionAnalysis
from shapelaw.studies.transitions.figures import curves_chart, layers_text
from shapelaw.studies.transitions.tables import gaps_table, read_gaps, read_transitions

_EFFECTS: dict[str, Any] = {"read": tables.read_effects, "counted": True}
T = TypeVar("T")
Row = Mapping[Hashable, Any]
CELL_TABLES = {
    "transitions": replace(
        transitions.TABLES["transitions"],
        caption="Width at which the deeper network wins, for {of}: with the 68% interval by the bootstrap, and with "
        "the two trained sizes on its sides by the paper's rule.",
        read=tables.of_cells(read_transitions),
    ),
    "size_axes": replace(transitions.TABLES_OF_RUNS["size_axes"], read=tables.of_cells(read_transitions)),
    "gaps": TableOf(
        lambda one: gaps_table(one.compared),
        "Loss of the deeper network minus that of the shallower one at equal size: negative where the deeper one is "
        "better. In the CSV file, deeper_by is its negative.",
        transitions.GAP_FORMATS,
        tables.of_cells(read_gaps),
    ),
}
TABLES = {
    "losses": TableOf(
        lambda one: tables.stack(one.analyses, tables.mean_losses_of, parts=one.parts),
        "Mean test loss of every network.",
        {"test_loss": ".4f", BITS: ".4f", "loss_std": ".4f"},
        tables.of_cells(tables.read_losses),
    ),
    "fit": TableOf(
        lambda one: tables.stack(one.analyses, tables.lines_of, parts=one.parts),
        "Weighted fit of log d = a + b L, for each cell.",
        read=tables.of_cells(without(*transitions.FIT_NUMBERS)),
        counted=True,
    ),
    "projection": TableOf(
        lambda one: tables.projection_of_cells(one.analyses, one.parts),
        "Shapes that the line of a cell projects.",
        transitions.SHAPE_FORMATS,
        tables.of_cells(without(*transitions.SHAPE_NUMBERS, "trained_depth", "trained_width")),
    ),
    "effects": TableOf(
        lambda one: tables.effects_tables(one)["effects"],
        "What each axis does at equal size: the loss of the network with the later value minus that of the other, on "
        "average over the settings of the other axes, with its 95% interval by all noise.",
        **_EFFECTS,
    ),
    "effects_by_setting": TableOf(
        lambda one: tables.effects_tables(one)["effects_by_setting"],
        "The differences that are averaged in table effects, setting by setting, with 95% intervals.",
        **_EFFECTS,
    ),
    "effects_on_transitions": TableOf(
        lambda one: tables.effects_tables(one)["effects_on_transitions"],
        "By what factor each axis moves the width from which the deeper network wins, with 95% intervals.",
        **_EFFECTS,
    ),
    "effects_by_size": TableOf(
        tables.effects_by_size_table,
        "The differences of tables effects and effects_by_setting, size by size, with 95% intervals.",
        {"width": ".1f"},
        tables.read_effects,
    ),
    "best_shapes": TableOf(
        tables.best_shapes_table,
        "The best shape of each size over all cells, where the next shallower and the next deeper depth reach the size "
        "too, and no depth that doesn't has a lower loss at a smaller one; those within the noise of it are in the CSV "
        "file.",
        {"width": ".1f", "test_loss": ".4f", BITS: ".4f"},
        tables.of_cells(tables.read_best_shapes),
    ),
    "seed_noise": TableOf(
        lambda one: tables.seed_noise_table(one.analyses),
        "Spread of the loss over seeds.",
        dict.fromkeys(("loss_mean", "loss_std"), ".4f"),
        tables.of_cells(without()),
    ),
}
IN_FIT = ("transitions", "fit", *tables.EFFECTS, "best_shapes")  # tables that fit.json has too
MOST_ROWS, MOST_COLUMNS = 12, 6  # of panels
MOST_PAIRS = 40  # of one axis
MOST_LOOKS = 40  # cells in one panel


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the axes, the size and the bootstrap's draws."""
    transitions.add_axes_option(parser)
    transitions.add_size_options(parser)


def results_of(
    arguments: argparse.Namespace,
    analyse: Callable[[pd.DataFrame, str, Options], T],
    present: Callable[[T], Results],
) -> Results:
    """The results of a study's table of runs, with the options of `add_size_options`.

    Raises:
        UserError: the table can't be used.
    """
    options = Options(size=SizeAxis(arguments.size), draws=arguments.draws)
    given = study_runs(arguments.input, arguments.keep)
    return present(analyse(given.table, given.source, options)).after(given.notes)


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return results_of(arguments, partial(analyse_grid, axes=arguments.axes), present)


def present(analysis: GridAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    own = {name: partial(one.of, analysis) for name, one in TABLES.items()}
    cells = cell_tables(analysis.analyses, analysis.parts, unit=analysis.unit)
    return assembled(
        analysis.parts,
        {"losses": own["losses"], **cells, **own},
        {
            "losses": lambda _: losses_figure(analysis),
            "effects": lambda made: effects_figure(analysis, tables.every_effect(made)),
            "best_depth": lambda _: best_depth_figure(analysis),
        },
        {
            "the cells": lambda _: _cell_sentences(analysis),
            "the effects": lambda made: _effect_sentences(analysis, tables.every_effect(made)),
        },
        lambda made: _fit(analysis, made),
        answer,
    )


def cell_tables(
    analyses: Sequence[CellAnalysis],
    parts: Parts,
    named: tables.Named = tables.OWN_VALUES,
    of: str = "each cell",
    unit: str = LOSS,
) -> dict[str, Callable[[], Table]]:
    """How the tables of transitions are made that every study of several cells has.

    Args:
        parts: is told the cells that a table lacks.
        named: the columns that name a cell.
        of: what the transitions are of, for the caption.
        unit: the loss in which the cells compare; a cell that has none in it keeps its own.
    """

    def made(one: TableOf) -> Table:
        def stacked(_: object) -> pd.DataFrame:
            return tables.stack(analyses, lambda cell: one.frame(_in_unit(cell, unit)), named, parts)

        return replace(one, frame=stacked, caption=one.caption.format(of=of)).of(None)

    return {name: partial(made, one) for name, one in CELL_TABLES.items()}


def _fit(analysis: GridAnalysis, made: Made) -> dict[str, Any]:
    """The content of fit.json."""
    return {
        "status": overall_status([one.transitions.fit.status.value for one in analysis.analyses]),
        "axes": list(analysis.cells.axes),
        "unit": analysis.unit,
        "cells": tables.cells_table(analysis),
        **{name: plain_rows(made[name].frame) for name in IN_FIT if name in made},
    }


def answer(made: Mapping[str, Table]) -> Answer:
    """What each axis does, its largest effect beyond the noise or what bounds all, and how many transitions are open.

    Args:
        made: the tables `EFFECTS` and `transitions` of the grid.
    """
    effects = tables.every_effect(made)
    found = effects[(effects["quantity"] == DIFFERENCE) & effects["value"].notna()]
    if found.empty:
        if effects.empty:  # one cell: no axis has an effect, and which depth wins is what can be asked
            return transitions.overtaken(made["transitions"].frame)
        return Answer("No two cells that differ in one thing have sizes in common.", False)
    said_of = [_of_axis(str(axis), rows) for (axis, _), rows in found.groupby(["axis", "unit"], sort=False)]
    open_part = transitions.undecided(made["transitions"].frame) if "transitions" in made else ""
    decided = bool(found["p"].notna().any())
    return Answer(f"{'; '.join(said_of)}. {open_part}".strip(), decided, partly=decided and open_part != "")


def _of_axis(axis: str, rows: pd.DataFrame) -> str:
    """The largest effect beyond the noise, of means over settings where there are some; else what bounds all."""
    rows = rows.loc[rows["value"].abs().sort_values(ascending=False, kind="stable").index]
    means, single = rows[rows["settings"] > 1], rows[rows["settings"] == 1]
    asked = single if means.empty else means
    clear, clear_single = (some[some["p_holm"] < SIGNIFICANT] for some in (asked, single))
    said_of = effect_words((asked if clear.empty else clear).iloc[0].to_dict())
    if clear.empty and not clear_single.empty:
        where = f"{len(clear_single)} of {len(single)} settings"
        said_of += f", after Holm's correction significant in {where} but not on average"
    elif clear.empty and asked["p"].notna().any():
        interval = _interval_words(asked["low"].min(), asked["high"].max())
        chance = chance_words(asked["p_holm"].min())
        said_of = f"no effect found ({interval} {rows['unit'].iloc[0]}; {chance} after Holm's correction)"
    return f"{phrase_of(axis)}: {said_of}"


def effect_words(row: Row) -> str:
    """`from H = 1 to H = 2 the loss rises by 0.012 nats per token (95%: 0.008 to 0.016; mean of 4 settings)`."""
    one, other = (said(str(row["axis"]), plain(row[end])) for end in ("one", "other"))
    sign, moves = (-1.0, "falls") if row["value"] < 0 else (1.0, "rises")
    low, high = sorted((sign * row["low"], sign * row["high"]))
    over = f"mean of {row['settings']} settings" if row["settings"] > 1 else ""
    notes = "; ".join(filter(None, (_interval_words(low, high), over, row["caution"])))
    by = f"{sign * row['value']:{_form(low, high)}} {row['unit']}"
    return f"from {one} to {other} the loss {moves} by {by} ({notes})"


def _interval_words(low: float, high: float) -> str:
    form = _form(low, high)
    return "no noise estimate" if math.isnan(low) else f"95%: {low:{form}} to {high:{form}}"


def _form(low: float, high: float) -> str:
    """The format of a number with this interval: two digits of what it reaches."""
    reach = (high - low) / 2
    return f"z.{decimals_of(reach)}f" if 0 < reach < math.inf else ".4g"


def _cell_sentences(analysis: GridAnalysis) -> Iterator[str]:
    """What tells the cells apart, what follows in them, and their noise."""
    cells = analysis.cells
    if cells.axes:
        yield f"{len(cells.cells)} cells, which differ in {', '.join(cells.axes)}."
    for rules, kin in grouped((one.rules, one) for one in cells.cells if one.rules).items():
        yield f"Within a cell{_of(cells, kin)}: {'; '.join(rules)}."
    for noise, kin in grouped((one.compared.noise, one.cell) for one in analysis.analyses).items():
        yield f"{noise_sentence(noise).removesuffix('.')}{_of(cells, kin)}."


def _of(cells: Cells, kin: list[Cell]) -> str:
    return "" if len(kin) == len(cells.cells) else f" ({cells.name_of(kin)})"


def _effect_sentences(analysis: GridAnalysis, effects: pd.DataFrame) -> Iterator[str]:
    """How the effects are corrected, and why there is no best shape."""
    tested = int(effects["p"].notna().sum())
    if tested:
        yield f"P values have Holm's correction for the {tested} effects of this grid."
    if not analysis.best and analysis.unit == BITS:
        yield "The table has no bits per byte, in which alone the losses of several vocabularies or texts compare."


def losses_figure(analysis: GridAnalysis) -> Chart:
    """The loss of each depth against size, a panel a cell: the axis with most values along, the others below.

    It is in the unit in which all cells compare, where all have it.
    """
    axes = analysis.cells.axes
    counts = {axis: len(analysis.cells.values_of(axis)) for axis in axes}
    fitting = [axis for axis in axes if counts[axis] <= MOST_COLUMNS]
    along = max(fitting, key=counts.__getitem__) if fitting else None
    panels = {}
    for one in analysis.analyses:
        below = ", ".join(said(name, one.values[name]) for name in axes if name != along)
        panels[below, "" if along is None else said(along, one.values[along])] = _in_unit(one, analysis.unit)
    rows = list(dict.fromkeys(row for row, _ in panels))[:MOST_ROWS]
    columns = [""] if along is None else [said(along, value) for value in analysis.cells.values_of(along)]
    shown = {key: found for key, found in panels.items() if key[0] in rows}
    return curves_chart(shown, columns)


def _in_unit(one: CellAnalysis, unit: str) -> TransitionAnalysis:
    """A cell's analysis with its curves in a unit, where it has them."""
    return replace(one.transitions, runs=one.in_unit(unit) or one.compared)


def effects_figure(analysis: GridAnalysis, effects: pd.DataFrame) -> Chart | str:
    """The loss difference of every pair of cells that differ in one axis, with its 95% interval: a panel an axis.

    Filled marks are means over the settings of the other axes. Without two such cells, the reason.
    """
    rows = effects[(effects["quantity"] == DIFFERENCE) & effects["value"].notna()]
    told = {axis: part.head(MOST_PAIRS) for axis, part in rows.groupby("axis", sort=False)}
    if not told:
        return "no two cells differ in one thing alone and have sizes in common"
    panels = [_effects(analysis, str(axis), some) for axis, some in told.items()]
    heights = [len(some) + 1.5 for some in told.values()]
    height = 0.5 * len(told) + 0.17 * sum(heights)
    return Chart(panels, width=PAGE, height=height, heights=heights, legend=2)


def _effects(analysis: GridAnalysis, axis: str, rows: pd.DataFrame) -> Panel:
    marks: list[Mark] = [Across(0, "x", more={"zorder": 0})]
    for means, words in ((False, "one setting"), (True, "mean over settings")):
        some = rows.reset_index(drop=True)[(rows["settings"] > 1).to_numpy() == means]
        if len(some):
            marker, color = ("D", ACCENT) if means else ("o", INK)
            look = {"markersize": 4, "markerfacecolor": color if means else "white"}
            label, reach = f"{words}, 95% interval", some["value"] - some["low"]
            marks.append(Points(some["value"], some.index, label, color, marker, x_err=reach, more=look))
    labels = [_label(analysis, axis, row) for row in rows.to_dict("records")]
    y = Span(ticks=dict(enumerate(labels)), limits=(len(labels) - 0.5, -0.5))
    unit = rows["unit"].iloc[0]
    x = Span(f"change in loss at equal size, the second minus the first ({unit})")
    return Panel(marks, x, y, axis)


def _label(analysis: GridAnalysis, axis: str, row: Mapping[Hashable, Any]) -> str:
    """`H = 1 -> H = 2; V = 257`, or over how many settings."""
    pair = f"{said(axis, plain(row['one']))} → {said(axis, plain(row['other']))}"
    if row["settings"] != 1:
        return f"{pair}; mean of {row['settings']}"
    others = [said(name, plain(row[name])) for name in analysis.cells.axes if name != axis]
    return "; ".join([pair, ", ".join(others)]) if others else pair


def best_depth_figure(analysis: GridAnalysis) -> Chart | str:
    """The depth of least loss of every cell at each size at which it is known: a row a cell. Else the reason.

    A mark is pale where another depth of the cell is not significantly worse; a ring is the best cell of its size.
    """
    found = [(one.cell.name, list(_best_depths(analysis, one))) for one in analysis.analyses]
    shown = [(name, marks) for name, marks in found if marks][:MOST_LOOKS]
    if not shown:
        return "no cell has a size whose best depth is known, or the cells have no loss in which they compare"
    looks = ordered_looks(sorted({depth for one in analysis.analyses for depth in one.compared.curves}))
    marks = []
    for row, (_, best) in enumerate(shown):
        for size, depth, certain, wins in best:
            look, pale = looks[depth], {"markersize": 6, "alpha": 1.0 if certain else 0.35}
            marks.append(Points(size, row, layers_text(depth), look.color, look.marker, more=pale))
            if wins:
                marks.append(Points(size, row, "best cell", INK, "o", hollow=True, more={"markersize": 11}))
    names = {row: name for row, (name, _) in enumerate(shown)}
    y = Span(ticks=names, limits=(len(shown) - 0.5, -0.5))
    title = "depth of least loss; pale: another depth is as good, within the noise"
    panel = Panel(marks, Span(SIZE_LABELS[analysis.options.size], "log"), y, title)
    return Chart([panel], width=PAGE, height=1.3 + 0.24 * len(shown), legend=6)


def _best_depths(analysis: GridAnalysis, one: CellAnalysis) -> Iterator[tuple[float, int, bool, bool]]:
    """The best depth of a cell at each size at which it is known: size, depth, whether it is certain, and the best."""
    for at in analysis.best:
        mine = [candidate for candidate in at if candidate.cell is one]
        if mine and is_known(mine, [one], analysis.unit):
            ranked = within(mine)
            wins = mine[0] is at[0] and is_known(at, analysis.analyses, analysis.unit)
            yield mine[0].size, mine[0].depth, not any(other.near for other in ranked[1:]), wins
