"""The runs of a table that can be compared: those of one budget of tokens, without those whose training went wrong.

Losses at different budgets can't be compared, so a table is taken apart by them. A run went wrong where its loss lies
far off its twins, the other seeds of its shape, or above its neighbours in size. The unit is a robust standard
deviation: of the differences between twins of other shapes, which may follow the width, or of the residuals of the loss
against size at one depth. A run that is off by less is a misfit and no divergence, and counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.errors import UserError
from shapelaw.fits.line import Floats
from shapelaw.fits.projection import standard_params

SAME = 0.02  # numbers of tokens closer than this in log count as one budget
NEAR = 0.05  # a budget asked for is the nearest one, if it is closer than this in log
SIZES = {"total_params": "parameter", "block_params": "parameter of the blocks"}


@dataclass(frozen=True)
class Budget:
    """The runs that "equal size" compares, and the token rule that they share in a few words.

    `tokens` is NaN where the runs name none or where they grow with the size.
    """

    runs: pd.DataFrame
    tokens: float
    rule: str

    @property
    def folder(self) -> str:
        """A name for a folder of this budget's results."""
        return f"tokens-{self.tokens:.3g}".replace("+", "")


def budgets_of(runs: pd.DataFrame, source: str, *, least: int, only: float | None = None) -> list[Budget]:
    """The token budgets by growing tokens; those with fewer than `least` shapes are left out if others have enough.

    Tokens in proportion to the size are one budget. `only` picks one budget by its tokens.

    Raises:
        UserError: every budget has fewer than `least` shapes although the table has more, or none has `only` tokens.
    """
    if "tokens" not in runs:
        if only is not None:
            raise UserError(
                f"{source} has no column of tokens, so --tokens can't choose; leave it out, or name the column with "
                "--column tokens=COLUMN."
            )
        return [Budget(runs, math.nan, "the table names no tokens, so all runs count as trained alike")]
    tokens = runs["tokens"].to_numpy(dtype=np.float64)
    if only is None and np.ptp(np.log(tokens)) <= SAME:
        return [_equal(runs)]
    for column, unit in SIZES.items() if only is None else ():
        if column not in runs and column != "block_params":
            continue
        sizes = runs[column] if column in runs else standard_params(runs["depth"], runs["width"])
        ratio = tokens / np.asarray(sizes, dtype=np.float64)
        if np.ptp(np.log(ratio)) <= SAME:
            rule = f"tokens grow with the size, {np.median(ratio):.3g} for each {unit}"
            return [Budget(runs, math.nan, rule)]
    label = budget_labels(runs["tokens"])
    parts = [_equal(runs[label == number]) for number in range(int(label.max()) + 1)]
    if only is not None:
        return [_nearest(parts, source, only)]
    enough = [part for part in parts if _shapes(part.runs) >= least]
    if not enough and _shapes(runs) >= least:
        raise UserError(
            f"{source} has mixed token budgets: {len(parts)} of them, {tokens.min():.3g} to {tokens.max():.3g} tokens, "
            f"with {max(_shapes(part.runs) for part in parts)} shapes at most, and a fit needs {least} at one budget; "
            "losses after different numbers of tokens can't be compared."
        )
    return enough or parts


def budget_labels(tokens: pd.Series) -> pd.Series[int]:
    """The number of the budget, by growing tokens, that each run belongs to: neighbours within `SAME` are one."""
    order = np.sort(tokens.unique())
    steps = np.concatenate([[0], np.cumsum(np.diff(np.log(order)) > SAME)])
    return pd.Series(steps[np.searchsorted(order, tokens)], index=tokens.index)


def _nearest(parts: list[Budget], source: str, tokens: float) -> Budget:
    nearest = min(parts, key=lambda part: abs(math.log(part.tokens / tokens)))
    if abs(math.log(nearest.tokens / tokens)) > NEAR:
        there = ", ".join(f"{part.tokens:.3g}" for part in parts[:8])
        raise UserError(
            f"{source} has no run of {tokens:.3g} tokens; it has {there}{', ...' if parts[8:] else ''}."
        )
    return nearest


def _equal(runs: pd.DataFrame) -> Budget:
    tokens = float(runs["tokens"].median())
    return Budget(runs, tokens, f"every run saw {tokens:.3g} tokens")


def _shapes(runs: pd.DataFrame) -> int:
    return len(runs.drop_duplicates(["depth", "width"]))


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
        inner = 0 < at < len(x) - 1
        beside = [at - 1, at + 1] if inner else [at - 2, at - 1]
        above[index] = at > 0 and loss[at] - loss[beside].max() > far
        if inner:
            own = np.abs(_residuals(x, loss) - float(np.median(residuals)))
            off = float(own[at - 1])  # a run off its curve pulls its neighbours' residuals too, by less
            out[index] = off > max(far, OUT * loss[at]) and off == own[max(at - 2, 0) : at + 1].max()
    return above, out & ~above


def _residuals(x: Floats, loss: Floats) -> Floats:
    """(n - 2,) distances of the inner points of a curve from the lines between their neighbours."""
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    return np.asarray(loss[1:-1] - ((1.0 - share) * loss[:-2] + share * loss[2:]))
