"""Whether transitions survive today's decoder: Llama's block, the best rate of each shape, and other budgets.

Each learning rate has cells of its own, and the best rates of a series' shapes are one more. Study undertraining is the
same of one block.

Input: rows of `steps, learning_rate, depth, width, seed, test_loss`, and of `block` (empty: gpt2), `base_width` (empty:
rates are not scaled), `budget` (empty: so many steps) and `schedule` where the table has them, as well as the sizes
`block_params`, `total_params` and `step_flops`.
"""

from __future__ import annotations

import argparse
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import pandas as pd

from shapelaw.errors import Parts
from shapelaw.fits.curves import TransitionStatus
from shapelaw.fits.inputs import TEXT_AND_BLOCK, numbers_of, refuse_mixed, require_columns
from shapelaw.fits.noise import SIGNIFICANT, Noise, noise_sentence
from shapelaw.fits.significance import best_on_others
from shapelaw.report.charts import Chart
from shapelaw.report.tables import grouped, plain_rows
from shapelaw.report.write import Answer, Results, Table, TableOf, assembled
from shapelaw.studies.grid import tables
from shapelaw.studies.grid.analysis import CellAnalysis, cell_name, checked_runs, pooled, require_two_depths
from shapelaw.studies.grid.cells import (
    Best,
    Cell,
    Value,
    cells_of,
    differing_in_one,
    frame_of,
    order_of,
    said,
)
from shapelaw.studies.grid.results import cell_tables, results_of
from shapelaw.studies.transitions.analysis import Options, analyse_runs
from shapelaw.studies.transitions.figures import curves_chart
from shapelaw.studies.transitions.results import add_size_options as add_options
from shapelaw.studies.transitions.tables import pooled_row

__all__ = ["add_options", "results"]

SHAPE = ["depth", "width"]
RATE = "learning_rate"
SERIES = ("block", "base_width", "budget")
OTHER_SEEDS, OWN_LOSS = "the other seeds", "its own loss"
PICKED = [*SHAPE, "seed", RATE, "loss", "picked_on", "at_edge"]
# what a budget says of its rate; of a cosine nothing
SCHEDULES = {"constant": ", undecayed", "redecayed": ", re-decayed"}
SHOWN = 3  # ratios in one line
RATIO_COLUMNS = [
    *("compared", "one", "other", "at", "depth", "deeper_depth", "width_one", "width_other"),
    *("ratio", "ratio_low", "ratio_high", "p_equal", "status"),
]


@dataclass(frozen=True)
class RatesAnalysis:
    """Cells of several rates, those of one series together, by rate with the best rates last.

    Attributes:
        cells: the cells.
        best_rates: the best rate of each shape and seed of each series, with the series' values before it.
        noise: the noise between seeds of each block.
        parts: what of the analysis failed.
    """

    cells: tuple[CellAnalysis, ...]
    best_rates: pd.DataFrame
    noise: Mapping[Hashable, Noise | None]
    parts: Parts

    @property
    def trained(self) -> list[CellAnalysis]:
        """The cells of one rate, whose losses are those of trained networks."""
        return [one for one in self.cells if not is_best(one)]


def is_best(one: CellAnalysis) -> bool:
    """True of a cell of best rates."""
    return isinstance(one.cell.value(RATE), Best)


def rate_of(one: CellAnalysis) -> str:
    """A cell's rate as a table has it: `0.002`, `best rates`."""
    value = one.cell.value(RATE)
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def scaling_of(one: CellAnalysis) -> str:
    """`one for all widths`, or `scaled from 96`."""
    base = one.cell.value("base_width")
    return "one for all widths" if base is None else said("base_width", base)


def series_of(one: CellAnalysis) -> str:
    """`llama, 4,000 steps`, and the scaling where there is one."""
    scaled = "" if one.cell.value("base_width") is None else f", {scaling_of(one)}"
    return f"{one.cell.value('block')}, {one.cell.value('budget')}{scaled}"


def named(one: CellAnalysis) -> Mapping[str, Value]:
    """The columns that name a cell in a table."""
    block, budget = one.cell.value("block"), one.cell.value("budget")
    return {"block": block, "rates": scaling_of(one), "budget": budget, RATE: rate_of(one)}


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return results_of(arguments, analyse_cells, present)


def analyse_cells(table: pd.DataFrame, source: str, options: Options) -> RatesAnalysis:
    """A transition for every block, scaling, budget and learning rate, and for the best rates where there are several.

    Cells come by budget, block and scaling. The cells of a block share their noise, as each repeats few shapes; a block
    without repeated shapes takes that of all.

    Raises:
        UserError: the table can't be used, or no cell has two depths.
    """
    cells = cells_of(_with_series(table, source), (*SERIES, RATE), source=source, loss=options.loss).cells
    parts = Parts()
    pairs = parts.each(_in_order(cells), lambda cell: checked_runs(cell, source, options), cell_name)
    require_two_depths([runs for _, runs in pairs], source, "block, budget and rate")
    noise = pooled(pairs, _block_of, options.noise, borrow=True, parts=parts)
    every, best_rates = list[tuple[Cell, pd.DataFrame]](), list[tuple[Mapping[str, Value], pd.DataFrame]]()

    def analysed(pair: tuple[Cell, pd.DataFrame]) -> CellAnalysis:
        cell, runs = pair
        return CellAnalysis(cell, runs, analyse_runs(runs, options, lambda _: noise[_block_of(cell)], parts))

    for series, kin in groupby(pairs, lambda pair: _series(pair[0])):
        mine = list(kin)
        every += mine
        if len(mine) > 1:
            at_rates = {float(str(cell.value(RATE))): runs for cell, runs in mine}
            best, first = best_of_seeds(at_rates), mine[0][0]
            best_rates.append((dict(zip(SERIES, series, strict=True)), best))
            of_best = replace(first, values={**first.values, RATE: Best.RATES})
            every.append((of_best, at_best_rates(at_rates, best)))
    found = parts.each(every, analysed, lambda pair: pair[0].name)
    best_of_all = frame_of(best_rates) if best_rates else pd.DataFrame(columns=[*SERIES, *PICKED])
    return RatesAnalysis(tuple(one for _, one in found), best_of_all, noise, parts)


def _block_of(cell: Cell) -> Value:
    return cell.value("block")


def _series(cell: Cell) -> tuple[Value, ...]:
    return tuple(cell.value(name) for name in SERIES)


def _in_order(cells: tuple[Cell, ...]) -> list[Cell]:
    """Cells by their budgets, the one of fewest steps first, by block and scaling."""
    steps = grouped((_series(cell), int(cell.runs["steps"].min())) for cell in cells)
    fewest = {series: min(some) for series, some in steps.items()}

    def order(cell: Cell) -> tuple[object, ...]:
        block, base, budget = _series(cell)
        return fewest[block, base, budget], block, base is not None, order_of(base), budget, cell.number(RATE)

    return sorted(cells, key=order)


def _with_series(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with their series: an empty budget is so many steps.

    A budget says of a constant rate that it has not fallen (`undecayed`), and of one that fell and rose again before
    each test loss that it did (`re-decayed`).

    Raises:
        UserError: a column is missing, steps or rates are not positive numbers, or there are two texts or
            parametrizations.
    """
    names = ["steps", RATE]
    refuse_mixed(table, [name for name in TEXT_AND_BLOCK if name not in ("block", "schedule")], source)
    require_columns(table, names, source)
    table = table.assign(**numbers_of(table, names, source, positive=names, whole=["steps"]))
    for name in (*SERIES, "schedule"):
        if name not in table:
            table[name] = None
    equal_steps = pd.Series([f"{steps:,} steps" for steps in table["steps"]], index=table.index)
    budget = table["budget"].astype(object).where(table["budget"].notna(), equal_steps)
    return table.assign(
        block=table["block"].astype(object).fillna("gpt2"),
        base_width=pd.to_numeric(table["base_width"], errors="coerce").astype("float64"),
        budget=budget + table["schedule"].map(SCHEDULES).fillna(""),
    )


def best_of_seeds(at_rates: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """The rate of each seed of each shape: `depth, width, seed, learning_rate, loss, picked_on, at_edge`.

    It is the rate of least mean loss over the shape's other seeds, so that no loss that is compared has picked its own
    rate. The rate of a shape with one seed is picked by the loss that is then compared, which is a little too low for
    every shape alike. Shapes that miss a rate are left out.

    Args:
        at_rates: checked runs of one series, by learning rate.
    """
    rates = sorted(at_rates)
    runs = pd.concat([at_rates[rate].assign(learning_rate=rate) for rate in rates], ignore_index=True)
    rows = []
    for (depth, width), shape in runs.groupby(SHAPE):
        losses = shape.pivot_table(index="seed", columns=RATE, values="loss").dropna()
        if len(losses.columns) < len(rates) or losses.empty:
            continue
        picked_on = OTHER_SEEDS if len(losses) > 1 else OWN_LOSS
        for seed, place in zip(losses.index, best_on_others(losses), strict=True):
            rate, at_edge = rates[place], place in (0, len(rates) - 1)
            rows.append((depth, width, int(seed), rate, losses.loc[seed, rate], picked_on, at_edge))
    return pd.DataFrame(rows, columns=PICKED)


def at_best_rates(at_rates: Mapping[float, pd.DataFrame], best: pd.DataFrame) -> pd.DataFrame:
    """The runs at the best rates of `best_of_seeds`, by shape and seed."""
    keys = [*SHAPE, "seed"]
    found = [runs.merge(best.loc[best[RATE] == rate, keys], on=keys) for rate, runs in at_rates.items()]
    return pd.concat(found, ignore_index=True).sort_values(keys, ignore_index=True)


def ratios_table(analysis: RatesAnalysis) -> pd.DataFrame:
    """Widths of transitions over each other, of cells that differ in one thing: the block, the budget or the rates.

    Of the rates, only the best is compared with each single one.
    """
    rows, names = [], [named(one) for one in analysis.cells]
    pairs = sorted((pair, name) for name in (names or [{}])[0] for pair in differing_in_one(names, name))
    for (place, after), name in pairs:
        one, other, its, others = analysis.cells[place], analysis.cells[after], names[place], names[after]
        if name == RATE and not is_best(other):
            continue
        same = ", ".join(str(value) for key, value in its.items() if key != name)
        compared = {"compared": name, "one": its[name], "other": others[name], "at": same}
        for a, b, ratio in tables.ratios_of(one, other):
            depths = {name: a[name] for name in ("depth", "deeper_depth")}
            widths = {"width_one": a["width"], "width_other": b["width"]}
            rows.append({**compared, **depths, **widths, **ratio})
    return pd.DataFrame(rows, columns=RATIO_COLUMNS)


def seed_noise_table(analysis: RatesAnalysis) -> pd.DataFrame:
    """The spread of every repeated shape over seeds, and below what is pooled, which the cells of a block use."""
    repeated = tables.spread_table(analysis.trained, named)
    empty = dict.fromkeys(("rates", "budget", RATE, "depth", "width"), "")
    pools = [
        pooled_row(repeated[repeated["block"] == block], noise, **empty, block=f"{block}, pooled")
        for block, noise in analysis.noise.items()
    ]
    return pd.concat([repeated, *pools], ignore_index=True)


TABLES = {
    "ratios": TableOf(
        ratios_table,
        "Widths of transitions over each other, of networks that differ in one thing.",
        dict.fromkeys(("width_one", "width_other"), ".1f") | tables.RATIO_FORMATS,
    ),
    "best_rates": TableOf(
        lambda found: found.best_rates.rename(columns={"loss": "test_loss"}),
        "The best learning rate of each shape.",
        {"test_loss": ".4f"},
    ),
    "losses": TableOf(
        lambda found: tables.stack(found.trained, tables.mean_losses_of, named, found.parts),
        "Test loss in nats per token.",
        {"test_loss": ".4f"},
    ),
    "seed_noise": TableOf(seed_noise_table, "Spread of the loss over seeds."),
}


def present(analysis: RatesAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    cells = analysis.cells
    return assembled(
        analysis.parts,
        {
            **cell_tables(cells, analysis.parts, named, "each block, budget and rate"),
            **{name: partial(one.of, analysis) for name, one in TABLES.items()},
        },
        {"losses": lambda _: losses_figure(cells)},
        {"rates": lambda _: _sentences(analysis)},
        lambda made: {
            "transitions": list(_transitions(cells)),
            **{name: plain_rows(made[name].frame) for name in ("ratios",) if name in made},
        },
        answer,
    )


def losses_figure(cells: tuple[CellAnalysis, ...]) -> Chart:
    """Loss of each depth against size: a row for each series, a column for each learning rate and the best ones."""
    at = [rate_of(one) if is_best(one) else f"rate {rate_of(one)}" for one in cells]
    places = {rate: order_of(one.cell.value(RATE)) for rate, one in zip(at, cells, strict=True)}
    shown = {(series_of(one), rate): one.transitions for rate, one in zip(at, cells, strict=True)}
    return curves_chart(shown, sorted(places, key=places.__getitem__))


def _transitions(cells: tuple[CellAnalysis, ...]) -> Iterator[dict[str, Any]]:
    """Those of all cells for fit.json, each with the values of its cell; a best of several is null."""
    for one in cells:
        values = {name: one.cell.value(name) for name in (*SERIES, RATE)}
        plain = {name: None if isinstance(value, Best) else value for name, value in values.items()}
        yield from ({**plain, **row} for row in plain_rows(one.transitions.transitions))


def _sentences(analysis: RatesAnalysis) -> Iterator[str]:
    """The noise, and what limits the best rates."""
    yield from (f"{block}: {noise_sentence(noise)}" for block, noise in analysis.noise.items())
    best = analysis.best_rates
    if edge := int(best["at_edge"].astype(bool).sum()):
        yield (
            f"{edge} of {len(best)} best rates are the lowest or the highest that was tried: the best may lie beyond."
        )
    if own := int((best["picked_on"] == OWN_LOSS).sum()):
        yield (
            f"{own} of {len(best)} best rates are of shapes with one seed and picked by the loss that is compared; the "
            "others are picked on other seeds."
        )


def answer(made: Mapping[str, Table]) -> Answer:
    """The factors by which the transition moves from one block, rate or budget to another.

    Args:
        made: `ratios` and `transitions` of the study.
    """
    ratios, transitions = made["ratios"].frame, made["transitions"].frame
    measured = ratios[ratios["p_equal"].notna()].sort_values("p_equal", kind="stable")
    crossings = int((transitions["status"] == TransitionStatus.CROSSING).sum())
    if measured.empty:
        return Answer(
            f"No two transitions can be compared: {crossings} of {len(transitions)} are crossings.", False
        )
    factors = "; ".join(
        f"from {row['one']} to {row['other']} ({row['at']}) by {row['ratio']:.2f} ({row['ratio_low']:.2f} to "
        f"{row['ratio_high']:.2f})"
        for row in measured.head(SHOWN).to_dict("records")
    )
    moved = int((measured["p_equal"] < SIGNIFICANT).sum())
    return Answer(
        f"{'No' if moved else 'Yes, within their noise'}: the transition moves significantly in {moved} of "
        f"{len(measured)} comparisons: {factors}.",
        bool(moved),
    )
