"""The bottleneck that binds is the minimum, and its strength the width over it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.specs.architectures import Architecture, make_architecture
from shapelaw.theory.bottlenecks import Binding, Bottleneck, attention_ratio, bindings, input_rank

SIZES = st.integers(1, 200)


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    heads = draw(st.none() | SIZES)
    return make_architecture(
        "x",
        width=draw(SIZES),
        **draw(
            st.one_of(
                SIZES.map(lambda v: {"vocab_size": v}), SIZES.map(lambda p: {"patch": p, "channels": 3})
            )
        ),
        embedding_rank=draw(st.none() | SIZES),
        heads=heads,
        attention_dim=None if heads is None else draw(SIZES),
    )


@given(architectures())
def test_the_input_s_bottleneck_is_the_least_of_vocabulary_rank_and_width(a: Architecture) -> None:
    limits = {Bottleneck.VOCABULARY: a.vocabulary, Bottleneck.RANK: a.embedding_rank or a.width}
    least = min(*limits.values(), a.width)
    assert input_rank(a) == least
    found = [one for one in bindings(a) if one.bottleneck is not Bottleneck.ATTENTION]
    assert (found == []) == (least == a.width)
    for one in found:  # at most one, by the first limit that is the least
        first = next(kind for kind, limit in limits.items() if limit == least)
        expected = Bottleneck.PATCH if a.patch and first is Bottleneck.VOCABULARY else first
        assert one == Binding(expected, a.width / least)
    assert len(found) <= 1


@given(architectures())
def test_the_attention_binds_exactly_where_its_heads_are_wider_than_the_network(a: Architecture) -> None:
    found = [one for one in bindings(a) if one.bottleneck is Bottleneck.ATTENTION]
    wider = a.heads is not None and a.heads * (a.attention_dim or 0) > a.width
    assert [one.strength for one in found] == ([attention_ratio(a)] if wider else [])


@given(architectures(), st.integers(1, 50))
def test_a_wider_network_is_never_less_bound_by_its_input(a: Architecture, more: int) -> None:
    wider = make_architecture(
        "y",
        width=a.width + more,
        vocab_size=a.vocab_size,
        patch=a.patch,
        channels=a.channels,
        embedding_rank=a.embedding_rank,
    )
    assert input_rank(a) <= input_rank(wider)
    assert input_rank(a) / a.width >= input_rank(wider) / wider.width
    assert all(one.strength > 1 for one in bindings(wider))


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        # vocabulary paper, section 4.2.1: r/d = 128/4096
        (
            make_architecture("ALBERT-xxlarge", width=4096, vocab_size=30000, embedding_rank=128),
            Binding(Bottleneck.RANK, 32),
        ),
        # section 4.2.1: r/d = 33/1280
        (make_architecture("ESM-1b", width=1280, vocab_size=33), Binding(Bottleneck.VOCABULARY, 1280 / 33)),
        # section 4.2.3: d = 1K, H = 128, d_a = 128
        (
            make_architecture("T5-11B", width=1024, vocab_size=32128, heads=128, attention_dim=128),
            Binding(Bottleneck.ATTENTION, 16),
        ),
        # section 6: "width of 1280 but an input rank of 768"
        (
            make_architecture("ViT-Huge", width=1280, patch=16, channels=3),
            Binding(Bottleneck.PATCH, 1280 / 768),
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_paper_s_own_examples(architecture: Architecture, expected: Binding) -> None:
    assert bindings(architecture) == (expected,)


def test_two_bottlenecks_can_bind_at_once() -> None:
    both = make_architecture("x", width=64, vocab_size=32, heads=2, attention_dim=64)
    assert bindings(both) == (Binding(Bottleneck.VOCABULARY, 2), Binding(Bottleneck.ATTENTION, 2))
