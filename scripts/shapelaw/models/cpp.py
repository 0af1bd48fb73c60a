"""Kernels in C++, compiled at first use for the CPU at hand."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path


def compiler() -> str | None:
    """The path of the C++ compiler; None without one."""
    return shutil.which("g++") or shutil.which("clang++")


def compiled(
    source: Path, by: str, target: str = "native", defined: Mapping[str, object] | None = None
) -> ctypes.CDLL:
    """A source compiled and loaded; takes about a second.

    Args:
        source: one file.
        by: the compiler.
        target: a CPU, by the compiler's name for it.
        defined: macros and their values.

    Raises:
        subprocess.CalledProcessError: the compiler refuses.
        OSError: the compiled library can't be loaded, usually from a folder for temporary files that forbids execution.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{source.stem}.so"
        # clang 14 and older have no -march=native for ARM
        cpu = "-mcpu" if platform.machine() in ("aarch64", "arm64") else "-march"
        options = ["-std=c++17", "-O3", f"{cpu}={target}", "-shared", "-fPIC"]
        options += [f"-D{name}={value}" for name, value in (defined or {}).items()]
        command = [by, *options, str(source), "-o", str(path)]
        environment = {
            **os.environ,
            "TMPDIR": folder,
        }  # Python's choice has room, where a compiler's own may be full
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return ctypes.CDLL(str(path))  # stays loaded after its file is deleted


def refusal(library: Callable[[], object]) -> str | None:
    """Why a kernel can't be compiled and loaded, on one line; None if it can.

    Args:
        library: loads it with `compiled`.
    """
    try:
        library()
    except (subprocess.CalledProcessError, OSError) as error:
        return _reason(error)
    return None


def _reason(error: subprocess.CalledProcessError | OSError) -> str:
    """Why `compiled` failed, on one line."""
    if isinstance(error, OSError):
        return str(error)
    return next((line for line in error.stderr.splitlines() if "error" in line), str(error)).strip()
