"""The size of a table's networks as a rule of their depth and width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize  # type: ignore[import-untyped]

from shapelaw.fits.line import Floats

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


def size_rule(depth: npt.ArrayLike, width: npt.ArrayLike, size: npt.ArrayLike) -> SizeRule:
    """The rule of least squared relative errors over (n,) shapes."""
    depths, widths, sizes = (np.asarray(values, dtype=np.float64) for values in (depth, width, size))
    columns = np.stack([depths * widths**2, depths * widths, widths], axis=1) / sizes[:, None]
    scale = columns.max(axis=0)
    found, _ = optimize.nnls(columns / scale, np.ones(len(sizes)))
    terms = found / scale
    error = float(np.abs(columns @ terms - 1.0).max())
    return SizeRule(float(terms[0]), float(terms[1]), float(terms[2]), error)
