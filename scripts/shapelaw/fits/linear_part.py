"""The part of a memorization curve that is linear in the number of heads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from shapelaw.fits.line import LineFit, fit_line
from shapelaw.fits.memorized import SATURATED, MemorizationCurve, standard_errors

LEAST_CHANCE = 0.01


@dataclass(frozen=True)
class LinearPart:
    """`share = a + b H` over the `used` (n,) points of a curve.

    `errors` says where those of the line come from: "seed noise", or "scatter" of the points around the line.
    """

    line: LineFit
    used: npt.NDArray[np.bool_]
    errors: str


def linear_part(curve: MemorizationCurve, saturated: float = SATURATED, floor: float = 0.0) -> LinearPart:
    """The line through the non-saturated points of the share (n,) against the heads.

    The rule: by growing H, the points before the first one whose mean share over seeds is above `saturated` are
    used, that one and all after it are not. The rule is fixed before one looks and does not ask how straight the
    points lie, so that R² means something. (Mahdavi et al. 2024, section 5.2, fit "the non-saturated part" and
    give no rule.) At 0.9 a curve that saturates softly is already bent a little; `linear_rules` has the
    line for other values too.

    Points below `floor` are not used either: a share that guessing gives lies on no line. The default keeps all.

    The points are weighted by their number of seeds. The line's errors come from the seeds' pooled noise; without
    one, or where the points scatter more than it allows (p < 1%), from their scatter around the line.
    """
    above = np.flatnonzero(curve.share > saturated)
    used = np.arange(len(curve.x)) < (above[0] if above.size else len(curve.x))
    used &= curve.share >= floor
    x, y, err = curve.x[used], curve.share[used], standard_errors(curve)[used]
    noise = curve.noise
    if noise is not None:
        line = fit_line(x, y, err, sigma_dof=noise.dof)
        if not line.usable or line.p_value >= LEAST_CHANCE:
            return LinearPart(line, used, "seed noise")
        wider = fit_line(x, y, err, sigma_dof=noise.dof, rescale_covariance=True)
        text = (
            f"chi2/dof = {line.chi2_reduced:.3g} with the seeds' noise: more scatter, which gives the errors"
        )
        return LinearPart(replace(wider, message=text), used, "scatter")
    line = fit_line(x, y, curve.seeds[used] ** -0.5, rescale_covariance=True)
    text = "no seed noise, so the points' scatter gives the errors" if line.usable else line.message
    # a chi2 with a sigma that is none says nothing
    line = replace(line, chi2=math.nan, chi2_reduced=math.nan, p_value=math.nan, message=text)
    return LinearPart(line, used, "scatter")
