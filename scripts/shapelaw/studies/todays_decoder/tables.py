"""The tables of the study of today's decoder that only it has."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from shapelaw.studies.grid.rates import RATE, RatesAnalysis, is_best
from shapelaw.studies.grid.tables import pairs_of, pooled_row, spread_table
from shapelaw.studies.todays_decoder.analysis import named
from shapelaw.studies.transitions.ratios import ratio_of

FOUND = ("depth", "deeper_depth", "status", "width", "width_low", "width_high", "bound", "side")
RATIO_COLUMNS = [
    *("compared", "one", "other", "at", "depth", "deeper_depth", "width_one", "width_other"),
    *("ratio", "ratio_low", "ratio_high", "p_equal", "status"),
]


def crossings_table(analysis: RatesAnalysis) -> pd.DataFrame:
    """Where the deeper network wins, by block, budget and rate: the bootstrap's width with its 68% interval."""
    rows = [
        {**named(one), **{name: row[name] for name in FOUND}}
        for one in analysis.cells
        for row in one.transitions.bootstrap_rows
    ]
    return pd.DataFrame(rows)


def ratios_table(analysis: RatesAnalysis) -> pd.DataFrame:
    """Widths of transitions over each other, of cells that differ in one thing: the block, the budget or the rates.

    Of the rates, only the best is compared with each single one.
    """
    rows = []
    for one, other in combinations(analysis.cells, 2):
        its, others = named(one), named(other)
        differing = [name for name, value in its.items() if others[name] != value]
        if len(differing) != 1 or (differing == [RATE] and not is_best(other)):
            continue
        (name,) = differing
        same = ", ".join(str(value) for key, value in its.items() if key != name)
        compared = {"compared": name, "one": its[name], "other": others[name], "at": same}
        for a, b in pairs_of(one, other):
            depths = {"depth": a["depth"], "deeper_depth": a["deeper_depth"]}
            rows.append(
                {
                    **compared,
                    **depths,
                    "width_one": a["width"],
                    "width_other": b["width"],
                    **ratio_of(a, b, one.losses[1], other.losses[1]),
                }
            )
    return pd.DataFrame(rows, columns=RATIO_COLUMNS)


def seed_noise_table(analysis: RatesAnalysis) -> pd.DataFrame:
    """The spread of the loss of every repeated shape over its seeds, and that of each block, which its cells use."""
    repeated = spread_table(analysis.trained, named)
    empty = dict.fromkeys(("rates", "budget", RATE, "depth", "width"), "")
    pooled = [
        pooled_row(repeated[repeated["block"] == block], noise, **empty, block=f"{block}, pooled")
        for block, noise in analysis.noise.items()
    ]
    return pd.concat([repeated, *pooled], ignore_index=True)
