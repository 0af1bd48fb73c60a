"""The sizes of a table's networks as a rule of depth and width, and its token budgets.

Losses at different budgets can't be compared, so a table is taken apart by them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize  # type: ignore[import-untyped]

from shapelaw.errors import UserError
from shapelaw.fits.comparable import SHAPE, shapes_in
from shapelaw.fits.line import Floats
from shapelaw.fits.projection import standard_params

SAME = 0.02  # numbers of tokens closer than this in log count as one budget
LADDER = 0.3  # tokens for each parameter that differ by less in log may follow one nominal size
NEAR = 0.05  # a budget asked for is the nearest one, if it is closer than this in log
SIZES = {"total_params": "parameter", "block_params": "parameter of the blocks"}


@dataclass(frozen=True)
class Budget:
    """The runs that "equal size" compares, and the token rule that they share in a few words.

    `tokens` is NaN where the runs name none or where they grow with the size. `ratio` is that of a ladder, tokens for
    each parameter, whose losses have a level of their own at each number of tokens; else 0.
    """

    runs: pd.DataFrame
    tokens: float
    rule: str
    ratio: float = 0.0

    @property
    def folder(self) -> str:
        """A name for a folder of this budget's results."""
        if self.ratio:
            return f"tokens-{self.ratio:.3g}-per-parameter"
        return f"tokens-{self.tokens:.3g}".replace("+", "")


def budgets_of(
    runs: pd.DataFrame, source: str, *, least: int, only: float | None = None, ladders: bool = False
) -> list[Budget]:
    """The token budgets by growing tokens; those with fewer than `least` shapes are left out if others have enough.

    Tokens in proportion to the size are one budget. `only` picks one budget by its tokens.

    Args:
        ladders: where tokens follow nominal sizes, about as many for each parameter, runs are told apart by these
            instead, if more of them count so.

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
    columns = [column for column in SIZES if column in runs or column == "block_params"]
    for column in columns if only is None else ():
        ratio = tokens / _sizes(runs, column)
        if np.ptp(np.log(ratio)) <= SAME:
            rule = f"tokens grow with the size, {np.median(ratio):.3g} for each {SIZES[column]}"
            return [Budget(runs, math.nan, rule)]
    label = budget_labels(runs["tokens"])
    parts = [_equal(runs[label == number]) for number in range(int(label.max()) + 1)]
    if only is not None:
        return [_nearest(parts, source, only)]
    enough = [part for part in parts if shapes_in(part.runs) >= least]
    if ladders:
        steps = max((_ladders(runs, column, least) for column in columns), key=_count)
        taken = {row for part in steps for row in part.runs.index}
        steps += [part for part in enough if taken.isdisjoint(part.runs.index)]
        if _count(steps) > _count(enough):
            return steps
    if not enough and shapes_in(runs) >= least:
        raise UserError(
            f"{source} has mixed token budgets: {len(parts)} of them, {tokens.min():.3g} to {tokens.max():.3g} tokens, "
            f"with {max(shapes_in(part.runs) for part in parts)} shapes at most, and a fit needs {least} at one "
            "budget; losses after different numbers of tokens can't be compared."
        )
    return enough or parts


def _count(parts: Iterable[Budget]) -> int:
    return sum(len(part.runs) for part in parts)


def _sizes(runs: pd.DataFrame, column: str) -> Floats:
    """(n,) sizes by a column, or where there is none those of standard blocks."""
    found = runs[column] if column in runs else standard_params(runs["depth"], runs["width"])
    return np.asarray(found, dtype=np.float64)


def _ladders(runs: pd.DataFrame, column: str, least: int) -> list[Budget]:
    """The ladders of `least` shapes or more by a column of sizes, by growing tokens for each parameter.

    In a ladder a shape has one number of tokens, there are several of these, and tokens for each parameter differ by
    less than `LADDER`.
    """
    ratio = runs["tokens"] / _sizes(runs, column)
    labels = budget_labels(ratio, LADDER)
    found = []
    for _, part in runs.groupby(labels):
        budgets, span = budget_labels(part["tokens"]), ratio[part.index]
        of_shape = budgets.groupby([part[name] for name in SHAPE]).nunique()
        steps = of_shape.max() == 1 < budgets.nunique() and len(of_shape) >= least
        if steps and math.log(span.max() / span.min()) < LADDER:
            usual = part["tokens"][budgets == np.bincount(budgets).argmax()].median()
            rule = (
                f"tokens follow the size, {span.min():.3g} to {span.max():.3g} for each {SIZES[column]}: each of "
                f"{budgets.nunique()} numbers of tokens has a level of its own, and losses of one more run are for "
                f"{usual:.3g} tokens"
            )
            found.append(Budget(part, math.nan, rule, float(span.median())))
    return found


def budget_labels(tokens: pd.Series, same: float = SAME) -> pd.Series[int]:
    """The number of the budget, by growing tokens, that each run belongs to: neighbours within `same` are one."""
    order = np.sort(tokens.unique())
    steps = np.concatenate([[0], np.cumsum(np.diff(np.log(order)) > same)])
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


# a rule that misses a size by more than this share is none; SwiGLU's rounded widths miss by up to 4% from width 16 on
EXACT = 0.05


@dataclass(frozen=True)
class SizeRule:
    """`size = blocks L d² + layers L d + table d`, all at least 0, with the largest relative error over the shapes.

    Standard blocks have 12 L d² (Levine et al. 2020, section 2.1); `table` counts the rows of width d in embeddings and
    classifier, `layers` biases, norms and, in FLOPs, attention over the context.
    """

    blocks: float
    layers: float
    table: float
    error: float

    @property
    def exact(self) -> bool:
        return self.error <= EXACT and self.blocks > 0

    def width(self, depth: npt.ArrayLike, size: npt.ArrayLike) -> Floats:
        """The width at which networks of (m,) depths have (m,) sizes; NaN where the rule is not exact."""
        depths, sizes = np.asarray(depth, dtype=np.float64), np.asarray(size, dtype=np.float64)
        if not self.exact:
            return np.full(np.broadcast(depths, sizes).shape, np.nan)
        a, b = self.blocks * depths, self.layers * depths + self.table
        return np.asarray((np.sqrt(b**2 + 4.0 * a * sizes) - b) / (2.0 * a), dtype=np.float64)

    def table_share(self, depth: npt.ArrayLike, width: npt.ArrayLike) -> Floats:
        """The share of the size that is in `table`, for (m,) shapes."""
        depths, widths = np.asarray(depth, dtype=np.float64), np.asarray(width, dtype=np.float64)
        table = self.table * widths
        return np.asarray(table / (self.blocks * depths * widths**2 + self.layers * depths * widths + table))


STANDARD = SizeRule(12.0, 0.0, 0.0, 0.0)


def size_rule(depth: npt.ArrayLike, width: npt.ArrayLike, size: npt.ArrayLike) -> SizeRule:
    """The rule of least squared relative errors over (n,) shapes."""
    depths, widths, sizes = (np.asarray(values, dtype=np.float64) for values in (depth, width, size))
    columns = np.stack([depths * widths**2, depths * widths, widths], axis=1) / sizes[:, None]
    scale = columns.max(axis=0)
    found, _ = optimize.nnls(columns / scale, np.ones(len(sizes)))
    terms = found / scale
    error = float(np.abs(columns @ terms - 1.0).max())
    return SizeRule(float(terms[0]), float(terms[1]), float(terms[2]), error)
