"""The figures of a grid: the losses of every cell, what each axis does, and the best depth of every cell."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from shapelaw.fits.curves import SIZE_LABELS
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span
from shapelaw.report.plots import ACCENT, INK, PAGE, ordered_looks, side_by_side
from shapelaw.studies.grid.analysis import CellAnalysis, GridAnalysis, within
from shapelaw.studies.grid.cells import plain, said
from shapelaw.studies.grid.rates import RATE, at_rate, in_order, is_best
from shapelaw.studies.grid.tables import DIFFERENCE
from shapelaw.studies.transitions.figures import curves_chart, transition_points

MOST_ROWS, MOST_COLUMNS = 12, 6  # of panels
MOST_PAIRS = 40  # of one axis
MOST_LOOKS = 40  # cells in one panel


def losses_figure(analysis: GridAnalysis) -> Chart:
    """The loss of each depth against size, a panel a cell: the axis with most values along, the others below."""
    axes = analysis.cells.axes
    counts = {axis: len(analysis.cells.values_of(axis)) for axis in axes}
    fitting = [axis for axis in axes if counts[axis] <= MOST_COLUMNS]
    along = max(fitting, key=counts.__getitem__) if fitting else None
    panels = {}
    for one in analysis.analyses:
        below = ", ".join(said(name, one.values[name]) for name in axes if name != along)
        panels[below, "" if along is None else said(along, one.values[along])] = one.transitions
    rows = list(dict.fromkeys(row for row, _ in panels))[:MOST_ROWS]
    columns = [""] if along is None else [said(along, value) for value in analysis.cells.values_of(along)]
    shown = {key: found for key, found in panels.items() if key[0] in rows}
    return curves_chart(shown, columns, analysis.analyses[0].compared.loss_label)


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
    x = Span(f"loss of the second less that of the first at equal size ({unit})")
    return Panel(marks, x, y, axis)


def _label(analysis: GridAnalysis, axis: str, row: Mapping[Hashable, Any]) -> str:
    """`H = 1 -> H = 2; V = 257`, or over how many settings."""
    pair = f"{said(axis, plain(row['one']))} → {said(axis, plain(row['other']))}"
    if row["settings"] != 1:
        return f"{pair}; mean of {row['settings']}"
    others = [said(name, plain(row[name])) for name in analysis.cells.axes if name != axis]
    return "; ".join([pair, ", ".join(others)]) if others else pair


def best_depth_figure(analysis: GridAnalysis) -> Chart | str:
    """The depth of least loss of every cell at each size at which it has several: a row a cell. Else the reason.

    A mark is pale where another depth of the cell is not significantly worse; a ring is the best cell of its size.
    """
    found = [(one.cell.name, list(_best_depths(analysis, one))) for one in analysis.analyses]
    shown = [(name, marks) for name, marks in found if marks][:MOST_LOOKS]
    if not shown:
        return "no cell has two depths of one size, or the cells have no loss in which they compare"
    looks = ordered_looks(sorted({depth for one in analysis.analyses for depth in one.losses[0]}))
    marks = []
    for row, (_, best) in enumerate(shown):
        for size, depth, certain, wins in best:
            look, pale = looks[depth], {"markersize": 6, "alpha": 1.0 if certain else 0.35}
            marks.append(Points(size, row, f"L = {depth}", look.color, look.marker, more=pale))
            if wins:
                marks.append(Points(size, row, "best cell", INK, "o", hollow=True, more={"markersize": 11}))
    names = {row: name for row, (name, _) in enumerate(shown)}
    y = Span(ticks=names, limits=(len(shown) - 0.5, -0.5))
    title = "depth of least loss; pale: another depth is as good, within the noise"
    panel = Panel(marks, Span(SIZE_LABELS[analysis.options.size], "log"), y, title)
    return Chart([panel], width=PAGE, height=1.3 + 0.24 * len(shown), legend=6)


def _best_depths(analysis: GridAnalysis, one: CellAnalysis) -> Iterator[tuple[float, int, bool, bool]]:
    """The best depth of a cell at each size at which it has two: size, depth, whether it is certain, and the best."""
    for at in analysis.best:
        mine = [candidate for candidate in at if candidate.cell is one]
        if len(mine) > 1:
            ranked = within(mine)
            yield mine[0].size, mine[0].depth, not any(other.near for other in ranked[1:]), mine[0] is at[0]


def rates_figure(cells: Sequence[CellAnalysis], row_of: Callable[[CellAnalysis], str]) -> Chart:
    """Loss of each depth against size: a row for each series, a column for each learning rate and the best ones."""
    return curves_chart({(row_of(one), at_rate(one)): one.transitions for one in cells}, in_order(cells))


def widths_panel(
    cells: Sequence[CellAnalysis],
    kinds: Sequence[str],
    kind_of: Callable[[CellAnalysis], str],
    rates: Sequence[float],
    title: str,
) -> Panel | None:
    """Transition width of the shallowest pair against the learning rate, kinds side by side.

    The best rates stand at the right end, under their name; triangles are bounds. None without a width or a bound.
    """
    best, looks, marks = rates[-1] * 2, ordered_looks(range(len(kinds))), list[Mark]()
    for one in cells:
        kind = kinds.index(kind_of(one))
        at = (best if is_best(one) else one.cell.number(RATE)) * side_by_side(kind, len(kinds))
        for row in one.transitions.bootstrap_rows[:1]:
            marks += transition_points(at, row, looks[kind].color, kinds[kind], looks[kind].marker)
    ticks = {**{rate: f"{rate:g}" for rate in rates}, best: "best"}
    y = Span("width at which the deeper network wins", "whole log")
    return Panel(marks, Span("peak learning rate", "values", ticks), y, title) if marks else None
