"""Losses and gradients of packed memorizers with contexts of their own, on a CPU, in C++.

A batch's contexts are megabytes. memorizer_kernel.cpp, compiled for one shape, reads them once, where they lie in their
table, and computes all that follows from an example's tokens while they are in the cache. What is a matter of weights
alone, before and after, is PyTorch's (`shapelaw.models.memorizer_gradients`). Suffixes as in
`shapelaw.models.memorizer`, and T rows of a table, S = d + places, L looks of K numbers at an example's tokens.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from shapelaw.errors import say
from shapelaw.memorizers import Memorizer

_SOURCE = Path(__file__).with_suffix(".cpp")
_REALS = {torch.float32: "float", torch.float64: "double"}
_TILE = 8  # as in memorizer_kernel.cpp


class Picked(NamedTuple):
    """Contexts of a batch as rows of a table."""

    table_Tnd: Tensor
    at_PB: Tensor


class Folded(NamedTuple):
    """Models as the kernel takes them.

    Attributes:
        looks_PBLK: what looks at the tokens of an example: one for all heads, or one for each.
        folds_PHKS: makes of it the row that takes a token to its logit; a token is its d numbers and its place.
        values_PHS: takes a token to its value.
        read_out_PHc: from what the heads say to the outputs.
        absent_Pi: by place, 0 or, where a context has no token, minus infinity.
    """

    looks_PBLK: Tensor
    folds_PHKS: Tensor
    values_PHS: Tensor
    read_out_PHc: Tensor
    bias_Pc: Tensor
    absent_Pi: Tensor


class FoldedGradients(NamedTuple):
    """Each model's loss, and its gradients by what is in `Folded`; those by the looks are empty where L is 1."""

    loss_P: Tensor
    looks_PBLK: Tensor
    folds_PHKS: Tensor
    values_PHS: Tensor
    read_out_PHc: Tensor
    bias_Pc: Tensor


def compiler() -> str | None:
    """The C++ compiler, or None where there is none."""
    return shutil.which("g++") or shutil.which("clang++")


def places(m: Memorizer) -> int:
    """The places of tokens: a context's, filled up to whole registers."""
    return _rounded_up(m.context, 2 * _TILE if m.width % (2 * _TILE) == 0 else _TILE)


def look_size(m: Memorizer) -> int | None:
    """K where each head has its own look, or None where all have one: whichever takes fewer operations.

    W_Q and W_K are folded into one matrix from a query to its rows, d + 1 by S; or each head takes a query to its k
    numbers first, here filled up to whole registers, and these to rows.
    """
    k, rows = _rounded_up(m.head_dim, _TILE), m.width + places(m)
    return k if k * (m.width + 1 + rows) < (m.width + 1) * rows else None


def is_possible(m: Memorizer, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether models of this shape can have the kernel here; why a compiler refuses is said."""
    if device.type != "cpu" or dtype not in _REALS or m.width % _TILE or compiler() is None:
        return False
    try:
        look = look_size(m)
        looks = (m.width + 1, 1) if look is None else (look, m.heads)
        _library(m.heads, m.context, places(m), m.width, m.outputs, *looks, dtype)
    except subprocess.CalledProcessError as error:
        why = next((line for line in error.stderr.splitlines() if "error" in line), str(error)).strip()
    except OSError as error:  # a folder for temporary files from which nothing may be run, mostly
        why = str(error)
    else:
        return True
    say(f"contexts of their own take longer here: {_SOURCE.name} is not compiled ({why})")
    return False


def folded_gradients(
    folded: Folded, labels_PB: Tensor, share_PB: Tensor, table_Tnd: Tensor, at_PB: Tensor
) -> FoldedGradients:
    """Each model's loss, and its gradients by what is in `folded`.

    Args:
        labels_PB: classes, or numbers where there is one output.
        share_PB: of an example in its model's loss; 0 where there is none.
    """
    gradients = _op if torch.compiler.is_compiling() else _gradients
    return FoldedGradients(*gradients(*folded, labels_PB, share_PB, table_Tnd, at_PB))


def _gradients(
    looks_PBLK: Tensor,
    folds_PHKS: Tensor,
    values_PHS: Tensor,
    read_out_PHc: Tensor,
    bias_Pc: Tensor,
    absent_Pi: Tensor,
    labels_PB: Tensor,
    share_PB: Tensor,
    table_Tnd: Tensor,
    at_PB: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    inputs = (looks_PBLK, folds_PHKS, values_PHS, read_out_PHc, bias_Pc, absent_Pi)
    inputs += (labels_PB, share_PB, table_Tnd, at_PB)
    if labels_PB.is_floating_point() != (bias_Pc.shape[1] == 1):
        raise ValueError("labels are numbers where there is one output, and classes where there are more")
    outputs = _empty(*inputs)
    models, examples, looks, look = looks_PBLK.shape
    _, n, d = table_Tnd.shape
    library = _library(
        folds_PHKS.shape[1], n, absent_Pi.shape[1], d, bias_Pc.shape[1], look, looks, table_Tnd.dtype
    )
    given = [x.contiguous() for x in inputs]
    library.memorizer_gradients(*map(_address, given), models, examples, *map(_address, outputs))
    return outputs


def _empty(
    looks_PBLK: Tensor,
    folds_PHKS: Tensor,
    values_PHS: Tensor,
    read_out_PHc: Tensor,
    bias_Pc: Tensor,
    *_: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Room for the loss and the gradients."""
    models, _, looks, _ = looks_PBLK.shape
    d_looks = looks_PBLK.new_empty(looks_PBLK.shape if looks > 1 else 0)
    by = (folds_PHKS, values_PHS, read_out_PHc, bias_Pc)
    return (looks_PBLK.new_empty(models), d_looks, *(x.new_empty(x.shape) for x in by))


# the same as torch.compile sees it; called by itself it would import all of it
_op = torch.library.custom_op("shapelaw::memorizer_gradients", _gradients, mutates_args=())
_op.register_fake(_empty)


@cache
def _library(
    heads: int, n: int, places: int, d: int, outputs: int, look: int, looks: int, dtype: torch.dtype
) -> ctypes.CDLL:
    """The kernel for one shape, compiled in half a second; it runs on one thread.

    Raises:
        subprocess.CalledProcessError: the compiler refuses.
        OSError: what it made can't be loaded.
    """
    sizes: dict[str, object] = {"REAL": _REALS[dtype], "H": heads, "N": n, "PLACES": places, "D": d}
    sizes |= {"C": outputs, "K": look, "LOOKS": looks}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memorizer_kernel.so"
        subprocess.run(
            [
                *(str(compiler()), "-std=c++17", "-O3", "-march=native", "-shared", "-fPIC"),
                *(f"-D{name}={value}" for name, value in sizes.items()),
                *(str(_SOURCE), "-o", str(path)),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        library = ctypes.CDLL(str(path))  # stays loaded when its file is gone
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.memorizer_gradients.argtypes = [*[pointer] * 10, number, number, *[pointer] * 6]
    library.memorizer_gradients.restype = None
    return library


def _rounded_up(size: int, to: int) -> int:
    return -(-size // to) * to


def _address(x: Tensor) -> int:
    return x.data_ptr()
