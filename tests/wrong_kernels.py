"""Kernels that are compiled from a source with a fault."""

import shutil
from pathlib import Path

import pytest

from shapelaw.models.kernels.cpp import Kernel


def made_wrong(kernel: Kernel, right: str, wrong: str, folder: Path, changed: pytest.MonkeyPatch) -> None:
    """Let a kernel be compiled from a source with a fault."""
    source = kernel.source.read_text()
    assert right in source
    (folder / kernel.source.name).write_text(source.replace(right, wrong))
    shutil.copy(kernel.source.with_name("small_products.h"), folder)
    changed.setattr(kernel, "source", folder / kernel.source.name)
