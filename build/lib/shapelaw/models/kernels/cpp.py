"""Kernels in C++, compiled at first use for the CPU at hand and kept for later processes.

`SHAPELAW_KERNELS=0` leaves all work to PyTorch; in a workflow `execution.kernels: false` does.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from shapelaw.errors import say

POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int64
Functions = Mapping[str, tuple[Any, Sequence[Any]]]


SWITCH = "SHAPELAW_KERNELS"


def compiler() -> str | None:
    """The path of the C++ compiler; None without one."""
    return shutil.which("g++") or shutil.which("clang++")


@cache
def _here(by: str) -> str:
    """The version of a compiler and the CPU, for which a library is kept."""
    version = subprocess.run([by, "--version"], check=True, capture_output=True, text=True).stdout
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        return version + "".join(
            line for line in lines if line.startswith(("model name", "flags", "Features"))
        )
    return version + platform.processor()


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
        if os.environ.get(SWITCH) == "0" or compiler() is None:
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
        """The library with these macros: the one that is kept, else compiled and kept where that is possible.

        Raises:
            subprocess.CalledProcessError: the compiler refuses.
            OSError: the library can't be loaded, usually from a folder for temporary files that forbids execution.
        """
        # clang 14 and older have no -march=native for ARM
        cpu = "-mcpu" if platform.machine() in ("aarch64", "arm64") else "-march"
        options = ["-std=c++17", "-O3", f"{cpu}={self.target}", "-shared", "-fPIC"]
        options += [f"-D{name}={value}" for name, value in defined]
        kept = self._kept(options)
        library = _loaded(kept) or self._built(options, kept)
        for name, (result, arguments) in self.functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, list(arguments)
        return library

    def _built(self, options: Sequence[str], kept: Path) -> ctypes.CDLL:
        """The library, compiled and kept at a path where that can be written."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / kept.name
            line = [str(compiler()), *options, str(self.source), "-o", str(path)]
            # Python's choice of a temporary folder has room, where a compiler's own may be full
            environment = {**os.environ, "TMPDIR": folder}
            subprocess.run(line, env=environment, check=True, capture_output=True, text=True)
            library = ctypes.CDLL(str(path))  # stays loaded after its file is deleted
            with suppress(OSError):  # a home that is full, or can't be written
                kept.parent.mkdir(parents=True, exist_ok=True)
                copy = kept.with_suffix(f".{os.getpid()}")
                shutil.copyfile(path, copy)
                copy.replace(kept)
        return library

    def _kept(self, options: Sequence[str]) -> Path:
        """Where the library is kept: a name for its sources, its options, the compiler and the CPU."""
        sources = [self.source, *sorted(self.source.parent.glob("*.h"))]
        known = [_here(str(compiler())), *options, *(one.read_text(encoding="utf-8") for one in sources)]
        name = hashlib.sha256("\0".join(known).encode()).hexdigest()[:16]
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return home / "shapelaw" / f"{self.source.stem}-{name}.so"

    def _say(self, why: str) -> None:
        say(f"{self.loss}: {self.source.name} is not used ({why})")


def _loaded(path: Path) -> ctypes.CDLL | None:
    """The library of a path; None where there is none, or none that this system can load."""
    if path.exists():
        with suppress(OSError):
            return ctypes.CDLL(str(path))
    return None


def _reason(error: subprocess.CalledProcessError | OSError) -> str:
    """Why a kernel can't be compiled or loaded, on one line."""
    if isinstance(error, OSError):
        return str(error)
    return next((line for line in error.stderr.splitlines() if "error" in line), str(error)).strip()
