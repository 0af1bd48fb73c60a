"""The paper's rule for the width at which the deeper of two networks becomes better (Levine et al. 2020)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from shapelaw.fits.curves import Curve, Transition, TransitionStatus, gaps_of, no_transition
from shapelaw.fits.noise import Noise

PAPER_RULE = "paper rule"
MIN_SIZES = 3
# standard errors below which two losses count as equal
ALIKE = 1.0
# measured on gaps that are linear in log width: 1.0 to 1.5 with 40 to 10 sizes a factor of 7 in width. Without noise it
# were half way between 1 and 1.96, where the left and the right size would lie
WAITS = 1.3
# log width from the transition within which gaps tell their slope
NEAR = 0.7


def paper_rule(shallow: Curve, deep: Curve, noise: Noise | None) -> Transition:
    """Levine et al. 2020, section 5.2.2: the mean of two widths of the shallower network.

    The right one is the first size at which the shallower network is significantly worse than the deeper one
    (interpolated at that size, a two-sided test at 95% on the pooled seed noise). The left one is the last
    size before it at which the two are alike or the shallower is better: it is worse by less than `ALIKE` standard
    errors. Sizes between the two are neither, so the two need not be neighbours: four of the five published brackets
    enclose trained widths. The error is half their distance, as the paper's table 4a has it (its text says the
    distance).

    No transition is reported when a bracketing size is the first or the last of the comparison, since nothing
    beyond it confirms that side (at the edge), or when a larger size contradicts it significantly (too noisy).

    The rule waits for a significant difference, so it lags: by about `WAITS` standard errors of a gap over the slope of
    the gap in log width, which a line through the gaps nearby gives (`Transition.lag`).
    """
    if noise is None:
        return no_transition(shallow, deep, PAPER_RULE, TransitionStatus.NO_NOISE)
    gaps = gaps_of(shallow, deep)
    if len(gaps.width) < MIN_SIZES:
        return no_transition(shallow, deep, PAPER_RULE, TransitionStatus.TOO_FEW_SIZES)

    better = gaps.better(noise)
    right = int(np.argmax(better > 0))
    alike = np.flatnonzero(gaps.z[:right] < ALIKE)

    status = _status(better, alike)
    if status is not TransitionStatus.CROSSING:
        return no_transition(shallow, deep, PAPER_RULE, status)
    low, high = float(gaps.width[alike[-1]]), float(gaps.width[right])
    widths = (low + high) / 2, (high - low) / 2, low, high
    far = np.abs(np.log(gaps.width / widths[0]))
    near = far <= max(NEAR, np.sort(far)[MIN_SIZES - 1])
    slope = float(np.polyfit(np.log(gaps.width[near]), gaps.deeper_by[near], 1)[0])
    lag = WAITS * float(gaps.err[near].mean()) / slope if slope > 0 else math.nan
    return Transition(shallow.depth, deep.depth, *widths, PAPER_RULE, status, lag=lag)


def _status(better: npt.NDArray[np.int64], alike: npt.NDArray[np.intp]) -> TransitionStatus:
    """The status from `Gaps.better` at n >= 3 sizes; `alike`: those before the first where the deeper is better."""
    shallow_worse, deep_worse = better > 0, better < 0
    if not shallow_worse.any():
        if deep_worse[-1]:
            return TransitionStatus.SHALLOWER_BETTER
        return TransitionStatus.AT_EDGE if deep_worse.any() else TransitionStatus.TOO_NOISY
    first = int(np.argmax(shallow_worse))
    if deep_worse[first:].any():
        return TransitionStatus.TOO_NOISY
    if first == 0:
        return TransitionStatus.DEEPER_BETTER
    if not alike.size or alike[-1] == 0 or first == len(shallow_worse) - 1:
        return TransitionStatus.AT_EDGE
    return TransitionStatus.CROSSING
