"""The gradients of packed memorizers with contexts of their own, on a CPU, in C++.

A batch's contexts are megabytes. PyTorch gathers them and multiplies them repeatedly, one by one, by small matrices;
memorizer_kernel.cpp, compiled for one shape, reads them once, in place, and computes everything else while they are in
the cache. Suffixes as in `shapelaw.models.memorizer`, with T for the rows of a table.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from shapelaw.models.cpp import NUMBER, POINTER, Kernel
from shapelaw.models.memorizer import Parameters, gradients, initial_parameters, parameter_shapes, positions
from shapelaw.specs.memorizers import Memorizer

_REALS = {torch.float32: "float", torch.float64: "double"}
_TILE = 8  # as in memorizer_kernel.cpp
KERNEL = Kernel(
    Path(__file__).with_suffix(".cpp"),
    "contexts of their own take longer here",
    {
        "memorizer_gradients": (
            None,
            [*[POINTER] * 2, ctypes.c_double, *[POINTER] * 6, *[NUMBER] * 2, *[POINTER] * 2],
        )
    },
)


class Picked(NamedTuple):
    """The contexts of a batch, as rows of a table."""

    table_Tnd: Tensor
    at_PB: Tensor


def is_possible(m: Memorizer, dtype: torch.dtype, device: torch.device) -> bool:
    """True if models of this shape can use the kernel here; warns why if it fails to compile or computes wrongly."""
    if m.attend_to_query or m.values != 1 or m.width % _TILE:
        return False
    if device.type != "cpu" or dtype not in _REALS:
        return False
    wrong = "its gradients are not PyTorch's on this CPU"
    return KERNEL.is_possible(lambda: _is_right(m, dtype), wrong, _macros(m, dtype))


def kernel_gradients(
    p: Mapping[str, Tensor],
    m: Memorizer,
    positions: Tensor,
    queries_PBd: Tensor,
    contexts: Picked,
    labels_PB: Tensor,
    there_PB: Tensor | None = None,
    absent_Pn: Tensor | None = None,
) -> tuple[Tensor, Parameters]:
    """`shapelaw.models.memorizer.gradients` where the kernel `is_possible`, on one thread.

    Raises:
        ValueError: labels are numbers and there are several outputs, or classes and there is one output.
    """
    if labels_PB.is_floating_point() != (m.outputs == 1):
        raise ValueError(
            "a memorizer with one output needs numbers as labels, one with more outputs needs classes"
        )
    models, examples, _ = queries_PBd.shape
    loss_P = queries_PBd.new_empty(models)
    given = {name: p[name].contiguous() for name in parameter_shapes(m)}
    found = {name: torch.empty_like(value) for name, value in given.items()}
    inputs = [positions, queries_PBd, *contexts, labels_PB, there_PB, absent_Pn]
    of_inputs = [None if x is None else x.contiguous() for x in inputs]
    place, *rest = (None if x is None else x.data_ptr() for x in of_inputs)
    library = KERNEL.library(*_macros(m, queries_PBd.dtype))
    library.memorizer_gradients(
        _addresses(given), place, m.scale, *rest, models, examples, loss_P.data_ptr(), _addresses(found)
    )
    return loss_P, found


@cache
def _is_right(m: Memorizer, dtype: torch.dtype) -> bool:
    """True if loss and gradients of a batch of two blocks equal autograd's; takes milliseconds, once per shape."""
    generator = torch.Generator().manual_seed(0)
    examples, at_PB = 33, torch.arange(33)[None]
    p = {name: value[None] for name, value in initial_parameters(m, 0, dtype).items()}
    queries_PBd = torch.rand(1, examples, m.width, generator=generator, dtype=dtype)
    table_Tnd = torch.rand(examples, m.context, m.width, generator=generator, dtype=dtype)
    labels_PB = at_PB.to(dtype) / examples if m.outputs == 1 else at_PB % m.outputs
    place = positions(m, dtype)
    loss_P, found = kernel_gradients(p, m, place, queries_PBd, Picked(table_Tnd, at_PB), labels_PB)
    expected_P, expected = gradients(p, m, place, queries_PBd, table_Tnd[at_PB], labels_PB)
    pairs = [(loss_P, expected_P), *((found[name], expected[name]) for name in expected)]
    return all(torch.allclose(a, b, rtol=0, atol=1e-6 + 1e-3 * b.abs().max().item()) for a, b in pairs)


def _macros(m: Memorizer, dtype: torch.dtype) -> tuple[tuple[str, object], ...]:
    """The shape that a library is compiled for."""
    sizes = {"H": m.heads, "N": m.context, "K": m.head_dim, "D": m.width, "C": m.outputs}
    return (("REAL", _REALS[dtype]), *sizes.items())


def _addresses(p: Parameters) -> ctypes.Array[ctypes.c_void_p]:
    """The addresses of parameters, in the kernel's order, which is that of `parameter_shapes`."""
    return (ctypes.c_void_p * len(p))(*(value.data_ptr() for value in p.values()))
