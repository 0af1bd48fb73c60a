"""Whether transitions survive today's decoder: Llama's block, the best rate of each shape, and other budgets.

Input: rows of `steps, learning_rate, depth, width, seed, test_loss`, and of `block` (empty: gpt2), `base_width` (empty:
rates are not scaled), `budget` (empty: so many steps), `schedule` and `observations` where the table has them, as well
as the sizes `block_params`, `total_params` and `step_flops`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.curves import TransitionStatus
from shapelaw.fits.inputs import refuse_mixed
from shapelaw.fits.noise import SIGNIFICANT, noise_sentence
from shapelaw.report.write import Answer, Results, Table, TableOf
from shapelaw.studies.decoders import rates
from shapelaw.studies.decoders.rates import RATE, RatesAnalysis
from shapelaw.studies.grid.analysis import CellAnalysis
from shapelaw.studies.grid.cells import Cell, Value, cells_of, differing_in_one, order_of, said
from shapelaw.studies.grid.results import results_of
from shapelaw.studies.grid.tables import RATIO_FORMATS, ratios_of
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.results import add_size_options

SERIES = ("block", "base_width", "budget")
# what a budget says of its rate; of a cosine nothing
SCHEDULES = {"constant": ", undecayed", "redecayed": ", re-decayed"}
SHOWN = 3  # ratios in one line
RATIO_COLUMNS = [
    *("compared", "one", "other", "at", "depth", "deeper_depth", "width_one", "width_other"),
    *("ratio", "ratio_low", "ratio_high", "p_equal", "status"),
]
UNDECAYED = (
    "Losses of a constant learning rate, which never falls, are all too high, by an amount that need not be the same "
    "for every shape."
)


def analyse_cells(
    table: pd.DataFrame, source: str, options: Options, observed_steps: Sequence[int] = ()
) -> RatesAnalysis:
    """A transition for every block, scaling, budget and learning rate, and for the best rates where there are several.

    Cells come by budget, block and scaling.

    Args:
        observed_steps: steps at which the losses of runs without a cosine count as budgets of their own.

    Raises:
        UserError: the table can't be used.
    """
    table = with_observations(_with_series(table, source), observed_steps, source)
    cells = cells_of(table, (*SERIES, RATE), source=source, loss=options.loss).cells
    fewest: dict[tuple[Value, ...], int] = {}
    for cell in cells:
        series, steps = _series(cell), int(cell.runs["steps"].min())
        fewest[series] = min(steps, fewest.get(series, steps))

    def order(cell: Cell) -> tuple[object, ...]:
        block, base, budget = _series(cell)
        return fewest[block, base, budget], block, base is not None, order_of(base), budget, cell.number(RATE)

    return STUDY.analyse(sorted(cells, key=order), source, options)


def _series(cell: Cell) -> tuple[Value, ...]:
    return tuple(cell.value(name) for name in SERIES)


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
    return {"block": block, "rates": scaling_of(one), "budget": budget, RATE: rates.rate_of(one)}


def is_undecayed(analysis: RatesAnalysis) -> bool:
    """Whether some losses are those of a constant rate, at which no rate had fallen."""
    return any((one.cell.runs["schedule"] == "constant").any() for one in analysis.cells)


def _with_series(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with their series: an empty budget is so many steps.

    A budget says of a constant rate that it has not fallen (`undecayed`), and of one that fell and rose again before
    each test loss that it did (`re-decayed`).

    Raises:
        UserError: a column is missing, steps or rates are not positive numbers, or there are two parametrizations.
    """
    refuse_mixed(table, ["parametrization"], source)
    table = rates.with_recipe(table, source)
    for name in (*SERIES, "schedule", "observations"):
        if name not in table:
            table[name] = None
    equal_steps = pd.Series([f"{steps:,} steps" for steps in table["steps"]], index=table.index)
    budget = table["budget"].astype(object).where(table["budget"].notna(), equal_steps)
    return table.assign(
        block=table["block"].astype(object).fillna("gpt2"),
        base_width=pd.to_numeric(table["base_width"], errors="coerce").astype("float64"),
        budget=budget + table["schedule"].map(SCHEDULES).fillna(""),
    )


def with_observations(table: pd.DataFrame, observed_steps: Sequence[int], source: str) -> pd.DataFrame:
    """The runs, and a row for each of their test losses at these steps, as a run of that many steps.

    The data and the rate of a step don't depend on how many follow, so two runs of one network have the same loss at
    one step: it is taken once, the end of a run first.

    Raises:
        UserError: an observation can't be read.
    """
    one = [*SERIES, *rates.SHAPE, "learning_rate", "seed"]
    rows = [table]
    for place, run in table[table["observations"].notna()].iterrows():
        try:
            losses = {
                int(step): float(loss) for step, loss in (p.split(":") for p in run["observations"].split())
            }
        except ValueError:
            raise UserError(
                f"{source}, row {int(str(place)) + 1}: observations must be `steps:loss` pairs, such as 4000:2.31."
            ) from None
        for step in sorted(set(observed_steps) & losses.keys() - {run["steps"]}):
            budget = f"{step:,} steps{SCHEDULES.get(run['schedule'], '')}"
            seen = run.to_frame().T.assign(steps=step, test_loss=losses[step], budget=budget)
            rows.append(seen.astype(table.dtypes.to_dict()))
    every = pd.concat(rows, ignore_index=True)
    seen_before = every.duplicated(one) & (every.index >= len(table))
    return every[~seen_before].reset_index(drop=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the size, the bootstrap's draws, and the steps at which runs are observed."""
    add_size_options(parser)
    parser.add_argument(
        "--observed-steps",
        type=int,
        nargs="*",
        default=[],
        metavar="STEPS",
        help="steps whose test losses count as budgets of their own, of runs whose rate is constant or re-decayed",
    )


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    analyse = partial(analyse_cells, observed_steps=arguments.observed_steps)
    return results_of(arguments, analyse, present)


STUDY = rates.RatesStudy(
    "todays_decoder",
    SERIES,
    named,
    series_of,
    of="each block, budget and rate",
    what="block, budget and rate",
    pick=rates.best_of_seeds,
    pool=lambda cell: cell.value("block"),  # of a block's cells: each repeats few shapes
    least_rates=2,
)


def present(analysis: RatesAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    ratios = TableOf(
        ratios_table,
        "Widths of transitions over each other, of networks that differ in one thing.",
        dict.fromkeys(("width_one", "width_other"), ".1f") | RATIO_FORMATS,
    )
    return STUDY.results(analysis, ratios, _sentences, answer)


def ratios_table(analysis: RatesAnalysis) -> pd.DataFrame:
    """Widths of transitions over each other, of cells that differ in one thing: the block, the budget or the rates.

    Of the rates, only the best is compared with each single one.
    """
    rows, names = [], [named(one) for one in analysis.cells]
    pairs = sorted((pair, name) for name in (names or [{}])[0] for pair in differing_in_one(names, name))
    for (place, after), name in pairs:
        one, other, its, others = analysis.cells[place], analysis.cells[after], names[place], names[after]
        if name == RATE and not rates.is_best(other):
            continue
        same = ", ".join(str(value) for key, value in its.items() if key != name)
        compared = {"compared": name, "one": its[name], "other": others[name], "at": same}
        for a, b, ratio in ratios_of(one, other):
            widths = {"width_one": a["width"], "width_other": b["width"]}
            rows.append(
                {**compared, "depth": a["depth"], "deeper_depth": a["deeper_depth"], **widths, **ratio}
            )
    return pd.DataFrame(rows, columns=RATIO_COLUMNS)


def _sentences(analysis: RatesAnalysis) -> Iterator[str]:
    """The noise, and what limits the best rates."""
    yield from (f"{block}: {noise_sentence(noise)}" for block, noise in analysis.noise.items())
    best = analysis.best_rates
    yield from rates.edge_sentence(best)
    if own := int((best["picked_on"] == rates.OWN_LOSS).sum()):
        yield (
            f"{own} of {len(best)} best rates are of shapes with one seed and picked by the loss that is compared; the "
            "others are picked on other seeds."
        )
    if is_undecayed(analysis):
        yield UNDECAYED


def answer(tables: Mapping[str, Table]) -> Answer:
    """The factors by which the transition moves from one block, rate or budget to another.

    Args:
        tables: `ratios` and `transitions` of the study.
    """
    ratios, transitions = tables["ratios"].frame, tables["transitions"].frame
    measured = ratios[ratios["p_equal"].notna()].sort_values("p_equal", kind="stable")
    crossings = int((transitions["status"] == TransitionStatus.CROSSING).sum())
    if measured.empty:
        return Answer(
            f"No two transitions can be compared: {crossings} of {len(transitions)} are crossings.", False
        )
    said = "; ".join(
        f"from {row['one']} to {row['other']} ({row['at']}) by {row['ratio']:.2f} ({row['ratio_low']:.2f} to "
        f"{row['ratio_high']:.2f})"
        for row in measured.head(SHOWN).to_dict("records")
    )
    moved = int((measured["p_equal"] < SIGNIFICANT).sum())
    return Answer(
        f"{'No' if moved else 'Yes, within their noise'}: the transition moves significantly in {moved} of "
        f"{len(measured)} comparisons: {said}.",
        bool(moved),
    )
