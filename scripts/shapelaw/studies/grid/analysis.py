"""The analysis of a grid: each cell's transitions, the effect of every axis, and the best shape of every size."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter

import numpy as np
import pandas as pd

from shapelaw.errors import Parts, UserError
from shapelaw.fits import batches
from shapelaw.fits.curves import loss_curves
from shapelaw.fits.equal_sizes import Difference, difference, size_groups, with_scatter
from shapelaw.fits.inputs import check_bootstrap, check_runs, numbers_of
from shapelaw.fits.noise import Noise, group_means, group_noise
from shapelaw.report.tables import grouped
from shapelaw.studies.grid.cells import Cell, Cells, Value, cells_of, differing_in_one, name_of, shared_values
from shapelaw.studies.transitions.analysis import UNITS, Options, Runs, TransitionAnalysis, analyse_runs

TEXT = ("corpus", "vocab_size", "patch_embedding")  # of these a loss has its unit
DEFAULT = Options()
BITS = "bits_per_byte"
LOSS = "test_loss"
Pool = Callable[[Cell], Hashable]
cell_name: Callable[[Cell], str] = attrgetter("name")


@dataclass(frozen=True)
class CellAnalysis:
    """A cell with its checked runs, its transitions, and what the losses' noise is.

    Attributes:
        cell: the cell.
        runs: checked runs: `depth, width, seed, loss` and the sizes that the table has.
        transitions: of each pair of adjacent depths by both methods, with the curves and the line through them.
        bits: the compared runs with their curves and noise in bits per byte; None where not every run has them.
    """

    cell: Cell
    runs: pd.DataFrame
    transitions: TransitionAnalysis
    bits: Runs | None = None

    @property
    def values(self) -> Mapping[str, Value]:
        """What tells the cell from the others."""
        return self.cell.values

    @property
    def compared(self) -> Runs:
        """The curves of every depth, the compared pairs, and the noise."""
        return self.transitions.compared

    def in_unit(self, unit: str) -> Runs | None:
        """The same in a unit, `bits_per_byte` or another for the loss itself; None where the cell has none."""
        return self.bits if unit == BITS else self.compared


@dataclass(frozen=True)
class Effect:
    """Two cells that differ in one column.

    Attributes:
        axis: the column.
        one, other: the cells; the other's value comes later.
        unit: the column of the loss in which they are compared: bits per byte where the texts' pieces differ.
        found: the difference at equal size; None without such losses.
    """

    axis: str
    one: CellAnalysis
    other: CellAnalysis
    unit: str
    found: Difference | None


@dataclass(frozen=True)
class Candidate:
    """A depth of a cell at a size: its width there, its loss, and how it stands against the best.

    Attributes:
        above: loss over that of the best; 0 for the best.
        err: standard error of the loss; NaN without a noise estimate, as is that of `above`.
        near: not significantly worse than the best, at 95%.
    """

    cell: CellAnalysis
    size: float
    depth: int
    width: float
    loss: float
    err: float
    noise: Noise | None
    above: float = 0.0
    above_err: float = 0.0
    near: bool = True


@dataclass(frozen=True, eq=False)  # an analysis is the key of what follows from it
class GridAnalysis:
    """All cells of a grid.

    Attributes:
        cells: the cells of the table that could be analysed.
        analyses: their analyses in the same order.
        options: of the transitions.
        noise: the noise between seeds of each pool of cells that share one.
        unit: the loss in which all cells compare.
        parts: what of the analysis failed.
    """

    cells: Cells
    analyses: tuple[CellAnalysis, ...]
    options: Options
    noise: Mapping[Hashable, Noise | None]
    unit: str
    parts: Parts = field(default_factory=Parts)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """The effects of each axis: all pairs of cells that differ in it alone, the earlier value first.

        They are in the unit in which all cells compare; cells of one text that have none in it compare in their own.
        """
        named, told = [one.values for one in self.analyses], list[Effect]()
        for axis in self.cells.axes:
            for one, other in (
                (self.analyses[a], self.analyses[b]) for a, b in differing_in_one(named, axis)
            ):
                known = one.in_unit(self.unit) is not None and other.in_unit(self.unit) is not None
                in_unit = self.unit if known or axis in TEXT else self.options.loss
                first, second = one.in_unit(in_unit), other.in_unit(in_unit)
                found = None
                if first is not None and second is not None:
                    found = difference(first.curves, second.curves, (first.noise, second.noise))
                    found = replace(found, caution="") if axis in batches.COLUMNS else found
                told.append(Effect(axis, one, other, in_unit, found))
        grown = iter(with_scatter([one.found for one in told if one.found is not None]))
        return tuple(one if one.found is None else replace(one, found=next(grown)) for one in told)

    @cached_property
    def best(self) -> tuple[tuple[Candidate, ...], ...]:
        """The candidates of each size, the best one first; empty where the cells have no common unit."""
        return tuple(best_shapes(self.analyses, self.unit))


def unit_of_loss(cell: Cell) -> tuple[Value, ...]:
    """The pool of a cell: cells of one corpus and one vocabulary share the unit of their loss, and their noise.

    A patch embedding shares it with no other rank: fewer numbers of a patch are another input, which some seeds learn
    and others don't.
    """
    rank = cell.value("embedding_rank") if cell.value("patch_embedding") == "True" else None
    return (*(cell.value(name) for name in TEXT), rank)


def analyse_grid(
    table: pd.DataFrame,
    source: str,
    options: Options = DEFAULT,
    axes: Sequence[str] | None = None,
) -> GridAnalysis:
    """The analysis of a table of runs, without the cells that can't be analysed where there are others.

    Args:
        axes: the columns that the grid lists; None for a table from elsewhere (`cells_of`).

    Raises:
        UserError: the table can't be used.
    """
    check_bootstrap(options.noise, options.draws)
    cells, parts = cells_of(table, axes, source=source, loss=options.loss), Parts()
    analyses, noise = analyse_cells(cells.cells, source, options, parts=parts)
    cells = replace(cells, cells=tuple(one.cell for one in analyses))
    several = len({tuple(cell.value(name) for name in TEXT) for cell in cells.cells}) > 1
    unit = BITS if several else options.loss
    return GridAnalysis(cells, analyses, options, noise, unit, parts)


def analyse_cells(
    cells: Sequence[Cell], source: str, options: Options, pool: Pool = unit_of_loss, *, parts: Parts
) -> tuple[tuple[CellAnalysis, ...], dict[Hashable, Noise | None]]:
    """The cells with their transitions, without those that can't be analysed, and the noise of each pool.

    Args:
        parts: is told what fails.

    Raises:
        UserError: the runs of no cell can be used.
    """
    checked = parts.each(cells, lambda cell: checked_runs(cell, source, options), cell_name)
    noise = pooled(checked, pool, options.noise, parts=parts)
    in_bits = {
        id(cell): parts.attempt(f"bits per byte of {cell.name}", partial(_in_bits, cell, runs, source))
        for cell, runs in checked
    }
    known = [(cell, runs) for cell, _ in checked if (runs := in_bits[id(cell)]) is not None]
    bits_noise = parts.attempt("seed noise in bits per byte", lambda: pooled(known, pool, parts=parts)) or {}

    def analysed(pair: tuple[Cell, pd.DataFrame]) -> CellAnalysis:
        cell, runs = pair
        one = CellAnalysis(cell, runs, analyse_runs(runs, options, lambda _: noise[pool(cell)], parts))
        if (bits := in_bits[id(cell)]) is None:
            return one
        of = bits_noise.get(pool(cell))
        curves = loss_curves(bits, of, options.size)
        return replace(one, bits=replace(one.compared, unit=UNITS[BITS], noise=of, curves=curves))

    found = parts.each(checked, analysed, lambda pair: pair[0].name)
    return tuple(one for _, one in found), noise


def checked_runs(cell: Cell, source: str, options: Options) -> pd.DataFrame:
    """The checked runs of a cell (`check_runs`).

    Raises:
        UserError: they can't be used; the sentence names the cell.
    """
    where = f"{source} ({cell.name})" if cell.values else source
    return check_runs(cell.runs, where, loss=options.loss, size=options.size, beside=[BITS])


def pooled(
    runs: Sequence[tuple[Cell, pd.DataFrame]],
    pool: Pool,
    given: float | None = None,
    *,
    borrow: bool = False,
    parts: Parts,
) -> dict[Hashable, Noise | None]:
    """The noise between seeds of each pool, over the repeated shapes of its cells; of a given noise that one.

    A pool whose seeds have equal losses has none where another pool can be told.

    Args:
        runs: each cell with its checked runs.
        pool: cells with equal keys share their noise.
        borrow: a pool without repeated shapes takes the noise of all cells together.
        parts: is told what fails.

    Raises:
        UserError: the repeated seeds of all pools have exactly equal losses.
    """
    kin = grouped((pool(cell), (cell, one)) for cell, one in runs)
    if given is not None:
        return dict.fromkeys(kin, Noise(given, math.inf))
    means = {
        key: pd.concat([group_means(one, ["depth", "width"]) for _, one in mine], ignore_index=True)
        for key, mine in kin.items()
    }

    def named(key: Hashable) -> str:
        shared = shared_values([cell.values for cell, _ in kin[key]])
        return f"seed noise of {name_of(shared) or 'all cells'}"

    told = parts.each(kin, lambda key: group_noise(means[key]), named)
    found = dict.fromkeys(kin, None) | dict(told)
    if borrow and None in found.values():
        of_all = group_noise(pd.concat(means.values(), ignore_index=True))
        found = {key: noise or of_all for key, noise in found.items()}
    return found


def _in_bits(cell: Cell, runs: pd.DataFrame, source: str) -> pd.DataFrame | None:
    """The checked runs of a cell with bits per byte as their loss, which is refused where it is no loss."""
    if BITS not in cell.runs or cell.runs[BITS].isna().any():
        return None
    numbers_of(cell.runs, [BITS], source, positive=[BITS])
    return runs.assign(loss=runs[BITS])


def best_shapes(analyses: Sequence[CellAnalysis], unit: str) -> Iterator[tuple[Candidate, ...]]:
    """The depths of all cells at each size that a network has, the best one first.

    The best is the least of several noisy losses, so its own loss is a little too low.
    """
    known = [(one, runs) for one in analyses if (runs := one.in_unit(unit)) is not None]
    if len(known) < len(analyses):
        return
    every = [curve.size for _, runs in known for curve in runs.curves.values()]
    for size in size_groups(np.concatenate(every)):
        at, rows = np.array([size]), list[Candidate]()
        for one, runs in known:
            for depth, curve in runs.curves.items():
                (weights,), (inside,) = curve.weights_at(at)
                if inside:
                    err = math.sqrt(float(weights**2 @ curve.loss_err**2))
                    width = round(float(curve.width_at(math.log(size))), 6)
                    loss = float(weights @ curve.loss)
                    rows.append(Candidate(one, round(size, 6), depth, width, loss, err, runs.noise))
        if rows:
            yield within(rows)


def is_known(at: Sequence[Candidate], cells: Iterable[CellAnalysis], unit: str) -> bool:
    """Whether the first of the candidates of a size is the best depth, and not merely the best of those that reach it.

    The next shallower and the next deeper depth of its cell reach the size too, and no depth that doesn't reach it has
    a smaller network with a lower loss.
    """
    best, reaching = at[0], {(id(one.cell), one.depth) for one in at}
    curves = {
        (id(one), depth): curve
        for one in cells
        if (known := one.in_unit(unit)) is not None
        for depth, curve in known.curves.items()
    }
    depths = sorted(depth for cell, depth in curves if cell == id(best.cell))
    place = depths.index(best.depth)
    beside = {(id(best.cell), depth) for depth in depths[max(place - 1, 0) : place + 2]}
    smaller = [curve.loss[curve.size < best.size] for key, curve in curves.items() if key not in reaching]
    return len(beside) > 1 and beside <= reaching and not any((some < best.loss).any() for some in smaller)


def within(rows: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Candidates of one size, the best one first, each beside it."""
    best, *others = sorted(rows, key=lambda one: one.loss)
    found = [replace(best, above=0.0, above_err=0.0 * best.err, near=True)]
    for one in others:
        apart, limit = math.hypot(one.err, best.err), math.inf
        if one.noise is not None and best.noise is not None:
            known = (each.noise.threshold_at(each.width) for each in (one, best) if each.noise is not None)
            limit = max(map(float, known)) * apart
        above = one.loss - best.loss
        found.append(replace(one, above=above, above_err=apart, near=above <= limit))
    return tuple(found)


def require_two_depths(runs: Iterable[pd.DataFrame], source: str, what: str) -> None:
    """Refuse tables of which none has two depths.

    Args:
        what: what each table is of, in the message.

    Raises:
        UserError: so it is.
    """
    if not any(one["depth"].nunique() > 1 for one in runs):
        raise UserError(f"{source} has no {what} with two depths, so there are no transitions.")
