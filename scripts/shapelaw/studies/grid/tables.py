"""The tables of a grid, each with the values of its cells in columns of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.errors import Parts
from shapelaw.fits.curves import TransitionStatus
from shapelaw.fits.equal_sizes import Difference, holm, quantile, two_sided
from shapelaw.fits.noise import Noise
from shapelaw.fits.projection import why_no_projection
from shapelaw.report.reading import header
from shapelaw.report.tables import grouped
from shapelaw.report.write import Table
from shapelaw.studies.grid.analysis import (
    BITS,
    TEXT,
    CellAnalysis,
    Effect,
    GridAnalysis,
    Pool,
    is_known,
    unit_of_loss,
)
from shapelaw.studies.grid.cells import NAMES, Value, frame_of, name_of, plain, said, shared_values, typed
from shapelaw.studies.transitions.analysis import UNITS
from shapelaw.studies.transitions.tables import mean_losses, pooled_row, projection_table, stacked

Named = Callable[[CellAnalysis], Mapping[str, Value]]
Row = Mapping[Hashable, Any]
Made = Callable[[CellAnalysis], pd.DataFrame | None]

OWN_VALUES: Named = attrgetter("values")  # the columns that name a cell: what tells it from the others
DIFFERENCE, RATIO = "loss at equal size", "width of the transition"
MEASURED, NO_NOISE = "measured", TransitionStatus.NO_NOISE.value
NO_SIZES, NO_BITS = "no sizes in common", "no bits per byte"
NUMBERS = ("value", "err", "low", "high", "p", "p_holm")
NO_RATIO = "not both are crossings"
RATIO_FORMATS = dict.fromkeys(("ratio", "ratio_low", "ratio_high"), ".2f") | {"p_equal": ".2g"}
PAIR = ("axis", "one", "other")
# tables with the rows of `effects_table`
EFFECTS = ("effects", "effects_by_setting", "effects_on_transitions")
COMPARED = ("settings", "quantity", "unit", "depth", "deeper_depth")
BY_SIZE = ("depth", "size", "width", "unit", "loss_one", "loss_other", "value", "err", "low", "high")
MOST_AXES = 2  # columns that name a cell


def stack(
    analyses: Iterable[CellAnalysis], made: Made, named: Named = OWN_VALUES, parts: Parts | None = None
) -> pd.DataFrame:
    """A table of every cell below each other, with the columns that name the cell first; cells without one pass.

    Args:
        parts: is told the cells whose table fails, which then pass too.
    """
    tables = (parts or Parts()).each(analyses, made, lambda one: one.cell.name)
    return frame_of((named(one), table) for one, table in tables if table is not None)


def ratios_of(one: CellAnalysis, other: CellAnalysis) -> Iterator[tuple[Row, Row, dict[str, Any]]]:
    """The bootstrap's transitions of two cells between the same depths, each pair with its ratio (`ratio_of`)."""
    there = {_depths(row): row for row in other.transitions.bootstrap_rows}
    for row in one.transitions.bootstrap_rows:
        if (depths := _depths(row)) in there:
            yield row, there[depths], ratio_of(row, there[depths], one.compared.noise, other.compared.noise)


def ratio_of(one: Row, other: Row, *noises: Noise | None) -> dict[str, Any]:
    """The other's width over the one's: `ratio, ratio_low, ratio_high, p_equal, status`.

    The 68% interval takes both widths as log-normal and independent; `p_equal` is the chance of a ratio as far from 1
    where they are equal, by Student's t with the least degrees of freedom of the noises that the widths' errors come
    from. NaN unless both are crossings.

    Args:
        one, other: the bootstrap's transitions, as rows of transitions.csv.
        noises: the noise between seeds of each.
    """
    if not one["status"] == other["status"] == TransitionStatus.CROSSING:
        return dict.fromkeys(("ratio", "ratio_low", "ratio_high", "p_equal"), math.nan) | {"status": NO_RATIO}
    middle = math.log(other["width"] / one["width"])
    err = math.hypot(one["width_err"] / one["width"], other["width_err"] / other["width"])
    return {
        "ratio": math.exp(middle),
        "ratio_low": math.exp(middle - err),
        "ratio_high": math.exp(middle + err),
        "p_equal": two_sided(middle, err, least_dof(*noises)),
        "status": "both are crossings",
    }


def least_dof(*noises: Noise | None) -> float:
    """The least degrees of freedom of several noises; infinite where none is an estimate."""
    return min((noise.dof for noise in noises if noise is not None), default=math.inf)


def mean_losses_of(one: CellAnalysis) -> pd.DataFrame:
    """The mean losses of a cell's shapes, number of seeds and the sizes, with bits per byte where it has them."""
    table = mean_losses(one.runs)
    if one.bits is None:
        return table
    means = one.runs.groupby(["depth", "width"], as_index=False)[BITS].mean()
    return table.merge(means, on=["depth", "width"])


def spread_table(analyses: Iterable[CellAnalysis], named: Named = OWN_VALUES) -> pd.DataFrame:
    """Mean and standard deviation of the loss of every repeated shape over its seeds."""
    table = stack(analyses, lambda one: one.compared.seed_noise.query("seeds > 1"), named)
    return table.astype({"depth": object, "width": object})


def seed_noise_table(
    analyses: Sequence[CellAnalysis],
    pool: Pool = unit_of_loss,
    named: Named = OWN_VALUES,
    of_pool: Callable[[Sequence[CellAnalysis]], Mapping[str, Value]] | None = None,
) -> pd.DataFrame:
    """The spread of every repeated shape over its seeds, and, with "pooled" for a depth, that of each pool of cells.

    Args:
        pool: cells with equal keys share their noise.
        of_pool: the columns that name a pool; by default the values that its cells share.
    """
    tables = list[pd.DataFrame]()
    for kin in grouped((pool(one.cell), one) for one in analyses).values():
        repeated = spread_table(kin, named)
        every = [named(one) for one in kin]
        names = dict.fromkeys(every[0]) | shared_values(every) if of_pool is None else of_pool(kin)
        tables += [repeated, pooled_row(repeated, kin[0].compared.noise, **names, depth="pooled", width="")]
    whole = stacked(tables)
    return whole.assign(**{name: typed(whole[name].astype(object)) for name in named(analyses[0])})


def lines_of(one: CellAnalysis) -> pd.DataFrame:
    """The line through the transitions of a cell, by each method, or why there is none."""
    rows = [{"method": name, **fit.to_dict()} for name, fit in one.transitions.fits.items()]
    return pd.DataFrame(rows).convert_dtypes()


def projection_of_cells(analyses: Sequence[CellAnalysis], parts: Parts) -> pd.DataFrame:
    """The shapes that the line of a cell projects for larger sizes, of cells that have one."""
    usable = [one for one in analyses if why_no_projection(one.transitions.fit) is None]
    found = stack(
        usable or analyses[:1],
        lambda one: projection_table(one.transitions.fit, one.transitions.forms),
        parts=parts,
    )
    return found if usable else found.iloc[:0]


def best_shapes_table(analysis: GridAnalysis) -> pd.DataFrame:
    """The best shape of each size at which it is known, and those that are not significantly worse: `standing`.

    `above`: the loss over that of the best, with its standard error by the noise between seeds. `of` shapes reach the
    size. Without a noise estimate of both the best stands alone.
    """
    columns = ["size", "depth", "width", analysis.unit, "above", "above_err", "standing", "of"]
    rows = []
    for at in analysis.best:
        known = is_known(at, analysis.analyses, analysis.unit)
        for place, one in enumerate(at if known else ()):
            if place and (math.isnan(one.above_err) or not one.near):
                continue
            standing = "best" if place == 0 else "within the noise of the best"
            numbers = (one.size, one.depth, one.width, one.loss, one.above, one.above_err)
            rows.append((one.cell.values, pd.DataFrame([(*numbers, standing, len(at))], columns=columns)))
    return frame_of(rows) if rows else pd.DataFrame(columns=[*analysis.cells.axes, *columns])


def read_best_shapes(best: pd.DataFrame) -> pd.DataFrame:
    """The best shape of each size as it is read: a row a size, with how many others are as good within the noise."""
    first = best["standing"] == "best"
    near = best.groupby(first.cumsum())["standing"].transform("size") - 1
    words = [f"{some} of {of - 1}" for some, of in zip(near[first], best.loc[first, "of"], strict=True)]
    shown = best[first].drop(columns=["above", "above_err", "standing", "of"])
    return shown.assign(**{"others as good within the noise": words})


def effects_table(analysis: GridAnalysis) -> pd.DataFrame:
    """What each axis does: a row for every pair of cells that differ in it alone, and their mean over the settings.

    Of `quantity` "loss at equal size", `value` is the loss of `other` less that of `one`, the mean over all sizes at
    which both have the depth; of "width of the transition" it is the ratio of the two widths. `low` to `high` is the
    95% interval by all noise: between seeds, of networks about their curves, and of a mean also between its settings;
    `p_holm` has Holm's correction for all p values of this table. The other axes' columns have the setting in which the
    two are compared, and are empty where `settings` are averaged. `caution` names batches that coincide with a cell.
    """
    axes = analysis.cells.axes
    rows = [*(row for effect in analysis.effects for row in _rows_of(effect)), *_means(analysis)]
    rows.sort(key=lambda row: (axes.index(row["axis"]), row["quantity"]))
    columns = [*PAIR, *axes, *COMPARED, "sizes", *NUMBERS, "status", "caution"]
    table = pd.DataFrame(rows, columns=columns, dtype=object)
    table = table.assign(**{name: typed(table[name]) for name in columns if name not in ("one", "other")})
    table = table.astype(
        dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(("depth", "deeper_depth"), "Int64")
    )
    table["caution"] = table["caution"].fillna("")
    measured = table["p"].notna()
    table["p_holm"] = np.nan
    table.loc[measured, "p_holm"] = holm(table.loc[measured, "p"].to_numpy(dtype=np.float64))
    return table


def _pair_of(effect: Effect) -> dict[str, Any]:
    shared = {name: value for name, value in effect.one.values.items() if name != effect.axis}
    one, other = effect.one.values[effect.axis], effect.other.values[effect.axis]
    return {"axis": effect.axis, "one": one, "other": other, **shared}


def _rows_of(effect: Effect) -> Iterator[dict[str, Any]]:
    """The loss difference of a pair of cells, and the ratios of their transitions."""
    pair = {**_pair_of(effect), "settings": 1}
    unit = UNITS.get(effect.unit, effect.unit)
    yield {**pair, "quantity": DIFFERENCE, "unit": unit, **numbers_of(effect.found)}
    dof = least_dof(effect.one.compared.noise, effect.other.compared.noise)
    for row, _, ratio in ratios_of(effect.one, effect.other):
        value = ratio["ratio"]
        err = math.log(ratio["ratio_high"] / ratio["ratio_low"]) / 2  # of its logarithm
        low, high = (value * math.exp(sign * quantile(dof) * err) for sign in (-1, 1))
        yield {
            **pair,
            "quantity": RATIO,
            "unit": "other over one",
            **{name: int(row[name]) for name in ("depth", "deeper_depth")},
            "sizes": 0,
            **dict(zip(NUMBERS, (value, value * err, low, high, ratio["p_equal"]), strict=False)),
            "status": MEASURED if value == value else ratio["status"],
        }


def _depths(row: Row) -> tuple[int, int]:
    return int(row["depth"]), int(row["deeper_depth"])


def numbers_of(found: Difference | None) -> dict[str, Any]:
    """The mean of a difference with its 95% interval and its chance (`NUMBERS`), `sizes` and `status`."""
    if found is None or not len(found.size):
        return {"sizes": 0, "status": NO_BITS if found is None else NO_SIZES}
    numbers = _interval(found.mean, (found.mean_err, found.dof))
    return {**numbers, "sizes": len(found.size), "caution": found.caution}


def _interval(value: float, *errors: tuple[float, float]) -> dict[str, Any]:
    """The 95% interval and the chance of a value by the widest of several errors, each with its degrees of freedom."""
    err, dof = max(errors, key=lambda one: quantile(one[1]) * one[0])
    reach, p = quantile(dof) * err, max(two_sided(value, *one) for one in errors)
    numbers = dict(zip(NUMBERS, (value, err, value - reach, value + reach, p), strict=False))
    return numbers | {"status": NO_NOISE if math.isnan(err) else MEASURED}


def _means(analysis: GridAnalysis) -> Iterator[dict[str, Any]]:
    """The mean difference of each pair of values over the settings of the other axes, where there are several.

    The pairs of cells are different ones, so their errors are independent but for the noise's own estimate. Settings
    are some of those that could be, so the error is at least that which their differences show.
    """
    groups = grouped(
        (tuple(_pair_of(effect)[name] for name in PAIR), (effect.unit, effect.found))
        for effect in analysis.effects
        if effect.found is not None and len(effect.found.size)
    )
    for pair, kin in groups.items():
        unit, found = kin[0][0], [each for _, each in kin]
        if len(kin) < 2 or unit != analysis.unit:  # nats of several vocabularies have no mean
            continue
        means, count = np.array([each.mean for each in found]), len(found)
        err = math.sqrt(sum(each.mean_err**2 for each in found)) / count
        of_settings = (float(means.std(ddof=1)) / math.sqrt(count), float(count - 1))
        yield {
            **dict(zip(PAIR, pair, strict=True)),
            "settings": len(kin),
            "quantity": DIFFERENCE,
            "unit": UNITS.get(unit, unit),
            "sizes": sum(len(each.size) for each in found),
            **_interval(float(means.mean()), (err, min(each.dof for each in found)), of_settings),
            "caution": "; ".join(dict.fromkeys(each.caution for each in found if each.caution)),
        }


def of_cells(read: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """How a table of cells is read: where more than two columns name a cell, as one: `V = 257, r = 8, H = 2`."""

    def shown(frame: pd.DataFrame) -> pd.DataFrame:
        frame = read(frame)
        axes = [*takewhile(lambda name: name in NAMES or " / width" in name, map(str, frame.columns))]
        pooled = frame["depth"].eq("pooled") if "depth" in frame else pd.Series(False, frame.index)
        if len(axes) <= MOST_AXES and not pooled.any():
            return frame
        rows = zip(frame[axes].to_dict("records"), pooled, strict=True)
        cells = [_cell_words({name: plain(row[name]) for name in axes}, shared) for row, shared in rows]
        rest = frame.drop(columns=axes)
        rest.insert(0, "cell", cells)
        return rest

    return shown


def _cell_words(values: Mapping[str, Value], shared: bool) -> str:
    """A cell's name; of several cells what they share."""
    told = {name: value for name, value in values.items() if value is not None or not shared}
    return name_of(told) or "all cells"


def read_losses(losses: pd.DataFrame) -> pd.DataFrame:
    """The losses of networks in the one unit in which all of them compare."""
    several = BITS in losses and any(name in losses for name in TEXT)
    other = ["test_loss", "loss_std"] if several else [BITS]
    return losses.drop(columns=["step_flops", "total_params", *other], errors="ignore")


@lru_cache(maxsize=1)  # three tables ask for it
def effects_tables(analysis: GridAnalysis) -> dict[str, pd.DataFrame]:
    """The rows of `effects_table` by table (`EFFECTS`): a row an effect, the settings averaged, the transitions."""
    rows = effects_table(analysis)
    loss, averaged = rows["quantity"] == DIFFERENCE, rows["settings"] > 1
    means = set(rows.loc[averaged, [*PAIR]].itertuples(index=False, name=None))
    inside = pd.Series(
        [pair in means for pair in rows[[*PAIR]].itertuples(index=False, name=None)], rows.index, bool
    )
    told = loss & (averaged | ~inside), loss & ~averaged & inside, ~loss
    return {name: rows[some].reset_index(drop=True) for name, some in zip(EFFECTS, told, strict=True)}


def every_effect(made: Mapping[str, Table]) -> pd.DataFrame:
    """The rows of all tables of `EFFECTS`, those of one axis below each other."""
    return stacked(made[name].frame for name in EFFECTS)


def read_effects(effects: pd.DataFrame) -> pd.DataFrame:
    """A table of effects as it is read: values and settings in words, the difference with its interval and its unit."""
    known = (*PAIR, *COMPARED, *BY_SIZE, *NUMBERS, "sizes", "status", "caution")
    axes = [str(name) for name in effects if name not in known]
    of_widths = "quantity" in effects and (effects["quantity"] == RATIO).any()
    value = "ratio of widths" if of_widths else "loss difference"
    units = effects["unit"].unique()
    value += f" ({units[0]})" if len(units) == 1 else ""
    rows = effects.to_dict("records")
    words = {
        "axis": [header(row["axis"]) for row in rows],
        "from": [value_words(row["axis"], plain(row["one"])) for row in rows],
        "to": [value_words(row["axis"], plain(row["other"])) for row in rows],
        "setting": [_setting_words(row, axes) for row in rows],
    }
    doubted = "caution" in effects and effects["caution"].any()
    kept = ["depth", "deeper_depth", "size", "width", *(["unit"] if len(units) > 1 else [])]
    kept += ["value", "low", "high", "p_holm", "status", *(["caution"] if doubted else [])]
    shown = pd.DataFrame(words, effects.index, dtype=str).join(effects.filter(kept))
    shown = shown.rename(columns={"value": value, "low": f"{value}_low95", "high": f"{value}_high95"})
    places = [name for name in ("setting", "depth", "deeper_depth") if name in shown]
    return shown.drop(columns=[name for name in places if shown[name].replace("", None).isna().all()])


def _setting_words(row: Row, axes: Sequence[str]) -> str:
    """The setting of the other axes in which two cells are compared, or over how many it is averaged."""
    if row.get("settings", 1) > 1:
        return f"mean over {row['settings']}"
    return name_of({name: plain(row[name]) for name in axes if name != row["axis"]})


def value_words(name: str, value: Value) -> str:
    """A value of a column without the column's name: `2,000`, `full rank`."""
    if value is None:
        return said(name, value)
    return value if isinstance(value, str) else f"{value:,}"


def effects_by_size_table(analysis: GridAnalysis) -> pd.DataFrame:
    """The loss differences of `effects`, size by size: the other's loss less the one's at equal size and depth."""
    names = dict.fromkeys((*PAIR, *analysis.cells.axes))
    told = [effect for effect in analysis.effects if effect.found is not None and len(effect.found.size)]
    if not told:
        return pd.DataFrame(columns=[*names, *BY_SIZE])
    return frame_of((names | _pair_of(effect), _by_size(effect)) for effect in told)


def _by_size(effect: Effect) -> pd.DataFrame:
    """The differences of one pair of cells, in the columns `BY_SIZE`."""
    found, runs = effect.found, effect.one.in_unit(effect.unit)
    assert found is not None
    assert runs is not None
    widths = [
        round(float(runs.curves[int(depth)].width_at(math.log(size))), 6)
        for depth, size in zip(found.depth, found.size, strict=True)
    ]
    reach, unit = quantile(found.dof) * found.err, UNITS.get(effect.unit, effect.unit)
    columns = (found.depth, found.size, widths, unit, found.one, found.other, found.value, found.err)
    numbers = (*columns, found.value - reach, found.value + reach)
    return pd.DataFrame(dict(zip(BY_SIZE, numbers, strict=True)))


def cells_table(analysis: GridAnalysis) -> list[dict[str, Any]]:
    """The cells for fit.json: their values, their rules, and how many runs and shapes each has."""
    found = []
    for one in analysis.analyses:
        shapes = len(one.runs.drop_duplicates(["depth", "width"]))
        found.append({**one.values, "rules": list(one.cell.rules), "runs": len(one.runs), "shapes": shapes})
    return found
