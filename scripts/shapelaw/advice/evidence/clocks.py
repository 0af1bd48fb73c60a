"""How long a network takes for a token: to train, by public times or those of one's own machine, and to decode.

Decoding is a plain roofline. Besides, the memory that training takes.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from shapelaw.advice.answer.sizes import Counting, option_number, option_whole, size_of
from shapelaw.advice.evidence.losses import Floats, least_squares
from shapelaw.errors import UserError
from shapelaw.specs.shapes import STATE_BYTES, Shape

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

    def log_times(self, log_blocks: Floats, log_depth: Floats, vocab_size: int, context: int) -> Floats:
        """(p,) logs of seconds a token at (p,) logs of blocks and depths."""
        return self.at(log_work(log_blocks, log_depth, vocab_size, context), log_depth)

    def errors(
        self, log_blocks: Floats, log_depth: Floats, vocab_size: int, context: int, count: int
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


Real = TypeVar("Real", float, Floats)
SERVED = "batch=1,context=4096,bandwidth=3.3TB/s"
BANDWIDTHS = {"TB/s": 1e12, "GB/s": 1e9, "MB/s": 1e6}
SECONDS = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6}
# seconds of a layer's launches, unless given: about ten kernels of two microseconds, as in a captured graph
LAYER_SECONDS = 20e-6
LATENCY = "latency"  # the name of decoding among machines


@dataclass(frozen=True)
class Serving:
    """Seconds of decoding by a plain roofline: what every token reads over the bandwidth, and launches of each layer.

    A step of a batch reads the weights of the blocks and of the classifier once and each sequence's keys and values.
    Arithmetic, which binds in large batches, is not in it.

    Attributes:
        batch: sequences that are decoded together.
        context: tokens in each one's cache.
        bandwidth: bytes a second.
        layer_seconds: of the launches of a layer.
        number_bytes: of a weight, a key and a value.
        kv_heads: heads of keys where shapes are not given whole; None is as many as heads.
    """

    batch: int
    context: int
    bandwidth: float
    layer_seconds: float = LAYER_SECONDS
    number_bytes: float = 2.0
    kv_heads: int | None = None

    name = LATENCY
    log_depth = 0.0, 99.0  # ends of the depths that are told: all

    @property
    def source(self) -> str:
        """The numbers that it rests on."""
        return (
            f"a roofline of {self.bandwidth / 1e12:.3g} TB/s and {1e6 * self.layer_seconds:.3g} µs per layer"
        )

    def beyond(self, log_blocks: float) -> float:
        """None."""
        return 0.0

    def cache_bytes(self, depth: Real, kv_width: Real) -> Real:
        """Bytes of keys and values for each token of context: 2 L kv_heads head_dim numbers."""
        return self.number_bytes * 2.0 * depth * kv_width

    def bytes_read(self, weights: Real, depth: Real, kv_width: Real) -> Real:
        """Bytes that a step reads: the weights, and the caches of all sequences; arguments as of `seconds`."""
        return self.number_bytes * weights + self.batch * self.context * self.cache_bytes(depth, kv_width)

    def seconds(self, weights: Real, depth: Real, kv_width: Real) -> Real:
        """Seconds of a step, in which each sequence of the batch gets a token; numbers or (p,) arrays.

        Args:
            weights: those of the blocks and of the classifier, which a step reads.
            depth: layers.
            kv_width: the heads of keys times their dimension.
        """
        return self.bytes_read(weights, depth, kv_width) / self.bandwidth + depth * self.layer_seconds

    def log_times(self, log_blocks: Floats, log_depth: Floats, vocab_size: int, context: int) -> Floats:
        """(p,) logs of seconds a step at (p,) logs of blocks and depths; the context is that of the cache."""
        depth, width = np.exp(log_depth), np.exp(log_width(log_blocks, log_depth))
        kv_width = width
        if self.kv_heads is not None:  # of a dimension from 64 to 128 that grows with the width
            kv_width = np.minimum(width, self.kv_heads * np.clip(2.0 * np.sqrt(width), 64.0, 128.0))
        weights = np.exp(log_blocks) + width * vocab_size
        return np.asarray(np.log(self.seconds(weights, depth, kv_width)))

    def errors(
        self, log_blocks: Floats, log_depth: Floats, vocab_size: int, context: int, count: int
    ) -> Floats:
        """(count, p) zeros: a roofline is taken as it is."""
        return np.zeros((count, len(log_depth)))

    def of(self, shape: Shape) -> tuple[float, float, float]:
        """Of a shape: bytes of the weights that a step reads, bytes of keys and values a token, seconds of a step."""
        weights = decoding_weights(shape)
        cache = self.cache_bytes(shape.depth, shape.kv_width)
        return self.number_bytes * weights, cache, self.seconds(weights, shape.depth, shape.kv_width)


# what tells seconds a token up to a factor, by blocks, depth, vocabulary and context
Times: TypeAlias = Clock | Serving


def roofline_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The roofline through measured steps of decoding, as --serve takes it: relative least squares by bytes and layers.

    Args:
        rows: of `shapelaw speed --decode`.

    Raises:
        UserError: the times don't grow with bytes and layers, or there is one shape.
    """
    from scipy import optimize  # type: ignore[import-untyped]  # half a second, which answers don't take

    design = np.array([[row["read_bytes"], row["depth"]] for row in rows], dtype=np.float64)
    seconds = np.array([float(row["seconds_per_step"]) for row in rows])
    (per_byte, per_layer), _ = optimize.nnls(design / seconds[:, None], np.ones(len(rows)))
    if len(rows) < 2 or not (per_byte > 0 and per_layer > 0):
        raise UserError("No roofline fits these times; give more --depths, far apart, of a larger SIZE.")
    first = rows[0]
    return (
        f"batch={first['tokens_per_step']},context={first['context_length']},bandwidth={1e-9 / per_byte:.4g}GB/s,"
        f"layer={1e6 * per_layer:.3g}us,bytes={first['number_bytes']}"
    )


def training_memory(shape: Shape) -> tuple[int, float]:
    """Bytes for the weights, gradients and AdamW's moments of a shape, and for the activations of each token.

    Mixed precision keeps as many bytes per parameter as float32 (Rajbhandari et al. 2020, section 3.1). Activations are
    bfloat16's, with fused attention and without recomputation; logits are not among them.
    """
    return STATE_BYTES * shape.total_params, shape.activation_bytes(1, 2, scores=False) / shape.context_length


def decoding_weights(shape: Shape) -> float:
    """The weights that a decoded token reads: those of the blocks and of the classifier."""
    return float(shape.block_params + shape.width * shape.vocab_size)


def serving_of(text: str, kv_heads: int | None) -> Serving:
    """How tokens are decoded, by --serve.

    Raises:
        UserError: a part of it is unknown, missing, no number, or has no unit.
    """
    parts = dict.fromkeys(("batch", "context", "bandwidth", "layer", "bytes"), "")
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name.strip() not in parts:
            raise UserError(f"--serve has {part!r}; it takes {', '.join(parts)}, such as {SERVED}.")
        parts[name.strip()] = value.strip()
    if not parts["bandwidth"]:
        raise UserError(f"--serve has no bandwidth; give that of the memory, such as {SERVED}.")
    return Serving(
        option_whole("--serve batch", parts["batch"] or "1"),
        option_whole("--serve context", parts["context"] or "4096"),
        _with_unit("bandwidth", parts["bandwidth"], BANDWIDTHS, "3.3TB/s"),
        _with_unit("layer", parts["layer"], SECONDS, "20us") if parts["layer"] else LAYER_SECONDS,
        option_number("--serve bytes", parts["bytes"] or "2", 0.25),
        kv_heads,
    )


def _with_unit(name: str, text: str, units: Mapping[str, float], example: str) -> float:
    unit = next((unit for unit in units if text.endswith(unit)), None)
    try:
        return size_of(text.removesuffix(unit or "?")) * units[unit or "?"]
    except (KeyError, ValueError):
        raise UserError(
            f"--serve {name} is {text}; give a positive number with its unit ({', '.join(units)}), such as {example}."
        ) from None
