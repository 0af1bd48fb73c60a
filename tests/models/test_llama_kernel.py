"""Llama's kernel: attention and norms with their gradients, against PyTorch's in float64, and where it is used."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from older_cpus import TARGETS
from torch import Tensor, nn

from shapelaw.models import attention, llama_kernel
from shapelaw.models.attention import Rotary, attend_by_products
from shapelaw.models.cpp import compiler
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.models.llama import RMSNorm
from shapelaw.models.llama_kernel import Heads, attend, rms_norm
from shapelaw.specs.runs import Parametrization
from shapelaw.specs.shapes import make_shape

pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler"),
    pytest.mark.usefixtures("one_thread"),
]
CACHES = [llama_kernel.is_possible, llama_kernel._is_attention_right, llama_kernel._is_norm_right]
CACHES += [llama_kernel._leave]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """What a test changes of the kernel is forgotten after it."""
    for function in CACHES:
        function.cache_clear()
    yield monkeypatch
    for function in CACHES:
        function.cache_clear()


def both_ways(
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


@settings(max_examples=40)
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

    for found, expected in both_ways(by_kernel, by_pytorch, [maps], grad):
        check(found, expected)


def test_a_token_s_attention_has_the_same_bits_whatever_follows_it_and_stands_beside_it() -> None:
    maps, turns = torch.randn(3, 40, 5 * 12), torch.rand(2, 40, 6)
    heads = Heads(3, 1, 0.3)
    whole = attend(maps, turns, heads)
    assert torch.equal(attend(maps[1:2], turns, heads), whole[1:2])
    for tokens in (1, 9, 33):
        assert torch.equal(attend(maps[:, :tokens], turns[:, :tokens], heads), whole[:, :tokens])


@settings(max_examples=40)
@given(
    shape=st.lists(st.integers(1, 9), max_size=2),
    width=st.integers(1, 70),
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

    for found, expected in both_ways(
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


def llama(dropout: float = 0.0, parametrization: Parametrization = "standard") -> Decoder:
    model = Decoder(make_shape(2, 24, 4, 53, 40, block="llama", kv_heads=2), dropout, parametrization)
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


@pytest.mark.parametrize("parametrization", ["standard", "completep"])
def test_a_decoder_by_the_kernel_is_the_same_up_to_rounding_and_twice_the_same(
    parametrization: Parametrization,
) -> None:
    ids = torch.randint(0, 53, (4, 41), generator=torch.Generator().manual_seed(0))
    found = []
    for by_kernel in (False, True, True):
        model = llama(parametrization=parametrization)
        if by_kernel:
            model.use_kernel()
        loss = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        found.append([loss, *(p.grad for p in model.parameters())])
        assert model.by_llama_kernel == by_kernel
    for plain, one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, plain, rtol=1e-4, atol=1e-6)
        assert torch.equal(one, other)


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
        block.attention.way = "products"
    assert "_AttentionBackward" not in used_by(forced)
    monkeypatch.setattr(attention, "PRODUCTS_UP_TO", 8)
    assert "_AttentionBackward" not in used_by(llama())
    for other in (Decoder(make_shape(1, 8, 2, 53, 9)), llama().double()):
        assert "_AttentionBackward" not in used_by(other)
    assert not Decoder(make_shape(1, 8, 2, 53, 9)).by_llama_kernel


def test_it_is_for_float32_on_one_thread() -> None:
    maps, turns = torch.randn(1, 4, 12), torch.rand(2, 4, 2)
    heads = Heads(1, 1, 0.5)
    assert llama_kernel.takes(maps, turns, heads)
    assert not llama_kernel.takes(maps.double(), turns, heads)
    with torch.autocast("cpu", torch.bfloat16):
        assert not llama_kernel.takes(maps, turns, heads)
    torch.set_num_threads(2)
    assert not llama_kernel.takes(maps, turns, heads)


@pytest.mark.parametrize("target", TARGETS)
def test_instructions_of_older_cpus_are_right(target: str, kernel: pytest.MonkeyPatch) -> None:
    kernel.setattr(llama_kernel, "_library", partial(llama_kernel._library, target=target))
    assert llama_kernel.is_possible()
    for tokens, dim in ((37, 20), (64, 16), (5, 2)):
        assert llama_kernel._is_attention_right(tokens, dim, Heads(4, 2, 0.2))


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("turns.turn(of_q, scale, -1)", "turns.turn(of_q, scale, 1)", "attention is"),
        ("square += x[i] * x[i]", "square += x[i]", "norms are"),
    ],
)
def test_one_that_is_wrong_is_not_used(
    right: str,
    wrong: str,
    why: str,
    tmp_path: Path,
    kernel: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = llama_kernel._SOURCE
    assert right in source.read_text()
    (tmp_path / source.name).write_text(source.read_text().replace(right, wrong))
    shutil.copy(source.with_name("small_products.h"), tmp_path)
    kernel.setattr(llama_kernel, "_SOURCE", tmp_path / source.name)
    library = llama_kernel._library.__wrapped__()
    kernel.setattr(llama_kernel, "_library", lambda: library)
    model, ids = llama(), torch.randint(0, 53, (2, 9))
    model.use_kernel()
    assert "_AttentionBackward" not in names_of(model(ids, ids))
    assert model.by_llama_kernel == (why == "attention is")
    said = capsys.readouterr().err
    assert said.count("Llama's blocks take longer here: llama_kernel.cpp is not used") == 1
    assert f"(its {why} not PyTorch's on this CPU)" in said


def test_without_a_compiler_or_with_a_bad_one_pytorch_does_the_work(
    tmp_path: Path, kernel: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "g++"
    made.write_text("#!/bin/sh\necho 'llama_kernel.cpp:7:1: error: too new for me' >&2; exit 1")
    made.chmod(0o755)
    kernel.setattr(llama_kernel, "_library", llama_kernel._library.__wrapped__)
    for found, said in (
        (str(made), "llama_kernel.cpp is not used (llama_kernel.cpp:7:1: error: too new"),
        (None, ""),
    ):
        kernel.setattr(llama_kernel, "compiler", lambda found=found: found)
        llama_kernel.is_possible.cache_clear()
        model = llama()
        model.use_kernel()
        parts: list[nn.Module] = [part for part in model.modules() if isinstance(part, RMSNorm)]
        assert not model.by_llama_kernel
        assert not any(part.by_kernel for part in parts)
        assert said in capsys.readouterr().err


def test_the_source_has_no_warning() -> None:
    options = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wno-psabi", "-fsyntax-only"]
    line = [str(compiler()), *options, str(llama_kernel._SOURCE)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stderr == ""
