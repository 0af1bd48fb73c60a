"""The best depth at a given size, from networks of several depths that have other sizes.

The loss of a depth at a size is linear in the losses of the networks around it. So draws of the networks' noise are
draws of the loss at every size, with the choice of the best depth in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise, student_threshold
from shapelaw.specs.sizes import SAME_SIZE

_SAME = 1e-6  # in log size: rounding


@dataclass(frozen=True)
class Networks:
    """Networks of several depths that are alike otherwise.

    Attributes:
        depth: (n,) layers.
        size: (n,) parameters or operations.
        loss: (n,) means over seeds.
        seeds: (n,) numbers of runs.
        width: (n,) widths, which the noise may follow.
    """

    depth: npt.NDArray[np.int64]
    size: Floats
    loss: Floats
    seeds: Floats
    width: Floats

    def drawn(self, noise: Noise, draws: int, stream: int) -> Floats:
        """(draws, n) losses around the means, with the noise's own uncertainty.

        Args:
            noise: noise of one run's loss.
            draws: number of draws.
            stream: other networks take another number; each draw's size of the noise is the same for all.
        """
        common = np.random.default_rng(0)
        scale = noise.drawn_std(draws, common) * np.sqrt(noise.drawn_tilts(self.width, draws, common))
        normal = np.random.default_rng([1, stream]).standard_normal((draws, len(self.loss)))
        return np.asarray(self.loss + scale * normal / np.sqrt(noise.runs_at(self.width, self.seeds)))


@dataclass(frozen=True)
class AtSize:
    """The depths that reach a size.

    Attributes:
        size: the size.
        depths: (k,) depths, shallow to deep; at least one.
        weights: (k, n) weights of the networks' losses in each depth's loss.
        shifts: (k,) what is added to that.
        networks: the n networks.
    """

    size: float
    depths: tuple[int, ...]
    weights: Floats
    shifts: Floats
    networks: Networks

    @property
    def losses(self) -> Floats:
        """(k,) losses of the depths at this size."""
        return np.asarray(self.weights @ self.networks.loss + self.shifts)

    @property
    def best_depth(self) -> int:
        """The depth with the least loss."""
        return self.depths[self._best]

    @property
    def loss(self) -> float:
        """The least loss."""
        return float(self.losses[self._best])

    @property
    def spread(self) -> float:
        """The range of the losses over depths; 0 with one depth."""
        return float(np.ptp(self.losses))

    def runs(self, noise: Noise | None) -> float:
        """The number of runs of the noise `std` whose mean would be as noisy as the least loss."""
        return 1 / float(self.weights[self._best] ** 2 @ (1 / self._runs(noise)))

    def noise(self, noise: Noise) -> Noise:
        """The noise of one run, with the degrees of freedom of the networks that the least loss comes from."""
        return Noise(noise.std, float(self._dof(noise, self.weights)[self._best]))

    def drawn_losses(self, drawn: Floats) -> Floats:
        """(draws, k) losses of the depths, from (draws, n) losses of the networks."""
        return np.asarray(drawn @ self.weights.T + self.shifts)

    def also_best(self, noise: Noise, confidence: float = 0.95) -> tuple[int, ...]:
        """The other depths that are not significantly worse than the best one."""
        apart = self.weights - self.weights[self._best]
        err = noise.std * np.sqrt(apart**2 @ (1 / self._runs(noise)))
        near = self.losses - self.loss <= student_threshold(self._dof(noise, apart), confidence) * err
        return tuple(
            depth
            for depth, is_near in zip(self.depths, near, strict=True)
            if is_near and depth != self.best_depth
        )

    def _runs(self, noise: Noise | None) -> Floats:
        return (
            self.networks.seeds if noise is None else noise.runs_at(self.networks.width, self.networks.seeds)
        )

    def _dof(self, noise: Noise, weights: Floats) -> Floats:
        """(k,) degrees of freedom of (k, n) weighted losses: the least of the networks that count."""
        dof = np.where(weights != 0, noise.dof_at(self.networks.width), np.inf)
        return np.asarray(dof.min(axis=1), dtype=np.float64)

    @property
    def _best(self) -> int:
        return int(self.losses.argmin())


def at_size(networks: Networks, size: float, slope: float | None = None) -> AtSize | None:
    """The depths that reach a size, or None if no depth does.

    A depth reaches its own range of sizes and 10% beyond. Its loss there is linear in log size between neighbours; a
    depth of one network moves along the mean slope of the other depths.

    Args:
        networks: networks of any depths.
        size: the size.
        slope: change of the loss with log size, taken as exact, where each depth that reaches the size is one network;
            without it these reach their own size alone.
    """
    at, count = math.log(size), len(networks.size)
    rows: dict[int, Floats] = {}
    slopes: list[Floats] = []
    alone: dict[int, float] = {}  # distance to the only network of a depth
    for depth in sorted({int(depth) for depth in networks.depth}):
        mine = np.flatnonzero(networks.depth == depth)
        mine = mine[networks.size[mine].argsort()]
        x = np.log(networks.size[mine])
        if not x[0] - SAME_SIZE <= at <= x[-1] + SAME_SIZE:
            continue
        right = int(np.clip(np.searchsorted(x, at), 1, len(x) - 1)) if len(x) > 1 else 1
        rows[depth] = np.zeros(count)
        rows[depth][mine[right - 1]] = 1
        if len(x) == 1:
            alone[depth] = at - float(x[0])
            continue
        rise = np.zeros(count)
        rise[mine[right - 1 : right + 1]] = np.array([-1, 1]) / (x[right] - x[right - 1])
        rows[depth] += (at - x[right - 1]) * rise
        slopes.append(rise)
    shifts = dict.fromkeys(rows, 0.0)
    for depth, moved in alone.items():
        if slopes:
            rows[depth] += moved * np.mean(slopes, axis=0)
        elif slope is not None:
            shifts[depth] = moved * slope
        elif abs(moved) > _SAME:
            del rows[depth], shifts[depth]
    if not rows:
        return None
    return AtSize(size, tuple(rows), np.stack(list(rows.values())), np.array(list(shifts.values())), networks)


def at_own_sizes(networks: Networks) -> tuple[AtSize, ...]:
    """The depths at the size of each network, by growing size."""
    found = (at_size(networks, float(size)) for size in np.unique(networks.size))
    return tuple(at for at in found if at is not None)


def mean_slope(found: Sequence[AtSize]) -> float | None:
    """The change of the least loss with log size, by a line through all sizes; None with one size."""
    x = np.log([at.size for at in found])
    if len(x) < 2:
        return None
    return float(np.polyfit(x, [at.loss for at in found], 1)[0])


def size_groups(sizes: Sequence[float] | Floats) -> Iterator[float]:
    """The geometric mean of each group of sizes, a group being those within 10% of its smallest."""
    ordered = np.sort(np.log(np.asarray(sizes, dtype=np.float64)))
    while len(ordered):
        near = ordered <= ordered[0] + SAME_SIZE
        yield float(np.exp(ordered[near].mean()))
        ordered = ordered[~near]
