"""The noise of a share from seed to seed, as a function of the share.

Runs that guess agree to a few thousandths, runs that memorize half of the examples differ by several hundredths: along
one curve 0.002 to 0.037, roughly in proportion to p (1 - p) (docs/results/memorization.md). One pooled number is too
large for the first and too small for the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise

# 0: one noise for all shares; 0.5: a binomial's; 1: equal noise of the log odds
POWERS: Floats = np.linspace(0.0, 1.5, 31)
# prior mean and standard deviation of the power: few seeds hardly determine it
PRIOR = (0.75, 0.35)
LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class ShareNoise(Noise):
    """The variance of one run at share p: the mean of `unit2 (p (1 - p))^(2 k)` over the powers k of `POWERS`.

    `weight` (powers,) is the posterior of k, `unit2` (powers,) the most likely unit for each. `std` is the single
    number that pooling would give. The function is fitted to shares between `lowest` and `highest`; a share beyond has
    the value at that end, since nothing is known there.
    """

    weight: Floats
    unit2: Floats
    lowest: float
    highest: float

    @property
    def power(self) -> float:
        """The posterior mean of the power of p (1 - p) in the standard deviation."""
        return float(self.weight @ POWERS)

    def at(self, share: npt.ArrayLike) -> Floats:
        """Standard deviations of one run at (n,) shares."""
        inside = np.clip(np.asarray(share, dtype=np.float64), self.lowest, self.highest)
        return np.asarray(np.sqrt((self.weight * self.unit2) @ _relative(inside)), dtype=np.float64)


def share_noise(share: Floats, std: Floats, dof: Floats) -> ShareNoise | None:
    """The noise of (n,) mean shares whose runs have standard deviations `std` with `dof` degrees of freedom each.

    Deviations are assumed normal; each power has its most likely unit. None if no point has repeats, or all repeats
    agree.
    """
    there = dof > 0
    p, squares, weight = share[there], std[there] ** 2, dof[there]
    total = float(weight.sum())
    if not (squares > 0).any():
        return None
    relative = _relative(p)  # (powers, n)
    unit2 = (weight * squares / relative).sum(axis=1) / total
    log_likelihood = -0.5 * (total * np.log(unit2) + (weight * np.log(relative)).sum(axis=1))
    log_posterior = log_likelihood - 0.5 * ((POWERS - PRIOR[0]) / PRIOR[1]) ** 2
    posterior = np.exp(log_posterior - log_posterior.max())
    return ShareNoise(
        std=math.sqrt(float((weight * squares).sum()) / total),
        dof=total,
        weight=posterior / posterior.sum(),
        unit2=unit2,
        lowest=float(p.min()),
        highest=float(p.max()),
    )


def _relative(share: Floats) -> Floats:
    """(powers, n) variances in terms of the unit."""
    inside = np.clip(share, LEAST_SHARE, 1.0 - LEAST_SHARE)
    return np.asarray((inside * (1.0 - inside)) ** (2.0 * POWERS[:, None]), dtype=np.float64)
