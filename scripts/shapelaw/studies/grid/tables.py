"""The tables of a grid, each with the values of its cells in columns of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.fits.curves import TransitionStatus
from shapelaw.fits.equal_sizes import Difference, holm, quantile, two_sided
from shapelaw.fits.noise import Noise
from shapelaw.fits.projection import why_no_projection
from shapelaw.studies.grid.analysis import BITS, CellAnalysis, Effect, GridAnalysis, Pool
from shapelaw.studies.grid.cells import Value, frame_of, typed
from shapelaw.studies.surface.tables import penalty_table
from shapelaw.studies.transitions.ratios import least_dof, ratio_of
from shapelaw.studies.transitions.tables import gaps_table as gaps_of_runs
from shapelaw.studies.transitions.tables import mean_losses, projection_table, stacked

Named = Callable[[CellAnalysis], Mapping[str, Value]]
Row = Mapping[Hashable, Any]
Made = Callable[[CellAnalysis], pd.DataFrame | None]

DIFFERENCE, RATIO = "loss at equal size", "width of the transition"
MEASURED, NO_NOISE, NO_SIZES, NO_BITS = (
    *("measured", TransitionStatus.NO_NOISE.value),
    *("no sizes in common", "no bits per byte"),
)
NUMBERS = ("value", "err", "low", "high", "p", "p_holm")
UNITS = {BITS: "bits per byte", "test_loss": "nats per token"}


def own_values(one: CellAnalysis) -> Mapping[str, Value]:
    """The columns that name a cell: the values that tell it from the others."""
    return one.values


def stack(analyses: Iterable[CellAnalysis], made: Made, named: Named = own_values) -> pd.DataFrame:
    """A table of every cell below each other, with the columns that name the cell first; cells without one pass."""
    tables = [(named(one), made(one)) for one in analyses]
    return frame_of((values, table) for values, table in tables if table is not None)


def transitions_table(analyses: Iterable[CellAnalysis], named: Named = own_values) -> pd.DataFrame:
    """The transitions of every cell, by the bootstrap and by the paper's rule."""
    return stack(analyses, lambda one: one.transitions.transitions, named)


def size_axes_table(analyses: Iterable[CellAnalysis], named: Named = own_values) -> pd.DataFrame:
    """The bootstrap's transitions on every size axis."""
    return stack(analyses, lambda one: one.compared.size_axes, named)


def gaps_table(analyses: Iterable[CellAnalysis], named: Named = own_values) -> pd.DataFrame:
    """How much better the deeper network is at equal size, size by size, for every cell."""
    return stack(analyses, lambda one: gaps_of_runs(one.compared), named)


def pairs_of(one: CellAnalysis, other: CellAnalysis) -> Iterator[tuple[Row, Row]]:
    """The bootstrap's transitions of two cells between the same depths."""
    there = {_depths(row): row for row in other.transitions.bootstrap_rows}
    for row in one.transitions.bootstrap_rows:
        if (depths := _depths(row)) in there:
            yield row, there[depths]


def losses_table(analyses: Iterable[CellAnalysis], named: Named = own_values) -> pd.DataFrame:
    """One row for each network: mean loss, number of seeds and the sizes; bits per byte where every cell has them."""
    known = list(analyses)
    return stack(known, mean_losses_of, named)


def mean_losses_of(one: CellAnalysis) -> pd.DataFrame:
    """The mean losses of a cell's shapes, with bits per byte where it has them."""
    table = mean_losses(one.runs)
    if one.bits is None:
        return table
    rows = [
        {"depth": depth, "width": int(width), BITS: loss}
        for depth, curve in one.bits[0].items()
        for width, loss in zip(curve.width, curve.loss, strict=True)
    ]
    return table.merge(pd.DataFrame(rows), on=["depth", "width"])


def spread_table(analyses: Iterable[CellAnalysis], named: Named = own_values) -> pd.DataFrame:
    """Mean and standard deviation of the loss of every repeated shape over its seeds."""
    table = stack(analyses, lambda one: one.compared.seed_noise.query("seeds > 1"), named)
    return table.astype({"depth": object, "width": object})


def pooled_row(repeated: pd.DataFrame, noise: Noise | None, **names: Value) -> pd.DataFrame:
    """The row below repeated shapes that has the noise pooled over them."""
    std = math.nan if noise is None else noise.std
    seeds = int(repeated["seeds"].sum())
    return pd.DataFrame([{**names, "seeds": seeds, "loss_mean": math.nan, "loss_std": std}])


def seed_noise_table(
    analyses: Sequence[CellAnalysis],
    pool: Pool,
    named: Named = own_values,
    of_pool: Callable[[Sequence[CellAnalysis]], Mapping[str, Value]] | None = None,
) -> pd.DataFrame:
    """The spread of every repeated shape over its seeds, and, with "pooled" for a depth, that of each pool of cells.

    Args:
        pool: cells with equal keys share their noise.
        of_pool: the columns that name a pool; by default the values that its cells share.
    """
    kinds: dict[Hashable, list[CellAnalysis]] = {}
    for one in analyses:
        kinds.setdefault(pool(one.cell), []).append(one)
    tables = list[pd.DataFrame]()
    for kin in kinds.values():
        repeated = spread_table(kin, named)
        names = _common([named(one) for one in kin]) if of_pool is None else of_pool(kin)
        tables += [repeated, pooled_row(repeated, kin[0].losses[1], **names, depth="pooled", width="")]
    whole = stacked(tables)
    return whole.assign(**{name: typed(whole[name].astype(object)) for name in named(analyses[0])})


def _common(every: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """The values that cells share; None for the others."""
    return {
        name: value if all(values[name] == value for values in every) else None
        for name, value in every[0].items()
    }


def fit_table(analyses: Iterable[CellAnalysis]) -> pd.DataFrame:
    """The line through the transitions of each cell, by each method, or why there is none."""

    def lines(one: CellAnalysis) -> pd.DataFrame:
        fits = one.transitions.fits
        return pd.DataFrame(
            [{"method": name, **fit.to_dict()} for name, fit in fits.items()]
        ).convert_dtypes()

    return stack(analyses, lines)


def projection_of_cells(analyses: Iterable[CellAnalysis]) -> pd.DataFrame:
    """The shapes that the line of a cell projects for larger sizes, of cells that have one."""
    known = list(analyses)
    usable = [one for one in known if why_no_projection(one.transitions.fit) is None]
    if usable:
        return stack(usable, lambda one: projection_table(one.transitions.fit, one.transitions.forms))
    return stack(known[:1], lambda one: projection_table(one.transitions.fit).iloc[:0])


def surface_costs_table(analysis: GridAnalysis) -> pd.DataFrame:
    """What the depth of each shape costs by the surface through all shapes of its cell; no rows without a surface."""
    costs = [(analysis.analyses[at].values, penalty_table(one)) for at, one in analysis.surfaces.items()]
    return (
        frame_of(costs)
        if costs
        else pd.DataFrame(columns=[*analysis.cells.axes, "depth", "width", "penalty"])
    )


def best_shapes_table(analysis: GridAnalysis) -> pd.DataFrame:
    """The best shape of each size over all cells, and those that are not significantly worse: `standing`.

    `above`: the loss over that of the best, with its standard error by the noise between seeds. `of` shapes reach the
    size. Without a noise estimate of both the best stands alone.
    """
    rows = []
    for at in analysis.best:
        for place, one in enumerate(at):
            known = not math.isnan(one.above_err)
            if place and not (one.near and known):
                continue
            standing = "best" if place == 0 else "within the noise of the best"
            row: dict[str, object] = {
                "size": one.size,
                "depth": one.depth,
                "width": one.width,
                analysis.unit: one.loss,
            }
            row |= {"above": one.above, "above_err": one.above_err, "standing": standing, "of": len(at)}
            rows.append((one.cell.values, pd.DataFrame([row])))
    columns = ["size", "depth", "width", analysis.unit, "above", "above_err", "standing", "of"]
    return frame_of(rows) if rows else pd.DataFrame(columns=[*analysis.cells.axes, *columns])


def effects_table(analysis: GridAnalysis) -> pd.DataFrame:
    """What each axis does: a row for every pair of cells that differ in it alone, and their mean over the settings.

    Of `quantity` "loss at equal size", `value` is the loss of `other` less that of `one`, the mean over all sizes at
    which both have the depth; of "width of the transition" it is the ratio of the two widths. `low` to `high` is the
    95% interval by the noise between seeds; `p_holm` has Holm's correction for all p values of this table. The other
    axes' columns have the setting in which the two are compared, and are empty where `settings` are averaged.
    """
    rows = [row for effect in analysis.effects for row in _rows_of(effect)]
    rows += list(_means(analysis))
    columns = [
        *(
            "axis",
            "one",
            "other",
            *analysis.cells.axes,
            "settings",
            "quantity",
            "unit",
            "depth",
            "deeper_depth",
        ),
        *("sizes", *NUMBERS, "status"),
    ]
    table = pd.DataFrame(rows, columns=columns, dtype=object)
    table = table.assign(**{name: typed(table[name]) for name in columns if name not in ("one", "other")})
    table = table.astype(
        dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(("depth", "deeper_depth"), "Int64")
    )
    order = {axis: place for place, axis in enumerate(analysis.cells.axes)}
    table = table.sort_values(
        ["axis", "quantity"],
        key=lambda column: column.map(order) if column.name == "axis" else column,
        kind="stable",
        ignore_index=True,
    )
    measured = table["p"].notna()
    table["p_holm"] = np.nan
    if measured.any():
        table.loc[measured, "p_holm"] = holm(table.loc[measured, "p"].to_numpy(dtype=np.float64))
    return table


def _pair_of(effect: Effect) -> dict[str, Any]:
    one, other = effect.one.values[effect.axis], effect.other.values[effect.axis]
    return {"axis": effect.axis, "one": one, "other": other, **effect.setting}


def _rows_of(effect: Effect) -> Iterator[dict[str, Any]]:
    """The loss difference of a pair of cells, and the ratios of their transitions."""
    pair = {**_pair_of(effect), "settings": 1}
    yield {
        **pair,
        "quantity": DIFFERENCE,
        "unit": UNITS.get(effect.unit, effect.unit),
        **numbers_of(effect.found),
    }
    for row, its in pairs_of(effect.one, effect.other):
        noises = effect.one.losses[1], effect.other.losses[1]
        ratio, depths = ratio_of(row, its, *noises), _depths(row)
        value, err = ratio["ratio"], math.nan
        low = high = math.nan
        if not math.isnan(value):
            err = math.log(ratio["ratio_high"] / ratio["ratio_low"]) / 2  # of its logarithm
            low, high = (value * math.exp(sign * quantile(least_dof(*noises)) * err) for sign in (-1, 1))
        yield {
            **pair,
            "quantity": RATIO,
            "unit": "other over one",
            "depth": depths[0],
            "deeper_depth": depths[1],
            "sizes": 0,
            **dict(zip(NUMBERS, (value, value * err, low, high, ratio["p_equal"]), strict=False)),
            "status": MEASURED if value == value else ratio["status"],
        }


def _depths(row: Row) -> tuple[int, int]:
    return int(row["depth"]), int(row["deeper_depth"])


def numbers_of(found: Difference | None) -> dict[str, Any]:
    """The mean of a difference with its 95% interval and its chance (`NUMBERS`), `sizes` and `status`."""
    if found is None or not len(found.size):
        return dict.fromkeys(NUMBERS, math.nan) | {
            "sizes": 0,
            "status": NO_BITS if found is None else NO_SIZES,
        }
    return _interval(found.mean, found.mean_err, found.dof) | {"sizes": len(found.size)}


def _interval(value: float, err: float, dof: float) -> dict[str, Any]:
    reach = quantile(dof) * err
    numbers = (value, err, value - reach, value + reach, two_sided(value, err, dof))
    return dict(zip(NUMBERS, numbers, strict=False)) | {"status": NO_NOISE if math.isnan(err) else MEASURED}


def _means(analysis: GridAnalysis) -> Iterator[dict[str, Any]]:
    """The mean difference of each pair of values over the settings of the other axes, where there are several.

    The pairs of cells are different ones, so their errors are independent but for the noise's own estimate.
    """
    groups: dict[tuple[str, Value, Value], list[Effect]] = {}
    for effect in analysis.effects:
        if effect.found is not None and len(effect.found.size):
            pair = _pair_of(effect)
            groups.setdefault((pair["axis"], pair["one"], pair["other"]), []).append(effect)
    for (axis, one, other), kin in groups.items():
        if len(kin) < 2:
            continue
        unit = kin[0].unit
        if unit != analysis.unit:  # nats of several vocabularies have no mean
            continue
        found = [effect.found for effect in kin if effect.found is not None]
        err = math.sqrt(sum(each.mean_err**2 for each in found)) / len(found)
        mean = sum(each.mean for each in found) / len(found)
        yield {
            "axis": axis,
            "one": one,
            "other": other,
            "settings": len(kin),
            "quantity": DIFFERENCE,
            "unit": UNITS.get(unit, unit),
            "sizes": sum(len(e.size) for e in found),
            **_interval(mean, err, min(each.dof for each in found)),
        }


def effects_by_size_table(analysis: GridAnalysis) -> pd.DataFrame:
    """The loss differences of `effects`, size by size: the other's loss less the one's at equal size and depth."""
    tables = []
    for effect in analysis.effects:
        found = effect.found
        if found is None or not len(found.size):
            continue
        curves = effect.one.curves(effect.unit)
        assert curves is not None
        width = [
            round(float(curves[0][int(depth)].width_at(math.log(size))), 6)
            for depth, size in zip(found.depth, found.size, strict=True)
        ]
        reach = quantile(found.dof) * found.err
        tables.append(
            pd.DataFrame(
                {
                    **{name: [value] * len(width) for name, value in _pair_of(effect).items()},
                    "depth": found.depth,
                    "size": found.size,
                    "width": width,
                    "unit": UNITS.get(effect.unit, effect.unit),
                    "loss_one": found.one,
                    "loss_other": found.other,
                    "value": found.value,
                    "err": found.err,
                    "low": found.value - reach,
                    "high": found.value + reach,
                },
                dtype=object,
            )
        )
    columns = ["axis", "one", "other", *analysis.cells.axes, "depth", "size", "width", "unit"]
    columns += ["loss_one", "loss_other", "value", "err", "low", "high"]
    whole = (pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()).reindex(columns=columns)
    return whole.assign(**{name: typed(whole[name]) for name in columns if name not in ("one", "other")})


def cells_table(analysis: GridAnalysis) -> list[dict[str, Any]]:
    """The cells for fit.json: their values, their rules, and how many runs and shapes each has."""
    return [
        {
            **one.values,
            "rules": list(one.cell.rules),
            "runs": len(one.runs),
            "shapes": len(one.runs.drop_duplicates(["depth", "width"])),
        }
        for one in analysis.analyses
    ]
