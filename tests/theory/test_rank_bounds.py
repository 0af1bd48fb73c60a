"""Published bounds: their numbers, that no exact rank violates one, and where a proof or a statement goes too far."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shapelaw.theory.attention_layers import Layer, Output, outputs, random_maps
from shapelaw.theory.finite_field import PRIMES, random_residues, rank
from shapelaw.theory.graded_dimensions import multiset
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.product_network import ProductNetwork
from shapelaw.theory.rank_bounds import (
    bottleneck_lower,
    bottleneck_scale,
    bottleneck_upper,
    early_lower,
    early_upper,
    late_lower,
    late_upper,
    log3,
    monomials_upper,
    published_bounds,
    swaps_upper,
    unraveled_upper,
)
from shapelaw.theory.rank_formulas import one_head
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
@settings(max_examples=100, deadline=None, derandomize=True)
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
@settings(max_examples=80, deadline=None, derandomize=True)
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


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.sampled_from([2, 4]), st.booleans())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_no_product_network_violates_its_bound(degree, depth, width, tokens, mixing):
    network = ProductNetwork(degree, depth, width, tokens, mixing)
    assume(network.rank_bound() <= 150)
    found = separation_rank(network)
    assert found.exact
    assert found.rank <= found.upper_bound
    if not mixing:
        assert found.rank == found.upper_bound


def test_the_first_regime_lies_between_the_bounds_and_far_above_the_lower_one():
    network = LinearAttention(1, 5, 10)
    lower, upper = (early_lower(1, 5, 1), early_upper(1, 5, 1))
    assert lower < log3(separation_rank(network).rank) == pytest.approx(upper)
    two = LinearAttention(2, 10, 20)  # its rank is this bound: benchmarks/separation_rank.py
    assert early_lower(2, 10, 1) < 1.4 < 6.9 < log3(two.rank_bound()) < 7.0 < 8.7 < early_upper(2, 10, 1)


def functions_of_random_weights(d, depth, *, residual=False, count=40):
    """How many linearly independent functions of one half random weights of a network of d numbers give."""
    prime, rng = PRIMES[0], np.random.default_rng(3)
    inputs = random_residues(rng, (4, d, count), prime)
    nothing = np.zeros((4, d, 1), dtype=np.uint64)
    values = []
    for _ in range(count):
        layers = [Layer(*(random_maps(rng, 1, d, d, prime) for _ in range(2))) for _ in range(depth)]
        values.append(outputs(inputs, nothing, (), layers, Output(0, 0, residual), prime)[:, 0])
    return rank(np.array(values), prime)


def test_functions_that_the_proof_of_theorem_4_takes_for_one():
    """It counts d ((d, 2C)) functions: at d = 2, L = 2 these are 18. Random weights span 30, d ((d (d + 1) / 2, C))."""
    assert functions_of_random_weights(2, 2) == 2 * multiset(3, 4) == 30
    assert 2 * multiset(2, 8) == 18


def test_the_same_gap_in_theorem_6_of_depth_width():
    """Its proof takes theorem 4's groups for each degree 2j + 1, j from 1 to C: at d = 2, L = 2 these are 48 functions.

    Random weights of a residual network span 68, and the entry of x_i, which all of them have in them alike.
    """
    groups = sum(2 * multiset(2, 2 * degree) for degree in range(1, 5))
    spanned = sum(2 * multiset(3, degree) for degree in range(1, 5))
    assert (groups, spanned) == (48, 68)
    assert functions_of_random_weights(2, 2, residual=True, count=100) == spanned + 1 > groups + 1


def test_the_same_gap_in_theorem_3_of_vocabulary():
    """Without positions it groups by the powers of the r coordinates alone, the output token's among them.

    So it says that all outputs are combinations of ((r, 3^L)) functions: at r = 2, L = 2 these are 10, and random
    weights span 30.
    """
    assert multiset(2, 3**2) == 10 < functions_of_random_weights(2, 2)


def test_where_the_bounds_would_fail_if_the_closed_form_keeps_holding():
    """No such rank can be measured: an extrapolation. The first depth up to 7 for each width."""

    def first_failures(bound, widths=range(1, 12)):
        found = {}
        for d in widths:
            depths = [L for L in range(1, 8) if log3(one_head(L, d)) > bound(L, d)]
            if depths:
                found[d] = depths[0]
        return found

    assert first_failures(monomials_upper) == {5: 7, 6: 6, 7: 6, 8: 6, 9: 5, 10: 5, 11: 5}
    assert first_failures(lambda L, d: monomials_upper(L, d, True)) == {6: 7, 7: 6, 8: 6, 9: 6, 10: 6, 11: 6}
    assert first_failures(lambda L, d: bottleneck_upper(L, d, 0)) == {8: 7, 9: 7, 10: 7, 11: 6}
    assert first_failures(bottleneck_scale) == {11: 7}


def test_theorem_4_of_vocabulary_fails_where_a_partition_splits_patches():
    """It says any partition of the M inputs; at d = 1, L = 1, N = 40 it allows 80, and the rank is 2 N + 2 = 82."""
    odd = tuple(range(1, 80, 2))
    network = LinearAttention(1, 1, 40, embedding="convolution", patch=2, input_dim=1, partition=odd)
    found = separation_rank(network)
    assert (found.rank, found.exact) == (82, True)
    (bound,) = [b for b in published_bounds(network) if b.source == "vocabulary, theorem 4"]
    assert 3**bound.log3 == pytest.approx(80)
