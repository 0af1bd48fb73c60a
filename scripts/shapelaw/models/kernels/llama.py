"""Attention and norms of Llama's blocks in C++, on one thread of a CPU.

PyTorch computes the whole square of scores, and copies queries, keys, values and their gradients on the way; the kernel
computes what tokens can see, and takes and leaves all of them side by side, as the linear map has them. A norm takes it
one pass over the activations and its gradient another, PyTorch three and six. The numbers are PyTorch's up to rounding,
and the same whenever the kernel is used; attention of each size is compared with PyTorch's before.

Dimensions: B sequences, T tokens, H heads, G heads of keys, K of a head, E maps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from shapelaw.models.functions import Rotary, attend_by_products
from shapelaw.models.kernels.cpp import NUMBER, POINTER, Kernel

_TOLERANCE = 1e-4  # of the largest number; float32 leaves 1e-6
_REAL = ctypes.c_float
_ATTENTION = [*[NUMBER] * 5, _REAL, *[POINTER] * 4, NUMBER, POINTER]
LLAMA = Kernel(
    Path(__file__).with_name("llama_kernel.cpp"),
    "Llama's blocks take longer here",
    {
        "attend": (None, [*_ATTENTION, POINTER]),
        "attend_back": (None, [*_ATTENTION, *[POINTER] * 2]),
        "rms_norm": (None, [*[NUMBER] * 2, _REAL, *[POINTER] * 4]),
        "rms_norm_back": (None, [*[NUMBER] * 2, *[POINTER] * 6]),
        "weights_room": (NUMBER, [NUMBER]),
        "room": (NUMBER, [NUMBER] * 2),
    },
)


@cache
def has_llama() -> bool:
    """True if attention of Llama's blocks and their norms can be computed here."""
    return LLAMA.is_possible(_is_norm_right, "its norms are not PyTorch's on this CPU")


def is_plain(x: Tensor, y: Tensor) -> bool:
    """True where PyTorch does the work: not in float32 on one thread of a CPU."""
    is_other = x.device.type != "cpu" or not x.dtype == y.dtype == torch.float32
    return is_other or torch.get_num_threads() > 1 or torch.is_autocast_enabled("cpu")


def _values_and_gradients(
    way: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor, dtype: torch.dtype = torch.float32
) -> list[Tensor]:
    """A function's value, and the gradients of its inputs, in a precision."""
    with torch.enable_grad():
        given = [part.to(dtype, copy=True).requires_grad_() for part in inputs]
        y = way(*given)
        total = (y * grad.to(dtype)).sum()  # of a gradient that is given PyTorch would import its compiler
    return [y, *torch.autograd.grad(total, given)]


class Heads(NamedTuple):
    """The heads of queries, of keys and of values, in a row of maps."""

    queries: int
    keys: int  # and of values
    scale: float  # of the scores


def takes(maps_BTE: Tensor, turns_2Tk: Tensor, heads: Heads) -> bool:
    """True if `attend` is for such maps; needs a kernel that is possible."""
    dim = 2 * turns_2Tk.shape[-1]
    return not is_plain(maps_BTE, turns_2Tk) and _is_attention_right(maps_BTE.shape[1], dim, heads)


def attend(maps_BTE: Tensor, turns_2Tk: Tensor, heads: Heads) -> Tensor:
    """Causal attention, [B, T, H K], of queries, keys and values that have no positions yet.

    Needs a kernel that `takes` them.

    Args:
        turns_2Tk: cosines and sines of a head's K / 2 angles at each place.
    """
    y: Tensor = _Attention.apply(maps_BTE, turns_2Tk, heads)  # type: ignore[no-untyped-call]
    return y


def rms_norm(x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
    """`weight * x / sqrt(mean(x^2) + eps)` over the last dimension; needs a kernel that is possible."""
    y: Tensor = _RMSNorm.apply(x, weight_D, eps)  # type: ignore[no-untyped-call]
    return y


@cache
def _is_attention_right(tokens: int, dim: int, heads: Heads) -> bool:
    """True if attention of these sizes and its gradient are PyTorch's up to rounding; warns if they are not."""
    draw = torch.Generator().manual_seed(0)
    maps_BTE = torch.randn(2, tokens, (heads.queries + 2 * heads.keys) * dim, generator=draw)
    grad_BTE = torch.randn(2, tokens, heads.queries * dim, generator=draw)
    rotary = Rotary(tokens, dim, heads.queries + heads.keys, heads.keys)

    def by_kernel(given: Tensor) -> Tensor:
        return attend(given, rotary.turns_of_head(tokens), heads)

    def by_pytorch(given: Tensor) -> Tensor:
        return attend_by_products(rotary(given), heads.queries, heads.keys, heads.scale, 0.0)

    right = _agree(by_kernel, by_pytorch, [maps_BTE], grad_BTE)
    if not right:
        LLAMA.leave("its attention is not PyTorch's on this CPU")
    return right


@cache
def _is_norm_right() -> bool:
    draw, width, eps = torch.Generator().manual_seed(0), 41, 1e-3
    x_ND, weight_D, grad_ND = (torch.randn(size, generator=draw) for size in ((5, width), width, (5, width)))

    def by_pytorch(x_ND: Tensor, weight_D: Tensor) -> Tensor:
        return F.rms_norm(x_ND, [width], weight_D, eps)

    return _agree(partial(rms_norm, eps=eps), by_pytorch, [x_ND, weight_D], grad_ND)


def _agree(
    by_kernel: Callable[..., Tensor],
    by_pytorch: Callable[..., Tensor],
    inputs: Sequence[Tensor],
    grad: Tensor,
) -> bool:
    """True if the kernel's values and gradients are PyTorch's in float64, up to rounding."""
    found = _values_and_gradients(by_kernel, inputs, grad)
    expected = _values_and_gradients(by_pytorch, inputs, grad, torch.float64)
    pairs = zip(found, expected, strict=True)
    return all((a - b).abs().max() <= _TOLERANCE * b.abs().max() for a, b in pairs)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps_BTE: Tensor, turns_2Tk: Tensor, heads: Heads) -> Tensor:
        library, maps_BTE, turns_2Tk = LLAMA.library(), maps_BTE.contiguous(), turns_2Tk.contiguous()
        B, T, _ = maps_BTE.shape
        dim = 2 * turns_2Tk.shape[-1]
        numbers = library.weights_room(T)
        kept = ctx.needs_input_grad[0]  # else the next head's weights take the room of the last one's
        weights = maps_BTE.new_empty(B * heads.queries if kept else 1, numbers)
        y_BTE = maps_BTE.new_empty(B, T, heads.queries * dim)
        room = maps_BTE.new_empty(library.room(T, dim))
        places = weights.data_ptr(), numbers if kept else 0, room.data_ptr()
        library.attend(*_inputs(maps_BTE, turns_2Tk, heads), *places, y_BTE.data_ptr())
        ctx.save_for_backward(maps_BTE, turns_2Tk, weights)
        ctx.heads = heads
        return y_BTE

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BTE: Tensor) -> tuple[Tensor, None, None]:
        maps_BTE, turns_2Tk, weights = ctx.saved_tensors
        library, grad_BTE, of_maps_BTE = LLAMA.library(), grad_BTE.contiguous(), torch.empty_like(maps_BTE)
        room = maps_BTE.new_empty(library.room(maps_BTE.shape[1], 2 * turns_2Tk.shape[-1]))
        places = weights.data_ptr(), weights.shape[1], room.data_ptr()
        given = _inputs(maps_BTE, turns_2Tk, ctx.heads)
        library.attend_back(*given, *places, grad_BTE.data_ptr(), of_maps_BTE.data_ptr())
        return of_maps_BTE, None, None


def _inputs(maps_BTE: Tensor, turns_2Tk: Tensor, heads: Heads) -> tuple[int | float, ...]:
    """What both of the kernel's functions take first."""
    sizes = (*maps_BTE.shape[:2], heads.queries, heads.keys, 2 * turns_2Tk.shape[-1])
    return *sizes, heads.scale, *(part.data_ptr() for part in (maps_BTE, *turns_2Tk))


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        x = x.contiguous()
        rows, width, y = x.numel() // x.shape[-1], x.shape[-1], torch.empty_like(x)
        inverse = x.new_empty(rows)
        tensors = (part.data_ptr() for part in (x, weight_D, inverse, y))
        LLAMA.library().rms_norm(rows, width, eps, *tensors)
        ctx.save_for_backward(x, weight_D, inverse)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight_D, inverse = ctx.saved_tensors
        grad, of_x, of_weight_D = grad.contiguous(), torch.empty_like(x), torch.zeros_like(weight_D)
        tensors = (part.data_ptr() for part in (grad, x, weight_D, inverse, of_x, of_weight_D))
        LLAMA.library().rms_norm_back(len(inverse), x.shape[-1], *tensors)
        return of_x, of_weight_D, None
