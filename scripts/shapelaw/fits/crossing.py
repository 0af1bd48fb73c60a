"""Our own estimator of the width at which the deeper of two networks becomes better."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import numpy as np

from shapelaw.fits.crossing_draws import INTERVAL, CrossingDraws, draw_crossings
from shapelaw.fits.curves import (
    Curve,
    Side,
    Transition,
    TransitionStatus,
    no_transition,
    shared_range,
    sizes_in,
)
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise
from shapelaw.specs.sizes import LEAST_SIZES

BOOTSTRAP = "bootstrap"
# a share of draws below this counts as "none"
RARE = 0.025
# the least error of a bound, as a share of its width
LEAST_BOUND_ERR = 0.01


def bootstrap_crossing(
    shallow: Curve, deep: Curve, noise: Noise | None, *, draws: int = 2000, seed: int = 0
) -> tuple[Transition, CrossingDraws | None]:
    """The crossing of two loss curves with the 68% interval of its bootstrap distribution.

    `width_err` is half the interval, all in widths of the shallower network. A crossing is reported if the deeper
    network is significantly worse on its left, significantly better on its right and nowhere significantly the other
    way round; if at least 95% of the draws cross within the sizes that both depths cover; and if each depth has at
    least two sizes on either side. Otherwise the status says what is known. The draws are None where no curves were
    fitted (no noise, or fewer than 4 sizes in common).
    """
    if noise is None:
        return no_transition(shallow, deep, BOOTSTRAP, TransitionStatus.NO_NOISE), None
    span = shared_range(shallow, deep)
    sizes = [sizes_in(curve, *span) for curve in (shallow, deep)]
    n_common = min(len(x) for x in sizes)
    if n_common < LEAST_SIZES or span[0] >= span[1]:
        return no_transition(shallow, deep, BOOTSTRAP, TransitionStatus.TOO_FEW_SIZES), None

    found = draw_crossings(shallow, deep, noise, span, n_common, draws, np.random.default_rng(seed))
    inner = (max(x[1] for x in sizes), min(x[-2] for x in sizes))
    status, side = _verdict(found, np.clip(np.concatenate(sizes), *span), inner)
    transition = replace(
        no_transition(shallow, deep, BOOTSTRAP, status),
        noise_scale=found.noise_scale,
        caution="; ".join(_cautions(shallow, deep, noise, found, n_common)),
    )
    if inner[0] < inner[1]:
        low, high = (float(w) for w in shallow.width_at(inner))
        transition = replace(transition, reportable_low=low, reportable_high=high)
    if status is TransitionStatus.CROSSING:
        quantiles = np.quantile(found.crossings, INTERVAL)
        width, low, high = (float(w) for w in shallow.width_at([found.crossing, *quantiles]))
        err = (high - low) / 2
        transition = replace(transition, width=width, width_err=err, width_low=low, width_high=high)
    elif side is not None:
        bound, bound_err = _bound(shallow, found, side)
        transition = replace(transition, bound=bound, bound_err=bound_err, side=side)
    return transition, found


def _verdict(
    found: CrossingDraws, sizes: Floats, inner: tuple[float, float]
) -> tuple[TransitionStatus, Side | None]:
    """Status and side from the significant signs of the difference at the trained `sizes` (log, any order)."""
    at = np.searchsorted(found.log_size, np.sort(sizes)).clip(0, len(found.log_size) - 1)
    signs = found.signs[at]
    changes = [int(sign) for sign, _ in groupby(signs[signs != 0])]
    if len(changes) > 2:
        return TransitionStatus.SEVERAL, None
    if changes == [-1, 1]:
        return TransitionStatus.REVERSED, None
    if changes == [1]:
        everywhere = bool((signs == 1).all())
        return TransitionStatus.SHALLOWER_BETTER if everywhere else TransitionStatus.AT_EDGE, Side.ABOVE
    if changes == [-1]:
        if (signs == -1).all():
            return TransitionStatus.DEEPER_BETTER, Side.BELOW
        # better at small sizes and then worse: larger sizes are open
        return (
            (TransitionStatus.AT_EDGE, Side.BELOW) if signs[-1] == -1 else (TransitionStatus.TOO_NOISY, None)
        )
    if not changes:
        return TransitionStatus.TOO_NOISY, None
    low, high = np.quantile(found.crossings, INTERVAL)
    if high - low > (found.log_size[-1] - found.log_size[0]) / 2:
        return TransitionStatus.TOO_NOISY, None
    inside = inner[0] <= found.crossing <= inner[1] and found.share_below + found.share_above < 2 * RARE
    return (TransitionStatus.CROSSING, None) if inside else (TransitionStatus.AT_EDGE, Side.AT)


def _bound(shallow: Curve, found: CrossingDraws, side: Side) -> tuple[float, float]:
    """The width beyond which 84% of the draws cross, and its distance to that of 97.5%; or the crossing's own."""
    if side is Side.AT:
        low, high = shallow.width_at(np.quantile(found.crossings, INTERVAL))
        bound, err = float(shallow.width_at(found.crossing)), float(high - low) / 2
    else:
        likely = (0.16, 0.025) if side is Side.ABOVE else (0.84, 0.975)
        at, further = shallow.width_at(np.quantile(found.crossings, likely))
        bound, err = float(at), abs(float(further - at))
    return bound, max(err, LEAST_BOUND_ERR * bound)


def _cautions(shallow: Curve, deep: Curve, noise: Noise, found: CrossingDraws, n_common: int) -> list[str]:
    """The reasons to doubt an interval, each in a few words."""
    cautions = [
        f"L{depth}-d{width} lies {pull:+.1f} sigma off its curve" for depth, width, pull in found.outliers
    ]
    if n_common == LEAST_SIZES:
        cautions.append(f"only {LEAST_SIZES} sizes in common")
    repeated = np.concatenate([curve.log_size[curve.seeds > 1] for curve in (shallow, deep)])
    middle = float(found.log_size[[0, -1]].mean())
    if np.isfinite(noise.dof) and not repeated.size:
        cautions.append("neither depth has repeated seeds")
    elif np.isfinite(noise.dof) and (repeated.max() < middle or repeated.min() > middle):
        cautions.append(f"seeds are repeated at {'small' if repeated.max() < middle else 'large'} sizes only")
    return cautions
