"""Published bounds: their numbers, that no exact rank violates one, and where a proof or a statement goes too far."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from measured_ranks import measured
from small import listed

from shapelaw.advice.models.architectures import (
    Architecture,
    Binding,
    Bottleneck,
    make_architecture,
)
from shapelaw.theory.linear_attention import Layer, LinearAttention, outputs, random_maps
from shapelaw.theory.networks import ProductNetwork
from shapelaw.theory.polynomials import PRIMES, multiset, random_residues, rank
from shapelaw.theory.rank_bounds import (
    bottleneck_lower,
    bottleneck_scale,
    bottleneck_upper,
    closed_form,
    early_lower,
    early_upper,
    late_lower,
    late_upper,
    least_width,
    log3,
    monomials_upper,
    published_bounds,
    published_realizing_width,
    swaps_upper,
    unraveled_upper,
)
from shapelaw.theory.separation_rank import separation_rank

ROUNDING = 1e-9


def test_numbers_of_the_formulas():
    assert early_lower(2, 13, 1) == pytest.approx(math.log(12 / 2, 3))
    assert early_upper(2, 13, 1) == pytest.approx(4 * math.log(14, 3))
    assert swaps_upper(2, 2, 3) == pytest.approx(math.log(8**4, 3))
    assert late_lower(6, 9, 3) == pytest.approx(27 - 15 - 9 * 1.5)
    # at d = 2 sqrt(2 e) c2 is log3 d alone
    assert late_upper(3, 2) == pytest.approx(15 - 4 * math.log(2 / 4.6632, 3) + math.log(2, 3), abs=1e-4)
    assert monomials_upper(1, 2) == pytest.approx(math.log(2 * 2 * 3 * 2**2, 3))
    assert monomials_upper(2, 2, True) - monomials_upper(2, 2) == pytest.approx(math.log(5, 3))
    assert unraveled_upper(2, 3, 3, 9) == pytest.approx(2 * math.log(2, 3) + 4 * (4 + 2 - 1))
    assert bottleneck_upper(1, 2, 1) == pytest.approx(math.log(10 * 20 * 4**3, 3))
    assert bottleneck_lower(3, 5, 1) == pytest.approx(math.log(multiset(2, 3), 3))
    assert bottleneck_lower(3, 2, 1) is None
    assert bottleneck_lower(1, 9, 1) is None
    assert log3(3**1000) == pytest.approx(1000)


@given(st.integers(1, 8), st.integers(1, 60), st.integers(0, 1))
def test_simple_forms_are_weaker_than_what_they_come_from(depth, width, places):
    assert bottleneck_scale(depth, width) >= bottleneck_upper(depth, width, places) - ROUNDING
    if 3**depth > width:
        assert late_upper(depth, width) >= monomials_upper(depth, width) - ROUNDING
    if bottleneck_lower(depth, width, 1) is not None and width % 2:
        found = early_lower if 3**depth < width else late_lower
        assert found(depth, width, 1) <= bottleneck_lower(depth, width, 1) + ROUNDING


def test_only_bounds_that_speak_of_the_network_are_listed():
    def sources(**options):
        network = LinearAttention(**{"depth": 2, "width": 4, "tokens": 4, **options})
        return sorted((bound.source, bound.lower) for bound in published_bounds(network))

    dw, voc = "depth-width, theorem", "vocabulary, theorem"
    both = [(f"{voc} 1", False), (f"{voc} 2", True), (f"{voc} 3", False)]
    upper = [(f"{dw} 2", False), (f"{dw} 2", True), (f"{dw} 3", False), (f"{dw} 4", False)]
    assert sources() == sorted(upper + both)
    assert sources(residual=True) == [(f"{dw} 2", True), (f"{dw} 5", False), (f"{dw} 6", False)]
    assert (f"{dw} 1", False) in sources(width=10)
    assert (f"{dw} 1", True) in sources(width=10)
    assert (f"{dw} 2", True) not in sources(width=10)
    assert all(not lower for _, lower in sources(embedding="vocabulary", vocabulary=3))
    words = {"embedding": "vocabulary", "vocabulary": 4, "tokens": 8}  # the conjecture asks for 6.3 tokens
    assert ("vocabulary, corollary 2", True) in sources(**words)
    assert all(not lower for _, lower in sources(**words | {"tokens": 6}))
    assert (f"{dw} 2", True) not in sources(embedding_rank=2)
    assert all(not lower for _, lower in sources(attention_dim=3))
    split = {"embedding": "convolution", "patch": 2, "input_dim": 1, "partition": (1, 3, 5, 7)}
    assert sources(**split) == [(f"{voc} 1", False), (f"{voc} 4", False)]


networks = st.fixed_dictionaries(
    {
        "depth": st.integers(1, 3),
        "width": st.integers(1, 5),
        "tokens": st.sampled_from([2, 4, 6]),
        "heads": st.integers(1, 3),
        "attention_dim": st.one_of(st.none(), st.integers(1, 4)),
        "embedding_rank": st.one_of(st.none(), st.integers(1, 5)),
        "positional_rank": st.integers(0, 2),
        "residual": st.booleans(),
        "vocabulary": st.one_of(st.none(), st.integers(1, 4)),
        "entry": st.integers(1, 5),
    }
)


@given(networks)
@settings(max_examples=50)
def test_no_exact_rank_violates_a_bound(options):
    width, words = options["width"], options["vocabulary"]
    options["embedding"] = "vectors" if words is None else "vocabulary"
    assume(options["attention_dim"] is not None or width % options["heads"] == 0)
    assume((options["embedding_rank"] or 1) <= min(width, words or width))
    assume(options["positional_rank"] <= min(width, options["tokens"]))
    assume(options["entry"] <= width)
    network = LinearAttention(**options)
    assume(network.rank_bound() <= 150)
    found = separation_rank(network)
    assert found.exact
    assert 1 <= found.rank <= found.upper_bound
    for bound in published_bounds(network):
        if bound.lower:
            assert log3(found.rank) >= bound.log3 - ROUNDING, bound
        else:
            assert log3(found.rank) <= bound.log3 + ROUNDING, bound


@pytest.mark.parametrize(("depth", "rank", "tokens"), [(2, 4, 4), (2, 6, 4), (3, 4, 2), (3, 4, 4)])
def test_corollary_2_of_vocabulary_holds_long_before_its_large_number_of_tokens(depth, rank, tokens):
    words = {"embedding": "vocabulary", "vocabulary": rank}
    found = separation_rank(LinearAttention(depth=depth, width=rank, tokens=tokens, **words))
    finite, infinite = (bottleneck_lower(depth, rank, 1, finite=of) for of in (True, False))
    assert finite <= infinite
    assert log3(found.rank) > finite


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.sampled_from([2, 4]))
@settings(max_examples=30)
def test_every_product_network_reaches_its_bound(degree, depth, width, tokens):
    network = ProductNetwork(degree, depth, width, tokens)
    assume(network.rank_bound() <= 150)
    found = separation_rank(network)
    assert found.exact
    assert found.rank == found.upper_bound


def functions_of_random_weights(d, depth, *, residual=False, count=40):
    """How many linearly independent functions of one half random weights of a network of d numbers give."""
    prime, rng = PRIMES[0], np.random.default_rng(3)
    inputs = random_residues(rng, (4, d, count), prime)
    nothing = np.zeros((4, d, 1), dtype=np.uint64)
    network, values = LinearAttention(depth, d, 4, residual=residual), []
    for _ in range(count):
        layers = [Layer(*(random_maps(rng, 1, d, d, prime) for _ in range(2))) for _ in range(depth)]
        values.append(outputs(network, inputs, nothing, layers, prime)[:, 0])
    return rank(np.array(values), prime)


def test_functions_that_three_proofs_take_for_one():
    """Theorem 4 of depth-width counts d ((d, 2C)) functions: at d = 2, L = 2 these are 18.

    Random weights span 30, d ((d (d + 1) / 2, C)). Theorem 6 takes its groups for each degree 2j + 1, j from 1 to C,
    which are 48: random weights of a residual network span 68, and the entry of x_i, which all of them have in them
    alike. Theorem 3 of vocabulary groups without positions by the powers of the r coordinates alone, so it says that
    all outputs are combinations of ((r, 3^L)) functions, 10 here.
    """
    assert functions_of_random_weights(2, 2) == 2 * multiset(3, 4) == 30
    assert 2 * multiset(2, 8) == 18
    assert multiset(2, 3**2) == 10
    spanned = sum(2 * multiset(3, degree) for degree in range(1, 5))
    assert (sum(2 * multiset(2, 2 * degree) for degree in range(1, 5)), spanned) == (48, 68)
    assert functions_of_random_weights(2, 2, residual=True, count=100) == spanned + 1


@pytest.mark.parametrize(("options", "formula"), listed("theory/known.yaml", "closed_forms"))
def test_the_closed_form_is_the_measured_rank_and_names_its_formula(options, formula):
    network = LinearAttention(**options)
    assert closed_form(network) == (measured(network), formula)


def test_closed_forms_are_silent_where_none_is_known():
    for sizes in ((2, 6, 12, 3), (2, 4, 4), (2, 4, 8, 1, None, 2, 1)):
        assert closed_form(LinearAttention(*sizes)) == (None, "")


@given(st.integers(2, 6), st.integers(1, 5), st.integers(1, 4), st.integers(1, 50))
def test_corollary_1_is_where_the_bounds_of_theorem_1_meet(deep, shallow, heads, more):
    width = 3**deep + more + heads
    found = 3 ** published_realizing_width(deep, width, shallow, heads) - heads
    lower = early_lower(deep, width, heads)
    if 1 <= found < 1e9:
        assert early_upper(shallow, math.floor(found), heads) <= lower + 1e-6
        assert early_upper(shallow, math.ceil(found), heads) >= lower - 1e-6


@pytest.mark.parametrize(("rank", "depth", "tokens"), [(18, 2, 4), (19, 2, 6), (40, 3, 2)])
def test_the_least_width_has_the_rank_and_one_less_has_not(rank, depth, tokens):
    width = least_width(rank, depth, tokens)
    assert separation_rank(LinearAttention(depth, width, tokens)).rank >= rank
    assert width == 1 or separation_rank(LinearAttention(depth, width - 1, tokens)).rank < rank


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
def test_the_input_s_bottleneck_is_the_least_limit_and_attention_binds_where_heads_are_wider(
    a: Architecture,
) -> None:
    limits = {Bottleneck.VOCABULARY: a.vocabulary, Bottleneck.RANK: a.embedding_rank or a.width}
    least = min(*limits.values(), a.width)
    assert a.input_rank == least
    found = [one for one in a.bindings if one.bottleneck is not Bottleneck.ATTENTION]
    assert (found == []) == (least == a.width)
    for one in found:  # at most one, by the first limit that is the least
        first = next(kind for kind, limit in limits.items() if limit == least)
        expected = Bottleneck.PATCH if a.patch and first is Bottleneck.VOCABULARY else first
        assert one == Binding(expected, a.width / least)
    assert len(found) <= 1

    found = [one for one in a.bindings if one.bottleneck is Bottleneck.ATTENTION]
    wider = a.heads is not None and a.heads * (a.attention_dim or 0) > a.width
    assert [one.strength for one in found] == ([a.attention_ratio] if wider else [])


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # vocabulary paper, section 4.2.1: ALBERT-xxlarge with r/d = 128/4096, ESM-1b with 33/1280
        ({"width": 4096, "vocab_size": 30000, "embedding_rank": 128}, [Binding(Bottleneck.RANK, 32)]),
        ({"width": 1280, "vocab_size": 33}, [Binding(Bottleneck.VOCABULARY, 1280 / 33)]),
        # section 4.2.3: T5-11B with d = 1K, H = 128, d_a = 128
        (
            {"width": 1024, "vocab_size": 32128, "heads": 128, "attention_dim": 128},
            [Binding(Bottleneck.ATTENTION, 16)],
        ),
        # section 6: ViT-Huge, "width of 1280 but an input rank of 768"
        ({"width": 1280, "patch": 16, "channels": 3}, [Binding(Bottleneck.PATCH, 1280 / 768)]),
        # two at once
        (
            {"width": 64, "vocab_size": 32, "heads": 2, "attention_dim": 64},
            [Binding(Bottleneck.VOCABULARY, 2), Binding(Bottleneck.ATTENTION, 2)],
        ),
    ],
)
def test_the_paper_s_own_examples(sizes: dict[str, int], expected: list[Binding]) -> None:
    assert make_architecture("x", **sizes).bindings == tuple(expected)
