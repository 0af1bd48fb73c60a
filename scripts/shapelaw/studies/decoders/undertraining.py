"""The effect of the learning rate and of the number of steps on the depth that is best.

Input: rows of `steps, learning_rate, depth, width, seed, test_loss`. `block_params`, `total_params` and `step_flops`
are used where the table has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import pandas as pd

from shapelaw.fits.inputs import TEXT_AND_BLOCK, refuse_mixed
from shapelaw.fits.noise import SIGNIFICANT
from shapelaw.report.write import Answer, Results, Table, TableOf
from shapelaw.studies.decoders import rates
from shapelaw.studies.decoders.rates import RATE, RatesAnalysis
from shapelaw.studies.grid.analysis import CellAnalysis
from shapelaw.studies.grid.cells import Best, Value, cells_of
from shapelaw.studies.grid.results import results_of
from shapelaw.studies.grid.tables import RATIO_FORMATS, ratios_of
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.results import add_size_options as add_options

__all__ = ["add_options", "results"]


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return results_of(arguments, analyse_cells, present)


def analyse_cells(table: pd.DataFrame, source: str, options: Options) -> RatesAnalysis:
    """A transition for every learning rate and number of steps, and for the best rates.

    Raises:
        UserError: the table can't be used.
    """
    refuse_mixed(table, TEXT_AND_BLOCK, source)
    cells = cells_of(
        rates.with_recipe(table, source), ("steps", RATE), source=source, loss=options.loss
    ).cells
    in_order = sorted(cells, key=lambda cell: (cell.number("steps"), cell.number(RATE)))
    return STUDY.analyse(in_order, source, options)


def named(one: CellAnalysis) -> Mapping[str, Value]:
    """The columns that name a cell in a table."""
    return {"steps": one.cell.value("steps"), RATE: rates.rate_of(one)}


def steps_of(one: CellAnalysis) -> str:
    """`4,000 steps`."""
    return f"{one.cell.value('steps'):,} steps"


STUDY = rates.RatesStudy(
    "undertraining",
    ("steps",),
    named,
    steps_of,
    of="each number of steps and learning rate",
    what="learning rate and steps",
    pick=rates.best_of_shapes,
    pool=lambda _: None,  # of all cells: each repeats few shapes
)


def present(analysis: RatesAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    ratios = TableOf(
        ratios_table,
        "The width at the most steps over that at the fewest.",
        dict.fromkeys(("width_few", "width_many"), ".1f") | RATIO_FORMATS,
    )
    return STUDY.results(analysis, ratios, lambda one: rates.edge_sentence(one.best_rates), answer)


def ratios_table(analysis: RatesAnalysis) -> pd.DataFrame:
    """The transition's width at the most steps over that at the fewest, for each rate that both have.

    The 68% interval takes both widths as log-normal and independent; `p_equal` is the chance of a ratio as far from 1
    where the steps don't matter.
    """
    rows = []
    for rate in dict.fromkeys(map(rates.rate_of, analysis.cells)):
        mine = [one for one in analysis.cells if rates.rate_of(one) == rate]
        few, many = mine[0], mine[-1]
        for one, other, ratio in ratios_of(few, many) if few is not many else ():
            row = {RATE: rate, "depth": one["depth"], "deeper_depth": one["deeper_depth"]}
            row |= {"few_steps": few.cell.value("steps"), "many_steps": many.cell.value("steps")}
            rows.append(row | {"width_few": one["width"], "width_many": other["width"], **ratio})
    return pd.DataFrame(rows)


def _measured(ratios: pd.DataFrame) -> pd.DataFrame:
    return ratios[ratios["p_equal"].notna()] if len(ratios) else ratios


def _rate(row: Mapping[Any, Any]) -> str:
    return "the best rates" if row[RATE] == Best.RATES else f"rate {row[RATE]}"


def answer(tables: Mapping[str, Table]) -> Answer:
    """The factor by which the transition moves with the steps, at the best rates where they are known.

    Args:
        tables: `ratios` of the study.
    """
    ratios = tables["ratios"].frame
    measured = _measured(ratios)
    if measured.empty:
        why = ratios["status"].iloc[0] if len(ratios) else "there is one number of steps only"
        return Answer(f"No transition can be compared between numbers of steps: {why}.", False)
    best = measured[measured[RATE] == Best.RATES]
    row = (measured if best.empty else best).iloc[0].to_dict()
    moved = row["p_equal"] < SIGNIFICANT
    said = rates.moves(row) if moved else rates.moves(row).replace("moves", "does not move significantly:", 1)
    return Answer(
        f"{'Yes' if moved else 'Not at these sizes'}: from {row['few_steps']:,} to {row['many_steps']:,} steps, at "
        f"{_rate(row)}, the width where depth {row['deeper_depth']} overtakes {row['depth']} {said}.",
        bool(moved),
    )
