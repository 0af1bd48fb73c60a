"""Products of packed memorizers with tokens that lie in a table, for contexts of their own on a CPU.

A batch's contexts are megabytes that are used twice. PyTorch gathers them, and multiplies them by small matrices one by
one; token_products.cpp, compiled for one shape, reads them where they lie: in about half the time. Suffixes as in
`shapelaw.models.memorizer`, and T rows of a table.
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
_TILE = 8  # as in token_products.cpp


class Picked(NamedTuple):
    """Contexts of a batch as rows of a table."""

    table_Tnd: Tensor
    at_PB: Tensor


def compiler() -> str | None:
    """The C++ compiler, or None where there is none."""
    return shutil.which("g++") or shutil.which("clang++")


def are_possible(m: Memorizer, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether models of this shape can have these products here; why a compiler refuses is said."""
    if device.type != "cpu" or dtype not in _REALS or m.width % _TILE or compiler() is None:
        return False
    try:
        _library(m.heads, m.context, m.width, dtype)
    except subprocess.CalledProcessError as error:
        why = next((line for line in error.stderr.splitlines() if "error" in line), str(error)).strip()
    except OSError as error:  # a folder for temporary files from which nothing may be run, mostly
        why = str(error)
    else:
        return True
    say(f"contexts of their own take longer here: {_SOURCE.name} is not compiled ({why})")
    return False


def through_tokens(seen_PBHS: Tensor, values_PHS: Tensor, table_Tnd: Tensor, at_PB: Tensor) -> Tensor:
    """[P, B, 2, H, n]: the products of each token with the rows seen, and with the values of its model.

    A token is its d numbers and the indicator of its place: S = d + n.
    """
    through = _through_op if torch.compiler.is_compiling() else _through
    return through(seen_PBHS, values_PHS, table_Tnd, at_PB)


def back_through_tokens(d_out_PB2Hn: Tensor, table_Tnd: Tensor, at_PB: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of `through_tokens` by the rows seen [P, B, H, S] and by the values [P, H, S]."""
    back = _back_op if torch.compiler.is_compiling() else _back
    return back(d_out_PB2Hn, table_Tnd, at_PB)


def _through(seen_PBHS: Tensor, values_PHS: Tensor, table_Tnd: Tensor, at_PB: Tensor) -> Tensor:
    out = _empty_products(seen_PBHS, values_PHS, table_Tnd, at_PB)
    models, examples, _, heads, n = out.shape
    given = [x.contiguous() for x in (seen_PBHS, values_PHS, table_Tnd, at_PB)]
    library = _library(heads, n, table_Tnd.shape[2], table_Tnd.dtype)
    library.through_tokens(*map(_address, given), models, examples, _address(out))
    return out


def _back(d_out_PB2Hn: Tensor, table_Tnd: Tensor, at_PB: Tensor) -> tuple[Tensor, Tensor]:
    models, examples, _, heads, n = d_out_PB2Hn.shape
    d_seen, d_values = _empty_gradients(d_out_PB2Hn, table_Tnd, at_PB)
    given = [x.contiguous() for x in (d_out_PB2Hn, table_Tnd, at_PB)]
    library = _library(heads, n, table_Tnd.shape[2], table_Tnd.dtype)
    library.back_through_tokens(*map(_address, given), models, examples, _address(d_seen), _address(d_values))
    return d_seen, d_values


def _empty_products(seen_PBHS: Tensor, values_PHS: Tensor, table_Tnd: Tensor, at_PB: Tensor) -> Tensor:
    models, examples, heads, _ = seen_PBHS.shape
    return seen_PBHS.new_empty(models, examples, 2, heads, table_Tnd.shape[1])


def _empty_gradients(d_out_PB2Hn: Tensor, table_Tnd: Tensor, at_PB: Tensor) -> tuple[Tensor, Tensor]:
    models, examples, _, heads, n = d_out_PB2Hn.shape
    size = n + table_Tnd.shape[2]
    return d_out_PB2Hn.new_empty(models, examples, heads, size), d_out_PB2Hn.new_empty(models, heads, size)


# the same as torch.compile sees them; called by themselves they would import all of it
_through_op = torch.library.custom_op("shapelaw::through_tokens", _through, mutates_args=())
_back_op = torch.library.custom_op("shapelaw::back_through_tokens", _back, mutates_args=())
_through_op.register_fake(_empty_products)
_back_op.register_fake(_empty_gradients)


@cache
def _library(heads: int, n: int, d: int, dtype: torch.dtype) -> ctypes.CDLL:
    """The products for one shape, compiled in a fraction of a second; they run on one thread.

    Raises:
        subprocess.CalledProcessError: the compiler refuses.
        OSError: what it made can't be loaded.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "token_products.so"
        sizes = {"REAL": _REALS[dtype], "H": heads, "N": n, "D": d}
        subprocess.run(
            [
                *(str(compiler()), "-O3", "-march=native", "-shared", "-fPIC"),
                *(f"-D{name}={value}" for name, value in sizes.items()),
                *(str(_SOURCE), "-o", str(path)),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        library = ctypes.CDLL(str(path))  # stays loaded when its file is gone
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.through_tokens.argtypes = [*[pointer] * 4, number, number, pointer]
    library.back_through_tokens.argtypes = [*[pointer] * 3, number, number, pointer, pointer]
    for function in (library.through_tokens, library.back_through_tokens):
        function.restype = None
    return library


def _address(x: Tensor) -> int:
    return x.data_ptr()
