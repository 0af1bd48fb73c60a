"""Kernels in C++, compiled at first use for the CPU at hand."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from shapelaw.errors import say

POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int64
Functions = Mapping[str, tuple[Any, Sequence[Any]]]


def compiler() -> str | None:
    """The path of the C++ compiler; None without one."""
    return shutil.which("g++") or shutil.which("clang++")


class Kernel:
    """A source in C++, and what is said once where it can't be used.

    Args:
        source: one file.
        loss: what its users miss without it, such as "decoders take longer here".
        functions: by name, the type of the result and those of the arguments.

    Attributes:
        target: the CPU that it is compiled for, by the compiler's name for it.
    """

    target = "native"

    def __init__(self, source: Path, loss: str, functions: Functions) -> None:
        self.source, self.loss, self.functions = source, loss, functions
        self.library = cache(self._compiled)
        self.leave = cache(self._say)

    def is_possible(
        self, is_right: Callable[[], bool], wrong: str, defined: tuple[tuple[str, object], ...] = ()
    ) -> bool:
        """True if it compiles here, in about a second, and is right; where there is a compiler, says why not.

        Args:
            is_right: compares it with PyTorch.
            wrong: the sentence's part for the case that it is not, "its norms are not PyTorch's on this CPU".
            defined: macros and their values.
        """
        if compiler() is None:
            return False
        try:
            self.library(*defined)
        except (subprocess.CalledProcessError, OSError) as error:
            why: str | None = _reason(error)
        else:
            why = None if is_right() else wrong
        if why is not None:
            self.leave(why)
        return why is None

    def _compiled(self, *defined: tuple[str, object]) -> ctypes.CDLL:
        """The library with these macros.

        Raises:
            subprocess.CalledProcessError: the compiler refuses.
            OSError: the library can't be loaded, usually from a folder for temporary files that forbids execution.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{self.source.stem}.so"
            # clang 14 and older have no -march=native for ARM
            cpu = "-mcpu" if platform.machine() in ("aarch64", "arm64") else "-march"
            options = ["-std=c++17", "-O3", f"{cpu}={self.target}", "-shared", "-fPIC"]
            options += [f"-D{name}={value}" for name, value in defined]
            line = [str(compiler()), *options, str(self.source), "-o", str(path)]
            # Python's choice of a temporary folder has room, where a compiler's own may be full
            environment = {**os.environ, "TMPDIR": folder}
            subprocess.run(line, env=environment, check=True, capture_output=True, text=True)
            library = ctypes.CDLL(str(path))  # stays loaded after its file is deleted
        for name, (result, arguments) in self.functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, list(arguments)
        return library

    def _say(self, why: str) -> None:
        say(f"{self.loss}: {self.source.name} is not used ({why})")


def _reason(error: subprocess.CalledProcessError | OSError) -> str:
    """Why a kernel can't be compiled or loaded, on one line."""
    if isinstance(error, OSError):
        return str(error)
    return next((line for line in error.stderr.splitlines() if "error" in line), str(error)).strip()
