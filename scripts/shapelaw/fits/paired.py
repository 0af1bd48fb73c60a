"""Differences between settings that share their seeds: means with intervals, and verdicts in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]


@dataclass(frozen=True)
class Mean:
    """A mean over seeds with Student's 95% interval; NaN bounds with one seed.

    Attributes:
        value: the mean.
        low, high: the interval.
        p_value: two-sided, for a true mean of zero; NaN with one seed.
        seeds: their number.
    """

    value: float
    low: float
    high: float
    p_value: float
    seeds: int

    @property
    def significant(self) -> bool:
        """True if the interval excludes zero."""
        return self.p_value < 0.05

    @property
    def reach(self) -> float:
        """Half of the interval, to draw: 0 with one seed."""
        return 0.0 if self.seeds < 2 else self.high - self.value

    @property
    def verdict(self) -> str:
        """The verdict in words on a mean of losses minus those of a reference."""
        if math.isnan(self.p_value):
            return "one seed: no comparison"
        if not self.significant:
            return "no significant difference"
        return "worse" if self.value > 0 else "better"


UNKNOWN = Mean(math.nan, math.nan, math.nan, math.nan, 0)


def mean_of(values: npt.ArrayLike) -> Mean:
    """The mean of one number per seed.

    Raises:
        ValueError: there are no numbers.
    """
    numbers = np.asarray(values, np.float64)
    if numbers.size == 0:
        raise ValueError("no numbers to take a mean of")
    mean = float(numbers.mean())
    if numbers.size == 1:
        return Mean(mean, math.nan, math.nan, math.nan, 1)
    err, dof = float(numbers.std(ddof=1)) / math.sqrt(numbers.size), numbers.size - 1
    if err == 0:
        return Mean(mean, mean, mean, float(mean == 0), numbers.size)
    half = float(stats.t.ppf(0.975, dof)) * err
    return Mean(mean, mean - half, mean + half, float(2 * stats.t.sf(abs(mean) / err, dof)), numbers.size)


def paired_mean(left: Mapping[int, float], right: Mapping[int, float]) -> Mean | None:
    """The mean of `left - right` over the seeds that both have; None if they share no seed."""
    both = sorted(left.keys() & right.keys())
    return mean_of([left[seed] - right[seed] for seed in both]) if both else None
