"""Runs whose losses lie so far off their twins, or above their neighbours in size, that their training went wrong.

A run's twins are the other seeds of its shape. The unit is a robust standard deviation: of the differences between
twins of other shapes, which may follow the width, or of the residuals of the loss against size at one depth. A run
that is off by less is a misfit and no divergence, and counts.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.fits.line import Floats

FAR = 6.0  # robust deviations
NORMAL = float(stats.norm.ppf(0.75))  # the median distance from the mean, in standard deviations
LEAST_PAIRS = 4  # of twins of other shapes, or residuals, that tell a deviation
PAIRS_OF_SLOPE = 12  # and of a deviation that follows the width
OUT = 0.01  # of the loss: what is closer to the line between its neighbours does not stand out
SMALLEST = 1e-3  # of the loss: what is closer to its twins or neighbours did not diverge


def off_twins(runs: pd.DataFrame) -> pd.Series[bool]:
    """True for runs that lie more than `FAR` robust deviations off most of their twins; of two it is the higher one.

    Args:
        runs: `depth, width, loss`, one row a run.
    """
    groups = [rows for _, rows in runs.groupby(["depth", "width"]) if len(rows) > 1]
    pairs = pd.DataFrame(
        [
            (number, float(rows["width"].iloc[0]), abs(one - other) / math.sqrt(2.0))
            for number, rows in enumerate(groups)
            for one, other in combinations(rows["loss"], 2)
        ],
        columns=["group", "width", "apart"],
    )
    off = pd.Series(False, index=runs.index)
    for number, rows in enumerate(groups):
        others = pairs[pairs["group"] != number]
        if len(others) >= LEAST_PAIRS:
            scale = _scale_at(float(rows["width"].iloc[0]), others)
            far = max(FAR * scale, SMALLEST * float(rows["loss"].min()))
            off[rows.index] = ~_together(rows["loss"].to_numpy(), far)
    return off


def _scale_at(width: float, pairs: pd.DataFrame) -> float:
    """The robust deviation of twins of a width, by the line of its log against log width where pairs are many."""
    apart = np.maximum(pairs["apart"].to_numpy(), 1e-12)
    scale = float(np.median(apart)) / NORMAL
    log_width = np.log(pairs["width"].to_numpy())
    if len(pairs) < PAIRS_OF_SLOPE or len(np.unique(log_width)) < 3:
        return scale
    line = stats.siegelslopes(np.log(apart), log_width)
    return max(scale, math.exp(line.intercept + line.slope * math.log(width)) / NORMAL)


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
    means = runs.groupby(["depth", "width"])["loss"].mean().reset_index().sort_values(["depth", "width"])
    curves = {
        depth: (np.log(rows["width"].to_numpy(dtype=np.float64)), rows["loss"].to_numpy(dtype=np.float64))
        for depth, rows in means.groupby("depth")
    }
    alone = ~runs.duplicated(["depth", "width"], keep=False)
    for index, depth, width in runs.loc[alone, ["depth", "width"]].itertuples():
        x, loss = curves[depth]
        at = int(np.argmin(np.abs(x - math.log(width))))
        rest = {**curves, depth: (np.delete(x, at), np.delete(loss, at))}
        residuals = np.concatenate([_residuals(*curve) for curve in rest.values()])
        if len(x) < 3 or len(residuals) < LEAST_PAIRS:
            continue
        scale = float(np.median(np.abs(residuals - np.median(residuals)))) / NORMAL
        far = max(FAR * scale, SMALLEST * float(loss[at]))
        beside = (
            loss[[at - 1, at + 1]]
            if 0 < at < len(x) - 1
            else loss[at - 2 : at]
            if at
            else loss[1:2] + math.inf
        )
        above[index] = loss[at] - beside.max() > far
        if 0 < at < len(x) - 1:
            own = np.abs(_residuals(x, loss) - float(np.median(residuals)))
            off = float(own[at - 1])  # a run off its curve pulls its neighbours' residuals too, by less
            out[index] = off > max(far, OUT * loss[at]) and off == own[max(at - 2, 0) : at + 1].max()
    return above, out & ~above


def _residuals(x: Floats, loss: Floats) -> Floats:
    """(n - 2,) distances of the inner points of a curve from the lines between their neighbours."""
    return np.array([loss[at] - _between(x, loss, at) for at in range(1, len(x) - 1)])


def _between(x: Floats, loss: Floats, at: int) -> float:
    share = (x[at] - x[at - 1]) / (x[at + 1] - x[at - 1])
    return float((1.0 - share) * loss[at - 1] + share * loss[at + 1])
