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
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path

import pandas as pd

from shapelaw.report.tables import NO, OPEN, YES
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.studies.separation_rank import figures as rank_figures
from shapelaw.studies.separation_rank import tables as rank_tables
from shapelaw.studies.separation_rank.measurements import EXACT, read_measurements

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
_FIGURES = {  # each with the table that it draws
    "rank_depth": (rank_figures.depth_figure, "ranks"),
    "rank_width": (rank_figures.width_figure, "ranks"),
    "rank_embedding": (rank_figures.embedding_figure, "ranks"),
    "rank_heads": (rank_figures.heads_figure, "ranks"),
    "rank_tokens": (rank_figures.tokens_figure, "ranks"),
    "rank_residual": (rank_figures.residual_figure, "residual"),
    "degree": (rank_figures.degree_figure, "degree_budget"),
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
    said = (
        f"No: {violated:,} are violated, and {holds:,} hold."
        if violated
        else f"Yes: all {holds:,} that can be told."
    )
    return Answer(
        said,
        bool(violated or holds),
        "the theorems of Levine et al. 2020 and Wies et al. 2021.",
        f"{exact} of {len(ranks)} networks have exact ranks.{beyond if unclear else ''}",
    )
