"""The loss of decoders of one lab as a smooth function of blocks, depth and tokens: draws of it, numpy alone.

With x the log size and z the log depth about their middles, a ridge z* = c0 + c1 x + c2 u runs through the best depths
(u is the log of tokens); below ten billion tokens it is steeper in u, by c3. Off the ridge, by t = z - z*, a network
loses a penalty p(t), either in nats or as if it were smaller. The size is that of the blocks, or all parameters of the
network of the evidence's own block and vocabulary that has these blocks and this depth; where the two disagree nobody
knows better, so draws of both are kept.

A draw has a series of losses, a form, and parameters that were fitted to the losses moved by the errors of left-out
shapes (`evidence_fit.py`). `losses` leaves out levels: its differences at one number of tokens have a meaning. A level
of tokens, `level`, is of the lab's text and schedule, and compares budgets alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# the middles of x (parameters), z (layers) and u (tokens)
MIDDLE_SIZE, MIDDLE_DEPTH, MIDDLE_TOKENS = math.log(4e8), math.log(22.0), math.log(5e10)
FEW_TOKENS = 1e10  # below which ridge and slope have a term of their own
# of the evidence's networks: weights of a block over d^2, and the rows of width d in embedding and classifier
BLOCK_SHARE, TABLE = 15.0, 2 * 50304
TURN = 0.08  # log depths over which the two-sided penalty turns from one side's curvature to the other's
# how a penalty grows with t, and whether it counts in nats or as a smaller size
PENALTIES = ("square", "skewed", "two-sided")
SCALES = ("nats", "size")
SIZES = ("block", "total")
FORMS = tuple(f"{scale} {penalty}" for scale in SCALES for penalty in PENALTIES)
# parameters of a draw: the exponent of the size and its change with u; the ridge, and its change where tokens are few;
# the log scale of the penalty and its change with x (nats) or with u (size), that of nats with u; the skew; log of
# minus the slope in x as a square in u, and its change where tokens are few; the level at x = 0 as a cubic in u
COLUMNS = (
    *("alpha", "alpha_u"),
    *("c0", "c1", "c2", "c3"),
    *("p0", "p1", "p2", "k"),
    *("s0", "s1", "s2", "s3"),
    *("l0", "l1", "l2", "l3"),
)
SLOPES, LEVELS = slice(10, 14), slice(14, 18)


@dataclass(frozen=True)
class LeastSquares:
    """A fit of numbers by the columns of a design.

    Attributes:
        values, errors: (k,) coefficients with their standard errors, by what the fit leaves.
        left: (n,) what it leaves, and `std` its standard deviation.
    """

    values: Floats
    errors: Floats
    left: Floats
    std: float


def least_squares(design: Floats, numbers: Floats) -> LeastSquares:
    """The fit of (n,) numbers by the (n, k) columns of a design, all of one error."""
    values, _, rank, _ = np.linalg.lstsq(design, numbers, rcond=None)
    left = numbers - design @ values
    variance = float(left @ left) / max(len(left) - int(rank), 1)
    errors = np.sqrt(variance * np.diag(np.linalg.pinv(design.T @ design)))
    return LeastSquares(np.asarray(values), np.asarray(errors), left, math.sqrt(variance))


def penalty(kind: str, t: Floats, skew: Floats | float, most: float = 8.0) -> Floats:
    """The penalty of a distance t in log depth from the ridge: t² near it, skewed by k or of another curvature a side.

    Args:
        kind: of `PENALTIES`.
        t: distances.
        skew: k, which broadcasts with t; 0 is no skew.
        most: exponent at which a skewed one is cut off.
    """
    if kind == "square":
        return np.asarray(t**2)
    k = np.asarray(skew, dtype=np.float64)
    if kind == "two-sided":
        return np.asarray(t**2 * np.exp(k * np.tanh(t / TURN)))
    k = np.where(np.abs(k) < 1e-4, 1e-4, k)
    bent = np.clip(k * t, -30.0, most)
    return np.asarray(2.0 * (np.expm1(bent) - bent) / k**2)


def power(alpha: Floats, x: Floats) -> Floats:
    """(1 - e^(-alpha x)) / alpha: with a constant it spans the power laws of a size, and is x itself at alpha = 0."""
    alpha = np.where(np.abs(alpha) < 1e-6, 1e-6, alpha)
    bent = -alpha * x
    np.expm1(np.clip(bent, -30.0, 30.0, out=bent), out=bent)
    bent /= -alpha
    return bent


def few(log_tokens: Floats | float) -> Floats:
    """How far logs of tokens lie below those of few, as a number below zero; else 0."""
    return np.asarray(np.minimum(log_tokens - math.log(FEW_TOKENS), 0.0))


def slope_terms(log_tokens: Floats, tokens: tuple[float, float]) -> Floats:
    """(n, 4) terms of a log slope: a square in u, beyond the range of tokens its tangent, and `few`."""
    u = log_tokens - MIDDLE_TOKENS
    inside = np.clip(u, *(np.log(tokens) - MIDDLE_TOKENS))
    return np.stack([np.ones_like(u), u, inside * (2.0 * u - inside), few(log_tokens)], axis=1)


def log_total(log_blocks: Floats, log_depth: Floats) -> Floats:
    """Log of all parameters of the evidence's network with these blocks and layers (untied, V = 50,304)."""
    log_width = 0.5 * (log_blocks - log_depth - math.log(BLOCK_SHARE))
    return np.asarray(np.logaddexp(log_blocks, math.log(TABLE) + log_width))


@dataclass(frozen=True)
class Draws:
    """Draws of the surface, each as likely as another.

    Attributes:
        values: (D, 18) parameters, in the order of `COLUMNS`.
        penalty: (D,) index into `PENALTIES`.
        in_nats: (D,) whether the penalty counts in nats, else as a smaller size.
        of_total: (D,) whether x is the log of all parameters, else that of the blocks.
        tokens: the smallest and the largest number of tokens with a level and a square slope; beyond, both go on along
            their tangents.
    """

    values: Floats
    penalty: npt.NDArray[np.int64]
    in_nats: npt.NDArray[np.bool_]
    of_total: npt.NDArray[np.bool_]
    tokens: tuple[float, float]

    def __len__(self) -> int:
        return len(self.values)

    def losses(
        self, log_blocks: Floats, log_depth: Floats, log_tokens: float, shift: Floats | float = 0.0
    ) -> Floats:
        """(D, p) losses in nats, up to a constant of each draw.

        Args:
            log_blocks, log_depth: (p,) logs of the parameters of the blocks and of the layers.
            log_tokens: log of the number of tokens.
            shift: (D,) what is added to the ridge's log depth.
        """
        u = log_tokens - MIDDLE_TOKENS
        alpha, alpha_u, c0, c1, c2, c3, p0, p1, p2, skew = (self.values[:, j, None] for j in range(10))
        nats, sizes = self.in_nats, ~self.in_nats
        both = np.stack([log_blocks, log_total(log_blocks, log_depth)]) - MIDDLE_SIZE
        x = both[self.of_total.astype(np.intp)]
        # in place: of 400 draws at 201 depths, copies take a fifth of the time
        t = c1 * x
        t += c0 + c2 * u + c3 * float(few(log_tokens)) + np.reshape(shift, (-1, 1))
        np.subtract(log_depth - MIDDLE_DEPTH, t, out=t)
        lost = np.empty_like(t)
        for index, kind in enumerate(PENALTIES):
            rows = self.penalty == index
            lost[rows] = penalty(kind, t[rows], skew[rows])
        scale = p1[nats] * x[nats]
        scale += p0[nats] + p2[nats] * u
        lost[nats] *= np.exp(scale, out=scale)
        x[sizes] -= np.exp(p0[sizes] + p1[sizes] * u) * lost[sizes]
        losses = power(alpha + alpha_u * u, x)
        terms = slope_terms(np.array([u + MIDDLE_TOKENS]), self.tokens)[0]
        losses *= -np.exp(self.values[:, SLOPES] @ terms)[:, None]  # the slope in x at the middle size
        losses[nats] += lost[nats]
        return losses

    def scaled(self, log_scale: Floats) -> Draws:
        """The draws with their penalties multiplied by numbers whose (D,) logs are given."""
        moved = self.values.copy()
        moved[:, COLUMNS.index("p0")] += log_scale
        return replace(self, values=moved)

    def by_levels(self) -> Draws:
        """The draws with slopes that go on along their tangents where tokens are few, as levels do.

        The term of few tokens is of another lab's slopes, whose levels are others.
        """
        return replace(self, values=self.values * (np.array(COLUMNS) != "s3"))

    def middle(self, log_blocks: Floats, log_depth: Floats, log_tokens: float) -> Floats:
        """(p,) losses in nats, up to a constant: the mean of the draws."""
        return np.asarray(self.losses(log_blocks, log_depth, log_tokens).mean(axis=0))

    def level(self, log_tokens: float) -> Floats:
        """(D,) losses in nats of the middle size at its best depth, beyond the range of tokens along their tangent."""
        u = log_tokens - MIDDLE_TOKENS
        inside = float(np.clip(u, *(np.log(self.tokens) - MIDDLE_TOKENS)))
        powers = np.vander([inside], 4, increasing=True)[0]
        slope = np.array([0.0, 1.0, 2.0 * inside, 3.0 * inside**2])
        return np.asarray(self.values[:, LEVELS] @ (powers + (u - inside) * slope))


def draws_of(groups: Iterable[tuple[str, str, npt.ArrayLike]], tokens: tuple[float, float]) -> Draws:
    """The draws of groups of one form and size each, with (d, 18) parameters; `tokens` as in `Draws`."""
    parts = [
        (form.split(" ", 1), size, np.asarray(values, dtype=np.float64).reshape(-1, len(COLUMNS)))
        for form, size, values in groups
    ]
    counts = [len(values) for *_, values in parts]
    return Draws(
        np.concatenate([values for *_, values in parts]),
        np.repeat([PENALTIES.index(kind) for (_, kind), *_ in parts], counts),
        np.repeat([scale == "nats" for (scale, _), *_ in parts], counts),
        np.repeat([size == "total" for _, size, _ in parts], counts),
        tokens,
    )


def lowest(losses: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """For (d, g) losses on an even grid (g,): the place (d,) of the lowest, by a parabola, and the loss there."""
    at = losses.argmin(axis=1)
    middle = np.clip(at, 1, len(grid) - 2)
    rows = np.arange(len(losses))
    before, here, after = (losses[rows, middle + k] for k in (-1, 0, 1))
    bend = before - 2.0 * here + after
    inside = (at == middle) & (bend > 0)
    shift = np.where(inside, 0.5 * (before - after) / np.where(inside, bend, 1.0), 0.0)
    best = grid[at] + shift * (grid[1] - grid[0])
    loss = np.where(inside, here - 0.25 * (before - after) * shift, losses[rows, at])
    return np.asarray(best), np.asarray(loss)
