"""The functions of a decoder against what they are made for, and against PyTorch's."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.models import functions


def test_rotation_by_complex_numbers_is_the_plain_one_and_leaves_values_alone() -> None:
    rotary, maps = functions.Rotary(9, 4, turned=3, kept=2), torch.randn(2, 8, 20)
    turned = rotary(maps)  # by complex numbers, since both are in float32
    torch.testing.assert_close(rotary(maps.double()), turned.double(), atol=1e-6, rtol=1e-6)
    assert torch.equal(turned[..., 12:], maps[..., 12:])
    assert torch.equal(turned[:, 0], maps[:, 0])
    assert not torch.allclose(turned[:, 1:, :12], maps[:, 1:, :12])


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
def test_linear_attention_is_the_polynomial_of_its_degree(degree: int) -> None:
    """Against the sums written out, and homogeneous: twice the maps give 2^k times the output."""
    heads, tokens, dim = 2, 5, 3
    maps = torch.randn(1, tokens, degree * heads * dim, dtype=torch.float64)
    found = functions.attend_linearly(maps, heads, degree)
    torch.testing.assert_close(functions.attend_linearly(2 * maps, heads, degree), 2**degree * found)
    each = maps.view(tokens, degree, heads, dim)
    for i in range(tokens):
        for h in range(heads):
            total = torch.zeros(dim, dtype=torch.float64)
            for j in range(i + 1):
                if degree == 2:
                    total += each[i, 0, h] * each[j, 1, h]
                else:
                    score = each[i, 0, h] @ each[j, 1, h] / dim**0.5
                    total += score * each[j, 2:, h].prod(0)
            torch.testing.assert_close(found[0, i, h * dim : (h + 1) * dim], total / (i + 1))


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 40),
    v=st.integers(2, 30),
    d=st.integers(1, 8),
    chunk=st.integers(1, 400),
    seed=st.integers(0, 9),
)
def test_value_and_gradients_equal_the_plain_ones(n: int, v: int, d: int, chunk: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, w = torch.randn(n, d, generator=generator).double(), torch.randn(v, d, generator=generator).double()
    targets = torch.randint(0, v, (n,), generator=generator)
    results = []
    for size in (chunk, n * v):  # chunked (unless it all fits), plain
        x_, w_ = x.clone().requires_grad_(), w.clone().requires_grad_()
        loss = functions.linear_cross_entropy(x_, w_, targets, size)
        (3 * loss).backward()  # a factor, as gradient accumulation has
        results.append((loss, x_.grad, w_.grad))
    for chunked, plain in zip(*results, strict=True):
        torch.testing.assert_close(chunked.double(), plain.double(), atol=2e-6, rtol=2e-6)


def test_large_scores_do_not_overflow() -> None:
    x, w = torch.full((4, 2), 100.0), torch.tensor([[100.0, 100.0], [-100.0, -100.0], [0.0, 0.0]])
    targets = torch.tensor([0, 1, 2, 0])
    loss = functions.linear_cross_entropy(x, w, targets, 3)
    assert loss.item() == pytest.approx(F.cross_entropy(x @ w.T, targets).item())


def test_no_more_than_a_chunk_of_logits_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    linear = F.linear

    def spy(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        out = linear(x, w)
        seen.append(out.numel())
        return out

    monkeypatch.setattr(F, "linear", spy)
    x, w = torch.randn(64, 4, requires_grad=True), torch.randn(50, 4, requires_grad=True)
    functions.linear_cross_entropy(x, w, torch.zeros(64, dtype=torch.long), 500).backward()
    assert max(seen) <= 500
    assert sum(seen) == 64 * 50


@pytest.mark.parametrize(("rows", "most"), [(512 * 128, 2670), (96, 40), (7, 3), (13, 12), (5, 9), (1, 1)])
def test_chunks_are_equal_where_that_is_cheap(rows: int, most: int) -> None:
    size = functions.equal_rows(rows, most)
    parts, least = -(-rows // size), -(-rows // most)
    assert 1 <= size <= most
    assert parts < 2 * least
    if any(rows % n == 0 for n in range(least, 2 * least)):
        assert rows % size == 0


def test_the_loss_without_scattered_writes_is_the_same_with_columns_of_no_word_too() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 30 * torch.randn(40, 17, generator=generator)
    targets = torch.randint(0, 17, (40,), generator=generator)
    plain = functions.loss_and_gradient(logits, targets)
    loss, gradient = functions.loss_and_gradient_unscattered(F.pad(logits, (0, 15)), targets, 17)
    torch.testing.assert_close((loss, gradient[:, :17]), plain)
    assert not gradient[:, 17:].any()
