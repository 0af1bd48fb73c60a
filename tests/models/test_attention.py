"""Ways of attention, and rotary positions, against what they are made for."""

import pytest
import torch

from shapelaw.models.attention import Rotary, attend_linearly, takes_products


def test_rotation_by_complex_numbers_is_the_plain_one_and_leaves_values_alone() -> None:
    rotary, maps = Rotary(9, 4, turned=3, kept=2), torch.randn(2, 8, 20)
    turned = rotary(maps)  # by complex numbers, since both are in float32
    torch.testing.assert_close(rotary(maps.double()), turned.double(), atol=1e-6, rtol=1e-6)
    assert torch.equal(turned[..., 12:], maps[..., 12:])
    assert torch.equal(turned[:, 0], maps[:, 0])
    assert not torch.allclose(turned[:, 1:, :12], maps[:, 1:, :12])


def test_scores_depend_on_the_distance_alone() -> None:
    """The property that rotary positions are made for (Su et al. 2021, eq. 11)."""
    rotary = Rotary(64, 8, turned=1, kept=0)
    q, k = torch.randn(1, 1, 8).expand(1, 64, 8), torch.randn(1, 1, 8).expand(1, 64, 8)
    scores = rotary(q)[0] @ rotary(k)[0].T
    for distance in (0, 1, 20):
        along = scores.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
def test_linear_attention_is_the_polynomial_of_its_degree(degree: int) -> None:
    """Against the sums written out, and homogeneous: twice the maps give 2^k times the output."""
    heads, tokens, dim = 2, 5, 3
    maps = torch.randn(1, tokens, degree * heads * dim, dtype=torch.float64)
    found = attend_linearly(maps, heads, degree)
    torch.testing.assert_close(attend_linearly(2 * maps, heads, degree), 2**degree * found)
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


def test_attention_is_by_products_where_there_is_no_flash_kernel() -> None:
    assert takes_products("cpu", 128, 64)
    assert takes_products("cuda", 128, 257)
    assert not takes_products("cuda", 128, 256)
    assert not takes_products("cuda", 1024, 500)
