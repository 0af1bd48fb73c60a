"""The figures of the exact separation ranks: against depth, width, embedding rank, heads, tokens; and of degrees.

Circles are exact, triangles are lower bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shapelaw.report.plots import (
    ACCENT,
    INK,
    MUTED,
    PAGE,
    draw_grid,
    explain,
    key,
    log_axis,
    new_figure,
    ordered_looks,
    style,
    whole_axis,
)
from shapelaw.studies.separation_rank.degrees import GROUP
from shapelaw.theory.graded_dimensions import multiset
from shapelaw.theory.rank_bounds import early_upper, late_upper, log3, one_head

LOG3_RANK = "$\\log_3$ of the separation rank"
_LINE_DEPTHS = 3  # layers drawn beyond the deepest network measured
_MOST_PANELS, _MOST_BUDGETS = 9, 4
_MOST_INSIDE = 4  # the most lines whose legend fits into the axes


def depth_figure(ranks: pd.DataFrame) -> Figure | str:
    """log3 of the rank against depth: each width's closed form as a line that ends in it, threshold log3(d) as a tick.

    Left: two tokens. Right: 2 d or more, with the upper bounds of both regimes for the largest width.
    A side without two depths of a width says so; without both sides, the reason.
    """
    whole = _whole(ranks[ranks["heads"] == 1])
    two, many = whole[whole["tokens"] == 2], whole[whole["tokens"] >= 2 * whole["width"]]
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=3.6)
        _depth_panel(axes[0, 0], two, "N = 2")
        _depth_panel(axes[0, 1], many, "N ≥ 2d")
        if not any(axis.axison for axis in axes[0]):
            return "no width was measured at two depths"
        threshold = key(
            "threshold $\\log_3 d$ of each width", INK, "", marker="|", markersize=7, markeredgewidth=2
        )
        _keys(figure, "closed form", last=[threshold])
        return figure


def _depth_panel(axis: Axes, mine: pd.DataFrame, title: str) -> None:
    mine = mine.sort_values(["width", "depth", "tokens"]).drop_duplicates(["width", "depth"])
    count = mine.groupby("width")["depth"].transform("size")
    widths = [int(width) for width in sorted(mine.loc[count > 1, "width"].unique())]
    if not widths:
        axis.set_axis_off()
        explain(axis, f"no width has two depths at {title}")
        return
    looks, last = ordered_looks(widths), int(mine["depth"].max()) + _LINE_DEPTHS
    depths = range(1, last + 1)
    for width, look in looks.items():
        _points(axis, mine[mine["width"] == width], "depth", look.color, f"d = {width}")
        line = [_log_rank(depth, width, title == "N = 2") for depth in depths]
        axis.plot(depths, line, color=look.color, linewidth=0.8, linestyle=look.dashes)
        end, below = (last, line[-1]), axis.get_xaxis_transform()
        axis.annotate(f"{width}", end, (2, 0), textcoords="offset points", va="center", fontsize=6)
        tick = math.log(width, 3)
        axis.axvline(tick, ymax=0.05, color=look.color, linewidth=2, solid_capstyle="butt")
        axis.text(tick, 0.055, f"{width}", transform=below, ha="center", fontsize=5)
    if title != "N = 2":
        _regimes(axis, widths[-1], last)
    axis.set_ylim(bottom=0.3)
    log_axis(axis, "y")
    axis.set(xlabel="depth L", ylabel=LOG3_RANK)
    axis.set_title(title)
    whole_axis(axis)
    bounds = axis.get_legend_handles_labels()[0][len(widths) :]
    shown = [
        key(f"d = {width}", look.color, look.dashes, marker="o", linewidth=0.8)
        for width, look in looks.items()
    ]
    axis.legend(handles=[*shown, *bounds], loc="upper left", bbox_to_anchor=(1.0, 1.0))


def width_figure(ranks: pd.DataFrame) -> Figure | str:
    """The rank against width at 2 d tokens or more, a line for each depth and for one head or d heads."""
    mine = _whole(ranks)
    mine = mine[mine["tokens"] >= 2 * mine["width"]]

    def series() -> Iterable[tuple[str, pd.DataFrame]]:
        for depth in sorted(mine["depth"].unique()):
            at = mine[mine["depth"] == depth].drop_duplicates(["width", "heads"])
            yield f"L = {depth}, one head", at[at["heads"] == 1]
            yield f"L = {depth}, d heads", at[(at["heads"] == at["width"]) & (at["width"] > 1)]

    nothing = "no depth was measured at two widths with N ≥ 2d"
    return _single(series(), "width", "width d", log_x=True, nothing=nothing)


def embedding_figure(ranks: pd.DataFrame) -> Figure | str:
    """Left: the rank against width, flat beyond the embedding rank r. Right: against r, a line for each r_e."""
    base = ranks[~ranks["residual"] & (ranks["heads"] == 1) & (ranks["attention_dim"] == ranks["width"])]
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=3.2)
        left, right = axes[0]
        mine = base[base["positional_rank"] == 0]
        depth = _most_common(mine[mine["embedding_rank"] < mine["width"]], "depth")
        mine = mine[(mine["depth"] == depth) & (mine["tokens"] >= 2 * mine["width"])]
        found = [
            (f"r = {rank}", group.drop_duplicates("width"))
            for rank, group in mine.groupby("embedding_rank")
            if group["width"].nunique() > 1
        ]
        _lines(left, found, "width", "no embedding rank has\ntwo widths at N ≥ 2d")
        left.set_xlabel("width d")
        if found:
            left.set_title(f"L = {depth}, no positions")
        mine = base
        for size in ("width", "tokens", "depth"):
            mine = mine[mine[size] == _most_common(mine[mine["positional_rank"] > 0], size)]
        found = [(f"$r_e$ = {places}", group) for places, group in mine.groupby("positional_rank")]
        _lines(right, found, "embedding_rank", "no network has positions")
        right.set_xlabel("embedding rank r")
        if len(mine):
            one = mine.iloc[0]
            right.set_title(f"d = {one['width']}, N = {one['tokens']}, L = {one['depth']}")
        if not any(axis.axison for axis in axes[0]):
            return "no embedding rank was measured at two widths, and no network with positions"
        for axis in (left, right):
            axis.set_ylabel("separation rank")
        _keys(figure)
        return figure


def heads_figure(ranks: pd.DataFrame) -> Figure | str:
    """The rank as a share of its upper bound against heads of dimension d / H, a line for each depth and width."""
    mine = _whole(ranks)
    mine = mine[mine["tokens"] >= 2 * mine["width"]].assign(share=lambda t: t["rank"] / t["upper_bound"])

    nothing = "no width was measured with two numbers of heads"
    return _single(
        _by_shape(mine), "heads", "heads H", y="share", label="rank / upper bound", nothing=nothing
    )


def tokens_figure(ranks: pd.DataFrame) -> Figure | str:
    """The rank against the number of tokens N, one head, two layers and more, a line for each depth and width."""
    mine = _whole(ranks[(ranks["heads"] == 1) & (ranks["depth"] > 1)])
    nothing = "no network was measured with two numbers of tokens"
    return _single(_by_shape(mine), "tokens", "tokens N", nothing=nothing)


def _by_shape(ranks: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    """The rows of each depth and width, under its name."""
    for (depth, width), group in ranks.groupby(["depth", "width"]):
        yield f"L = {depth}, d = {width}", group


def residual_figure(residual: pd.DataFrame) -> Figure | str:
    """The rank with residual connections against that without."""
    if residual.empty:
        return "no network was measured with and without residual connections"
    with style():
        figure, axes = new_figure(height=3.2)
        axis = axes[0, 0]
        ends = [1, float(residual["rank"].max()) * 1.5]
        axis.plot(ends, ends, color=MUTED, linewidth=0.8, label="equal")
        for one_head_only, marker, name in ((True, "o", "one head"), (False, "s", "more heads")):
            mine = residual[(residual["heads"] == 1) == one_head_only]
            if len(mine):
                axis.plot(mine["rank"], mine["rank_residual"], marker, color=ACCENT if one_head_only else INK,
                          markerfacecolor="none", label=name)  # fmt: skip
        log_axis(axis, "x", whole=True)
        log_axis(axis, "y", whole=True)
        axis.legend()
        axis.set(xlabel="rank without", ylabel="rank with residual connections")
        return figure


def degree_figure(degrees: pd.DataFrame) -> Figure | str:
    """log3 of the rank against degree k, a panel for each kind of block and width, a colour for each budget B.

    Dotted black: the note's d^(1/d), ln(k) / k in the logarithm, scaled to the largest budget's value at k = 3.
    """
    parts = degrees[GROUP[:-1]].drop_duplicates().sort_values(GROUP[:-1], ascending=[False, True, True, True])
    panels = [tuple(one) for one in parts.itertuples(index=False)][:_MOST_PANELS]
    if not panels:
        return "no budget was measured"

    def draw(axis: Axes, panel: tuple[Any, ...]) -> None:
        blocks, width, tokens, heads = panel
        name = f"{blocks}, d = {width}" + (f", N = {tokens}" if blocks == "attention" else "")
        at = (degrees[GROUP[:-1]] == list(panel)).all(axis=1)
        _degree_panel(axis, degrees[at], name + (f", H = {heads}" if heads > 1 else ""))

    with style():
        figure = draw_grid(panels, draw, height=2.7, margin=0.6)
        last = [key("ln(k) / k, scaled at k = 3", INK, (0, (1, 1)))]
        if (degrees["unused"] != 0).any():
            last.insert(0, key("budget not filled", INK, "", marker="o", markerfacecolor="white"))
        _keys(figure, last=last, columns=2 if len(panels) == 1 else 4)
        return figure


def _degree_panel(axis: Axes, mine: pd.DataFrame, title: str) -> None:
    budgets = _telling_budgets(mine)
    for budget, look in ordered_looks(budgets).items():
        group = mine[mine["budget"] == budget].sort_values("degree")
        axis.plot(
            group["degree"], group["log3_rank"], color=look.color, linestyle=look.dashes, linewidth=0.8,
            label=f"B = {budget}",
        )  # fmt: skip
        full, exact = group["unused"] == 0, group["status"] == "exact"
        for filled, sure in itertools.product((True, False), repeat=2):
            part = group[(full == filled) & (exact == sure)]
            if len(part):
                axis.plot(
                    part["degree"], part["log3_rank"], "o" if sure else "^", color=look.color,
                    markerfacecolor=look.color if filled else "white", zorder=3 + filled,
                )  # fmt: skip
    largest = mine[mine["budget"] == budgets[-1]].set_index("degree")["log3_rank"]
    if 3 in largest:
        k = np.linspace(1, mine["degree"].max(), 60)
        note = np.log(k) / k / (math.log(3) / 3) * largest[3]
        axis.plot(k, note, color=INK, linestyle=(0, (1, 1)), linewidth=0.9)
    axis.set_ylim(0, 1.4 * mine.loc[mine["budget"].isin(budgets), "log3_rank"].max())
    axis.set(xlabel="degree k of a block", ylabel=LOG3_RANK)
    whole_axis(axis)
    axis.set_title(title)
    axis.legend(ncols=2, loc="upper right")


def _telling_budgets(mine: pd.DataFrame) -> list[int]:
    """At most four budgets: those that most degrees fill to the last matrix, of these the largest."""
    full = mine[mine["unused"] == 0].groupby("budget").size()
    order = sorted(mine["budget"].unique(), key=lambda budget: (full.get(budget, 0), budget), reverse=True)
    return sorted(int(budget) for budget in order[:_MOST_BUDGETS])


def _whole(ranks: pd.DataFrame) -> pd.DataFrame:
    """Networks of full embedding rank without positions and residual connections, heads of d / H."""
    plain = ~ranks["residual"] & (ranks["positional_rank"] == 0)
    inner = ranks["attention_dim"] * ranks["heads"]
    full = (ranks["embedding_rank"] == ranks["width"]) & (inner == ranks["width"])
    return ranks[plain & full]


def _log_rank(depth: int, width: int, two: bool) -> float:
    mixings = (3**depth - 1) // 2
    return log3(multiset(width + 1, mixings) if two else one_head(depth, width))


def _regimes(axis: Axes, width: int, last: int) -> None:
    """Draw the upper bounds of theorems 1 and 2 of the depth-width paper at one head, each in its regime."""
    depths = np.arange(1, last + 1)
    early = depths[3**depths <= width]
    late = depths[3**depths >= width]
    for places, bound, dashes, name in (
        (early, [early_upper(int(L), width, 1) for L in early], "-", "theorem 1, at most"),
        (late, [late_upper(int(L), width) for L in late], "--", "theorem 2, at most"),
    ):
        if len(places):
            axis.plot(places, bound, color=ACCENT, linestyle=dashes, marker="_", linewidth=0.9,
                      label=f"{name}\n(d = {width})")  # fmt: skip


def _points(
    axis: Axes, mine: pd.DataFrame, x: str, color: str, label: str | None, y: str = "log3_rank"
) -> None:
    exact = mine["status"] == "exact"
    if exact.any():
        axis.plot(mine.loc[exact, x], mine.loc[exact, y], "o", color=color, label=label)
    if not exact.all():
        label = None if exact.any() else label
        axis.plot(
            mine.loc[~exact, x], mine.loc[~exact, y], "^", color=color, markerfacecolor="none", label=label
        )


def _lines(
    axis: Axes, series: Iterable[tuple[str, pd.DataFrame]], x: str, nothing: str, y: str = "rank"
) -> None:
    drawn = [(name, mine.sort_values(x)) for name, mine in series if mine[x].nunique() > 1]
    if not drawn:
        axis.set_axis_off()
        explain(axis, nothing)
        return
    looks = ordered_looks(range(len(drawn)))
    for place, (name, mine) in enumerate(drawn):
        color = looks[place].color
        axis.plot(mine[x], mine[y], color=color, linestyle=looks[place].dashes, linewidth=0.9, label=name)
        _points(axis, mine, x, color, None, y)
    if y == "rank":
        log_axis(axis, "y", whole=True)
    whole_axis(axis)
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    axis.legend(**(beside if len(drawn) > _MOST_INSIDE else {}))


def _single(
    series: Iterable[tuple[str, pd.DataFrame]],
    x: str,
    x_label: str,
    *,
    nothing: str,
    y: str = "rank",
    label: str = "separation rank",
    log_x: bool = False,
) -> Figure | str:
    with style():
        figure, axes = new_figure(height=3.4)
        axis = axes[0, 0]
        _lines(axis, series, x, nothing, y)
        if not axis.axison:
            return nothing
        if log_x:
            log_axis(axis, "x", whole=True)
        axis.set(xlabel=x_label, ylabel=label)
        _keys(figure)
        return figure


def _keys(figure: Figure, line: str | None = None, last: Sequence[Line2D] = (), columns: int = 4) -> None:
    """A legend of what the markers mean, of those that were drawn."""
    drawn = {artist.get_marker() for axis in figure.axes for artist in axis.get_lines()}
    kinds = (("o", "exact", INK), ("^", "at least", "none"))
    handles = [
        key(name, INK, "", marker=marker, markerfacecolor=face)
        for marker, name, face in kinds
        if marker in drawn
    ]
    if line:
        handles.append(key(line, INK, linewidth=0.8))
    handles += last
    figure.legend(handles=handles, loc="outside lower center", ncols=min(columns, len(handles)))


def _most_common(table: pd.DataFrame, column: str) -> int:
    return int(table[column].mode().max()) if len(table) else 0
