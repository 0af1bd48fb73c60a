"""Shared by the tests of kernels: what they are compiled for, and from a source with a fault."""

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from shapelaw.models.kernels.cpp import Kernel

IS_X86 = platform.machine() in ("x86_64", "AMD64")
HAS_AVX2 = IS_X86 and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


@pytest.fixture(
    params=[
        pytest.param("haswell", marks=pytest.mark.skipif(not HAS_AVX2, reason="this CPU has no AVX2")),
        pytest.param("x86-64", marks=pytest.mark.skipif(not IS_X86, reason="this CPU is no x86-64")),
    ]
)
def older_cpu(request: pytest.FixtureRequest) -> str:
    """Instructions that older CPUs have: 4, and 2, float64s in a register; "native" has 8 with AVX-512."""
    return str(request.param)


@pytest.fixture
def make_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Kernel, str, str], None]:
    """Let a kernel be compiled from a source in which these words stand in place of the right ones."""

    def change(kernel: Kernel, right: str, wrong: str) -> None:
        source = kernel.source.read_text()
        assert right in source
        (tmp_path / kernel.source.name).write_text(source.replace(right, wrong))
        shutil.copy(kernel.source.with_name("small_products.h"), tmp_path)
        monkeypatch.setattr(kernel, "source", tmp_path / kernel.source.name)

    return change
