"""The runs of a table that can be compared: without those whose training went wrong.

A run went wrong where its loss lies far off its twins, the other seeds of its shape, above its neighbours in size, or
off every surface through the other shapes. The unit is a robust standard deviation: of the differences between twins of
other shapes, which may follow the width, or of the residuals of the loss against size at one depth; or the error with
which a surface predicts the run. A run that is off by less is a misfit and no divergence, and counts.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.fits.noise import Floats
from shapelaw.fits.projection import standard_params

SHAPE = ["depth", "width"]
FAR = 6.0  # robust deviations
NORMAL = float(stats.norm.ppf(0.75))  # the median distance from the mean, in standard deviations
LEAST_PAIRS = 4  # of twins of other shapes, or residuals, that tell a deviation
PAIRS_OF_SLOPE, LEAST_WIDTHS = 12, 3  # and of a deviation that follows the width
BESIDE = 8  # other seeds of its shape that a run is compared with: all pairs of 250 seeds would be 31,125
PARTS = 16  # of the widths, through whose medians its line goes
MANY = 1000  # residuals: of more, those of one run move no median
OUT = 0.01  # of the loss: what is closer to the line between its neighbours does not stand out
SMALLEST = 1e-3  # of the loss: what is closer to its twins or neighbours did not diverge
OFF = 0.25  # in log loss: what is closer to a surface is a misfit
CHANCE = 1e-4  # of a run that scatters as the others, to lie that far off a surface through them
LEAST_FREE = 4  # shapes more than a surface's coefficients, which tell the others' scatter
MOST_OFF = 25  # runs that may hide each other


def shapes_in(runs: pd.DataFrame) -> int:
    return len(runs.drop_duplicates(SHAPE))


def off_twins(runs: pd.DataFrame) -> tuple[pd.Series[bool], pd.Series[bool]]:
    """Runs that lie more than `FAR` robust deviations off most of their twins, and pairs of twins so far apart.

    Of two seeds nobody can say which is off.

    Args:
        runs: `depth, width, loss`, one row a run.
    """
    off, pairs = (np.zeros(len(runs), dtype=bool) for _ in range(2))
    losses = runs["loss"].to_numpy(dtype=np.float64)
    rows = {shape: np.asarray(own) for shape, own in runs.groupby(SHAPE).indices.items()}
    for shape, scale in _twin_scales(_pairs_of_twins(runs)):
        own = losses[rows[shape]]
        together = _together(own, max(FAR * scale, SMALLEST * float(own.min())))
        if len(own) > 2:
            off[rows[shape]] = ~together
        else:
            pairs[rows[shape]] = not together.all()
    return pd.Series(off, index=runs.index, dtype=bool), pd.Series(pairs, index=runs.index, dtype=bool)


def _pairs_of_twins(runs: pd.DataFrame) -> pd.DataFrame:
    """`depth, width, apart`, sorted by the last: each run beside others of its shape, by their difference over √2.

    Of up to `BESIDE` + 1 seeds these are all pairs; of more, each run is beside `BESIDE` others drawn at random.
    """
    drawn = runs.sample(frac=1.0, random_state=0)
    losses = drawn.groupby(SHAPE)["loss"]
    pairs = [
        drawn[SHAPE].assign(apart=(drawn["loss"] - losses.shift(-step)).abs() / math.sqrt(2.0))
        for step in range(1, BESIDE + 1)
    ]
    return pd.concat(pairs).dropna(subset="apart").sort_values("apart", ignore_index=True)


def _twin_scales(pairs: pd.DataFrame) -> Iterator[tuple[Hashable, float]]:
    """For each shape the robust deviation of twins of its width, by the pairs of the others where they are enough.

    Where the others are many, a line through the medians of each width (of neighbouring widths, where those are many)
    says more than their median does if it lies above.

    Args:
        pairs: `depth, width, apart`, sorted by the last.
    """
    if pairs.empty:
        return
    apart = pairs["apart"].to_numpy()
    widths, number = np.unique(pairs["width"].to_numpy(dtype=np.float64), return_inverse=True)
    part = number * min(PARTS, len(widths)) // len(widths)
    members = [np.flatnonzero(part == one) for one in range(part.max() + 1)]
    logs = [np.log(np.maximum(apart[one], 1e-12)) for one in members]
    medians = np.array([np.median(one) for one in logs])
    log_width = np.array([np.median(np.log(widths[number[one]])) for one in members])

    @cache  # the median of a part without one shape takes few values
    def line(changed: int, median: float) -> tuple[float, float]:
        y = np.where(np.arange(len(medians)) == changed, median, medians)
        known = np.isfinite(y)
        if known.sum() < LEAST_WIDTHS:
            return -math.inf, 0.0
        found = stats.siegelslopes(y[known], log_width[known])
        return float(found.intercept), float(found.slope)

    for shape, places in pairs.groupby(SHAPE).indices.items():
        own = np.asarray(places, dtype=np.int64)
        others = len(pairs) - len(own)
        if others >= LEAST_PAIRS:
            scale = _median_without(apart, own)
            if others >= PAIRS_OF_SLOPE:
                mine = int(part[own[0]])
                median = _median_without(logs[mine], np.searchsorted(members[mine], own))
                intercept, slope = line(mine, median)
                scale = max(scale, math.exp(intercept + slope * math.log(widths[number[own[0]]])))
            yield shape, scale / NORMAL


def _median_without(ordered: Floats, places: npt.NDArray[np.intp]) -> float:
    """The median of sorted values without those at some places (sorted too); NaN where none is left."""
    left = len(ordered) - len(places)
    if left == 0:
        return math.nan
    middle = np.array([(left - 1) // 2, left // 2])
    before = np.searchsorted(places - np.arange(len(places)), middle, side="right")
    return float(ordered[middle + before].mean())


def _together(losses: Floats, far: float) -> np.ndarray:
    """True for the largest group of losses whose neighbours are closer than `far`; of equal ones the lowest."""
    order = np.argsort(losses, kind="stable")
    group = np.concatenate([[0], np.cumsum(np.diff(losses[order]) > far)])
    together = np.empty(len(losses), dtype=bool)
    together[order] = group == np.bincount(group).argmax()
    return together


def off_neighbours(runs: pd.DataFrame) -> tuple[pd.Series[bool], pd.Series[bool]]:
    """Runs of shapes with one seed that lie above both neighbours in size at their depth, and others that stand out.

    The neighbours of the largest are the two below it. Above and out mean more than `FAR` robust deviations of the
    residuals of the curves, each point of which is predicted by its neighbours, without the run in question.
    """
    above, out = (pd.Series(False, index=runs.index) for _ in range(2))
    means = runs.groupby(SHAPE)["loss"].mean().reset_index().sort_values(SHAPE)
    curves = {
        depth: (rows["width"].to_numpy(dtype=np.float64), rows["loss"].to_numpy(dtype=np.float64))
        for depth, rows in means.groupby("depth")
        if len(rows) > 2
    }
    residuals = {depth: _residuals(*curve) for depth, curve in curves.items()}
    every = np.concatenate([*residuals.values(), []])
    alone = ~runs.duplicated(SHAPE, keep=False) & runs["depth"].isin(curves)
    middle, scale = _middle_and_scale(every) if len(every) > MANY else (math.nan, math.nan)
    for index, depth, width in runs.loc[alone, SHAPE].itertuples():
        widths, loss = curves[depth]
        at = int(np.searchsorted(widths, width))
        if len(every) <= MANY:
            rest = {**residuals, depth: _residuals(np.delete(widths, at), np.delete(loss, at))}
            others = np.concatenate([*rest.values()])
            if len(others) < LEAST_PAIRS:
                continue
            middle, scale = _middle_and_scale(others)
        far = max(FAR * scale, SMALLEST * float(loss[at]))
        inner = 0 < at < len(widths) - 1
        beside = [at - 1, at + 1] if inner else [at - 2, at - 1]
        above[index] = at > 0 and loss[at] - loss[beside].max() > far
        if inner:
            first = max(at - 2, 0)
            own = np.abs(residuals[depth][first : at + 1] - middle)
            # a run off its curve pulls its neighbours' residuals too, by less
            off = float(own[at - 1 - first])
            out[index] = off > max(far, OUT * loss[at]) and off == own.max()
    return above, out & ~above


def off_surfaces(runs: pd.DataFrame) -> pd.Series[bool]:
    """Runs far off a plane and a polynomial of the second degree in log size and log depth, wherever they stand.

    The surfaces go through the other shapes, so no run decides by what scatter it is judged. A surface that these don't
    determine at the run's place has no say. Runs that hide each other are taken away one by one, the farthest first;
    off are all up to the last that is (Rosner 1983).
    """
    candidates: list[tuple[Hashable, float]] = []
    left = runs[[*SHAPE]].assign(loss=np.log(runs["loss"]))
    for _ in range(1 + min(shapes_in(runs) // 4, MOST_OFF)):
        share = _share_of_far(left)
        candidates.append((share.idxmax(), share.max()))
        left = left.drop(index=share.idxmax())
    off = max((number for number, (_, share) in enumerate(candidates, 1) if share > 1), default=0)
    return pd.Series(runs.index.isin([index for index, _ in candidates[:off]]), index=runs.index)


def _share_of_far(runs: pd.DataFrame) -> pd.Series[float]:
    """How far each run lies off the nearest surface through the other shapes, over what is far; `loss` is its log."""
    shapes = runs.groupby(SHAPE)["loss"]
    means = shapes.mean()
    depth, width = (means.index.get_level_values(name).to_numpy(dtype=np.float64) for name in SHAPE)
    x, z = (values - values.mean() for values in (np.log(standard_params(depth, width)), np.log(depth)))
    plane, own = [np.ones_like(x), x, z], shapes.ngroup().to_numpy()
    share = np.full(len(runs), math.inf)
    for columns in (plane, [*plane, x * x, x * z, z * z]):
        basis, size, _ = np.linalg.svd(np.stack(columns, axis=1), full_matrices=False)
        basis = basis[:, size > 1e-9 * size[0]]
        free = len(means) - basis.shape[1] - 1
        if free < LEAST_FREE:
            continue
        others = 1.0 - np.square(basis).sum(axis=1)  # the share of its loss that the others determine
        known, others = others > 1e-6, np.maximum(others, 1e-6)
        residual = means.to_numpy() - basis @ (basis.T @ means.to_numpy())
        squares = np.maximum(residual @ residual - residual**2 / others, 0.0)
        far = np.maximum(stats.t.isf(CHANCE / 2, free) * np.sqrt(squares / free / others), OFF)
        off = np.abs(runs["loss"] - (means.to_numpy() - residual / others)[own])
        share = np.where(known[own], np.minimum(share, off / far[own]), share)
    return pd.Series(np.where(np.isfinite(share), share, 0.0), index=runs.index)


def _middle_and_scale(residuals: Floats) -> tuple[float, float]:
    """The median, and the robust standard deviation around it."""
    middle = float(np.median(residuals))
    return middle, float(np.median(np.abs(residuals - middle))) / NORMAL


def _residuals(widths: Floats, loss: Floats) -> Floats:
    """(n - 2,) distances of the inner points of a curve over log width from the lines between their neighbours."""
    x = np.log(widths)
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    return np.asarray(loss[1:-1] - ((1.0 - share) * loss[:-2] + share * loss[2:]))
