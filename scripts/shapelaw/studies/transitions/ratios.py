"""The width of one transition over that of another, with its interval and the chance that they are equal."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from shapelaw.fits.curves import TransitionStatus
from shapelaw.fits.equal_sizes import two_sided
from shapelaw.fits.noise import Noise

NO_RATIO = "not both are crossings"
FORMATS = dict.fromkeys(("ratio", "ratio_low", "ratio_high"), ".2f") | {"p_equal": ".2g"}


def ratio_of(
    one: Mapping[Hashable, Any], other: Mapping[Hashable, Any], *noises: Noise | None
) -> dict[str, Any]:
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
    dof = least_dof(*noises)
    err = math.hypot(one["width_err"] / one["width"], other["width_err"] / other["width"])
    return {
        "ratio": math.exp(middle),
        "ratio_low": math.exp(middle - err),
        "ratio_high": math.exp(middle + err),
        "p_equal": two_sided(middle, err, dof),
        "status": "both are crossings",
    }


def least_dof(*noises: Noise | None) -> float:
    """The least degrees of freedom of several noises; infinite where none is an estimate."""
    return min((noise.dof for noise in noises if noise is not None), default=math.inf)
