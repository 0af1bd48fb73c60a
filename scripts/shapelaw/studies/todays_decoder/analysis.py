"""A transition for each block, scaling, budget and learning rate, and for the best rate of each shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.inputs import check_runs, numbers_of, refuse, refuse_mixed, require_columns
from shapelaw.fits.noise import Noise, group_means, group_noise
from shapelaw.studies.transitions.analysis import Options, TransitionAnalysis, analyse_runs
from shapelaw.studies.transitions.rates import at_best_rates, rate_name

SHAPE = ["depth", "width"]
SERIES = ["block", "base_width", "budget"]
Series = tuple[str, int | None, str]
GPT2 = "gpt2"
OTHER_SEEDS, OWN_LOSS = "the other seeds", "its own loss"
# what a budget says of its rate; of a cosine nothing
SCHEDULES = {"constant": ", undecayed", "redecayed": ", re-decayed"}


@dataclass(frozen=True)
class Cell:
    """Networks of one block, scaling and budget, at one learning rate or each at its best.

    Attributes:
        block: "gpt2" or "llama".
        base_width: width from which rates are scaled; None is no scaling.
        budget: in words, such as `4,000 steps`, and how its rate ended where that is no cosine.
        learning_rate: peak learning rate (of the base width, where there is one); None is the best of each shape.
        runs: checked runs.
        transitions: transition of each pair of adjacent depths, with the curves.
    """

    block: str
    base_width: int | None
    budget: str
    learning_rate: float | None
    runs: pd.DataFrame
    transitions: TransitionAnalysis

    @property
    def rate_name(self) -> str:
        """`rate 0.002`, `best rates`."""
        return rate_name(self.learning_rate)

    @property
    def scaling(self) -> str:
        """`one for all widths`, or `scaled from 96`."""
        return "one for all widths" if self.base_width is None else f"scaled from {self.base_width}"

    @property
    def series(self) -> str:
        """`llama, 4,000 steps`, and the scaling where there is one."""
        scaled = "" if self.base_width is None else f", {self.scaling}"
        return f"{self.block}, {self.budget}{scaled}"

    @property
    def name(self) -> str:
        """`llama, 4,000 steps, rate 0.002`."""
        return f"{self.series}, {self.rate_name}"


@dataclass(frozen=True)
class TodaysAnalysis:
    """All cells, by budget, block and scaling, and then by rate with the best rates last.

    Attributes:
        cells: the cells.
        best_rates: a row for each shape, seed and series of several rates: `block, base_width, budget, depth, width,
            seed, learning_rate, loss, picked_on, at_edge`.
        noise: noise from seed to seed of each block, pooled over its cells; of all blocks for one that repeats no
            shape, None where none does.
        undecayed: whether some losses are those of a constant rate, at which no rate had fallen.
    """

    cells: tuple[Cell, ...]
    best_rates: pd.DataFrame
    noise: Mapping[str, Noise | None]
    undecayed: bool


def analyse_cells(
    table: pd.DataFrame, source: str, options: Options, observed_steps: Sequence[int] = ()
) -> TodaysAnalysis:
    """A transition for every block, scaling, budget and learning rate, and for the best rates where there are several.

    The noise of a block is pooled over its cells: each repeats few shapes.

    Args:
        observed_steps: steps at which the losses of runs without a cosine count as budgets of their own.

    Raises:
        UserError: the table can't be used.
    """
    table = _with_series(table, source)
    undecayed = bool((table["schedule"] == "constant").any())
    table = with_observations(table, observed_steps, source)
    checked: dict[Series, dict[float, pd.DataFrame]] = {}
    order = table.groupby(SERIES, dropna=False, sort=False)["steps"].min().reset_index()
    order = order.sort_values(["steps", *SERIES], kind="stable", na_position="first")
    for row in order.to_dict("records"):
        scaled = not math.isnan(row["base_width"])
        series: Series = (row["block"], int(row["base_width"]) if scaled else None, row["budget"])
        same = (table["block"] == series[0]) & (table["budget"] == series[2])
        same &= table["base_width"] == series[1] if scaled else table["base_width"].isna()
        for rate, runs in table[same].groupby("learning_rate"):
            where = f"{source} ({series[0]}, {series[2]}, rate {rate:g})"
            one = check_runs(runs, where, loss=options.loss, size=options.size)
            checked.setdefault(series, {})[float(str(rate))] = one
    every = [(series[0], runs) for series, at_rates in checked.items() for runs in at_rates.values()]
    if not any(runs["depth"].nunique() > 1 for _, runs in every):
        raise UserError(
            f"{source} has no block, budget and rate with two depths, so there are no transitions."
        )
    parts = [group_means(runs, SHAPE).assign(part=place, block=of) for place, (of, runs) in enumerate(every)]
    means = pd.concat(parts, ignore_index=True)
    noise = {str(of): group_noise(mine) or group_noise(means) for of, mine in means.groupby("block")}
    cells: list[Cell] = []
    picked: list[pd.DataFrame] = []
    for series, at_rates in checked.items():
        cells += [
            Cell(*series, rate, runs, analyse_runs(runs, options, noise[series[0]]))
            for rate, runs in at_rates.items()
        ]
        if len(at_rates) > 1:
            best = pick_rates(at_rates)
            picked.append(best.assign(block=series[0], base_width=series[1], budget=series[2]))
            runs = at_best_rates(at_rates, best)
            cells.append(Cell(*series, None, runs, analyse_runs(runs, options, noise[series[0]])))
    columns = [*SERIES, *SHAPE, "seed", "learning_rate", "loss", "picked_on", "at_edge"]
    best_rates = pd.concat(picked, ignore_index=True) if picked else pd.DataFrame(columns=columns)
    return TodaysAnalysis(tuple(cells), best_rates[columns], noise, undecayed)


def _with_series(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with their series: an empty block is GPT-2's, an empty budget so many steps.

    A budget says of a constant rate that it has not fallen (`undecayed`), and of one that fell and rose again before
    each test loss that it did (`re-decayed`).

    Raises:
        UserError: a column is missing, steps or rates are not positive numbers, or there are two parametrizations.
    """
    require_columns(table, ["steps", "learning_rate"], source)
    refuse_mixed(table, ["parametrization"], source)
    keys = numbers_of(table, ["steps", "learning_rate"], source)
    for name in keys:
        refuse(table, keys[name] <= 0, source, f"{name} must be above zero")
    refuse(table, keys["steps"] % 1 != 0, source, "steps must be a whole number")
    table = table.assign(steps=keys["steps"].astype("int64"), learning_rate=keys["learning_rate"])
    for name in ("block", "base_width", "budget", "schedule", "observations"):
        if name not in table:
            table[name] = None
    equal_steps = pd.Series([f"{steps:,} steps" for steps in table["steps"]], index=table.index)
    said = table["budget"].astype(object).where(table["budget"].notna(), equal_steps)
    return table.assign(
        block=table["block"].astype(object).fillna(GPT2),
        base_width=pd.to_numeric(table["base_width"], errors="coerce").astype("float64"),
        budget=said + table["schedule"].map(SCHEDULES).fillna(""),
    )


def with_observations(table: pd.DataFrame, observed_steps: Sequence[int], source: str) -> pd.DataFrame:
    """The runs, and a row for each of their test losses at these steps, as a run of that many steps.

    The data and the rate of a step don't depend on how many follow, so two runs of one network have the same loss at
    one step: it is taken once, the end of a run first.

    Raises:
        UserError: an observation can't be read.
    """
    one = [*SERIES, *SHAPE, "learning_rate", "seed"]
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


def pick_rates(at_rates: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
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
        losses = shape.pivot_table(index="seed", columns="learning_rate", values="loss").dropna()
        if len(losses.columns) < len(rates) or losses.empty:
            continue
        for seed in losses.index:
            others = losses.drop(index=seed) if len(losses) > 1 else losses
            rate = float(str(others.mean().idxmin()))
            rows.append(
                {
                    "depth": depth,
                    "width": width,
                    "seed": int(seed),
                    "learning_rate": rate,
                    "loss": losses.loc[seed, rate],
                    "picked_on": OTHER_SEEDS if len(losses) > 1 else OWN_LOSS,
                    "at_edge": rate in (rates[0], rates[-1]),
                }
            )
    columns = [*SHAPE, "seed", "learning_rate", "loss", "picked_on", "at_edge"]
    return pd.DataFrame(rows, columns=columns)
