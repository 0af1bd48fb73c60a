"""What it costs to serve a shape, bytes and seconds of a decoded token by a plain roofline; and memory to train it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from shapelaw.advice.answer.sizes import option_number, option_whole, size_of
from shapelaw.advice.evidence.clocks import Clock, log_width
from shapelaw.advice.evidence.losses import Floats
from shapelaw.errors import UserError
from shapelaw.specs.shapes import STATE_BYTES, Shape

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

    @property
    def source(self) -> str:
        """The numbers that it rests on."""
        return (
            f"a roofline of {self.bandwidth / 1e12:.3g} TB/s and {1e6 * self.layer_seconds:.3g} µs per layer"
        )

    @property
    def log_depth(self) -> Floats:
        """(2,) ends of the depths that are told: all."""
        return np.array([0.0, 99.0])

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

    def log_times(
        self, log_blocks: Floats, log_depth: Floats, vocab_size: Floats | int, context: int
    ) -> Floats:
        """(p,) logs of seconds a step at (p,) logs of blocks and depths; the context is that of the cache."""
        depth, width = np.exp(log_depth), np.exp(log_width(log_blocks, log_depth))
        kv_width = width
        if self.kv_heads is not None:  # of a dimension from 64 to 128 that grows with the width
            kv_width = np.minimum(width, self.kv_heads * np.clip(2.0 * np.sqrt(width), 64.0, 128.0))
        weights = np.exp(log_blocks) + width * vocab_size
        return np.asarray(np.log(self.seconds(weights, depth, kv_width)))

    def errors(
        self, log_blocks: Floats, log_depth: Floats, vocab_size: Floats | int, context: int, count: int
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
