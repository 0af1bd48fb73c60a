"""How much better the deeper of two networks is at equal size, with no curve through more than two points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shapelaw.fits.curves import Curve
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise


@dataclass(frozen=True)
class Gaps:
    """Two depths compared at the (n,) growing sizes of the shallower that the deeper reaches.

    Attributes:
        width: of the shallower network.
        deeper_width: of the trained network of the deeper depth that is nearest in size.
        loss: of the shallower network.
        deeper_loss: of the deeper depth at the same size, on the line in log size through its two neighbours.
        err: standard error of `loss - deeper_loss` by the noise between seeds alone; NaN without a noise estimate.
    """

    width: Floats
    deeper_width: Floats
    loss: Floats
    deeper_loss: Floats
    err: Floats

    @property
    def deeper_by(self) -> Floats:
        """(n,) by how much the deeper network is better, in the loss's unit."""
        return self.loss - self.deeper_loss

    @property
    def z(self) -> Floats:
        """(n,) `deeper_by` in standard errors."""
        return self.deeper_by / self.err

    def better(self, noise: Noise | None, confidence: float = 0.95) -> npt.NDArray[np.int64]:
        """(n,) 1 where the deeper network is significantly better, -1 where the shallower is, else 0."""
        threshold = (
            np.inf
            if noise is None
            else noise.threshold_at(self.width, self.deeper_width, confidence=confidence)
        )
        return np.where(np.abs(self.z) > threshold, np.sign(self.z), 0).astype(np.int64)


def gaps_of(shallow: Curve, deep: Curve) -> Gaps:
    """The gaps of two depths at equal size; sizes count as equal within 10%, as everywhere (`Curve.loss_at`)."""
    deep_loss, deep_err = deep.loss_at(shallow.size)
    inside = np.isfinite(deep_loss)
    nearest = np.abs(deep.log_size - shallow.log_size[inside, None]).argmin(axis=1)
    return Gaps(
        shallow.width[inside],
        deep.width[nearest],
        shallow.loss[inside],
        deep_loss[inside],
        np.hypot(shallow.loss_err[inside], deep_err[inside]),
    )
