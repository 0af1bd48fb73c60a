"""Bounds against the paper's numbers, the rank of Z against propositions 1, 2 and 5, and sampled Kruskal ranks."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small import listed

from shapelaw.errors import UserError
from shapelaw.models.memorizer import forward, initial_parameters, positions
from shapelaw.specs.memorizers import Memorizer
from shapelaw.theory.memorization import (
    TOLERANCE,
    attention_params,
    capacity_bounds,
    constant_sum_rank,
    context_values,
    equal_relu_units,
    free_params,
    kruskal_pass_rate,
    kruskal_rank_estimate,
    memorizable_examples,
    numerical_rank,
    relu_examples,
    relu_params,
    shared_context_rank,
    smallest_values,
    theorem_warnings,
)


def uniform_examples(n_examples, context, width, seed, *, shared=True, constant_sum=None):
    """Contexts (n, d) or (T, n, d) and queries (T, d), uniform(0, 1) as the paper's; tokens may be given one sum."""
    rng = np.random.default_rng(seed)
    contexts = rng.random((context, width) if shared else (n_examples, context, width))
    if constant_sum is not None:
        contexts += (constant_sum - contexts.sum(axis=-1, keepdims=True)) / width
    return contexts, rng.random((n_examples, width))


def random_heads(heads, width, head_dim, seed):
    """`w_k`, `w_q` (H, d, d_h) that give logits of a standard deviation of about 3 on uniform data."""
    rng = np.random.default_rng([seed, 1])
    return rng.standard_normal((2, heads, width, head_dim)) * 3.0 / np.sqrt(width) / head_dim**0.25


def head_outputs(contexts, queries, w_k, w_q):
    """The matrix Z, (T, H d): each head's convex combination of the context tokens (eqs. 1 to 3 and 7)."""
    contexts_TnD = np.broadcast_to(contexts, (len(queries), *contexts.shape[-2:]))
    queries_HTk = queries @ w_q
    logits_THn = np.stack(
        [(contexts_TnD @ k @ q[..., None])[..., 0] for k, q in zip(w_k, queries_HTk, strict=True)], 1
    )
    weights_THn = np.exp(logits_THn - logits_THn.max(axis=-1, keepdims=True))
    weights_THn /= weights_THn.sum(axis=-1, keepdims=True)
    return (weights_THn @ contexts_TnD).reshape(len(queries), -1)


sizes = st.integers(1, 60)
MARGIN = 5.0  # how far the tolerance must be movable for a rank to count as exact


@pytest.mark.parametrize(("given", "examples"), listed("theory/known.yaml", "examples"))
def test_examples_that_can_be_memorized(given, examples):
    assert memorizable_examples(*given) == examples


@given(sizes, sizes, sizes, sizes)
@settings(max_examples=200)
def test_the_bounds_are_in_order(heads, context, head_dim, more_width):
    width = max(context, head_dim) + more_width
    least = memorizable_examples(heads, context, head_dim)
    assert least <= shared_context_rank(heads, context) <= constant_sum_rank(heads, width)
    if head_dim >= context:
        assert least == shared_context_rank(heads, context)
    one_more = memorizable_examples(heads + 1, context, head_dim) - least
    assert one_more == min(context, head_dim) - 1


def test_relu_networks():
    assert relu_examples(context=32, relu_units=78, outputs=1) == 33 * 78 + 79
    assert relu_examples(context=4, relu_units=3, outputs=2) == 11  # 7.5 + 4, rounded down
    assert attention_params(20, 64, 64) == 2 * 20 * 64 * 64 + 20 * 64 + 64
    assert attention_params(2, 8, 4, outputs=3) == 2 * 2 * 8 * 4 + 2 * 8 * 3 + 8 * 3


@given(st.integers(1, 10**6), sizes, sizes, sizes)
@settings(max_examples=200)
def test_equal_units_are_the_most_that_fit(params, context, width, outputs):
    units = equal_relu_units(params, context, width, outputs)
    assert relu_params(context, width, units + 1, outputs) > params
    assert units == 0 or relu_params(context, width, units, outputs) <= params


@pytest.mark.parametrize(("sizes", "words"), listed("theory/mistakes.yaml", "capacity_bounds"))
def test_sizes_that_cannot_be(sizes, words):
    with pytest.raises(UserError, match=words):
        capacity_bounds(**sizes)


def test_warnings():
    assert theorem_warnings(32, 64, 32) == []
    assert "n < d" in theorem_warnings(64, 64, 32)[0]
    assert "remark 1" in theorem_warnings(32, 64, 8, kruskal_rank=24)[0]
    assert "above 32 adds nothing" in theorem_warnings(32, 64, 33)[0]
    assert "at most d = 64" in theorem_warnings(32, 64, 32, outputs=100)[0]
    assert "adds no example" in theorem_warnings(32, 64, 1)[0]


shapes = st.tuples(
    st.integers(2, 8), st.integers(1, 4), st.integers(2, 8), st.integers(-2, 5), st.integers(0, 10**6)
)


@given(shapes)
@settings(max_examples=40)
def test_with_a_shared_context_random_heads_reach_proposition_2_and_never_more(case):
    context, heads, head_dim, beyond, seed = case
    most = shared_context_rank(heads, context)
    examples = max(1, most + beyond)
    data = uniform_examples(examples, context, 9, seed)
    rank = numerical_rank(head_outputs(*data, *random_heads(heads, 9, head_dim, seed)))
    assert rank.rank == min(most, examples)
    assert rank.margin > MARGIN
    assert rank.rank >= min(memorizable_examples(heads, context, head_dim), examples)  # proposition 1


@given(shapes, st.floats(-3.0, 9.0))
@settings(max_examples=30)
def test_with_constant_sums_random_heads_reach_proposition_5_and_never_more(case, constant_sum):
    context, heads, head_dim, beyond, seed = case
    most = constant_sum_rank(heads, 9)
    data = uniform_examples(most + beyond, context, 9, seed, shared=False, constant_sum=constant_sum)
    rank = numerical_rank(head_outputs(*data, *random_heads(heads, 9, head_dim, seed)))
    expected = min(most, most + beyond)
    if abs(constant_sum) > 0.1:
        assert rank.rank == expected
        assert rank.margin > MARGIN
    assert rank.rank <= expected


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 12), st.integers(0, 10**6))
@settings(max_examples=60)
def test_the_rank_of_a_product_is_its_inner_size(rows, columns, inner, seed):
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((size, size)))[0] for size in (rows, columns))
    inner = min(rows, columns, inner)
    values = np.geomspace(1.0, 1e-6, inner) if inner else np.zeros(0)
    found = numerical_rank(7.0 * (left[:, :inner] * values) @ right[:inner])
    assert found.rank == inner
    if inner:
        assert found.largest == pytest.approx(7.0)
        assert found.kept == pytest.approx(values[-1], rel=1e-6)
        assert found.margin > 1e3


def test_a_rank_says_how_far_the_tolerance_is_from_its_neighbours():
    found = numerical_rank(np.diag([2.0, 2e-4, 2e-9]), tolerance=1e-6)
    assert (found.rank, found.kept, found.dropped) == (2, pytest.approx(1e-4), pytest.approx(1e-9))
    assert found.margin == pytest.approx(100.0)
    assert numerical_rank(np.diag([2.0, 2e-4, 2e-9]), tolerance=1e-3).rank == 1
    assert numerical_rank(np.diag([2.0, 2e-4, 2e-9]), tolerance=1e-10).rank == 3
    assert numerical_rank(np.zeros((3, 4))).rank == 0


def gaussian(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@given(st.integers(1, 10), st.integers(0, 10**6))
@settings(max_examples=20)
def test_vectors_of_a_subspace(rank, seed):
    vectors = gaussian(30, rank, seed=seed) @ gaussian(rank, 11, seed=seed + 1)
    assert kruskal_rank_estimate(vectors, 100) == rank
    assert kruskal_pass_rate(vectors, rank, 100).rate == 1.0
    assert kruskal_pass_rate(vectors, rank + 1, 100).rate == 0.0
    assert not kruskal_pass_rate(vectors, 11, 100).holds


def test_the_rate_is_the_share_of_independent_subsets():
    """Two equal vectors among ten: a subset fails if it holds both."""
    vectors = gaussian(10, 6)
    vectors[7] = vectors[2]
    found = kruskal_pass_rate(vectors, 4, 4_000, seed=1)
    exact = 1 - comb(8, 2) / comb(10, 4)
    assert found.rate == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4_000))


@given(st.integers(2, 6), st.floats(-14, -1), st.integers(0, 10**6))
@settings(max_examples=30)
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


@pytest.mark.parametrize(
    ("vectors", "size", "rate", "decomposed"),
    [
        (gaussian(60, 30), 20, 1.0, 0),
        (gaussian(60, 30) * np.geomspace(1.0, 1e-9, 30), 28, 1.0, 100),
        (np.tile(gaussian(1, 12), (50, 1)), 2, 0.0, 0),
    ],
)
def test_subsets_beyond_doubt_need_no_decomposition(vectors, size, rate, decomposed, monkeypatch):
    made, svd = [0], np.linalg.svd

    def counting(matrices, **options):
        made[0] += len(matrices) if matrices.ndim == 3 else 0
        return svd(matrices, **options)

    monkeypatch.setattr(np.linalg, "svd", counting)
    assert kruskal_pass_rate(vectors, size, 100, tolerance=1e-13).rate == rate
    assert made == [decomposed]


def test_ranks_of_contexts():
    contexts = gaussian(9, 5, 8)
    contexts[4, 0] = contexts[4, 1] + contexts[4, 2]
    contexts[6] = 0.0
    contexts[7] *= np.array([1.0, 1.0, 1.0, 1e-6, 1e-12])[:, None]
    values = context_values(contexts)
    assert (values > TOLERANCE).sum(axis=1).tolist() == [5, 5, 5, 5, 4, 5, 0, 4, 5]
    assert (values[7] > 1e-4).sum() == 3


@pytest.mark.parametrize(("size", "trials"), [(0, 10), (11, 10), (3, 0)])
def test_subsets_that_cannot_be_drawn(size, trials):
    with pytest.raises(UserError, match=r"can't be drawn from 10|at least 1 is needed"):
        kruskal_pass_rate(gaussian(10, 4), size, trials)
    with pytest.raises(UserError, match=r"can't be drawn from 10|at least 1 is needed"):
        smallest_values(gaussian(10, 4), size, trials)


@given(st.integers(1, 14), st.floats(-12, -1), st.integers(0, 10**6))
@settings(max_examples=30)
def test_smallest_values_give_the_rate_at_any_tolerance(size, exponent, seed):
    vectors = gaussian(15, 12, seed=seed) * np.r_[np.ones(6), np.full(6, 10.0**exponent)]
    found = smallest_values(vectors, size, 60, seed)
    for tolerance in (1e-11, 1e-7, 1e-3):
        assert kruskal_pass_rate(vectors, size, 60, seed, tolerance).rate == (found > tolerance).mean()


def test_arrays_that_are_no_vectors():
    for wrong in (np.ones(3), np.ones((0, 3)), np.full((2, 2), np.nan)):
        for measure in (numerical_rank, lambda vectors: kruskal_pass_rate(vectors, 1)):
            with pytest.raises(ValueError, match=r"vectors must be finite and of shape \(N, d\)"):
                measure(wrong)
    with pytest.raises(ValueError, match="contexts must be finite"):
        context_values(np.ones((3, 4)))
    for tolerance in (0.0, 1.0):
        with pytest.raises(ValueError, match="tolerance"):
            kruskal_rank_estimate(gaussian(10, 4), tolerance=tolerance)


def test_equal_and_zero_vectors_have_rank_one_and_none():
    """Equal ones are the [CLS] tokens of an embedding layer."""
    vectors = np.tile(gaussian(1, 12), (50, 1))
    assert (kruskal_rank_estimate(vectors, 100), kruskal_rank_estimate(0 * vectors, 50)) == (1, 0)
    assert smallest_values(0 * vectors, 2, 3).tolist() == [0.0, 0.0, 0.0]
    assert kruskal_pass_rate(vectors, 2, 5_000).rate == 0.0


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("heads", "context", "head_dim", "outputs"),
    [(2, 4, 6, 5), (2, 4, 2, 5), (3, 3, 1, 4), (1, 5, 6, 4), (4, 2, 3, 5), (2, 1, 3, 4)],
)
def test_free_parameters_are_the_rank_of_the_jacobian(heads, context, head_dim, outputs, shared):
    m = Memorizer(heads, context, head_dim, width=6, value_dim=1, outputs=outputs, logit_scale="width")
    parameters = {name: 2 * values[None] for name, values in initial_parameters(m, 0, torch.float64).items()}
    generator = torch.Generator().manual_seed(0)
    queries, contexts = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((1, 120, 6), (1, context, 6) if shared else (1, 120, context, 6))
    )

    def log_probabilities(*values):
        named = dict(zip(parameters, values, strict=True))
        outputs_PBc, _ = forward(named, m, positions(m, torch.float64), queries, contexts)
        return torch.log_softmax(outputs_PBc, -1).flatten()

    parts = torch.autograd.functional.jacobian(log_probabilities, tuple(parameters.values()))
    jacobian = torch.cat([part.flatten(1) for part in parts], 1)
    assert numerical_rank(jacobian.numpy(), 1e-11).rank == free_params(m, shared=shared) < m.total_params


def test_free_parameters_are_known_for_the_published_sizes():
    assert free_params(Memorizer(20, 1, 64, value_dim=1), shared=True) == 99
    assert free_params(Memorizer(20, 32, 64, value_dim=1), shared=True) == 42_423
    with pytest.raises(UserError, match="d_v = 1"):
        free_params(Memorizer(20, 32, 64), shared=True)
