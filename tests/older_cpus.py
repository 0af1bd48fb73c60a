"""What a kernel is compiled for beside this machine's own CPU: instructions that older ones have."""

import platform

import pytest
import torch

IS_X86 = platform.machine() in ("x86_64", "AMD64")
HAS_AVX2 = IS_X86 and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
# 4, and 2, float64s in a register; "native" has 8 where this machine has AVX-512
TARGETS = [
    pytest.param("haswell", marks=pytest.mark.skipif(not HAS_AVX2, reason="this CPU has no AVX2")),
    pytest.param("x86-64", marks=pytest.mark.skipif(not IS_X86, reason="this CPU is no x86-64")),
]
