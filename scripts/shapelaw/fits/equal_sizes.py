"""Networks compared at equal size: the best depth, and by how much the losses of two sets of networks differ.

The loss of a depth at a size is linear in the losses of the networks around it. So draws of the networks' noise are
draws of the loss at every size, with the choice of the best depth in them; and the mean difference of two sets over the
sizes that both cover is linear too, and its error follows from theirs. What networks scatter about their curves beside
the noise between seeds shows in the differences themselves, which go smoothly with size (`with_scatter`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]
from scipy.linalg import block_diag  # type: ignore[import-untyped]

from shapelaw.fits.batches import apart, contrasts, told_apart
from shapelaw.fits.curves import SAME, Curve
from shapelaw.fits.noise import Floats, Noise, student_threshold
from shapelaw.specs.sizes import SAME_SIZE

PRIOR_DOF = 4.0  # the weight of all differences' scatter in that of one


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

    def also_best(self, noise: Noise) -> tuple[int, ...]:
        """The other depths that are not significantly worse than the best one."""
        apart = self.weights - self.weights[self._best]
        err = noise.std * np.sqrt(apart**2 @ (1 / self._runs(noise)))
        near = self.losses - self.loss <= student_threshold(self._dof(noise, apart)) * err
        return tuple(depth for depth in np.array(self.depths)[near].tolist() if depth != self.best_depth)

    def _runs(self, noise: Noise | None) -> Floats:
        one = self.networks
        return one.seeds if noise is None else noise.runs_at(one.width, one.seeds)

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
        elif abs(moved) > SAME:
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


@dataclass(frozen=True)
class Difference:
    """The other set's loss less the one's at (m,) sizes, each of one depth.

    Attributes:
        depth: (m,) depths.
        size: (m,) sizes, growing within a depth.
        one, other: (m,) losses, without the fitted offset of a batch.
        err: (m,) standard errors of `other - one`; NaN without a noise estimate, as are all errors.
        mean_err: standard error of the mean difference over all sizes, whose losses share networks.
        dof: degrees of freedom of the errors.
        chi2: of the differences about a line in log size with a level for each depth, by the noise between seeds.
        left: degrees of freedom of `chi2`.
        caution: batches that coincide with what is compared.
    """

    depth: npt.NDArray[np.int64]
    size: Floats
    one: Floats
    other: Floats
    err: Floats
    mean_err: float
    dof: float
    chi2: float = 0.0
    left: int = 0
    caution: str = ""

    @property
    def value(self) -> Floats:
        """(m,) differences."""
        return self.other - self.one

    @property
    def mean(self) -> float:
        """The mean difference, every size counting alike; NaN without sizes."""
        return float(self.value.mean()) if len(self.size) else math.nan


def difference(
    one: Mapping[int, Curve], other: Mapping[int, Curve], noises: tuple[Noise | None, Noise | None]
) -> Difference:
    """The difference of two sets of curves, over the depths that both have, with errors by the noise between seeds.

    Two batches that both sets don't share alike have an offset, which is fitted with a line in log size and a level
    for each depth. One that these describe as well is left as it is: a caution.

    Args:
        noises: of either set; where they are equal, one estimate that both share.
    """
    shared = sorted(set(one) & set(other))
    sides = [[curves[depth] for depth in shared] for curves in (one, other)]
    sizes = [_common_sizes(*pair) for pair in zip(*sides, strict=True)]
    size, depth = np.concatenate([*sizes, []]), np.repeat(shared, [len(part) for part in sizes])
    if not len(size):
        empty = np.zeros(0)
        return Difference(np.zeros(0, np.int64), empty, empty, empty, empty, math.nan, math.nan)
    # (m, n): the losses of either side at the sizes are linear in those of its networks
    at = [
        np.asarray(block_diag(*(curve.weights_at(part)[0] for curve, part in zip(side, sizes, strict=True))))
        for side in sides
    ]
    loss = [np.concatenate([curve.loss for curve in side]) for side in sides]
    variance = [np.concatenate([curve.loss_err for curve in side]) ** 2 for side in sides]
    whiten = _whitening(sum((w * v) @ w.T for w, v in zip(at, variance, strict=True)))
    smooth = np.column_stack([depth[:, None] == np.unique(depth), np.log(size)])
    batches, cautions = _batches(sides, at, whiten, smooth)
    between = batches[1] - batches[0]

    white = whiten @ np.column_stack([smooth, between])
    solve = np.linalg.pinv(white) @ whiten  # (k, m): all coefficients from the differences
    of_offsets = solve[smooth.shape[1] :]
    raw = at[1] @ loss[1] - at[0] @ loss[0]
    without = [w @ y - moved @ (of_offsets @ raw) for w, y, moved in zip(at, loss, batches, strict=True)]
    # what the differences without offsets weigh the networks with
    weights = [w - between @ of_offsets @ w for w in at]
    squares = [w**2 @ v for w, v in zip(weights, variance, strict=True)]
    of_mean = np.array([float(w.mean(axis=0) ** 2 @ v) for w, v in zip(weights, variance, strict=True)])
    dofs = np.array([_least_dof(noise, side) for noise, side in zip(noises, sides, strict=True)])
    left = len(white) - int(np.linalg.matrix_rank(white)) if np.isfinite(of_mean).all() else 0
    residual = whiten @ raw - white @ solve @ raw
    return Difference(
        depth=depth.astype(np.int64),
        size=size,
        one=without[0],
        other=without[1],
        err=np.sqrt(squares[0] + squares[1]),
        mean_err=float(np.sqrt(of_mean.sum())),
        dof=_dof(of_mean, dofs, noises),
        chi2=float(residual @ residual) if left else 0.0,
        left=left,
        caution="; ".join(f"{name} coincides with the difference" for name in cautions),
    )


def _batches(
    sides: Sequence[Sequence[Curve]], at: Sequence[Floats], whiten: Floats, smooth: Floats
) -> tuple[Floats, list[str]]:
    """The share (2, m, b) that batches have in either side's losses at the sizes, and the names of the others.

    The others are those whose offset can't be told from the differences that `smooth` (m, k) describes.
    """
    one, other = ([curve.batches for curve in side] for side in sides)
    shares = {}
    for name, of_all in contrasts([*one, *other]).items():
        of_sides = np.split(of_all, [at[0].shape[1]])
        found = np.stack([weights @ of_side for weights, of_side in zip(at, of_sides, strict=True)])
        if np.abs(found[1] - found[0]).max() >= SAME:  # else both sides alike
            shares[name] = found
    between = {name: whiten @ (found[1] - found[0]) for name, found in shares.items()}
    fitted, others = told_apart(between, whiten @ smooth)
    columns = [np.empty((2, len(smooth), 0)), *(shares[name][:, :, None] for name in fitted)]
    return np.concatenate(columns, axis=2), [*apart(one, other), *others]


def with_scatter(found: Sequence[Difference]) -> list[Difference]:
    """Differences with the scatter of networks about their curves in their errors.

    Errors grow by the root of chi² over its degrees of freedom, where that is above 1. A difference's own is known
    poorly, so that of most (the median, in which a run that went wrong counts little) has the weight of `PRIOR_DOF`
    degrees of freedom.
    """
    each = [one.chi2 / float(stats.chi2.median(one.left)) for one in found if one.left]
    common = float(np.median(each)) if each else 1.0
    grown = []
    for one in found:
        factor = (one.chi2 + PRIOR_DOF * common) / (one.left + PRIOR_DOF)
        if factor > 1.0:
            root, dof = math.sqrt(factor), min(one.dof, one.left + PRIOR_DOF)
            one = replace(one, err=root * one.err, mean_err=root * one.mean_err, dof=dof)
        grown.append(one)
    return grown


def _common_sizes(one: Curve, other: Curve) -> Floats:
    """The sizes of either curve that both reach, equal ones once."""
    every: Floats = np.sort(np.concatenate([one.size, other.size]))
    every = every[np.concatenate([[True], np.diff(np.log(every)) > SAME])]
    return np.asarray(every[one.weights_at(every)[1] & other.weights_at(every)[1]], dtype=np.float64)


def _whitening(covariance: Floats) -> Floats:
    """(r, m) what makes differences of this covariance independent, with a variance of 1; without noise they are so."""
    if not np.isfinite(covariance).all():
        return np.eye(len(covariance))
    values, vectors = np.linalg.eigh(covariance)
    there = values > 1e-9 * values[-1]
    return np.asarray((vectors[:, there] / np.sqrt(values[there])).T)


def _least_dof(noise: Noise | None, curves: Sequence[Curve]) -> float:
    """The degrees of freedom of a noise at the width where it is known least."""
    return math.inf if noise is None else min(float(noise.dof_at(curve.width).min()) for curve in curves)


def _dof(variances: Floats, dofs: Floats, noises: tuple[Noise | None, Noise | None]) -> float:
    """Degrees of freedom of a sum of two variances (Satterthwaite 1946); of one estimate the least of its own."""
    if None in noises:
        return math.nan
    if noises[0] == noises[1]:
        return float(dofs.min())
    parts = float((variances**2 / dofs).sum())
    return float(variances.sum() ** 2 / parts) if parts > 0 else math.inf


def two_sided(value: float, err: float, dof: float) -> float:
    """The chance of a value as far from zero where it is zero; NaN without an error."""
    if not (math.isfinite(err) and err > 0):
        return math.nan
    return float(2 * stats.t.sf(abs(value) / err, dof))


def quantile(dof: float) -> float:
    """Student's two-sided 95% quantile in standard errors; NaN where the degrees of freedom are."""
    return float(student_threshold(dof))


def holm(p_values: Floats) -> Floats:
    """P values with Holm's correction (1979) for their number, in the order given; NaN stays NaN and counts."""
    order = np.argsort(p_values)
    steps = (len(p_values) - np.arange(len(p_values))) * p_values[order]
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected
