"""Llama's kernel: right wherever it can be compiled, used where it is right, and kept for the next process."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from shapelaw.models import functions
from shapelaw.models.decoder import Decoder, RMSNorm, initialise
from shapelaw.models.functions import Rotary, attend_by_products
from shapelaw.models.kernels import cpp
from shapelaw.models.kernels import llama as kernels
from shapelaw.models.kernels.cpp import Kernel, compiler
from shapelaw.models.kernels.llama import Heads, attend, rms_norm
from shapelaw.models.memorizer import KERNEL
from shapelaw.specs.making import make_shape

pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler"),
    pytest.mark.usefixtures("one_thread"),
]
CHECKS = (kernels.has_llama, kernels._is_attention_right, kernels._is_norm_right)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """Nothing is compiled, kept or known yet; and what a test changes of a kernel is forgotten after it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels.LLAMA, "library", cache(kernels.LLAMA._compiled))
    monkeypatch.setattr(kernels.LLAMA, "leave", cache(kernels.LLAMA._say))
    for function in CHECKS:
        function.cache_clear()
    yield monkeypatch
    for function in CHECKS:
        function.cache_clear()


def in_float64(
    ours: Callable[..., Tensor], theirs: Callable[..., Tensor], inputs: list[Tensor], grad: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Values and gradients of float32 inputs, and those of the same inputs in float64."""
    found = []
    for way, dtype in ((ours, torch.float32), (theirs, torch.float64)):
        leaves = [part.to(dtype, copy=True).requires_grad_() for part in inputs]
        y = way(*leaves)
        found.append([y, *torch.autograd.grad(y, leaves, grad.to(dtype))])
    yield from zip(*found, strict=True)


def check(found: Tensor, expected: Tensor) -> None:
    largest = expected.abs().max().item()
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5 * max(largest, 1.0))


@settings(max_examples=25)
@given(
    sequences=st.integers(1, 3),
    tokens=st.integers(1, 70) | st.just(128),
    groups=st.integers(1, 3),
    heads_each=st.integers(1, 3),
    half_dim=st.integers(1, 35),
    scale=st.sampled_from([0.1, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_attention_and_its_gradient_are_pytorchs_up_to_rounding(
    sequences: int, tokens: int, groups: int, heads_each: int, half_dim: int, scale: float, seed: int
) -> None:
    draw, dim, queries = torch.Generator().manual_seed(seed), 2 * half_dim, groups * heads_each
    rotary = Rotary(tokens, dim, queries + groups, groups)
    maps = torch.randn(sequences, tokens, (queries + 2 * groups) * dim, generator=draw)
    grad = torch.randn(sequences, tokens, queries * dim, generator=draw)

    def by_kernel(given: Tensor) -> Tensor:
        return attend(given, rotary.turns_of_head(tokens), Heads(queries, groups, scale))

    def by_pytorch(given: Tensor) -> Tensor:
        return attend_by_products(rotary(given), queries, groups, scale, 0.0)

    for found, expected in in_float64(by_kernel, by_pytorch, [maps], grad):
        check(found, expected)


def test_a_token_s_attention_has_the_same_bits_whatever_follows_it_and_stands_beside_it() -> None:
    maps, turns = torch.randn(3, 40, 5 * 12), torch.rand(2, 40, 6)
    heads = Heads(3, 1, 0.3)
    whole = attend(maps, turns, heads)
    assert torch.equal(attend(maps[1:2], turns, heads), whole[1:2])
    for tokens in (1, 9, 33):
        assert torch.equal(attend(maps[:, :tokens], turns[:, :tokens], heads), whole[:, :tokens])


@settings(max_examples=25)
@given(
    shape=st.lists(st.integers(1, 9), max_size=2),
    width=st.integers(2, 70),  # of one number the gradient is rounding alone
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    turned=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_a_norm_and_its_gradients_are_pytorchs_up_to_rounding(
    shape: list[int], width: int, size: float, turned: bool, seed: int
) -> None:
    draw = torch.Generator().manual_seed(seed)
    x, grad = (torch.randn(*shape, width, generator=draw) for _ in range(2))
    if turned:  # a gradient that is not contiguous
        grad = grad.transpose(0, -1).contiguous().transpose(0, -1)
    weight = torch.randn(width, generator=draw)

    def by_pytorch(x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, (width,), weight, 1e-5)

    for found, expected in in_float64(
        lambda *given: rms_norm(*given, 1e-5), by_pytorch, [size * x, weight], grad
    ):
        check(found, expected)


def test_numbers_that_are_none_stay_so() -> None:
    maps = torch.randn(1, 20, 3 * 4)
    maps[0, 5, 0] = torch.nan
    y = attend(maps, torch.rand(2, 20, 2), Heads(1, 1, 0.5))
    assert y[0, :5].isfinite().all()
    assert y[0, 5].isnan().all()
    assert rms_norm(torch.tensor([[1.0, torch.nan]]), torch.ones(2), 1e-5).isnan().all()


def llama(dropout: float = 0.0) -> Decoder:
    model = Decoder(make_shape(2, 24, 4, 53, 40, block="llama", kv_heads=2), dropout)
    initialise(model, 0)
    return model


def names_of(loss: Tensor) -> set[str]:
    """The names of all that a loss was computed by."""
    left, names = [loss.grad_fn], set()
    while left:
        node = left.pop()
        if node is not None and node.name() not in names:
            names.add(node.name())
        left += [] if node is None else [after for after, _ in node.next_functions]
    return names


def test_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = torch.randint(0, 53, (2, 9))

    def used_by(model: Decoder) -> set[str]:
        model.use_kernel()
        return {
            name for name in ("_AttentionBackward", "_RMSNormBackward") if name in names_of(model(ids, ids))
        }

    assert used_by(llama()) == {"_AttentionBackward", "_RMSNormBackward"}
    assert used_by(llama(dropout=0.1)) == {"_RMSNormBackward"}
    forced = llama()
    for block in forced.blocks:
        block.attention.by_products = True
    assert "_AttentionBackward" not in used_by(forced)
    monkeypatch.setattr(functions, "PRODUCTS_UP_TO", 8)
    assert "_AttentionBackward" not in used_by(llama())
    assert "_AttentionBackward" not in used_by(llama().double())
    for block in ("gpt2", "printed"):
        other = Decoder(make_shape(1, 8, 2, 53, 9, block=block))
        assert used_by(other) == set()
        assert not other.by_llama_kernel


def test_instructions_of_older_cpus_are_right(older_cpu: str, changed: pytest.MonkeyPatch) -> None:
    changed.setattr(kernels.LLAMA, "target", older_cpu)
    assert kernels.has_llama()
    for tokens, dim in ((37, 20), (64, 16), (5, 2)):
        assert kernels._is_attention_right(tokens, dim, Heads(4, 2, 0.2))


@pytest.mark.usefixtures("changed")
@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("turns.turn(of_q, scale, -1)", "turns.turn(of_q, scale, 1)", "attention is"),
        ("square += x[i] * x[i]", "square += x[i]", "norms are"),
    ],
)
def test_a_wrong_kernel_of_llamas_is_not_used(
    right: str,
    wrong: str,
    why: str,
    make_wrong: Callable[[Kernel, str, str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_wrong(kernels.LLAMA, right, wrong)
    model, ids = llama(), torch.randint(0, 53, (2, 9))
    model.use_kernel()
    assert "_AttentionBackward" not in names_of(model(ids, ids))
    assert model.by_llama_kernel == (why == "attention is")
    said = capsys.readouterr().err
    assert said.count("Llama's blocks take longer here: llama_kernel.cpp is not used") == 1
    assert f"(its {why} not PyTorch's on this CPU)" in said


TOO_NEW = "kernel.cpp:47:12: error: too new"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, None),
        (f"echo '{TOO_NEW}' >&2; exit 1", f"is not used ({TOO_NEW})"),
        ('for made; do :; done; [ "$made" = --version ] || echo "no library" >"$made"', ".so: "),
    ],
    ids=["no compiler", "refused", "no library"],
)
def test_without_kernels_pytorch_does_the_work_and_why_is_said_once(
    script: str | None,
    why: str | None,
    tmp_path: Path,
    changed: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = tmp_path / "g++"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    changed.setattr(cpp, "compiler", lambda: str(made) if script else None)
    for _ in range(2):
        model = llama()
        model.use_kernel()
        assert not model.by_llama_kernel
        assert not any(part.by_kernel for part in model.modules() if isinstance(part, RMSNorm))
    said = capsys.readouterr().err
    assert said.count("Llama's blocks take longer here: llama_kernel.cpp") == (why is not None)
    assert why is None or said.count(why) == 1


def test_a_library_is_compiled_once_and_anew_for_another_source_cpu_or_a_broken_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiled: list[Sequence[str]] = []
    run = subprocess.run

    def counted(line: Sequence[str], **options: Any) -> Any:
        compiled.extend([line] if "-shared" in line else [])
        return run(line, **options)

    def number(after: int, source: str = 'extern "C" long number() { return 1; }') -> int:
        """What a small kernel computes, after so many libraries were compiled."""
        (tmp_path / "number.cpp").write_text(source)
        found = int(Kernel(tmp_path / "number.cpp", "", {"number": (cpp.NUMBER, [])})._compiled().number())
        assert len(compiled) == after
        return found

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cpp.subprocess, "run", counted)
    assert number(1) == 1
    (kept,) = (tmp_path / "cache" / "shapelaw").iterdir()
    kept.write_bytes(b"broken")
    assert number(2) == number(2) == 1
    assert number(3, 'extern "C" long number() { return 2; }') == 2
    monkeypatch.setattr(cpp, "_here", lambda _: "another CPU")
    assert number(4) == 1
    assert len(list(kept.parent.iterdir())) == 3
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")  # can't be written
    assert number(5) == 1


def test_kernels_can_be_switched_off(changed: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    changed.setenv("SHAPELAW_KERNELS", "0")
    model = llama()
    model.use_kernel()
    assert not model.by_llama_kernel
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kernel", [kernels.LLAMA, KERNEL], ids=lambda one: one.source.name)
def test_a_source_has_no_warning(kernel: Kernel) -> None:
    options = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wno-psabi", "-fsyntax-only"]
    shape = ["-DREAL=float", "-DH=3", "-DN=5", "-DK=7", "-DD=24", "-DC=2"]
    line = [str(compiler()), *options, *(shape if kernel is KERNEL else ()), str(kernel.source)]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stderr == ""
