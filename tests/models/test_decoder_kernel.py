"""The decoder's kernel: right wherever it can be compiled, and used where its numbers are PyTorch's to the last bit."""

import random
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from older_cpus import TARGETS
from torch import Tensor

from shapelaw.models import decoder_kernel, llama_kernel
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.models.memorizer_kernel import compiler
from shapelaw.specs.runs import Parametrization
from shapelaw.specs.shapes import make_shape

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")
CACHES = [decoder_kernel.is_possible, decoder_kernel._is_right, decoder_kernel._is_gelu_right]
CACHES += [decoder_kernel._is_swiglu_right, decoder_kernel._sleef, decoder_kernel._leave]
NUMBERS = 32 * 5  # of a GELU that PyTorch takes by whole vectors


def forget() -> None:
    for function in CACHES:
        function.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", autouse=True)
def _any_size() -> Iterator[None]:
    """The kernel takes products of any size; nothing known of other tests' kernels."""
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoder_kernel, "_LEAST", 0)
        patch.setattr(decoder_kernel, "_LEAST_ACTIVATIONS", 0)
        yield
    forget()


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """What a test changes of the kernel is forgotten after it."""
    forget()
    yield monkeypatch
    forget()


@settings(deadline=None, max_examples=60)
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
    found = decoder_kernel._product(a, b, bias)
    assert ((found - exact).abs() <= 2**-24 * (min(k, 192) + 8) * most).all()


def both_ways(x: Tensor, weight: Tensor, bias: Tensor | None, gelu: bool, grad: Tensor) -> list[list[Tensor]]:
    """Values and gradients, by the kernel and by PyTorch."""
    found = []
    for by_kernel in (True, False):
        given = [None if value is None else value.clone().requires_grad_() for value in (x, weight, bias)]
        if by_kernel:
            y = decoder_kernel.linear(*given, gelu)  # type: ignore[arg-type]
        else:
            y = F.linear(*given)  # type: ignore[arg-type]
            y = F.gelu(y, approximate="tanh") if gelu else y
        y.backward(grad)
        grads = [None if value is None else value.grad for value in given]
        found.append([y.detach(), *(value for value in grads if value is not None)])
    return found


@settings(deadline=None, max_examples=60)
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
    draw = torch.Generator().manual_seed(seed)
    x, weight = torch.randn(*batch, k, generator=draw), torch.randn(n, k, generator=draw)
    bias, grad = torch.randn(n, generator=draw), torch.randn(*batch, n, generator=draw)
    found, expected = both_ways(x, weight, bias if biased else None, gelu, grad)
    assert len(found) == len(expected) == 3 + biased
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_numbers_that_overflow_or_vanish_do_so_as_in_pytorch(scale: float) -> None:
    draw = torch.Generator().manual_seed(0)
    x, weight = scale * torch.randn(64, 300, generator=draw), scale * torch.randn(64, 300, generator=draw)
    x[0, 0], x[1, 1], x[2, 2] = np.inf, -np.inf, np.nan
    for found, expected in zip(*both_ways(x, weight, None, True, torch.ones(64, 64)), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def swiglu_both_ways(gate: Tensor, up: Tensor, grad: Tensor) -> list[list[Tensor]]:
    """Values and gradients of SwiGLU, by the kernel and by PyTorch."""
    found = []
    for way in (decoder_kernel.swiglu, lambda a, b: F.silu(a) * b):
        given = [value.clone().requires_grad_() for value in (gate, up)]
        y = way(*given)
        y.backward(grad)
        found.append([y.detach(), *(value.grad for value in given if value.grad is not None)])
    return found


@settings(deadline=None, max_examples=60)
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
    found, expected = swiglu_both_ways(scale * gate, up, grad)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def test_a_swiglu_by_the_kernel_is_used() -> None:
    """On a CPU whose exp is PyTorch's, as that of AMD's Zen is."""
    if decoder_kernel._sleef("exp") is None:
        pytest.skip("PyTorch has no exp of Sleef's here")
    assert decoder_kernel._is_swiglu_right(NUMBERS)
    gate = torch.randn(NUMBERS, requires_grad=True)
    assert "_SwiGLU" in type(decoder_kernel.swiglu(gate, gate.detach()).grad_fn).__name__
    odd = torch.randn(NUMBERS + 1, requires_grad=True)
    assert "Mul" in type(decoder_kernel.swiglu(odd, odd.detach()).grad_fn).__name__


def test_sizes_of_a_decoder_are_the_kernels_own() -> None:
    """On AMD's Zen none falls back: one part, two and many, tiles that are filled and that are not."""
    if not decoder_kernel._is_right(20, 300, 20):
        pytest.skip("MKL has another kernel for this CPU")
    draw = random.Random(0)
    drawn = [(draw.randint(16, 600), draw.randint(16, 500), draw.randint(16, 500)) for _ in range(20)]
    for size in [(256, 128, 512), (256, 264, 1056), (256, 1056, 264), (300, 384, 257), *drawn]:
        assert decoder_kernel._is_right(*size), size
    assert decoder_kernel._is_gelu_right(NUMBERS)


@pytest.mark.parametrize("target", TARGETS)
def test_instructions_of_older_cpus_give_right_products(target: str, kernel: pytest.MonkeyPatch) -> None:
    kernel.setattr(decoder_kernel, "_library", partial(decoder_kernel._library, target=target))
    draw = torch.Generator().manual_seed(0)
    a, b = torch.randn(50, 400, generator=draw), torch.randn(400, 37, generator=draw)
    found = decoder_kernel._product(a, b)
    torch.testing.assert_close(found.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)
    if target == "haswell":  # with fused multiply-adds, as MKL's kernel for Zen
        assert decoder_kernel._is_right(50, 400, 37) == torch.equal(found, a @ b)
        assert decoder_kernel._is_gelu_right(NUMBERS)


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
    monkeypatch.setattr(llama_kernel, "is_possible", lambda: False)  # which rounds differently
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

    monkeypatch.setattr(decoder_kernel, "_is_right", refuse)
    x, weight = torch.randn(4, 8, dtype=torch.float64), torch.randn(3, 8, dtype=torch.float64)
    assert torch.equal(decoder_kernel.linear(x, weight), F.linear(x, weight))
    x, weight = x.float(), weight.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert decoder_kernel.linear(x, weight).dtype == torch.bfloat16
    torch.set_num_threads(2)
    try:
        assert torch.equal(decoder_kernel.linear(x, weight), F.linear(x, weight))
    finally:
        torch.set_num_threads(1)
    with pytest.raises(AssertionError):
        decoder_kernel.linear(x, weight)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            "echo 'decoder_kernel.cpp:47:12: error: too new for me' >&2; exit 1",
            "47:12: error: too new for me",
        ),
        ('for made; do :; done; echo "no library" >"$made"', "decoder_kernel.so: "),
    ],
)
def test_why_there_is_none_is_said_once(
    script: str,
    why: str,
    tmp_path: Path,
    kernel: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = tmp_path / "g++"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    kernel.setattr(decoder_kernel, "_library", decoder_kernel._library.__wrapped__)
    kernel.setattr(decoder_kernel, "compiler", lambda: str(made))
    for _ in range(2):
        assert not decoder_kernel.is_possible()
    said = capsys.readouterr().err
    assert said.count("decoders take longer here: decoder_kernel.cpp is not used (") == 1
    assert why in said
    forget()
    kernel.setattr(decoder_kernel, "compiler", lambda: None)
    assert not decoder_kernel.is_possible()
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("k / 2 : MOST; }", "k / 2 : 191; }"),  # other parts: the last bit
        ("3 * kappa * square", "3.001f * kappa * square"),  # GELU's slope
    ],
)
def test_one_that_is_wrong_is_not_used(
    right: str, wrong: str, tmp_path: Path, kernel: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = decoder_kernel._SOURCE.read_text()
    assert right in source
    (tmp_path / "decoder_kernel.cpp").write_text(source.replace(right, wrong))
    kernel.setattr(decoder_kernel, "_SOURCE", tmp_path / "decoder_kernel.cpp")
    library = decoder_kernel._library.__wrapped__()
    kernel.setattr(decoder_kernel, "_library", lambda: library)
    draw = torch.Generator().manual_seed(0)
    x, weight, grad = (torch.randn(size, generator=draw) for size in ((32, 400), (32, 400), (32, 32)))
    for found, expected in zip(*both_ways(x, weight, None, True, grad), strict=True):
        assert torch.equal(found, expected)
    assert not (decoder_kernel._is_right(32, 400, 32) and decoder_kernel._is_gelu_right(32 * 32))
    if not decoder_kernel._is_right(32, 400, 32):
        assert "decoder_kernel.cpp is not used (its products are not PyTorch's" in capsys.readouterr().err


def test_the_source_has_no_warning() -> None:
    options = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wno-psabi", "-fsyntax-only"]
    source = str(decoder_kernel._SOURCE)
    done = subprocess.run([str(compiler()), *options, source], capture_output=True, text=True, check=True)
    assert done.stderr == ""
