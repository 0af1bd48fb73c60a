"""Separation ranks, exactly: of linearized attention beside the papers' theorems, and of blocks of other degrees.

Levine et al. 2020 and Wies et al. 2021 bound the separation rank; `theory.separation_rank` measures it. From a config's
grids of networks come

    ranks               the rank of each network of linearized attention beside its closed form and upper bound
    bounds, theorems    every theorem that applies to a network, and whether its bound holds; two corollaries
    residual            with and without residual connections
    degree_budget       blocks of degree 1, 2, ... at equal budget, beside the note's d^(1/d) and the total degree
    degree_ranking      the degree of largest rank at each width and budget
    fractional_degree   blocks of two degrees mixed, in every order
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span, Words
from shapelaw.report.plots import ACCENT, INK, MOST_COLUMNS, MUTED, key, ordered_looks
from shapelaw.report.tables import NO, OPEN, YES
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.studies.separation_rank import tables as rank_tables
from shapelaw.studies.separation_rank.tables import EXACT, GROUP, read_measurements
from shapelaw.theory.linear_attention import mixings
from shapelaw.theory.polynomials import multiset
from shapelaw.theory.rank_bounds import early_upper, late_upper, log3, one_head

CLOSE = 1e-9
UNKNOWN = "Can't tell: some ranks are lower bounds"
ALL_EXACT, SOME_BOUNDS = EXACT, "some are lower bounds only"
_CAPTIONS = {
    "ranks": "Separation ranks of linearized attention.",
    "bounds": "Each theorem's bound beside the rank, in logarithms to base 3.",
    "theorems": "The distance of each theorem's bound from the ranks, in powers of 3.",
    "residual": "The ranks with and without residual connections.",
    "degree_budget": "The ranks of blocks of each degree at equal budget.",
    "degree_ranking": "The degree of largest rank at each budget.",
    "fractional_degree": "The ranks of blocks of two degrees, mixed in every order.",
}
_FORMATS = {"upper_bound": ",.0f", "failure_probability": ".1e", "seconds": ".2f", "rank": ",d"}


_TABLES = {name: TableOf(itemgetter(name), caption, _FORMATS) for name, caption in _CAPTIONS.items()}
Frames = Mapping[str, pd.DataFrame]  # the tables by name


def results(arguments: argparse.Namespace) -> Results:
    """The results of the measurements of scripts/measure_separation_ranks.py.

    Raises:
        UserError: the file can't be used.
    """
    return present(analyse(arguments.input))


def analyse(measured: Path) -> Frames:
    """Read the measurements and make all tables.

    Args:
        measured: the file of scripts/measure_separation_ranks.py.

    Raises:
        UserError: the input can't be used.
    """
    found = read_measurements(measured)
    ranks, bounds = rank_tables.ranks_table(found), rank_tables.bounds_table(found)
    degrees = rank_tables.degree_table(found)
    return {
        "ranks": ranks,
        "bounds": bounds,
        "theorems": rank_tables.theorems_table(bounds, ranks),
        "residual": rank_tables.residual_table(ranks),
        "degree_budget": degrees,
        "degree_ranking": rank_tables.ranking_table(degrees),
        "fractional_degree": rank_tables.fractional_table(found),
    }


def present(frames: Frames) -> Results:
    """The tables, figures and fit.json of an analysis."""
    drawn = {name: draw(frames[table]) for name, (draw, table) in _FIGURES.items()}
    tables = tables_of(_TABLES, _TABLES, frames)
    return Results(tables, drawn, fits(frames), answer=answer(tables))


def fits(frames: Frames) -> dict[str, object]:
    """The content of fit.json: the numbers of exact ranks and of statements that they agree with or contradict."""
    ranks, bounds = frames["ranks"], frames["bounds"]["holds"]
    ranking, mixed = frames["degree_ranking"], frames["fractional_degree"]
    measured = pd.concat(frames[name]["status"] for name in ("ranks", "degree_budget", "fractional_degree"))
    lower_bounds = int((measured != EXACT).sum())
    winners = mixed.loc[mixed["largest"] == YES, [*rank_tables.GROUP, "mixed"]].drop_duplicates()["mixed"]
    agreement = {
        f"{what}_{said}": _count(ranking[f"agrees_with_{what}"], one)
        for what in ("note", "proxy")
        for said, one in (("agrees", YES), ("disagrees", NO))
    }
    return {
        "study": "separation_rank",
        "status": SOME_BOUNDS if lower_bounds else ALL_EXACT,
        "networks": len(measured),
        "lower_bounds": lower_bounds,
        "largest_exact_rank": int(ranks.loc[ranks["status"] == EXACT, "rank"].max()),
        "closed_form": {one: _count(ranks["follows"], one) for one in (YES, NO, OPEN)},
        "theorems": {says: _count(bounds, one) for says, one in rank_tables.COUNTED.items()},
        "residual_changes_rank": _count(frames["residual"]["equal"], NO),
        "degree_budgets": {"budgets": len(ranking), **agreement},
        "fractional_degrees": {
            "budgets": len(mixed.groupby(rank_tables.GROUP)),
            "largest_is_mixed": _count(winners, YES),
            "largest_is_of_one_degree": _count(winners, NO),
        },
    }


def _count(column: pd.Series, value: str) -> int:
    return int((column == value).sum())


def answer(tables: Mapping[str, Table]) -> Answer:
    """How often the theorems' bounds hold for exact ranks; the theory that they test is the published side.

    Args:
        tables: `theorems` and `ranks` of the study.
    """
    theorems, ranks = tables["theorems"].frame, tables["ranks"].frame
    holds, violated, unclear = (int(theorems[name].sum()) for name in ("holds", "violated", "open"))
    exact = int((ranks["status"] == "exact").sum())
    beyond = f" {unclear} are open, where a rank could not be computed or the bound is out of reach."
    if violated:
        said = f"No: {violated:,} are violated, and {holds:,} hold."
    else:
        said = f"Yes: all {holds:,} that can be told." if holds else "None can be told."
    return Answer(
        said,
        bool(violated or holds),
        "the theorems of Levine et al. 2020 and Wies et al. 2021.",
        f"{exact} of {len(ranks)} networks have exact ranks.{beyond if unclear else ''}",
    )


LOG3_RANK = "$\\log_3$ of the separation rank"
_LINE_DEPTHS = 3  # layers drawn beyond the deepest network measured
_MOST_PANELS, _MOST_BUDGETS = 9, 4
_MOST_INSIDE = 4  # the most lines whose legend fits into the axes
_BESIDE = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}  # of a legend
_THIN = {"linewidth": 0.9}


def depth_figure(ranks: pd.DataFrame) -> Chart | str:
    """log3 of the rank against depth: each width's closed form as a line that ends in it, threshold log3(d) as a tick.

    Left: two tokens. Right: 2 d or more, with the upper bounds of both regimes for the largest width.
    A side without two depths of a width says so; without both sides, the reason.
    """
    whole = rank_tables.whole_networks(ranks[ranks["heads"] == 1])
    two, many = whole[whole["tokens"] == 2], whole[whole["tokens"] >= 2 * whole["width"]]
    panels = [_depth_panel(two, "N = 2"), _depth_panel(many, "N ≥ 2d")]
    threshold = key(
        "threshold $\\log_3 d$ of each width", INK, "", marker="|", markersize=7, markeredgewidth=2
    )
    last = [key("closed form", INK, linewidth=0.8), threshold]
    return _chart(panels, "no width was measured at two depths", last, columns=2, height=3.6)


def _depth_panel(mine: pd.DataFrame, title: str) -> Panel:
    mine = mine.sort_values(["width", "depth", "tokens"]).drop_duplicates(["width", "depth"])
    count = mine.groupby("width")["depth"].transform("size")
    widths = [int(width) for width in sorted(mine.loc[count > 1, "width"].unique())]
    if not widths:
        return Panel(nothing=f"no width has two depths at {title}")
    looks, last = ordered_looks(widths), int(mine["depth"].max()) + _LINE_DEPTHS
    depths, marks, compared = range(1, last + 1), list[Mark](), list[tuple[float, float]]()
    for width, look in looks.items():
        own = mine[mine["width"] == width]
        exact = own[own["status"] == EXACT]
        line = [_log_rank(depth, width, title == "N = 2") for depth in depths]
        compared += zip(exact["log3_rank"], np.take(line, exact["depth"] - 1), strict=True)
        marks += _points(own, "depth", look.color, f"d = {width}")
        marks.append(Points(depths, line, "", look.color, line=look.dashes, more={"linewidth": 0.8}))
        marks.append(Words(f"{width}", last, line[-1], (2, 0)))
        tick, below = math.log(width, 3), {"ymax": 0.05, "linewidth": 2, "solid_capstyle": "butt"}
        marks.append(Across(tick, "x", "", look.color, more=below))
        at_foot = {"fontsize": 5, "ha": "center", "va": "baseline", "xycoords": ("data", "axes fraction")}
        marks.append(Words(f"{width}", tick, 0.055, more=at_foot))
    bounds = [] if title == "N = 2" else list(_regimes(widths[-1], last))
    shown = [
        key(f"d = {width}", look.color, look.dashes, marker="o", linewidth=0.8)
        for width, look in looks.items()
    ]
    shown += [key(one.label, ACCENT, one.line, marker="_", **_THIN) for one in bounds]
    legend = {"handles": shown, **_BESIDE}
    up = Span(LOG3_RANK, "log", limits=(0.3, None))
    found = f"{title}: {closed_form_title(compared)}" if compared else title
    return Panel([*marks, *bounds], Span("depth L", "whole"), up, found, legend)


def width_figure(ranks: pd.DataFrame) -> Chart | str:
    """The rank against width at 2 d tokens or more, a line for each depth and for one head or d heads."""
    mine = rank_tables.whole_networks(ranks)
    mine, series = mine[mine["tokens"] >= 2 * mine["width"]], list[tuple[str, pd.DataFrame]]()
    for depth, rows in mine.groupby("depth"):
        at = rows.drop_duplicates(["width", "heads"])
        series.append((f"L = {depth}, one head", at[at["heads"] == 1]))
        series.append((f"L = {depth}, d heads", at[(at["heads"] == at["width"]) & (at["width"] > 1)]))
    nothing = "no depth was measured at two widths with N ≥ 2d"
    drawn = [(name, rows) for name, rows in series if rows["width"].nunique() > 1]
    title = growth_title(*drawn[-1], "width", "d") if drawn else ""
    panel = _lines(series, "width", Span("width d", "whole log"), nothing, title)
    return _chart([panel], nothing, height=3.4)


def embedding_figure(ranks: pd.DataFrame) -> Chart | str:
    """Left: the rank against width, flat beyond the embedding rank r. Right: against r, a line for each r_e."""
    base = ranks[~ranks["residual"] & (ranks["heads"] == 1) & (ranks["attention_dim"] == ranks["width"])]
    base = base[base["vocab_size"].isna()]
    mine = base[base["positional_rank"] == 0]
    depth = _most_common(mine[mine["embedding_rank"] < mine["width"]], "depth")
    mine = mine[(mine["depth"] == depth) & (mine["tokens"] >= 2 * mine["width"])]
    series = [(f"r = {rank}", rows.drop_duplicates("width")) for rank, rows in mine.groupby("embedding_rank")]
    found = flat_title(mine[mine["width"] >= mine["embedding_rank"]])
    nothing, title = "no embedding rank has\ntwo widths at N ≥ 2d", f"{found}\nL = {depth}, no positions"
    left = _lines(series, "width", Span("width d", "whole"), nothing, title)
    mine = base
    for size in ("width", "tokens", "depth"):
        mine = mine[mine[size] == _most_common(mine[mine["positional_rank"] > 0], size)]
    series = [(f"$r_e$ = {places}", rows) for places, rows in mine.groupby("positional_rank")]
    at = "".join(f"d = {one.width}, N = {one.tokens}, L = {one.depth}" for one in mine.head(1).itertuples())
    at = f"{positions_title(mine)}\n{at}" if at else at
    across, nothing = Span("embedding rank r", "whole"), "no network has positions"
    right = _lines(series, "embedding_rank", across, nothing, at)
    nothing = "no embedding rank was measured at two widths, and no network with positions"
    return _chart([left, right], nothing, columns=2, height=3.2)


def residual_figure(residual: pd.DataFrame) -> Chart | str:
    """The rank with residual connections against that without."""
    if residual.empty:
        return "no network was measured with and without residual connections"
    ends = [1, float(residual["rank"].max()) * 1.5]
    marks: list[Mark] = [Points(ends, ends, "equal", MUTED, line="-", more={"linewidth": 0.8})]
    one_head_only = residual["heads"] == 1
    for mine, color, marker, name in (
        (residual[one_head_only], ACCENT, "o", "one head"),
        (residual[~one_head_only], INK, "s", "more heads"),
    ):
        if len(mine):
            marks.append(Points(mine["rank"], mine["rank_residual"], name, color, marker, hollow=True))
    across, up = (Span(f"rank {how}", "whole log") for how in ("without", "with residual connections"))
    return Chart([Panel(marks, across, up, residual_title(residual), legend={})], height=3.2, legend=0)


def degree_figure(degrees: pd.DataFrame) -> Chart | str:
    """log3 of the rank against degree k, a panel for each kind of block and width, a colour for each budget B.

    Dotted black: the note's d^(1/d), ln(k) / k in the logarithm, scaled to the largest budget's value at k = 3.
    """
    parts = degrees[GROUP[:-1]].drop_duplicates().sort_values(GROUP[:-1], ascending=[False, True, True, True])
    panels = []
    for blocks, width, tokens, heads in parts.head(_MOST_PANELS).itertuples(index=False):
        name = f"{blocks}, d = {width}" + (f", N = {tokens}" if blocks != "product" else "")
        at = (degrees[GROUP[:-1]] == [blocks, width, tokens, heads]).all(axis=1)
        panels.append(_degree_panel(degrees[at], name + (f", H = {heads}" if heads > 1 else "")))
    last = [key("ln(k) / k, scaled at k = 3", INK, (0, (1, 1)))]
    if (degrees["unused"] != 0).any():
        last.insert(0, key("budget not filled", INK, "", marker="o", markerfacecolor="white"))
    columns = min(len(panels), MOST_COLUMNS)
    height = 0.6 + 2.9 * math.ceil(len(panels) / MOST_COLUMNS)
    legend = 2 if len(panels) == 1 else 4
    return _chart(panels, "no budget was measured", last, columns=columns, height=height, legend=legend)


def _degree_panel(mine: pd.DataFrame, title: str) -> Panel:
    budgets, marks = _telling_budgets(mine), list[Mark]()
    for budget, look in ordered_looks(budgets).items():
        rows = mine[mine["budget"] == budget].sort_values("degree")
        x, y, thin = rows["degree"], rows["log3_rank"], {"linewidth": 0.8}
        marks.append(Points(x, y, f"B = {budget}", look.color, line=look.dashes, more=thin))
        full, exact = rows["unused"] == 0, rows["status"] == "exact"
        for filled, sure in itertools.product((True, False), repeat=2):
            part = rows[(full == filled) & (exact == sure)]
            more = {"markerfacecolor": look.color if filled else "white", "zorder": 3 + filled}
            if len(part):
                marker = "o" if sure else "^"
                marks.append(Points(part["degree"], part["log3_rank"], "", look.color, marker, more=more))
    largest = mine[mine["budget"] == budgets[-1]].set_index("degree")["log3_rank"]
    if 3 in largest:
        k = np.linspace(1, mine["degree"].max(), 60)
        note = np.log(k) / k / (math.log(3) / 3) * largest[3]
        marks.append(Points(k, note, "", INK, line=(0, (1, 1)), more=_THIN))
    highest = float(mine.loc[mine["budget"].isin(budgets), "log3_rank"].max())
    across, up = Span("degree k of a block", "whole"), Span(LOG3_RANK, limits=(0, 1.4 * highest))
    best = best_degree_title({budget: mine[mine["budget"] == budget] for budget in budgets}, 34)
    return Panel(marks, across, up, f"{title}\n{best}", {"ncols": 2, "loc": "upper right"})


def _telling_budgets(mine: pd.DataFrame) -> list[int]:
    """At most four budgets: those that most degrees fill to the last matrix, of these the largest."""
    full = mine[mine["unused"] == 0].groupby("budget").size()
    order = sorted(mine["budget"].unique(), key=lambda budget: (full.get(budget, 0), budget), reverse=True)
    return sorted(int(budget) for budget in order[:_MOST_BUDGETS])


def _log_rank(depth: int, width: int, two: bool) -> float:
    return log3(multiset(width + 1, mixings(depth)) if two else one_head(depth, width))


def _regimes(width: int, last: int) -> Iterator[Points]:
    """The upper bounds of theorems 1 and 2 of the depth-width paper at one head, each in its regime."""
    depths = range(1, last + 1)
    early = {depth: early_upper(depth, width, 1) for depth in depths if 3**depth <= width}
    late = {depth: late_upper(depth, width) for depth in depths if 3**depth >= width}
    for found, dashes, name in ((early, "-", "theorem 1, at most"), (late, "--", "theorem 2, at most")):
        if found:
            label = f"{name}\n(d = {width})"
            yield Points([*found], [*found.values()], label, ACCENT, "_", dashes, more=_THIN)


def _points(mine: pd.DataFrame, x: str, color: str, label: str, y: str = "log3_rank") -> Iterator[Points]:
    """Exact ranks as circles and lower bounds as triangles, the first of them with the label."""
    for part, marker in ((mine[mine["status"] == "exact"], "o"), (mine[mine["status"] != "exact"], "^")):
        if len(part):
            yield Points(part[x], part[y], label, color, marker, hollow=marker == "^")
            label = ""


def _lines(
    series: Iterable[tuple[str, pd.DataFrame]], x: str, across: Span, nothing: str, title: str
) -> Panel:
    """A line of ranks for each name that has two values of x; the reason where none has."""
    drawn = [(name, mine.sort_values(x)) for name, mine in series if mine[x].nunique() > 1]
    if not drawn:
        return Panel(nothing=nothing)
    marks = list[Mark]()
    for (name, mine), look in zip(drawn, ordered_looks(range(len(drawn))).values(), strict=True):
        marks.append(Points(mine[x], mine["rank"], name, look.color, line=look.dashes, more=_THIN))
        marks += _points(mine, x, look.color, "", "rank")
    up = Span("separation rank", "whole log")
    return Panel(marks, across, up, title, _BESIDE if len(drawn) > _MOST_INSIDE else {})


def _chart(
    panels: Sequence[Panel], nothing: str, last: Sequence[Line2D] = (), legend: int = 4, **grid: Any
) -> Chart | str:
    """The panels, or the reason where all are empty; the legend has the markers that were drawn, and the `last`."""
    if all(panel.nothing for panel in panels):
        return nothing
    drawn = {mark.marker for panel in panels for mark in panel.marks if isinstance(mark, Points)}
    kinds = (("o", "exact", INK), ("^", "at least", "none"))
    handles = [
        key(name, INK, "", marker=marker, markerfacecolor=face)
        for marker, name, face in kinds
        if marker in drawn
    ]
    return Chart(panels, keys=[*handles, *last], legend=legend, **grid)


def _most_common(table: pd.DataFrame, column: str) -> int:
    return int(table[column].mode().max()) if len(table) else 0


_FIGURES = {  # each with the table that it draws
    "rank_depth": (depth_figure, "ranks"),
    "rank_width": (width_figure, "ranks"),
    "rank_embedding": (embedding_figure, "ranks"),
    "rank_residual": (residual_figure, "residual"),
    "degree": (degree_figure, "degree_budget"),
}


def closed_form_title(measured: Iterable[tuple[float, float]]) -> str:
    """How many of (log3 of a rank, log3 of its closed form) are equal."""
    pairs = np.array(list(measured))
    equal = int((np.abs(pairs[:, 0] - pairs[:, 1]) < CLOSE).sum())
    many = "all" if equal == len(pairs) else f"{equal} of"
    return f"{many} {len(pairs)} ranks equal the closed form"


def growth_title(name: str, mine: pd.DataFrame, across: str, symbol: str) -> str:
    """The rank at both ends of a line."""
    ends = mine.sort_values(across).iloc[[0, -1]]
    said = (f"{row['rank']:,} at {symbol} = {row[across]}" for row in ends.to_dict("records"))
    return f"{name}:\nrank {' and '.join(said)}"


def flat_title(mine: pd.DataFrame) -> str:
    """Whether the rank of each embedding rank is the same at every width."""
    if (mine["status"] != EXACT).any():
        return UNKNOWN
    flat = (mine.groupby("embedding_rank")["rank"].nunique() == 1).all()
    return f"Width beyond r {'adds nothing' if flat else 'still adds'}"


def positions_title(mine: pd.DataFrame) -> str:
    """The embedding ranks at which positions raise the rank."""
    if (mine["status"] != EXACT).any():
        return UNKNOWN
    ordered = mine.sort_values("positional_rank").groupby("embedding_rank")["rank"]
    grown = ordered.last() > ordered.first()
    raised = [str(rank) for rank in grown.index[grown]]
    return f"Positions raise the rank at r = {', '.join(raised)}" if raised else "Positions raise no rank"


def residual_title(residual: pd.DataFrame) -> str:
    """How many ranks residual connections change."""
    changed = int((residual["rank"] != residual["rank_residual"]).sum())
    return f"Residual connections change {changed or 'none'} of {len(residual)} ranks"


def best_degree_title(by_budget: Mapping[int, pd.DataFrame], letters: int) -> str:
    """The degree of the largest rank at each budget: `best k: 3 at B = 6, 12; 2 at B = 8`."""
    best: list[tuple[str, int]] = []
    for budget, rows in by_budget.items():
        largest = rows["log3_rank"].max()
        first = rows[rows["log3_rank"] > largest - CLOSE]
        known = (rows["status"] == EXACT).all()
        degrees = " and ".join(f"{degree}" for degree in first["degree"]) if known else "can't tell"
        best.append((degrees, budget))
    ordered = itertools.groupby(sorted(best), key=lambda pair: pair[0])
    said = (f"{degrees} at B = {', '.join(str(budget) for _, budget in group)}" for degrees, group in ordered)
    return fill(f"best k: {'; '.join(said)}".replace(" = ", "\u00a0=\u00a0"), letters)
