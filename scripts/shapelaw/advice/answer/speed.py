"""How long a step of a shape takes on this machine, of training or of decoding: our decoder and random tokens."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shapelaw.advice.evidence.clocks import Serving
from shapelaw.models.decoder import Attention, Decoder
from shapelaw.specs.runs import Training
from shapelaw.specs.shapes import STATE_BYTES, Shape
from shapelaw.training.hardware import micro_batch_size, peak_flops, start_afresh
from shapelaw.training.trainer import CompiledDecoder, CompiledPart, make_optimizer

MOST_TOKENS = 16_384  # of a step, unless asked for
Precision = Literal["float32", "bfloat16"]
WARM_UP = (2, 3)  # steps, at least and at most: the first compiles, and Adam's moments come to be
_MOST_STEPS = 200
_USED_SHARE = 0.4  # of the peak of a matrix product that a step reaches, about
_WANTED_SECONDS = 1.0  # of a step whose tokens are chosen here
_MEMORY = Path("/proc/meminfo")
_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


@dataclass(frozen=True)
class Setting:
    """What the steps of all shapes have in common.

    Attributes:
        device: where they run.
        precision: of matrix products.
        batch_size: sequences of a step.
        context: tokens of a sequence; of decoding those in its cache.
        seconds: the most that is measured of a shape, after the warm-up.
        compiled: the part that torch.compile takes; None leaves the model as it is, as training on a CPU does.
        decodes: a step decodes a token of each sequence; else it trains.
    """

    device: torch.device
    precision: Precision
    batch_size: int
    context: int
    seconds: float
    compiled: CompiledPart | None
    decodes: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch_size * (1 if self.decodes else self.context)

    @property
    def dtype(self) -> torch.dtype:
        """The type of numbers in the precision."""
        found: torch.dtype = getattr(torch, self.precision)
        return found

    def bytes_read(self, shape: Shape, weights: float) -> float:
        """Bytes that a step of decoding reads: so many weights, and the caches of all sequences."""
        serving = Serving(self.batch_size, self.context, math.inf, number_bytes=self.dtype.itemsize)
        return serving.bytes_read(weights, float(shape.depth), float(shape.kv_width))


class DoesNotFit(Exception):
    """A shape needs more memory than the device has free; the message says how much, where it is known."""


def tokens_for(shape: Shape, device: torch.device, precision: str, context: int) -> int:
    """Tokens of a step that takes about a second: a power of two up to 16,384 and no less than 128.

    A GPU takes 16,384 of every size that people train on one; a CPU's are chosen by its peak arithmetic.

    Args:
        shape: the most costly shape.
        context: tokens of a sequence, at most.
    """
    one = replace(shape, context_length=context)
    tokens = _USED_SHARE * peak_flops(device, precision) * _WANTED_SECONDS * context / one.step_flops(1)
    return int(max(128, min(MOST_TOKENS, 2 ** np.floor(np.log2(max(tokens, 1.0))))))


def median_and_ends(seconds: Sequence[float]) -> tuple[float, float, float]:
    """The median of steps' seconds, and the quantiles between which 68% of them lie."""
    low, median, high = np.quantile(seconds, (0.16, 0.5, 0.84))
    return float(median), float(low), float(high)


def step_times(shape: Shape, setting: Setting) -> list[float]:
    """Seconds of steps of a shape, one after the other, until the setting's seconds are over; at least one.

    Raises:
        DoesNotFit: the device has less memory than the weights, Adam's moments and one part of the batch take.
    """
    shape = replace(shape, context_length=setting.context)
    _check_memory(shape, setting)
    start_afresh(setting.device)
    try:
        step = (decoding_step if setting.decodes else _step)(shape, setting)
        _timed(step, setting.seconds, *WARM_UP)
        return _timed(step, setting.seconds, 1, _MOST_STEPS)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
            raise
        raise DoesNotFit("its step ran out of memory") from error
    finally:
        step = None  # type: ignore[assignment]
        gc.collect()


def _timed(step: Callable[[], object], limit: float, least: int, most: int) -> list[float]:
    """Seconds of steps: at least so many, and then as many as end within the limit."""
    seconds: list[float] = []
    begun = time.perf_counter()
    while len(seconds) < least or (
        len(seconds) < most and time.perf_counter() - begun + statistics.median(seconds) <= limit
    ):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds


def _step(shape: Shape, setting: Setting) -> Callable[[], None]:
    """A training step as `shapelaw.training.trainer` makes it, on one batch of random tokens."""
    device = setting.device
    with device:
        model = Decoder(shape)
        ids = torch.randint(0, shape.vocab_size, (setting.batch_size, setting.context + 1))
    optimizer = make_optimizer(model, Training(steps=1, batch_size=setting.batch_size, learning_rate=1e-5))
    forward: Any = model
    if setting.compiled is not None:
        forward = CompiledDecoder(model, setting.compiled)
    elif device.type == "cpu" and torch.get_num_threads() == 1:
        model.use_kernel()
    parts = torch.split(ids, micro_batch_size(shape, setting.batch_size, device, setting.precision))

    def step() -> None:
        model.zero_grad()
        for part in parts:
            mixed = setting.precision == "bfloat16"
            with torch.autocast(device.type, torch.bfloat16) if mixed else nullcontext():
                loss = forward(part[:, :-1], part[:, 1:]) * (len(part) / setting.batch_size)
                loss.backward()
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return step


class CachedAttention(nn.Module):
    """An attention whose one token of each sequence attends to a whole cache of keys and values, itself the last."""

    def __init__(self, attention: Attention, batch_size: int, context: int) -> None:
        super().__init__()
        self.attention = attention
        sizes = batch_size, attention.kv_heads, context, attention.attention_dim
        self.keys, self.values = (attention.qkv.weight.new_zeros(sizes) for _ in range(2))

    def forward(self, x_B1D: Tensor) -> Tensor:
        of = self.attention
        maps_B1E = of.qkv(x_B1D)
        if of.rotary is not None:
            maps_B1E = of.rotary(maps_B1E)
        parts = (part.unflatten(-1, (-1, of.attention_dim)) for part in maps_B1E.split(of.maps, -1))
        query_BH1K, self.keys[:, :, -1:], self.values[:, :, -1:] = (part.transpose(1, 2) for part in parts)
        out_BH1K = F.scaled_dot_product_attention(
            query_BH1K, self.keys, self.values, scale=of.scale, enable_gqa=of.kv_heads < of.heads
        )
        out: Tensor = of.out(out_BH1K.transpose(1, 2).flatten(2))
        return out


def decoding_step(shape: Shape, setting: Setting) -> Callable[[], Tensor]:
    """A step that decodes a token of each sequence after a full context; it returns their logits, [B, 1, V].

    Weights, keys and values have the setting's precision; nothing is compiled.
    """
    device = setting.device
    with device:
        model = Decoder(shape).to(setting.dtype).eval()
        ids_B1 = torch.randint(0, shape.vocab_size, (setting.batch_size, 1))
    for block in model.blocks:
        attention = block.attention
        assert isinstance(attention, Attention)
        block.attention = CachedAttention(attention, setting.batch_size, setting.context)

    @torch.inference_mode()
    def step() -> Tensor:
        logits = model.logits(ids_B1)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return logits

    return step


def _check_memory(shape: Shape, setting: Setting) -> None:
    """Refuse a shape before the system kills the process for it.

    Raises:
        DoesNotFit: weights, Adam's moments and the activations of one sequence take more than is free.
    """
    if setting.decodes:
        needed = setting.bytes_read(shape, shape.total_params)
    else:
        needed = STATE_BYTES * shape.total_params + shape.activation_bytes(1, setting.dtype.itemsize)
    free = _free_memory(setting.device)
    if free is not None and needed > free:
        raise DoesNotFit(f"it takes at least {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} are free")


def _free_memory(device: torch.device) -> int | None:
    """Bytes that can be had: of the card, or of the system within the limit of its container; None where unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    found = []
    with suppress(OSError, ValueError, IndexError):  # not Linux
        line = next(line for line in _MEMORY.read_text().splitlines() if line.startswith("MemAvailable"))
        found.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        found.append(int(_LIMIT.read_text()) - int(_USED.read_text()))
    return min(found, default=None)
