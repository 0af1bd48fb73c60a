"""Cells of several learning rates: each rate alone, and, as a cell of its own, each shape at its best."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import pandas as pd

from shapelaw.errors import Parts
from shapelaw.fits.inputs import numbers_of, refuse, require_columns
from shapelaw.fits.noise import Noise, group_means
from shapelaw.report.charts import Chart
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Answer, Results, Table, TableOf, assembled
from shapelaw.studies.grid import tables
from shapelaw.studies.grid.analysis import (
    CellAnalysis,
    Pool,
    cell_name,
    checked_runs,
    pooled,
    require_two_depths,
)
from shapelaw.studies.grid.cells import Best, Cell, Value, frame_of, order_of
from shapelaw.studies.grid.results import cell_tables
from shapelaw.studies.transitions.analysis import Options, analyse_runs
from shapelaw.studies.transitions.figures import curves_chart
from shapelaw.studies.transitions.tables import pooled_row

SHAPE = ["depth", "width"]
RATE = "learning_rate"
OTHER_SEEDS, OWN_LOSS = "the other seeds", "its own loss"
PICKED = [*SHAPE, "seed", RATE, "loss", "picked_on", "at_edge"]
Pick = Callable[[Mapping[float, pd.DataFrame]], pd.DataFrame]


@dataclass(frozen=True)
class RatesAnalysis:
    """Cells of several rates, those of one series together, by rate with the best rates last.

    Attributes:
        cells: the cells.
        best_rates: the best rate of each shape (and seed) of each series, with the series' values before it.
        noise: the noise between seeds of each pool.
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


def at_rate(one: CellAnalysis) -> str:
    """The same as a panel's name: `rate 0.002`, `best rates`."""
    return rate_of(one) if is_best(one) else f"rate {rate_of(one)}"


def in_order(cells: Iterable[CellAnalysis]) -> list[str]:
    """The names of the rates of some cells, each once, the best rates last."""
    names = {at_rate(one): order_of(one.cell.value(RATE)) for one in cells}
    return sorted(names, key=names.__getitem__)


def moves(ratio: Mapping[Hashable, Any]) -> str:
    """`moves by a factor of 0.51 (0.47 to 0.56)`, of a row with a `ratio_of` two transitions."""
    return (
        f"moves by a factor of {ratio['ratio']:.2f} ({ratio['ratio_low']:.2f} to {ratio['ratio_high']:.2f})"
    )


def edge_sentence(best_rates: pd.DataFrame) -> Iterator[str]:
    """A sentence where best rates are at the edge of those that were tried."""
    if edge := int(best_rates["at_edge"].astype(bool).sum()):
        yield (
            f"{edge} of {len(best_rates)} best rates are the lowest or the highest that was tried: the best may lie "
            "beyond."
        )


def with_recipe(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The table with whole steps and rates above zero.

    Raises:
        UserError: a column is missing, or a value is something else.
    """
    names = ["steps", RATE]
    require_columns(table, names, source)
    keys = numbers_of(table, names, source)
    for name in names:
        refuse(table, keys[name] <= 0, source, f"{name} must be above zero")
    refuse(table, keys["steps"] % 1 != 0, source, "steps must be a whole number")
    return table.assign(steps=keys["steps"].astype("int64"), learning_rate=keys[RATE])


def at_best_rates(at_rates: Mapping[float, pd.DataFrame], best: pd.DataFrame) -> pd.DataFrame:
    """The runs at the best rates, by shape and seed.

    Args:
        at_rates: checked runs by learning rate.
        best: `learning_rate` for each `depth, width`, or for each `depth, width, seed`.
    """
    keys = [name for name in (*SHAPE, "seed") if name in best]
    found = [runs.merge(best.loc[best[RATE] == rate, keys], on=keys) for rate, runs in at_rates.items()]
    return pd.concat(found, ignore_index=True).sort_values([*SHAPE, "seed"], ignore_index=True)


def best_of_shapes(at_rates: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """The rate of least mean loss of each shape that has every rate: `depth, width, learning_rate, loss, at_edge`.

    The rate is chosen on the runs whose losses are then compared: the best losses are a little too low, by less than
    the noise, for every shape alike.

    Args:
        at_rates: checked runs of one series, by learning rate.
    """
    rates = sorted(at_rates)
    tables = [group_means(at_rates[rate], SHAPE).assign(learning_rate=rate) for rate in rates]
    means = pd.concat(tables, ignore_index=True)
    everywhere = means.groupby(SHAPE)[RATE].transform("size") == len(rates)
    least = means[everywhere].sort_values("loss", kind="stable").drop_duplicates(SHAPE).sort_values(SHAPE)
    at_edge = least[RATE].isin([rates[0], rates[-1]])
    return least[[*SHAPE, RATE, "loss"]].assign(at_edge=at_edge)


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
        for seed in losses.index:
            others = losses.drop(index=seed) if len(losses) > 1 else losses
            rate = float(str(others.mean().idxmin()))
            picked_on = OTHER_SEEDS if len(losses) > 1 else OWN_LOSS
            at_edge = rate in (rates[0], rates[-1])
            rows.append((depth, width, int(seed), rate, losses.loc[seed, rate], picked_on, at_edge))
    return pd.DataFrame(rows, columns=PICKED)


def rates_figure(cells: Sequence[CellAnalysis], row_of: Callable[[CellAnalysis], str]) -> Chart:
    """Loss of each depth against size: a row for each series, a column for each learning rate and the best ones."""
    return curves_chart({(row_of(one), at_rate(one)): one.transitions for one in cells}, in_order(cells))


@dataclass(frozen=True)
class RatesStudy:
    """How a study of several learning rates names what it compares.

    Attributes:
        name: its name.
        keys: the columns of a cell that tell one series from another.
        named: the columns that name a cell in a table; cells that share their noise share the first.
        series_of: the name of a cell's series.
        of: what its transitions are of, for a caption.
        what: what a transition needs two depths of, in a message.
        pick: picks the best rates of a series from its checked runs by rate.
        pool: cells with equal keys share their noise; one without repeated shapes takes that of all cells.
        least_rates: rates from which a series has best ones.
    """

    name: str
    keys: tuple[str, ...]
    named: tables.Named
    series_of: Callable[[CellAnalysis], str]
    of: str
    what: str
    pick: Pick
    pool: Pool
    least_rates: int = 1

    def analyse(self, cells: Sequence[Cell], source: str, options: Options) -> RatesAnalysis:
        """The cells of every rate with their transitions, and those of the best rates of each series.

        Args:
            cells: of one rate each, those of a series together.

        Raises:
            UserError: the runs can't be used, or no cell has two depths.
        """
        parts = Parts()
        pairs = parts.each(cells, lambda cell: checked_runs(cell, source, options), cell_name)
        require_two_depths([runs for _, runs in pairs], source, self.what)
        noise = pooled(pairs, self.pool, options.noise, borrow=True, parts=parts)
        every, best_rates = (
            list[tuple[Cell, pd.DataFrame]](),
            list[tuple[Mapping[str, Value], pd.DataFrame]](),
        )

        def analysed(pair: tuple[Cell, pd.DataFrame]) -> CellAnalysis:
            cell, runs = pair
            return CellAnalysis(
                cell, runs, analyse_runs(runs, options, lambda _: noise[self.pool(cell)], parts)
            )

        for values, series in groupby(pairs, lambda pair: {name: pair[0].value(name) for name in self.keys}):
            mine = list(series)
            if len(mine) >= self.least_rates:
                at_rates = {float(str(cell.value(RATE))): runs for cell, runs in mine}
                best, first = self.pick(at_rates), mine[0][0]
                best_rates.append((values, best))
                of_best = replace(first, values={**first.values, RATE: Best.RATES})
                mine.append((of_best, at_best_rates(at_rates, best)))
            every += mine
        found = parts.each(every, analysed, lambda pair: pair[0].name)
        best_of_all = frame_of(best_rates) if best_rates else pd.DataFrame(columns=[*self.keys, *PICKED])
        return RatesAnalysis(tuple(one for _, one in found), best_of_all, noise, parts)

    def results(
        self,
        analysis: RatesAnalysis,
        ratios: TableOf,
        sentences: Callable[[RatesAnalysis], Iterable[str]],
        answered: Callable[[Mapping[str, Table]], Answer],
    ) -> Results:
        """The tables, figures and fit.json of an analysis.

        Args:
            ratios: the study's ratios of transitions.
            sentences: what no table says.
        """
        four = {"test_loss": ".4f"}

        def best(one: RatesAnalysis) -> pd.DataFrame:
            return one.best_rates.rename(columns={"loss": "test_loss"})

        def losses(one: RatesAnalysis) -> pd.DataFrame:
            return tables.losses_table(one.trained, self.named, one.parts)

        others = {
            "ratios": ratios,
            "best_rates": TableOf(best, "The best learning rate of each shape.", four),
            "losses": TableOf(losses, "Test loss in nats per token.", four),
            "seed_noise": TableOf(self.seed_noise, "Spread of the loss over seeds."),
        }

        return assembled(
            analysis.parts,
            {
                **cell_tables(analysis.cells, analysis.parts, self.named, self.of),
                **{name: partial(one.of, analysis) for name, one in others.items()},
            },
            {"losses": lambda _: rates_figure(analysis.cells, self.series_of)},
            {"rates": lambda _: sentences(analysis)},
            lambda made: {
                "study": self.name,
                "transitions": list(self._transitions(analysis.cells)),
                **{name: plain_rows(made[name].frame) for name in ("ratios",) if name in made},
            },
            answered,
        )

    def seed_noise(self, analysis: RatesAnalysis) -> pd.DataFrame:
        """The spread of every repeated shape over seeds, and below what is pooled, which the cells of a pool use."""
        repeated = tables.spread_table(analysis.trained, self.named)
        first, *others = self.named(analysis.trained[0])
        empty = dict.fromkeys((*others, "depth", "width"), "")
        pooled = [
            pooled_row(repeated, noise, **empty, **{first: "pooled"})
            if pool is None
            else pooled_row(repeated[repeated[first] == pool], noise, **empty, **{first: f"{pool}, pooled"})
            for pool, noise in analysis.noise.items()
        ]
        return pd.concat([repeated.astype({first: object}), *pooled], ignore_index=True)

    def _transitions(self, cells: Sequence[CellAnalysis]) -> Iterator[dict[str, Any]]:
        """Those of all cells for fit.json, each with the values of its cell; a best of several is null."""
        for one in cells:
            values = {name: one.cell.value(name) for name in (*self.keys, RATE)}
            plain = {name: None if isinstance(value, Best) else value for name, value in values.items()}
            yield from ({**plain, **row} for row in plain_rows(one.transitions.transitions))
