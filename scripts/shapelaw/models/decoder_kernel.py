"""A decoder's linear maps, GELU and SwiGLU on one thread of a CPU, in C++, with PyTorch's numbers to the last bit.

On AMD's Zen, MKL multiplies at 90 of the 117 GFLOP/s that a core has at 3.66 GHz; decoder_kernel.cpp adds up the same
terms in the same order at about 100. PyTorch's GELU computes its tanh in the forward pass and again in the backward
pass; the kernel computes it once and keeps the slope. SwiGLU takes it five passes over the activations, the kernel two.

A product of each size is compared with PyTorch's before it is used. Where one bit differs, for instance because MKL has
another kernel for another CPU, PyTorch does the work. Dimensions: M rows, K inputs, N outputs.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from shapelaw.errors import say
from shapelaw.models.cpp import compiled, compiler, refusal

_SOURCE = Path(__file__).with_suffix(".cpp")
_LEAST = 2**22  # multiplications: below this, calling the kernel costs more than it saves
_LEAST_ACTIVATIONS = 2**14  # the same for the numbers of an activation


@cache
def is_possible() -> bool:
    """True if the kernel compiles here, in about a second; warns why if a compiler exists and fails."""
    if compiler() is None:
        return False
    why = refusal(_library)
    if why is not None:
        _leave(why)
    return why is None


def linear(x: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None, gelu: bool = False) -> Tensor:
    """`F.linear`, [..., K] to [..., N], followed by GELU by tanh if asked; needs a kernel that `is_possible`."""
    rows, k, n = x.numel() // x.shape[-1], x.shape[-1], len(weight_NK)
    if is_plain(x, weight_NK) or rows * k * n < _LEAST or not _is_right(rows, k, n):
        y = F.linear(x, weight_NK, bias_N)
    elif gelu and _is_gelu_right(rows * n):
        activated: Tensor = _Linear.apply(x, weight_NK, bias_N, True)  # type: ignore[no-untyped-call]
        return activated
    else:
        y = _Linear.apply(x, weight_NK, bias_N, False)  # type: ignore[no-untyped-call]
    return F.gelu(y, approximate="tanh") if gelu else y


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """`F.silu(gate) * up` of two tensors of one shape; needs a kernel that `is_possible`."""
    plain = is_plain(gate, up) or not (gate.is_contiguous() and up.is_contiguous())
    if plain or gate.numel() < _LEAST_ACTIVATIONS or not _is_swiglu_right(gate.numel()):
        return F.silu(gate) * up
    y: Tensor = _SwiGLU.apply(gate, up)  # type: ignore[no-untyped-call]
    return y


def is_plain(x: Tensor, y: Tensor) -> bool:
    """True where PyTorch does the work: not in float32 on one thread of a CPU."""
    return (
        x.device.type != "cpu"
        or not x.dtype == y.dtype == torch.float32
        or torch.get_num_threads() > 1
        or torch.is_autocast_enabled("cpu")
    )


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        divisor, y = torch.empty_like(gate), torch.empty_like(gate)
        tensors = (part.data_ptr() for part in (gate, up, divisor, y))
        _library().swiglu(gate.numel(), *tensors, _sleef("exp"))
        ctx.save_for_backward(gate, up, divisor)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gate, up, divisor = ctx.saved_tensors
        grad = grad.contiguous()
        of_gate, of_up = torch.empty_like(gate), torch.empty_like(up)
        tensors = (part.data_ptr() for part in (grad, gate, up, divisor, of_gate, of_up))
        _library().swiglu_back(gate.numel(), *tensors)
        return of_gate, of_up


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_NK: Tensor, bias_N: Tensor | None, gelu: bool) -> Tensor:
        x_MK, weight_NK = x.reshape(-1, x.shape[-1]).contiguous(), weight_NK.contiguous()
        y_MN = _product(x_MK, weight_NK.t(), bias_N)
        slope_MN = None
        if gelu:
            slope_MN, y_MN = y_MN, _gelu(y_MN)
        ctx.save_for_backward(x_MK, weight_NK, slope_MN)
        return y_MN.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        x_MK, weight_NK, slope_MN = ctx.saved_tensors
        grad_MN = grad.reshape(-1, len(weight_NK)).contiguous()
        if slope_MN is not None:
            grad_MN = grad_MN * slope_MN
        of_x, of_weight, of_bias, _ = ctx.needs_input_grad
        return (
            _product(grad_MN, weight_NK).view(*grad.shape[:-1], -1) if of_x else None,
            _product(grad_MN.t(), x_MK) if of_weight else None,
            grad_MN.sum(0) if of_bias else None,
            None,
        )


def _product(a_MK: Tensor, b_KN: Tensor, bias_N: Tensor | None = None) -> Tensor:
    """The product of two matrices, contiguous or transposed, plus a bias."""
    library, (m, k), n = _library(), a_MK.shape, b_KN.shape[1]
    c_MN, room = a_MK.new_empty(m, n), a_MK.new_empty(library.room(n, k))
    bias = None if bias_N is None else bias_N.contiguous().data_ptr()
    a, b = (a_MK.data_ptr(), *a_MK.stride()), (b_KN.data_ptr(), *b_KN.stride())
    library.multiply(m, n, k, *a, *b, c_MN.data_ptr(), bias, room.data_ptr())
    return c_MN


def _gelu(x: Tensor) -> Tensor:
    """GELU of a contiguous x, which is overwritten with the slope."""
    y = torch.empty_like(x)
    _library().gelu(x.numel(), x.data_ptr(), y.data_ptr(), _sleef("tanh"))
    return y


@cache
def _is_right(rows: int, k: int, n: int) -> bool:
    """True if products of these sizes and their gradients equal PyTorch's bit by bit."""
    draw = torch.Generator().manual_seed(0)
    x_MK, weight_NK = torch.randn(rows, k, generator=draw), torch.randn(n, k, generator=draw)
    bias_N, grad_MN = torch.randn(n, generator=draw), torch.randn(rows, n, generator=draw)
    pairs = [
        (_product(x_MK, weight_NK.t(), bias_N), F.linear(x_MK, weight_NK, bias_N)),
        (_product(x_MK, weight_NK.t()), F.linear(x_MK, weight_NK)),
        (_product(grad_MN, weight_NK), grad_MN @ weight_NK),
        (_product(grad_MN.t(), x_MK), grad_MN.t() @ x_MK),
    ]
    right = all(torch.equal(a, b) for a, b in pairs)
    if not right:
        _leave("its products are not PyTorch's on this CPU")
    return right


@cache
def _is_gelu_right(numbers: int) -> bool:
    """True if GELU and its gradient equal PyTorch's bit by bit for this many numbers, the last few included."""
    if _sleef("tanh") is None or numbers % int(_library().lanes()):
        return False
    draw = torch.Generator().manual_seed(0)
    x, grad = 3 * torch.randn(numbers, generator=draw), torch.randn(numbers, generator=draw)
    slope = x.clone()
    y = _gelu(slope)
    expected = torch.ops.aten.gelu_backward(grad, x, approximate="tanh")
    return torch.equal(y, F.gelu(x, approximate="tanh")) and torch.equal(grad * slope, expected)


@cache
def _is_swiglu_right(numbers: int) -> bool:
    """True if SwiGLU and its gradients equal PyTorch's bit by bit for this many numbers.

    PyTorch takes two vectors at once, and what is left one by one with another exp, which seldom differs.
    """
    if _sleef("exp") is None or numbers % (2 * int(_library().lanes())):
        return False
    draw = torch.Generator().manual_seed(0)
    gate, up, grad = (3 * torch.randn(numbers, generator=draw) for _ in range(3))
    found = []
    for by_kernel in (True, False):
        with torch.enable_grad():
            one, other = inputs = [part.clone().requires_grad_() for part in (gate, up)]
            y = _SwiGLU.apply(one, other) if by_kernel else F.silu(one) * other  # type: ignore[no-untyped-call]
        found.append([y, *torch.autograd.grad(y, inputs, grad)])
    return all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@cache
def _leave(why: str) -> None:
    say(f"decoders take longer here: {_SOURCE.name} is not used ({why})")


@cache
def _sleef(function_name: str) -> int | None:
    """The address of the vector tanh or exp that PyTorch's activations call: Sleef's, inside PyTorch's library."""
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    if not path.is_file():
        return None
    function = getattr(ctypes.CDLL(str(path)), f"Sleef_{function_name}f{_library().lanes()}_u10", None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


@cache
def _library(target: str = "native") -> ctypes.CDLL:
    """The kernel compiled for one CPU, given by the compiler's name for it.

    Raises:
        subprocess.CalledProcessError: the compiler refuses.
        OSError: the compiled library can't be loaded.
    """
    library = compiled(_SOURCE, str(compiler()), target)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    steps = [number] * 2
    library.multiply.argtypes = [*[number] * 3, pointer, *steps, pointer, *steps, *[pointer] * 3]
    library.gelu.argtypes = [number, *[pointer] * 3]
    library.swiglu.argtypes = [number, *[pointer] * 5]
    library.swiglu_back.argtypes = [number, *[pointer] * 6]
    library.swiglu.restype = library.swiglu_back.restype = None
    library.room.argtypes = [number] * 2
    library.multiply.restype = library.gelu.restype = None
    library.room.restype = library.lanes.restype = number
    return library
