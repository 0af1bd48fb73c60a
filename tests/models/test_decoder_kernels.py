"""The decoders' kernels: right wherever they can be compiled, and used where they are right."""

import math
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from older_cpus import TARGETS
from torch import Tensor

from shapelaw.models import cpp, functions
from shapelaw.models import decoder_kernels as kernels
from shapelaw.models.cpp import Kernel, compiler
from shapelaw.models.decoder import Decoder, RMSNorm, initialise
from shapelaw.models.decoder_kernels import Heads, attend, rms_norm
from shapelaw.models.functions import Rotary, attend_by_products
from shapelaw.models.memorizer import KERNEL
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Parametrization

pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler"),
    pytest.mark.usefixtures("one_thread", "_any_size"),
]
CHECKS = (
    *(kernels.has_products, kernels._is_right, kernels._is_gelu_right, kernels._is_swiglu_right),
    *(kernels._sleef, kernels.has_llama, kernels._is_attention_right, kernels._is_norm_right),
)
NUMBERS = 32 * 5  # of a GELU that PyTorch takes by whole vectors


@pytest.fixture
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes products of any size."""
    monkeypatch.setattr(kernels, "_LEAST", 0)
    monkeypatch.setattr(kernels, "_LEAST_ACTIVATIONS", 0)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Nothing is compiled or known yet; and what a test changes of a kernel is forgotten after it."""
    for kernel in (kernels.PRODUCTS, kernels.LLAMA):
        monkeypatch.setattr(kernel, "library", cache(kernel._compiled))
        monkeypatch.setattr(kernel, "leave", cache(kernel._say))
    for function in CHECKS:
        function.cache_clear()
    yield monkeypatch
    for function in CHECKS:
        function.cache_clear()


def made_wrong(kernel: Kernel, right: str, wrong: str, folder: Path, changed: pytest.MonkeyPatch) -> None:
    """Let a kernel be compiled from a source with a fault."""
    source = kernel.source.read_text()
    assert right in source
    (folder / kernel.source.name).write_text(source.replace(right, wrong))
    shutil.copy(kernel.source.with_name("small_products.h"), folder)
    changed.setattr(kernel, "source", folder / kernel.source.name)


@settings(deadline=None, max_examples=30)
@given(
    rows=st.integers(1, 130),
    k=st.integers(1, 600),
    n=st.integers(1, 120),
    layout=st.sampled_from(["plain", "left turned", "right turned"]),
    biased=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_a_product_is_right_whatever_its_sizes(
    rows: int, k: int, n: int, layout: str, biased: bool, seed: int
) -> None:
    draw = torch.Generator().manual_seed(seed)
    a, b = torch.randn(rows, k, generator=draw), torch.randn(k, n, generator=draw)
    if layout == "left turned":
        a = a.t().contiguous().t()
    if layout == "right turned":
        b = b.t().contiguous().t()
    bias = torch.randn(n, generator=draw) if biased else None
    exact = a.double() @ b.double() + (0 if bias is None else bias.double())
    most = a.double().abs() @ b.double().abs() + 4
    found = kernels._product(a, b, bias)
    assert ((found - exact).abs() <= 2**-24 * (min(k, 192) + 8) * most).all()


Way = Callable[..., Tensor]


def both_ways(ways: tuple[Way, Way], inputs: tuple[Tensor | None, ...], grad: Tensor) -> list[list[Tensor]]:
    """Values and gradients by the kernel and by PyTorch."""
    found = []
    for way in ways:
        given = [None if value is None else value.clone().requires_grad_() for value in inputs]
        y = way(*given)
        y.backward(grad)
        grads = [None if value is None else value.grad for value in given]
        found.append([y.detach(), *(value for value in grads if value is not None)])
    return found


def plain_linear(x: Tensor, weight: Tensor, bias: Tensor | None, gelu: bool) -> Tensor:
    y = F.linear(x, weight, bias)
    return F.gelu(y, approximate="tanh") if gelu else y


def maps(gelu: bool) -> tuple[Way, Way]:
    return partial(kernels.linear, gelu=gelu), partial(plain_linear, gelu=gelu)


GATES: tuple[Way, Way] = kernels.swiglu, lambda gate, up: F.silu(gate) * up


@settings(deadline=None, max_examples=30)
@given(
    batch=st.lists(st.integers(1, 16), min_size=1, max_size=3),
    k=st.integers(1, 600),
    n=st.integers(1, 20) | st.integers(1, 20).map(lambda n: 16 * n),
    biased=st.booleans(),
    gelu=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_a_map_and_its_gradients_are_pytorchs_to_the_last_bit(
    batch: list[int], k: int, n: int, biased: bool, gelu: bool, seed: int
) -> None:
    # on a CPU where MKL has another kernel, the few sums of a small product can be equal to the bit in one draw
    assume(math.prod(batch) * n >= 64 or kernels._is_right(20, 300, 20))
    draw = torch.Generator().manual_seed(seed)
    x, weight = torch.randn(*batch, k, generator=draw), torch.randn(n, k, generator=draw)
    bias, grad = torch.randn(n, generator=draw), torch.randn(*batch, n, generator=draw)
    found, expected = both_ways(maps(gelu), (x, weight, bias if biased else None), grad)
    assert len(found) == len(expected) == 3 + biased
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_numbers_that_overflow_or_vanish_do_so_as_in_pytorch(scale: float) -> None:
    draw = torch.Generator().manual_seed(0)
    x, weight = scale * torch.randn(64, 300, generator=draw), scale * torch.randn(64, 300, generator=draw)
    x[0, 0], x[1, 1], x[2, 2] = np.inf, -np.inf, np.nan
    for found, expected in zip(*both_ways(maps(True), (x, weight, None), torch.ones(64, 64)), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@settings(deadline=None, max_examples=30)
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    scale=st.sampled_from([1e-20, 1.0, 10.0, 1e20]),
    turned=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_swiglu_and_its_gradients_are_pytorchs_to_the_last_bit(
    shape: list[int], scale: float, turned: bool, seed: int
) -> None:
    draw = torch.Generator().manual_seed(seed)
    gate, up, grad = (torch.randn(shape, generator=draw) for _ in range(3))
    if turned:  # a gradient that is not contiguous
        grad = grad.T.contiguous().T if grad.ndim == 2 else grad
    found, expected = both_ways(GATES, (scale * gate, up), grad)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def test_a_swiglu_by_the_kernel_is_used() -> None:
    """On a CPU whose exp is PyTorch's, as that of AMD's Zen is."""
    if kernels._sleef("exp") is None:
        pytest.skip("PyTorch has no exp of Sleef's here")
    assert kernels._is_swiglu_right(NUMBERS)
    gate = torch.randn(NUMBERS, requires_grad=True)
    assert "_SwiGLU" in type(kernels.swiglu(gate, gate.detach()).grad_fn).__name__
    odd = torch.randn(NUMBERS + 1, requires_grad=True)
    assert "Mul" in type(kernels.swiglu(odd, odd.detach()).grad_fn).__name__


def test_sizes_of_a_decoder_are_the_kernels_own() -> None:
    """On AMD's Zen none falls back: one part, two and many, tiles that are filled and that are not.

    Rows are tokens of whole windows and widths are even, as a decoder's are; of odd ones MKL sums some tails in another
    order on some of these CPUs, and PyTorch does the work.
    """
    if not kernels._is_right(20, 300, 20):
        pytest.skip("MKL has another kernel for this CPU")
    draw = random.Random(0)
    drawn = [
        (16 * draw.randint(1, 40), 2 * draw.randint(8, 250), 2 * draw.randint(8, 250)) for _ in range(20)
    ]
    for size in [(256, 128, 512), (256, 264, 1056), (256, 1056, 264), (300, 384, 257), *drawn]:
        assert kernels._is_right(*size), size
    assert kernels._is_gelu_right(NUMBERS)


@pytest.mark.parametrize("target", TARGETS)
def test_instructions_of_older_cpus_give_right_products(target: str, changed: pytest.MonkeyPatch) -> None:
    changed.setattr(kernels.PRODUCTS, "target", target)
    draw = torch.Generator().manual_seed(0)
    a, b = torch.randn(50, 400, generator=draw), torch.randn(400, 37, generator=draw)
    found = kernels._product(a, b)
    torch.testing.assert_close(found.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)
    if target == "haswell":  # with fused multiply-adds, as MKL's kernel for Zen
        assert kernels._is_right(50, 400, 37) == torch.equal(found, a @ b)
        assert kernels._is_gelu_right(NUMBERS)


@pytest.mark.parametrize(
    ("options", "dropout", "parametrization"),
    [
        *(
            ({"gelu": gelu, **options}, dropout, "standard")
            for gelu in ("tanh", "erf")
            for options, dropout in (({}, 0.0), ({"embedding_rank": 7}, 0.3), ({"attention_degree": 3}, 0.1))
        ),
        ({"block": "llama", "kv_heads": 1, "tied": True}, 0.1, "standard"),
        *((options, 0.1, "completep") for options in ({}, {"attention_degree": 3}, {"block": "llama"})),
    ],
)
def test_a_decoder_learns_the_same_to_the_last_bit(
    options: dict[str, Any], dropout: float, parametrization: Parametrization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "has_llama", lambda: False)  # which rounds differently
    shape = make_shape(2, 40, 2, 99, 24, **options)
    ids = torch.randint(0, 99, (8, 25), generator=torch.Generator().manual_seed(0))
    learnt = []
    for by_kernel in (True, False):
        model = Decoder(shape, dropout, parametrization)
        initialise(model, 0)
        if by_kernel:
            model.use_kernel()
        losses = []
        for step in range(4):
            torch.manual_seed(step)
            model.zero_grad()
            loss = model(ids[:, :-1], ids[:, 1:])
            loss.backward()
            losses.append(loss.item())
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
        with torch.no_grad():
            losses.append(model.eval()(ids[:, :-1], ids[:, 1:]).item())
        learnt.append((losses, list(model.parameters())))
    (losses, weights), (expected_losses, expected) = learnt
    assert losses == expected_losses
    assert all(torch.equal(a, b) for a, b in zip(weights, expected, strict=True))


def test_it_is_for_float32_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise AssertionError("not to be asked")

    monkeypatch.setattr(kernels, "_is_right", refuse)
    x, weight = torch.randn(4, 8, dtype=torch.float64), torch.randn(3, 8, dtype=torch.float64)
    assert torch.equal(kernels.linear(x, weight), F.linear(x, weight))
    x, weight = x.float(), weight.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert kernels.linear(x, weight).dtype == torch.bfloat16
    torch.set_num_threads(2)
    try:
        assert torch.equal(kernels.linear(x, weight), F.linear(x, weight))
    finally:
        torch.set_num_threads(1)
    with pytest.raises(AssertionError):
        kernels.linear(x, weight)
    maps, turns, heads = torch.randn(1, 4, 12), torch.rand(2, 4, 2), Heads(1, 1, 0.5)
    assert kernels.takes(maps, turns, heads)
    assert not kernels.takes(maps.double(), turns, heads)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("k / 2 : MOST; }", "k / 2 : 191; }"),  # other parts: the last bit
        ("3 * kappa * square", "3.001f * kappa * square"),  # GELU's slope
    ],
)
def test_one_that_is_wrong_is_not_used(
    right: str, wrong: str, tmp_path: Path, changed: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made_wrong(kernels.PRODUCTS, right, wrong, tmp_path, changed)
    draw = torch.Generator().manual_seed(0)
    x, weight, grad = (torch.randn(size, generator=draw) for size in ((32, 400), (32, 400), (32, 32)))
    for found, expected in zip(*both_ways(maps(True), (x, weight, None), grad), strict=True):
        assert torch.equal(found, expected)
    assert not (kernels._is_right(32, 400, 32) and kernels._is_gelu_right(32 * 32))
    if not kernels._is_right(32, 400, 32):
        assert "decoder_kernel.cpp is not used (its products are not PyTorch's" in capsys.readouterr().err


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
        block.attention.way = "products"
    assert "_AttentionBackward" not in used_by(forced)
    monkeypatch.setattr(functions, "PRODUCTS_UP_TO", 8)
    assert "_AttentionBackward" not in used_by(llama())
    for other in (Decoder(make_shape(1, 8, 2, 53, 9)), llama().double()):
        assert "_AttentionBackward" not in used_by(other)
    assert not Decoder(make_shape(1, 8, 2, 53, 9)).by_llama_kernel


@pytest.mark.parametrize("target", TARGETS)
def test_instructions_of_older_cpus_are_right(target: str, changed: pytest.MonkeyPatch) -> None:
    changed.setattr(kernels.LLAMA, "target", target)
    assert kernels.has_llama()
    for tokens, dim in ((37, 20), (64, 16), (5, 2)):
        assert kernels._is_attention_right(tokens, dim, Heads(4, 2, 0.2))


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
    tmp_path: Path,
    changed: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made_wrong(kernels.LLAMA, right, wrong, tmp_path, changed)
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
        ('for made; do :; done; echo "no library" >"$made"', "kernel.so: "),
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
        assert not kernels.has_products()
        model = llama()
        model.use_kernel()
        assert not model.by_llama_kernel
        assert not any(part.by_kernel for part in model.modules() if isinstance(part, RMSNorm))
    said = capsys.readouterr().err
    assert said.count("decoders take longer here: decoder_kernel.cpp") == (why is not None)
    assert said.count("Llama's blocks take longer here: llama_kernel.cpp") == (why is not None)
    assert why is None or said.count(why) == 2


@pytest.mark.parametrize("kernel", [kernels.PRODUCTS, kernels.LLAMA, KERNEL], ids=lambda one: one.source.name)
def test_a_source_has_no_warning(kernel: Kernel) -> None:
    options = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wno-psabi", "-fsyntax-only"]
    shape = ["-DREAL=float", "-DH=3", "-DN=5", "-DK=7", "-DD=24", "-DC=2"]
    line = [str(compiler()), *options, *(shape if kernel is KERNEL else ()), str(kernel.source)]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stderr == ""
