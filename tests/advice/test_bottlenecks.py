"""The table of bottlenecks: its texts, its rows, its sentences."""

import math

import pytest

from shapelaw.advice.models.architectures import make_architecture
from shapelaw.advice.models.bottlenecks import (
    Finding,
    findings_of,
    full_table,
    redundancy_text,
    sentences,
)
from shapelaw.advice.models.measured import Basis, Estimate, known_redundancies, published_redundancies

PUBLISHED = published_redundancies()
ESM = make_architecture("ESM-1b", width=1280, vocab_size=33, heads=20, depth=33)
BOTH = make_architecture("both", width=64, vocab_size=32, heads=2, attention_dim=64)
FREE = make_architecture("free", width=64, vocab_size=100)


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.25, math.nan, math.nan, "25%"),
        (0.25, 0.2, 0.31, "25% (20% to 31%)"),
        (0.02, -math.inf, 0.1, "2% (at most 10%)"),
        (math.nan, 0.0, 0.25, "at most 25%"),
        (math.nan, 0.25, 0.45, "25% to 45%"),
        (math.nan, 0.45, 1.0, "at least 45%"),
        (math.nan, -math.inf, 1.0, "unknown"),
    ],
)
def test_a_redundancy_is_told_with_what_is_known_of_it(
    value: float, low: float, high: float, text: str
) -> None:
    assert redundancy_text(Estimate(value, low, high, Basis.FIT, "")) == text


def test_each_binding_bottleneck_has_a_row() -> None:
    found = [one for a in (ESM, BOTH, FREE) for one in findings_of(a, PUBLISHED)]
    table = full_table(found)
    assert table["architecture"].tolist() == ["ESM-1b", "both", "both", "free"]
    assert table["bottleneck"].tolist() == ["vocabulary", "vocabulary", "attention ratio", "none"]
    assert table["rank"].tolist() == [33, 32, 32, 64]
    assert table["redundancy"].fillna(-1).tolist() == [0.25, -1, -1, -1]
    assert table["high"].fillna(-1).tolist() == [-1, 0.25, 0.25, -1]
    assert table["basis"].fillna("").tolist() == ["published", *["between published"] * 2, ""]


def test_sentences_say_what_binds_what_it_costs_and_what_helps() -> None:
    (esm,), (free,) = findings_of(ESM, PUBLISHED), findings_of(FREE, PUBLISHED)
    assert sentences(esm).startswith(
        "ESM-1b: the vocabulary binds. The embedding has a rank of at most 33 in a width of 1,280. Redundancy: 25%, "
        "published (Wies et al. 2021, figure 2"
    )
    assert sentences(esm).endswith("Take a larger vocabulary, or go deeper instead of wider.")
    assert sentences(free) == (
        "free: nothing binds. The embedding's rank can reach the width 64, and its heads are not known."
    )
    attention = findings_of(BOTH, PUBLISHED)[1]
    assert "H d_a = 128 is 2 times the width 64, which caps it." in sentences(attention)
    assert "Redundancy" not in sentences(Finding(BOTH, attention.binding))


def test_no_advice_where_the_bottleneck_may_cost_nothing() -> None:
    (esm,) = findings_of(ESM, PUBLISHED)
    free = Finding(ESM, esm.binding, Estimate(0.01, -0.05, 0.15, Basis.FIT, "ours"))
    assert sentences(free).endswith("Whether that costs anything is not known: the interval holds zero.")


def test_a_low_rank_of_patches_is_extrapolated_from_tokens() -> None:
    """Patches are another setting than tokens, whichever of the patch and the rank binds."""
    for rank in (None, 3):
        patches = make_architecture("patches", width=64, patch=4, embedding_rank=rank, heads=2, depth=2)
        (found,) = findings_of(patches, known_redundancies())
        assert found.redundancy is not None
        assert found.redundancy.basis is Basis.EXTRAPOLATED
