"""Sampled Kruskal ranks of sets whose answer is known, and certificates that never change one."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_examples import uniform_examples

from shapelaw.errors import UserError
from shapelaw.theory.memorization import (
    TOLERANCE,
    context_values,
    kruskal_pass_rate,
    kruskal_rank_estimate,
    numerical_rank,
    smallest_values,
)


def gaussian(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_random_vectors_are_in_general_position():
    vectors = gaussian(40, 12)
    assert kruskal_rank_estimate(vectors, 200) == 12
    assert kruskal_pass_rate(vectors, 12, 200).rate == 1.0
    assert kruskal_pass_rate(vectors, 13, 200).rate == 0.0


@given(st.integers(1, 10), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_vectors_of_a_subspace(rank, seed):
    vectors = gaussian(30, rank, seed=seed) @ gaussian(rank, 11, seed=seed + 1)
    assert kruskal_rank_estimate(vectors, 100) == rank
    assert kruskal_pass_rate(vectors, rank, 100).rate == 1.0
    assert kruskal_pass_rate(vectors, rank + 1, 100).rate == 0.0
    assert not kruskal_pass_rate(vectors, 11, 100).holds


def test_equal_vectors_have_rank_one():
    """The [CLS] tokens of an embedding layer."""
    vectors = np.tile(gaussian(1, 12), (50, 1))
    assert kruskal_rank_estimate(vectors, 100) == 1
    found = kruskal_pass_rate(vectors, 2, 5_000)
    assert (found.rate, found.decomposed) == (0.0, 0)


def test_a_zero_vector_leaves_no_rank():
    assert kruskal_rank_estimate(np.zeros((5, 4)), 50) == 0


def test_the_rate_is_the_share_of_independent_subsets():
    """Two equal vectors among ten: a subset fails if it holds both."""
    vectors = gaussian(10, 6)
    vectors[7] = vectors[2]
    found = kruskal_pass_rate(vectors, 4, 4_000, seed=1)
    exact = 1 - comb(8, 2) / comb(10, 4)
    assert found.rate == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4_000))
    assert found.smallest < 1e-15


@given(st.integers(2, 6), st.floats(-14, -1), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_certificates_agree_with_singular_values(size, exponent, seed):
    """Sets with a nearly dependent direction: all subsets by hand, at tolerances on either side."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((7, 6)) * np.r_[np.ones(size - 1), np.full(7 - size, 10.0**exponent)]
    ratios = []
    for subset in combinations(range(7), size):
        values = np.linalg.svd(vectors[list(subset)], compute_uv=False)
        ratios.append(values[-1] / values[0])
    for tolerance in (1e-13, 1e-10, 1e-7, 1e-4, 1e-2):
        if any(0.9 < ratio / tolerance < 1.1 for ratio in ratios):
            continue
        found = kruskal_pass_rate(vectors, size, 300, seed, tolerance)
        exact = np.mean([ratio > tolerance for ratio in ratios])
        if exact in (0.0, 1.0):
            assert found.rate == exact
        else:
            assert found.rate == pytest.approx(exact, abs=0.15)


def test_each_subset_is_judged_as_its_singular_values_judge_it():
    vectors = gaussian(60, 30) * np.geomspace(1.0, 1e-9, 30)
    for tolerance in (1e-11, 1e-8, 1e-6):
        found = kruskal_pass_rate(vectors, 24, 150, seed=3, tolerance=tolerance)
        rng, passed = np.random.default_rng(3), 0
        for _ in range(150):
            subset = rng.choice(60, 24, replace=False, shuffle=False)
            passed += numerical_rank(vectors[subset], tolerance).rank == 24
        assert found.rate == passed / 150


def test_subsets_beyond_doubt_need_no_decomposition():
    found = kruskal_pass_rate(gaussian(60, 30), 20, 100)
    assert (found.rate, found.decomposed) == (1.0, 0)
    near = kruskal_pass_rate(gaussian(60, 30) * np.geomspace(1.0, 1e-9, 30), 28, 100)
    assert near.decomposed == 100
    assert 1e-12 < near.smallest < 1e-8


def test_the_seed_decides():
    vectors = gaussian(10, 6)
    vectors[7] = vectors[2]
    one, same, other = (kruskal_pass_rate(vectors, 4, 500, seed).rate for seed in (1, 1, 2))
    assert one == same != other


def test_ranks_of_contexts():
    contexts = gaussian(9, 5, 8)
    contexts[4, 0] = contexts[4, 1] + contexts[4, 2]
    contexts[6] = 0.0
    contexts[7] *= np.array([1.0, 1.0, 1.0, 1e-6, 1e-12])[:, None]
    values = context_values(contexts)
    assert (values > TOLERANCE).sum(axis=1).tolist() == [5, 5, 5, 5, 4, 5, 0, 4, 5]
    assert (values[7] > 1e-4).sum() == 3


def test_one_query_for_all_fails_assumption_1_and_mixing_mends_it():
    """Section 4.4: the embedding layer, and proposition 4 on what one attention layer makes of it."""
    contexts, queries = uniform_examples(40, 6, 12, seed=0, shared=False)
    queries[:] = queries[0]
    assert not kruskal_pass_rate(queries, 6, 200).holds
    assert kruskal_pass_rate(queries + contexts.mean(axis=1), 6, 200).holds


def test_uniform_examples_keep_all_assumptions():
    contexts, queries = uniform_examples(80, 32, 64, seed=0)
    assert kruskal_pass_rate(queries, 32, 100).holds
    assert kruskal_pass_rate(queries, 64, 100).holds
    assert (context_values(contexts[None]) > TOLERANCE).all()


@pytest.mark.parametrize(("size", "trials"), [(0, 10), (11, 10), (3, 0)])
def test_subsets_that_cannot_be_drawn(size, trials):
    with pytest.raises(UserError, match=r"can't be drawn from 10|at least 1 is needed"):
        kruskal_pass_rate(gaussian(10, 4), size, trials)


def test_arrays_that_are_no_vectors():
    for wrong in (np.ones(3), np.ones((0, 3)), np.full((2, 2), np.nan)):
        with pytest.raises(ValueError, match="finite"):
            kruskal_pass_rate(wrong, 1)
    with pytest.raises(ValueError, match="contexts must be finite"):
        context_values(np.ones((3, 4)))
    with pytest.raises(ValueError, match="tolerance"):
        kruskal_rank_estimate(gaussian(10, 4), tolerance=1.0)


@given(st.integers(1, 14), st.floats(-12, -1), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_smallest_values_give_the_rate_at_any_tolerance(size, exponent, seed):
    vectors = gaussian(15, 12, seed=seed) * np.r_[np.ones(6), np.full(6, 10.0**exponent)]
    found = smallest_values(vectors, size, 60, seed)
    for tolerance in (1e-11, 1e-7, 1e-3):
        assert kruskal_pass_rate(vectors, size, 60, seed, tolerance).rate == (found > tolerance).mean()


def test_smallest_values_of_zero_vectors():
    assert smallest_values(np.zeros((5, 4)), 2, 3).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(UserError, match="can't be drawn from 5"):
        smallest_values(np.zeros((5, 4)), 6, 3)


def test_values_of_contexts_are_relative():
    contexts = gaussian(3, 5, 8) * np.array([1e-3, 1.0, 1e9])[:, None, None]
    values = context_values(contexts)
    assert values.shape == (3, 5)
    assert values[:, 0].tolist() == [1.0, 1.0, 1.0]
    expected = np.linalg.svd(contexts[2], compute_uv=False)
    np.testing.assert_allclose(values[2], expected / expected[0], rtol=1e-12)
