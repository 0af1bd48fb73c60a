"""The figures of the exact separation ranks: against depth, width, embedding rank, heads, tokens; and of degrees.

Circles are exact, triangles are lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shapelaw.report.plots import (
    ACCENT,
    COLUMN,
    INK,
    MUTED,
    PAGE,
    Look,
    explain,
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
        for axis, mine, title in ((axes[0, 0], two, "N = 2"), (axes[0, 1], many, "N ≥ 2d")):
            mine = mine.sort_values(["width", "depth", "tokens"]).drop_duplicates(["width", "depth"])
            count = mine.groupby("width")["depth"].transform("size")
            widths = [int(width) for width in sorted(mine.loc[count > 1, "width"].unique())]
            if not widths:
                axis.set_axis_off()
                explain(axis, f"no width has two depths at {title}")
                continue
            looks = ordered_looks(widths)
            last = int(mine["depth"].max()) + _LINE_DEPTHS
            depths = np.arange(1, last + 1)
            for width in widths:
                color, dashes = looks[width].color, looks[width].dashes
                _points(axis, mine[mine["width"] == width], "depth", color, f"d = {width}")
                line = [_log_rank(int(depth), width, title == "N = 2") for depth in depths]
                axis.plot(depths, line, color=color, linewidth=0.8, linestyle=dashes)
                axis.annotate(
                    f"{width}", (last, line[-1]), (2, 0), textcoords="offset points", va="center", fontsize=6
                )
                tick = math.log(width, 3)
                axis.axvline(tick, ymax=0.05, color=color, linewidth=2, solid_capstyle="butt")
                axis.text(
                    tick,
                    0.055,
                    f"{width}",
                    transform=axis.get_xaxis_transform(),
                    ha="center",
                    fontsize=5,
                )
            if title != "N = 2":
                _regimes(axis, widths[-1], last)
            axis.set_ylim(bottom=0.3)
            log_axis(axis, "y")
            axis.set_xlabel("depth L")
            axis.set_ylabel(LOG3_RANK)
            axis.set_title(title)
            whole_axis(axis)
            bounds = axis.get_legend_handles_labels()[0][len(widths) :]
            axis.legend(handles=[*_series(looks), *bounds], loc="upper left", bbox_to_anchor=(1.0, 1.0))
        if not any(axis.axison for axis in axes[0]):
            return "no width was measured at two depths"
        threshold = Line2D([], [], color=INK, marker="|", markersize=7, markeredgewidth=2, linestyle="",
                           label="threshold $\\log_3 d$ of each width")  # fmt: skip
        _keys(figure, "closed form", last=[threshold])
        return figure


def width_figure(ranks: pd.DataFrame) -> Figure | str:
    """The rank against width at 2 d tokens or more, a line for each depth and for one head or d heads."""
    mine = _whole(ranks)
    mine = mine[mine["tokens"] >= 2 * mine["width"]]

    def series() -> Iterable[tuple[str, pd.DataFrame]]:
        for depth in sorted(mine["depth"].unique()):
            at = mine[mine["depth"] == depth].drop_duplicates(["width", "heads"])
            yield f"L = {depth}, one head", at[at["heads"] == 1]
            yield f"L = {depth}, d heads", at[(at["heads"] == at["width"]) & (at["width"] > 1)]

    return _single(
        series(), "width", "width d", log_x=True, nothing="no depth was measured at two widths with N ≥ 2d"
    )


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
        mine = base[base["width"] == _most_common(base[base["positional_rank"] > 0], "width")]
        mine = mine[mine["tokens"] == _most_common(mine[mine["positional_rank"] > 0], "tokens")]
        mine = mine[mine["depth"] == _most_common(mine[mine["positional_rank"] > 0], "depth")]
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

    def series() -> Iterable[tuple[str, pd.DataFrame]]:
        for (depth, width), group in mine.groupby(["depth", "width"]):
            yield f"L = {depth}, d = {width}", group.drop_duplicates("heads")

    return _single(
        series(),
        "heads",
        "heads H",
        y="share",
        label="rank / upper bound",
        nothing="no width was measured with two numbers of heads",
    )


def tokens_figure(ranks: pd.DataFrame) -> Figure | str:
    """The rank against the number of tokens N, one head, two layers and more, a line for each depth and width."""
    mine = _whole(ranks[(ranks["heads"] == 1) & (ranks["depth"] > 1)])

    def series() -> Iterable[tuple[str, pd.DataFrame]]:
        for (depth, width), group in mine.groupby(["depth", "width"]):
            yield f"L = {depth}, d = {width}", group

    return _single(
        series(), "tokens", "tokens N", nothing="no network was measured with two numbers of tokens"
    )


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
        axis.set_xlabel("rank without")
        axis.set_ylabel("rank with residual connections")
        return figure


def degree_figure(degrees: pd.DataFrame) -> Figure | str:
    """log3 of the rank against degree k, a panel for each kind of block and width, a colour for each budget B.

    Dotted black: the note's d^(1/d), ln(k) / k in the logarithm, scaled to the largest budget's value at k = 3.
    """
    parts = degrees[GROUP[:-1]].drop_duplicates().sort_values(GROUP[:-1], ascending=[False, True, True, True])
    panels = [
        (str(one["blocks"]), int(one["width"]), int(one["tokens"]), int(one["heads"]))
        for one in parts.to_dict("records")
    ][:_MOST_PANELS]
    if not panels:
        return "no budget was measured"
    with style():
        columns = min(len(panels), 3)
        rows = -(-len(panels) // columns)
        figure, axes = new_figure(
            rows, columns, width=COLUMN if columns == 1 else PAGE, height=0.6 + 2.7 * rows
        )
        for place in range(rows * columns):
            if place >= len(panels):
                axes[divmod(place, columns)].set_axis_off()
                continue
            blocks, width, tokens, heads = panels[place]
            at = (degrees[GROUP[:-1]] == list(panels[place])).all(axis=1)
            name = f"{blocks}, d = {width}" + (f", N = {tokens}" if blocks == "attention" else "")
            _degree_panel(
                axes[divmod(place, columns)], degrees[at], name + (f", H = {heads}" if heads > 1 else "")
            )
        part = Line2D(
            [], [], color=INK, marker="o", linestyle="", markerfacecolor="white", label="budget not filled"
        )
        note = Line2D([], [], color=INK, linestyle=(0, (1, 1)), label="ln(k) / k, scaled at k = 3")
        shown = [note] if (degrees["unused"] == 0).all() else [part, note]
        _keys(figure, last=shown, columns=2 if columns == 1 else 4)
        return figure


def _degree_panel(axis: Axes, mine: pd.DataFrame, title: str) -> None:
    budgets = _telling_budgets(mine)
    looks = ordered_looks(budgets)
    colors = {budget: look.color for budget, look in looks.items()}
    for budget in budgets:
        group = mine[mine["budget"] == budget].sort_values("degree")
        axis.plot(
            group["degree"], group["log3_rank"], color=colors[budget], linestyle=looks[budget].dashes,
            linewidth=0.8, label=f"B = {budget}",
        )  # fmt: skip
        for full, face in ((True, colors[budget]), (False, "white")):
            for exact, marker in ((True, "o"), (False, "^")):
                part = group[((group["unused"] == 0) == full) & ((group["status"] == "exact") == exact)]
                if part.empty:
                    continue
                axis.plot(
                    part["degree"],
                    part["log3_rank"],
                    marker,
                    color=colors[budget],
                    markerfacecolor=face,
                    zorder=3 + full,
                )
    largest = mine[mine["budget"] == budgets[-1]].set_index("degree")["log3_rank"]
    if 3 in largest:
        k = np.linspace(1, mine["degree"].max(), 60)
        axis.plot(
            k, np.log(k) / k / (math.log(3) / 3) * largest[3], color=INK, linestyle=(0, (1, 1)), linewidth=0.9
        )
    axis.set_ylim(0, 1.4 * mine.loc[mine["budget"].isin(budgets), "log3_rank"].max())
    axis.set_xlabel("degree k of a block")
    whole_axis(axis)
    axis.set_ylabel(LOG3_RANK)
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
    full = (ranks["embedding_rank"] == ranks["width"]) & (
        ranks["attention_dim"] * ranks["heads"] == ranks["width"]
    )
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
        axis.plot(mine.loc[~exact, x], mine.loc[~exact, y], "^", color=color, markerfacecolor="none",
                  label=None if exact.any() else label)  # fmt: skip


def _series(looks: Mapping[int, Look]) -> list[Line2D]:
    """What a legend shows of each width: its point, and the dashes of its line."""
    handles = []
    for width, look in looks.items():
        given: dict[str, Any] = {"linestyle": look.dashes, "marker": "o"}
        handles.append(Line2D([], [], color=look.color, linewidth=0.8, label=f"d = {width}", **given))
    return handles


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
    if len(drawn) > _MOST_INSIDE:
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        axis.legend()


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
        axis.set_xlabel(x_label)
        axis.set_ylabel(label)
        _keys(figure)
        return figure


def _keys(figure: Figure, line: str | None = None, last: Sequence[Line2D] = (), columns: int = 4) -> None:
    """A legend of what the markers mean, of those that were drawn."""
    drawn = {artist.get_marker() for axis in figure.axes for artist in axis.get_lines()}
    handles = []
    if "o" in drawn:
        handles.append(Line2D([], [], color=INK, marker="o", linestyle="", label="exact"))
    if "^" in drawn:
        handles.append(
            Line2D([], [], color=INK, marker="^", linestyle="", markerfacecolor="none", label="at least")
        )
    if line:
        handles.append(Line2D([], [], color=INK, linewidth=0.8, label=line))
    handles += last
    figure.legend(handles=handles, loc="outside lower center", ncols=min(columns, len(handles)))


def _most_common(table: pd.DataFrame, column: str) -> int:
    return int(table[column].mode().max()) if len(table) else 0
