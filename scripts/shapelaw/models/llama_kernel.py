"""Llama's attention with rotary positions, and RMSNorm, on one thread of a CPU, in C++.

PyTorch computes the whole square of scores, and copies queries, keys, values and their gradients on the way; the kernel
computes what tokens can see, and takes and leaves all of them side by side, as the linear map has them. A norm takes it
one pass over the activations and its gradient another, PyTorch three and six.

The numbers are PyTorch's up to rounding, and the same whenever the kernel is used. Attention of each size is compared
with PyTorch's before it is used. Dimensions: B sequences, T tokens, H heads, G heads of keys, K of a head, E all maps.
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

from shapelaw.errors import say
from shapelaw.models.attention import Rotary, attend_by_products
from shapelaw.models.cpp import compiled, compiler, refusal
from shapelaw.models.decoder_kernel import is_plain

_SOURCE = Path(__file__).with_suffix(".cpp")
_TOLERANCE = 1e-4  # of the largest number; float32 leaves 1e-6


class Heads(NamedTuple):
    """The heads of queries, of keys and of values, in a row of maps."""

    queries: int
    keys: int  # and of values
    scale: float  # of the scores


@cache
def is_possible() -> bool:
    """True if the kernel compiles here, in about a second, and is right; warns why not if there is a compiler."""
    if compiler() is None:
        return False
    why = refusal(_library)
    if why is None and not _is_norm_right():
        why = "its norms are not PyTorch's on this CPU"
    if why is not None:
        _leave(why)
    return why is None


def takes(maps_BTE: Tensor, turns_2Tk: Tensor, heads: Heads) -> bool:
    """True if `attend` is for such maps; needs a kernel that `is_possible`."""
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
    """`weight * x / sqrt(mean(x^2) + eps)` over the last dimension; needs a kernel that `is_possible`."""
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
        _leave("its attention is not PyTorch's on this CPU")
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
    found = []
    for way, dtype in ((by_kernel, torch.float32), (by_pytorch, torch.float64)):
        with torch.enable_grad():
            given = [part.to(dtype, copy=True).requires_grad_() for part in inputs]
            y = way(*given)
        found.append([y, *torch.autograd.grad(y, given, grad.to(dtype))])
    return all((a - b).abs().max() <= _TOLERANCE * b.abs().max() for a, b in zip(*found, strict=True))


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps_BTE: Tensor, turns_2Tk: Tensor, heads: Heads) -> Tensor:
        library, maps_BTE, turns_2Tk = _library(), maps_BTE.contiguous(), turns_2Tk.contiguous()
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
        library, grad_BTE, of_maps_BTE = _library(), grad_BTE.contiguous(), torch.empty_like(maps_BTE)
        room = maps_BTE.new_empty(library.room(maps_BTE.shape[1], 2 * turns_2Tk.shape[-1]))
        places = weights.data_ptr(), weights.shape[1], room.data_ptr()
        given = _inputs(maps_BTE, turns_2Tk, ctx.heads)
        library.attend_back(*given, *places, grad_BTE.data_ptr(), of_maps_BTE.data_ptr())
        return of_maps_BTE, None, None


def _inputs(maps_BTE: Tensor, turns_2Tk: Tensor, heads: Heads) -> tuple[int | float, ...]:
    """What both of the kernel's functions take first."""
    cosines, sines = (part.data_ptr() for part in turns_2Tk.unbind(0))
    dim = 2 * turns_2Tk.shape[-1]
    return (
        *maps_BTE.shape[:2],
        heads.queries,
        heads.keys,
        dim,
        heads.scale,
        maps_BTE.data_ptr(),
        cosines,
        sines,
    )


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        x = x.contiguous()
        rows, width, y = x.numel() // x.shape[-1], x.shape[-1], torch.empty_like(x)
        inverse = x.new_empty(rows)
        tensors = (part.data_ptr() for part in (x, weight_D, inverse, y))
        _library().rms_norm(rows, width, eps, *tensors)
        ctx.save_for_backward(x, weight_D, inverse)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight_D, inverse = ctx.saved_tensors
        grad, of_x, of_weight_D = grad.contiguous(), torch.empty_like(x), torch.zeros_like(weight_D)
        tensors = (part.data_ptr() for part in (grad, x, weight_D, inverse, of_x, of_weight_D))
        _library().rms_norm_back(len(inverse), x.shape[-1], *tensors)
        return of_x, of_weight_D, None


@cache
def _leave(why: str) -> None:
    say(f"Llama's blocks take longer here: {_SOURCE.name} is not used ({why})")


@cache
def _library(target: str = "native") -> ctypes.CDLL:
    """The kernel compiled for one CPU, given by the compiler's name for it.

    Raises:
        subprocess.CalledProcessError: the compiler refuses.
        OSError: the compiled library can't be loaded.
    """
    library = compiled(_SOURCE, str(compiler()), target)
    pointer, number, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    attention: list[Any] = [*[number] * 5, real, *[pointer] * 4, number, pointer]
    library.attend.argtypes = [*attention, pointer]
    library.attend_back.argtypes = [*attention, *[pointer] * 2]
    library.rms_norm.argtypes = [*[number] * 2, real, *[pointer] * 4]
    library.rms_norm_back.argtypes = [*[number] * 2, *[pointer] * 6]
    library.attend.restype = library.attend_back.restype = None
    library.rms_norm.restype = library.rms_norm_back.restype = None
    library.weights_room.argtypes, library.room.argtypes = [number], [number] * 2
    library.weights_room.restype = library.room.restype = number
    return library
