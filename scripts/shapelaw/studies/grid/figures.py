"""The figures of a grid: the losses of every cell, what each axis does, and the best depth of every cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.curves import SIZE_LABELS
from shapelaw.report.plots import (
    ACCENT,
    INK,
    MUTED,
    PAGE,
    legend_below,
    new_figure,
    ordered_looks,
    side_by_side,
    size_axis,
    style,
    value_axis,
)
from shapelaw.studies.grid.analysis import CellAnalysis, GridAnalysis, within
from shapelaw.studies.grid.cells import Value, plain, said
from shapelaw.studies.grid.rates import RATE, at_rate, in_order, is_best
from shapelaw.studies.grid.tables import DIFFERENCE
from shapelaw.studies.transitions.drawing import draw_panels, draw_transition

MOST_ROWS, MOST_COLUMNS = 12, 6  # of panels
MOST_PAIRS = 40  # of one axis
MOST_LOOKS = 40  # cells in one panel


def losses_figure(analysis: GridAnalysis) -> Figure:
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
    return draw_panels(shown, columns, analysis.analyses[0].compared.loss_label)


def effects_figure(analysis: GridAnalysis, effects: pd.DataFrame) -> Figure | str:
    """The loss difference of every pair of cells that differ in one axis, with its 95% interval: a panel an axis.

    Filled marks are means over the settings of the other axes. Without two such cells, the reason.
    """
    rows = effects[(effects["quantity"] == DIFFERENCE) & effects["value"].notna()]
    axes = list(dict.fromkeys(rows["axis"]))
    if not axes:
        return "no two cells differ in one thing alone and have sizes in common"
    told = {axis: rows[rows["axis"] == axis].head(MOST_PAIRS) for axis in axes}
    heights = [len(one) + 1.5 for one in told.values()]
    with style():
        figure, panels = new_figure(
            len(axes), 1, width=PAGE, height=0.5 * len(axes) + 0.17 * sum(heights), height_ratios=heights
        )
        for panel, (axis, some) in zip(panels[:, 0], told.items(), strict=True):
            labels = []
            for place, row in enumerate(some.to_dict("records")):
                mean = row["settings"] > 1
                reach = 0.0 if math.isnan(row["low"]) else row["value"] - row["low"]
                panel.errorbar(
                    row["value"], place, xerr=reach, fmt="D" if mean else "o",
                    color=ACCENT if mean else INK, markerfacecolor=ACCENT if mean else "white", markersize=4,
                    label=("mean over settings" if mean else "one setting") + ", 95% interval",
                )  # fmt: skip
                labels.append(_label(analysis, axis, row))
            panel.axvline(0, color=MUTED, linewidth=0.8, zorder=0)
            panel.set_yticks(range(len(labels)), labels)
            panel.set_ylim(len(labels) - 0.5, -0.5)
            panel.grid(axis="y", visible=False)
            panel.set_title(axis)
            panel.set_xlabel(
                f"loss of the second less that of the first at equal size ({some['unit'].iloc[0]})"
            )
        legend_below(figure, 2)
        return figure


def _label(analysis: GridAnalysis, axis: str, row: Mapping[str, object]) -> str:
    """`H = 1 -> H = 2; V = 257`, or over how many settings."""
    pair = f"{said(axis, _value(row['one']))} → {said(axis, _value(row['other']))}"
    if row["settings"] != 1:
        return f"{pair}; mean of {row['settings']}"
    others = [said(name, _value(row[name])) for name in analysis.cells.axes if name != axis]
    return "; ".join([pair, ", ".join(others)]) if others else pair


def _value(value: object) -> Value:
    return plain(value)


def best_depth_figure(analysis: GridAnalysis) -> Figure | str:
    """The depth of least loss of every cell at each size at which it has several: a row a cell. Else the reason.

    A mark is pale where another depth of the cell is not significantly worse; a ring is the best cell of its size.
    """
    found = {place: list(_best_depths(analysis, one)) for place, one in enumerate(analysis.analyses)}
    shown = [place for place, marks in found.items() if marks][:MOST_LOOKS]
    if not shown:
        return "no cell has two depths of one size, or the cells have no loss in which they compare"
    looks = ordered_looks(sorted({depth for one in analysis.analyses for depth in one.losses[0]}))
    with style():
        figure, axes = new_figure(width=PAGE, height=1.3 + 0.24 * len(shown))
        axis = axes[0, 0]
        for row, place in enumerate(shown):
            for size, depth, certain, wins in found[place]:
                look = looks[depth]
                axis.plot(
                    size, row, look.marker, color=look.color, alpha=1.0 if certain else 0.35, markersize=6,
                    label=f"L = {depth}",
                )  # fmt: skip
                if wins:
                    axis.plot(
                        size, row, "o", color=INK, markerfacecolor="none", markersize=11, label="best cell"
                    )
        size_axis(axis)
        axis.set_yticks(range(len(shown)), [analysis.analyses[place].cell.name for place in shown])
        axis.set_ylim(len(shown) - 0.5, -0.5)
        axis.set_xlabel(SIZE_LABELS[analysis.options.size])
        axis.set_title("depth of least loss; pale: another depth is as good, within the noise")
        legend_below(figure, 6)
        return figure


def _best_depths(analysis: GridAnalysis, one: CellAnalysis) -> Iterator[tuple[float, int, bool, bool]]:
    """The best depth of a cell at each size at which it has two: size, depth, whether it is certain, and the best."""
    for at in analysis.best:
        mine = [candidate for candidate in at if candidate.cell is one]
        if len(mine) > 1:
            ranked = within(mine)
            yield mine[0].size, mine[0].depth, not any(other.near for other in ranked[1:]), mine[0] is at[0]


def rates_figure(cells: Sequence[CellAnalysis], row_of: Callable[[CellAnalysis], str]) -> Figure:
    """Loss of each depth against size: a row for each series, a column for each learning rate and the best ones."""
    return draw_panels({(row_of(one), at_rate(one)): one.transitions for one in cells}, in_order(cells))


def draw_widths(
    axis: Axes,
    cells: Sequence[CellAnalysis],
    kinds: Sequence[str],
    kind_of: Callable[[CellAnalysis], str],
    rates: Sequence[float],
) -> bool:
    """Transition width of the shallowest pair against the learning rate, kinds side by side.

    The best rates stand at the right end, under their name; triangles are bounds.

    Returns:
        True if there was a width or a bound.
    """
    best, looks, drawn = rates[-1] * 2, ordered_looks(range(len(kinds))), set[int]()
    for one in cells:
        kind = kinds.index(kind_of(one))
        look, label = looks[kind], None if kind in drawn else kinds[kind]
        at = (best if is_best(one) else one.cell.number(RATE)) * side_by_side(kind, len(kinds))
        for row in one.transitions.bootstrap_rows[:1]:
            if draw_transition(axis, at, row, look.color, look.color, label, look.marker):
                drawn.add(kind)
    value_axis(axis, [*rates, best])
    axis.set_xticks([*rates, best], [*(f"{rate:g}" for rate in rates), "best"])
    axis.set_xlabel("peak learning rate")
    return bool(drawn)
