"""How long a network takes for a token: to train, by public times or those of one's own machine, and to decode."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from shapelaw.advice.answer.sizes import Counting
from shapelaw.advice.evidence.losses import Floats, least_squares
from shapelaw.errors import UserError

SETTLED = 1e-5  # change of log depths and sizes at which steps towards equal times end
TURNS = 12  # steps at most
SEVERAL_SIZES = 0.3  # log sizes that lie farther apart tell how time follows size


@cache
def normal_scores(count: int) -> Floats:
    """Scores that have a normal distribution's quantiles, a standard deviation of one and a mean of zero."""
    many = np.sort(np.random.default_rng(1).standard_normal(200 * count)).reshape(count, -1).mean(axis=1)
    centred = many - many.mean()
    return np.asarray(centred / centred.std())


def shuffled_scores(count: int, columns: int) -> Floats:
    """(count, columns) normal scores, each column in an order of its own."""
    rng = np.random.default_rng(2)
    return np.stack([rng.permutation(normal_scores(count)) for _ in range(columns)], axis=1)


def log_width(log_blocks: Floats, log_depth: Floats) -> Floats:
    """Logs of the widths of blocks of 12 L d²."""
    return np.asarray(0.5 * (log_blocks - log_depth - math.log(12.0)))


def log_work(
    log_blocks: Floats, log_depth: Floats, vocab_size: Floats | int, context: Floats | int
) -> Floats:
    """Logs of the weights that are multiplied for every token, of blocks of 12 L d².

    These are the weights of the blocks, of the classifier, and 2 N L d for the scores of attention over N tokens: two
    FLOPs each in a forward pass.
    """
    others = np.log(vocab_size + 2.0 * context * np.exp(log_depth)) + log_width(log_blocks, log_depth)
    return np.asarray(np.logaddexp(log_blocks, others))


@dataclass(frozen=True)
class Clock:
    """Seconds a token, up to a factor: a power of the work, times a smooth function of depth.

    The function is a parabola in the logs, or with two depths a line, and goes on straight beyond the depths that were
    timed. Lines from depth to depth would have corners, and the best depth at equal time would lie on one of them.

    Attributes:
        exponent: of the work (see `log_work`).
        log_depth, log_time: (k,) logs of depths, rising, and of seconds at one work.
        source: where it was measured.
        exponent_err: standard error of `exponent`.
        time_err: (k,) standard errors of `log_time`; none where nothing is known of them.
        works: logs of the least and the largest work that was timed.
        per_log_work: standard deviation by which the exponent of depth changes for each e-fold beyond these.
        name: of the machine, in a word.
    """

    exponent: float
    log_depth: Floats
    log_time: Floats
    source: str
    exponent_err: float = 0.0
    time_err: Floats | None = None
    works: tuple[float, float] = (-math.inf, math.inf)
    per_log_work: float = 0.0
    name: str = "MI250X"

    def at(self, work: Floats, log_depth: Floats) -> Floats:
        """Logs of seconds a token, at logs of works and depths."""
        return np.asarray(self.exponent * work + parabola(self.log_depth, log_depth) @ self.log_time)

    def log_times(
        self, log_blocks: Floats, log_depth: Floats, vocab_size: Floats | int, context: int
    ) -> Floats:
        """(p,) logs of seconds a token at (p,) logs of blocks and depths."""
        return self.at(log_work(log_blocks, log_depth, vocab_size, context), log_depth)

    def errors(
        self, log_blocks: Floats, log_depth: Floats, vocab_size: Floats | int, context: int, count: int
    ) -> Floats:
        """(count, p) draws of the errors of `log_times`, wider where no such work was timed."""
        work = log_work(log_blocks, log_depth, vocab_size, context)
        normals = shuffled_scores(count, 2 + len(self.log_depth))
        found = self.exponent_err * normals[:, :1] * work
        if self.time_err is not None:
            found = found + (normals[:, 1:-1] * self.time_err) @ parabola(self.log_depth, log_depth).T
        slope = self.per_log_work * self.outside(work) * (log_depth - self.log_depth.mean())
        return np.asarray(found + normals[:, -1:] * slope)

    def beyond(self, log_blocks: float) -> float:
        """E-folds by which blocks lie outside of those that were timed, about."""
        return float(self.outside(np.array([log_blocks]))[0])

    def outside(self, work: Floats) -> Floats:
        """E-folds by which logs of works lie outside of those that were timed."""
        return np.maximum(0.0, np.maximum(self.works[0] - work, work - self.works[1]))


def log_blocks_at(sizes: Floats | float, counting: Counting, log_depth: Floats) -> Floats:
    """(p,) logs of the parameters 12 L d² that (p,) sizes, or one, leave to blocks at (p,) logs of depths.

    Raises:
        UserError: the embedding alone takes a size.
    """
    counting.require_room(float(np.min(sizes)))
    widths = counting.widths_at(np.broadcast_to(sizes, log_depth.shape), np.exp(log_depth))
    return np.asarray(math.log(12.0) + log_depth + 2.0 * np.log(widths))


def as_quick(
    log_times: Callable[[Floats, Floats], Floats],
    wanted: float,
    sizes: Floats,
    counting: Counting,
    log_depth: Floats,
) -> Floats:
    """(p,) sizes that take `wanted`, a log of seconds a token, at (p,) logs of depths, by secants from (p,) `sizes`.

    A depth that has no size so quick, beside its embedding or its launches, gets nearly none.
    """
    least = 1.01 * counting.fixed + 1e4

    def off(log_sizes: Floats) -> Floats:
        return log_times(log_blocks_at(np.exp(log_sizes), counting, log_depth), log_depth) - wanted

    before = np.log(sizes)
    missed, now = off(before), before + 0.1
    for _ in range(TURNS):
        here = off(now)
        slope = np.clip((here - missed) / np.where(now == before, 1.0, now - before), 0.05, 2.0)
        before, missed = now, here
        now = np.maximum(now - np.clip(here / slope, -2.0, 2.0), math.log(least))
        if np.abs(now - before).max() < SETTLED:
            break
    return np.exp(now)


def parabola(known: Floats, at: Floats) -> Floats:
    """(..., k) weights of the values at (k,) `known` points, of which the least-squares parabola at `at` is the sum.

    With two points it is a line. Beyond the first and the last point it goes on straight.
    """
    middle, terms = float(known.mean()), min(3, len(known))
    solved = polynomial(tuple(known - middle), terms)
    ends = np.clip(at, known[0], known[-1])
    inner = (np.asarray(ends) - middle)[..., None] ** np.arange(terms)
    slopes = np.zeros_like(inner)
    slopes[..., 1:] = np.arange(1, terms) * inner[..., :-1]
    return np.asarray((inner + slopes * (np.asarray(at) - ends)[..., None]) @ solved)


@cache
def polynomial(places: tuple[float, ...], terms: int) -> Floats:
    """(terms, k) coefficients of the least-squares polynomial, a row each, by the values at (k,) places."""
    return np.asarray(np.linalg.pinv(np.vander(places, terms, increasing=True)))


def read_clock(path: Path, vocab_size: int, context: int, public: Clock) -> Clock:
    """The times of a speed.csv: `depth, block_params, seconds_per_token`, one row a shape.

    The error of a depth's time is that by which its steps differ (`low, high`: the quantiles between which 68% of them
    lie), or by which times lie off a smooth function of depth, where that is more.

    Args:
        path: the file.
        vocab_size, context: of the networks that were timed, where the file has no such columns (`context_length`).
        public: the times which say how time follows the work, where the shapes have one size.

    Raises:
        UserError: the file is missing, or has fewer than two depths with numbers.
    """
    table = _speed_table(path, vocab_size, context)
    depth, blocks, seconds = np.log(table[:, :3]).T
    steps = np.log(table[:, 4] / table[:, 3]) / 2.0
    depths = np.unique(depth)
    if len(depths) < 2:
        raise UserError(
            f"--speed {path} has times of {len(depths)} depth(s); how time follows depth takes two."
        )
    work = log_work(blocks, depth, table[:, 5], table[:, 6])
    exponent, exponent_err = public.exponent, public.exponent_err
    if np.ptp(blocks) > SEVERAL_SIZES and len(table) > len(depths):
        of_depth = (depth[:, None] == depths).astype(np.float64)
        design = np.column_stack([work, of_depth])
        fit = least_squares(design, seconds)
        exponent, exponent_err = float(fit.values[0]), float(fit.errors[0])
    left = seconds - exponent * work
    times = np.array([left[depth == one].mean() for one in depths])
    spread = np.array([math.sqrt(float(np.mean(steps[depth == one] ** 2))) for one in depths])
    off_smooth = times - parabola(depths, depths) @ times
    misfit = math.sqrt(float(off_smooth @ off_smooth) / max(len(depths) - 3, 1))
    works = float(work.min()), float(work.max())
    errors = exponent_err, np.maximum(spread, misfit), works, public.per_log_work
    return Clock(exponent, depths, times, str(path), *errors, path.name)


def _speed_table(path: Path, vocab_size: int, context: int) -> Floats:
    """(r, 7) depths, blocks, seconds, low and high ends of them, vocabularies and contexts of a speed.csv.

    Raises:
        UserError: it can't be read.
    """
    needed = ("depth", "block_params", "seconds_per_token")
    try:
        with path.open(encoding="utf-8") as lines:
            rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        if any("read_bytes" in row for row in rows):
            raise UserError(
                f"--speed {path} has times of decoding; give a file of `shapelaw speed` without --decode."
            )
        usual = {"vocab_size": vocab_size, "context_length": context}
        numbers = [
            [float(row[name] or "nan") for name in needed]
            + [float(row.get(end) or row["seconds_per_token"] or "nan") for end in ("low", "high")]
            + [float(row.get(name) or usual[name]) for name in usual]
            for row in rows
        ]
    except OSError as error:
        raise UserError(f"--speed {path} can't be read ({error.strerror}).") from None
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"--speed {path} is no table of `shapelaw speed`; it needs numbers in {', '.join(needed)}."
        ) from None
    table = np.array(numbers).reshape(-1, 7)
    return np.asarray(table[np.isfinite(table).all(axis=1) & (table > 0).all(axis=1)])
