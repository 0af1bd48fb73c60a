"""Products with tokens of a table: those of PyTorch on gathered tokens, for every shape."""

import subprocess
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.memorizers import Memorizer
from shapelaw.models import token_products
from shapelaw.models.token_products import are_possible, back_through_tokens, through_tokens
from shapelaw.training.packed import can_compile

CPU = torch.device("cpu")
needs_compiler = pytest.mark.skipif(not can_compile(CPU), reason="there is no C++ compiler")


@needs_compiler
@settings(max_examples=15)
@given(
    heads=st.integers(1, 9),
    n=st.integers(1, 40),
    width=st.sampled_from([8, 16, 24, 32, 64]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 99),
)
def test_they_are_the_products_with_gathered_tokens(
    heads: int, n: int, width: int, dtype: torch.dtype, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    models, examples, rows = 2, 3, 5

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    table, at = draw(rows, n, width), torch.randint(rows, (models, examples), generator=generator)
    seen, values = draw(models, examples, heads, width + n), draw(models, heads, width + n)
    places = torch.eye(n, dtype=torch.float64).expand(models, examples, n, n)
    tokens = torch.cat([table[at].double(), places], dim=-1)
    found = through_tokens(seen.transpose(1, 2).contiguous().transpose(1, 2), values, table, at)
    rows_of = torch.stack([seen, values[:, None].expand_as(seen)], 2).double()
    tolerance = 1e-12 if dtype == torch.float64 else 2e-5
    expected = torch.einsum("pbshd,pbnd->pbshn", rows_of, tokens)
    torch.testing.assert_close(found.double(), expected, atol=tolerance, rtol=0)

    d_out = draw(models, examples, 2, heads, n)
    d_seen, d_values = back_through_tokens(d_out, table, at)
    expected = torch.einsum("pbshn,pbnd->pbshd", d_out.double(), tokens)
    torch.testing.assert_close(d_seen.double(), expected[:, :, 0], atol=tolerance, rtol=0)
    torch.testing.assert_close(d_values.double(), expected[:, :, 1].sum(1), atol=tolerance, rtol=0)


@needs_compiler
def test_what_is_not_a_number_stays_so() -> None:
    table, at = torch.ones(2, 3, 8), torch.tensor([[0, 1]])
    table[1, 2, 5] = torch.nan
    out = through_tokens(torch.ones(1, 2, 1, 11), torch.zeros(1, 1, 11), table, at)
    assert out[0, 0].isfinite().all()
    assert out[0, 1, 0, 0].isnan().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("compiler", "why"),
    [
        (
            "echo 'token_products.cpp:47:12: error: too new for me' >&2; exit 1",
            "47:12: error: too new for me",
        ),
        ('for made; do :; done; echo "no library" >"$made"', "token_products.so: "),
    ],
)
def test_why_there_are_none_is_said(
    compiler: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = tmp_path / "g++"
    made.write_text(f"#!/bin/sh\n{compiler}\n")
    made.chmod(0o755)
    monkeypatch.setattr(token_products, "compiler", lambda: str(made))
    shape = Memorizer(heads=11, context=7, head_dim=4, width=8, value_dim=1, outputs=7)
    assert not are_possible(shape, torch.float32, CPU)
    said = capsys.readouterr().err
    assert "contexts of their own take longer here: token_products.cpp is not compiled (" in said
    assert why in said
    monkeypatch.setattr(token_products, "compiler", lambda: None)
    assert not are_possible(shape, torch.float32, CPU)


@needs_compiler
@pytest.mark.parametrize(
    ("width", "dtype", "possible"),
    [(8, torch.float32, True), (12, torch.float32, False), (8, torch.bfloat16, False)],
)
def test_they_are_for_some_shapes(width: int, dtype: torch.dtype, possible: bool) -> None:
    shape = Memorizer(heads=1, context=2, head_dim=4, width=width, value_dim=1, outputs=7)
    assert are_possible(shape, dtype, CPU) is possible
    assert not are_possible(shape, dtype, torch.device("cuda"))


@needs_compiler
def test_the_source_has_no_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(
                str(token_products.compiler()),
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Wno-psabi",
                "-fsyntax-only",
            ),
            *("-DREAL=float", "-DH=3", "-DN=5", "-DD=24", str(token_products._SOURCE)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
