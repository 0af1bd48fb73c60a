"""PyTorch as it is installed, without an import: importing it takes seconds, and the Snakefile is read by every job."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from shapelaw.scheduling.plan import Ask

_VERSION = re.compile(r"^__version__ = '([^']+)'", re.M)
_GPU = re.compile(r"^(?:cuda|hip|xpu)\b[^=\n]*= '[^']+'", re.M)


def cpu_build(site: Path | None = None) -> str | None:
    """The version of PyTorch where it is a build for CPUs alone; None for any other, and where there is none.

    Args:
        site: the folder with `torch/`; this Python's own by default.
    """
    spec = None if site is not None else find_spec("torch")
    folder = (
        site / "torch" if site is not None else Path(spec.origin).parent if spec and spec.origin else None
    )
    try:
        text = (folder / "version.py").read_text(encoding="utf-8") if folder else ""
    except OSError:
        return None
    version = _VERSION.search(text)
    return version[1] if version and not _GPU.search(text) else None


def refused_build(asks: Iterable[Ask], environment: Mapping[str, str]) -> list[str]:
    """A sentence where jobs ask for GPUs and this environment's PyTorch can't use any."""
    if not any(ask.gpus for ask in asks) or "SHAPELAW_DEVICE" in environment:
        return []
    version = cpu_build()
    if version is None:
        return []
    return [
        f"execution.gpus asks for GPUs, but PyTorch {version} in {sys.prefix} is a build for CPUs; install the "
        "one for GPUs (make env TORCH=cuda), or set execution.gpus to 0."
    ]


def main() -> int:
    """Tell whether PyTorch here can use a GPU, after an installation that was to be one for GPUs."""
    version = cpu_build()
    if version is None:
        print("PyTorch is a build for GPUs; the first job that gets one checks that it finds it.")
        return 0
    print(
        f"pip found PyTorch {version}, a build for CPUs; name an index that has the one for GPUs: "
        "make env TORCH=cuda TORCH_INDEX=https://...",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
