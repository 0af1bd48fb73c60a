"""The tables of the study of today's decoder."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from itertools import combinations
from typing import Any

import pandas as pd

from shapelaw.studies.todays_decoder.analysis import Cell, TodaysAnalysis
from shapelaw.studies.transitions.ratios import ratio_of
from shapelaw.studies.transitions.tables import gaps_table as gaps_of_runs
from shapelaw.studies.transitions.tables import mean_losses, stacked

FOUND = ("depth", "deeper_depth", "status", "width", "width_low", "width_high", "bound", "side")


def _named(cell: Cell, table: pd.DataFrame) -> pd.DataFrame:
    table = table.copy()
    for place, (name, value) in enumerate(_names(cell).items()):
        table.insert(place, name, value)
    return table


def _names(cell: Cell) -> dict[str, str]:
    return {
        "block": cell.block,
        "rates": cell.scaling,
        "budget": cell.budget,
        "learning_rate": cell.rate_name.removeprefix("rate "),
    }


def crossings_table(analysis: TodaysAnalysis) -> pd.DataFrame:
    """Where the deeper network wins, by block, budget and rate: the bootstrap's width with its 68% interval."""
    rows = [
        _names(cell) | {name: row[name] for name in FOUND}
        for cell in analysis.cells
        for row in cell.transitions.bootstrap_rows
    ]
    return pd.DataFrame(rows)


def transitions_table(analysis: TodaysAnalysis) -> pd.DataFrame:
    """The transitions of every cell, by the bootstrap and by the paper's rule."""
    return pd.concat(
        [_named(cell, cell.transitions.transitions) for cell in analysis.cells], ignore_index=True
    )


def size_axes_table(analysis: TodaysAnalysis) -> pd.DataFrame:
    """The bootstrap's transitions on every size axis."""
    found = [
        _named(cell, cell.transitions.runs.size_axes) for cell in analysis.cells if cell.transitions.runs
    ]
    return pd.concat(found, ignore_index=True)


def gaps_table(analysis: TodaysAnalysis) -> pd.DataFrame:
    """How much better the deeper network is at equal size, size by size, for every cell."""
    return stacked(
        _named(cell, gaps_of_runs(cell.transitions.runs)) for cell in analysis.cells if cell.transitions.runs
    )


def ratios_table(analysis: TodaysAnalysis) -> pd.DataFrame:
    """Widths of transitions over each other, of cells that differ in one thing: the block, the budget or the rates.

    Of the rates, only the best is compared with each single one.
    """
    rows = []
    for one, other in combinations(analysis.cells, 2):
        differing = [name for name, value in _names(one).items() if _names(other)[name] != value]
        if len(differing) != 1 or (differing == ["learning_rate"] and other.learning_rate is not None):
            continue
        for a, b in _pairs(one, other):
            same = {name: value for name, value in _names(one).items() if name not in differing}
            rows.append(
                {
                    "compared": differing[0],
                    "one": _names(one)[differing[0]],
                    "other": _names(other)[differing[0]],
                    "at": ", ".join(same.values()),
                    "depth": a["depth"],
                    "deeper_depth": a["deeper_depth"],
                    "width_one": a["width"],
                    "width_other": b["width"],
                    **ratio_of(a, b),
                }
            )
    return pd.DataFrame(rows, columns=RATIO_COLUMNS)


RATIO_COLUMNS = [
    *("compared", "one", "other", "at", "depth", "deeper_depth", "width_one", "width_other"),
    *("ratio", "ratio_low", "ratio_high", "p_equal", "status"),
]


def _pairs(one: Cell, other: Cell) -> Iterator[tuple[Mapping[Hashable, Any], Mapping[Hashable, Any]]]:
    """The transitions of both cells between the same depths."""
    there = {(row["depth"], row["deeper_depth"]): row for row in other.transitions.bootstrap_rows}
    for row in one.transitions.bootstrap_rows:
        if (depths := (row["depth"], row["deeper_depth"])) in there:
            yield row, there[depths]


def best_rates_table(analysis: TodaysAnalysis) -> pd.DataFrame:
    """The best rate of each shape and seed, what picked it, and whether it is the lowest or the highest tried."""
    return analysis.best_rates.rename(columns={"loss": "test_loss"})


def losses_table(analysis: TodaysAnalysis) -> pd.DataFrame:
    """One row for each network and cell of one rate: mean test loss and number of seeds."""
    tables = []
    for cell in analysis.cells:
        if cell.learning_rate is not None:
            tables.append(_named(cell, mean_losses(cell.runs)))
    return pd.concat(tables, ignore_index=True)


def seed_noise_table(analysis: TodaysAnalysis) -> pd.DataFrame:
    """The spread of the loss of every repeated shape over its seeds, and that of each block, which its cells use."""
    tables = []
    for cell in analysis.cells:
        runs = cell.transitions.runs
        if cell.learning_rate is not None and runs is not None:
            tables.append(_named(cell, runs.seed_noise[runs.seed_noise["seeds"] > 1]))
    repeated = pd.concat(tables, ignore_index=True).astype({"depth": object, "width": object})
    pooled = [
        dict.fromkeys(("rates", "budget", "learning_rate", "depth", "width"), "")
        | {
            "block": f"{block}, pooled",
            "seeds": int(repeated.loc[repeated["block"] == block, "seeds"].sum()),
            "loss_mean": math.nan,
            "loss_std": math.nan if noise is None else noise.std,
        }
        for block, noise in analysis.noise.items()
    ]
    return pd.concat([repeated, pd.DataFrame(pooled)], ignore_index=True)
