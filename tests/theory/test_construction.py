"""Theorem 1 as a construction: it memorizes, by the proof's means, whatever the labels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_examples import uniform_examples

from shapelaw.errors import UserError
from shapelaw.theory.construction import memorize
from shapelaw.theory.memorization import attention_weights, head_outputs, memorizable_examples

cases = st.tuples(
    st.integers(1, 5),  # heads
    st.integers(1, 8),  # context
    st.integers(1, 9),  # head dimension
    st.booleans(),  # shared
    st.integers(0, 10**6),
)


@given(cases, st.integers(1, 3))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_as_many_examples_as_the_theorem_promises(case, outputs):
    heads, context, head_dim, shared, seed = case
    examples = memorizable_examples(heads, context, head_dim)
    data = uniform_examples(examples, context, 9, seed, shared=shared)
    labels = np.random.default_rng(seed).standard_normal((examples, outputs))
    found = memorize(*data, labels, heads, head_dim)
    assert found.layer.outputs(*data) == pytest.approx(labels, abs=1e-8)
    assert found.rank.rank == examples
    assert found.layer.w_k.shape == (heads, 9, head_dim)


@given(cases)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_by_the_means_of_the_proof(case):
    """Each head has its r - 1 examples (the first one r), and takes one token of every other example."""
    heads, context, head_dim, shared, seed = case
    r, examples = min(context, head_dim), memorizable_examples(heads, context, head_dim)
    data = uniform_examples(examples, context, 9, seed, shared=shared)
    found = memorize(*data, np.zeros(examples), heads, head_dim)
    counts = np.bincount(found.responsible, minlength=heads)
    assert counts.tolist() == [r] + [r - 1] * (heads - 1)
    theta = attention_weights(*data, found.layer.w_k, found.layer.w_q)
    foreign = np.arange(heads)[None] != found.responsible[:, None]
    foreign[:, 0] = False
    if r > 1:
        assert 2 * (1 - theta.max(axis=2)[foreign]).max(initial=0.0) == pytest.approx(found.saturation)
        assert found.saturation < 2e-9
    own = theta[np.arange(examples), found.responsible].max(axis=1)
    assert own == pytest.approx(1 / (1 + (context - 1) * math.exp(-4.0)), abs=1e-6)


def test_the_same_weights_fit_any_labels():
    """What is built from the data alone are the keys and queries; the labels enter the values only."""
    data = uniform_examples(29, 8, 16, seed=3)
    one, other = (memorize(*data, labels, 4, 8) for labels in (np.arange(29.0), np.eye(29)[:, :10]))
    assert (one.layer.w_k == other.layer.w_k).all()
    assert one.layer.outputs(*data)[:, 0] == pytest.approx(np.arange(29.0), abs=1e-7)
    assert (other.layer.outputs(*data).argmax(axis=1)[:10] == np.arange(10)).all()


@pytest.mark.parametrize("shared", [True, False])
def test_the_papers_head(shared):
    """n = 32, d = 64, and four heads: 125 examples."""
    data = uniform_examples(125, 32, 64, seed=0, shared=shared)
    labels = np.random.default_rng(0).random(125)
    found = memorize(*data, labels, 4, 64)
    assert found.max_error < 1e-11
    assert found.rank.rank == 125
    assert found.rank.margin > 1e3


@pytest.mark.parametrize(("scale", "divisor"), [("width", 4.0), ("head_dim", math.sqrt(6.0))])
def test_scaled_logits(scale, divisor):
    data = uniform_examples(21, 8, 16, seed=5)
    plain, scaled = (memorize(*data, np.arange(21.0), 4, 6, scale=s) for s in ("none", scale))
    assert scaled.layer.w_k == pytest.approx(plain.layer.w_k * divisor)
    assert scaled.layer.outputs(*data)[:, 0] == pytest.approx(np.arange(21.0), abs=1e-6)


def test_fewer_examples_and_wider_values():
    data = uniform_examples(10, 8, 16, seed=6)
    found = memorize(*data, np.arange(20.0).reshape(10, 2), 5, 8, value_dim=7)
    assert found.layer.w_v.shape == (5, 16, 7)
    assert found.layer.w_o.shape == (35, 16)
    assert found.layer.w_d.shape == (16, 2)
    assert found.max_error < 1e-9
    values = np.einsum(
        "thd,hdv->thv",
        head_outputs(*data, found.layer.w_k, found.layer.w_q).reshape(10, 5, 16),
        found.layer.w_v,
    )
    assert (values[:, :, 2:] == 0).all()


def test_queries_of_a_low_kruskal_rank():
    """Remark 1: queries in a space of dimension Q < n."""
    heads, context, kruskal_rank = 4, 8, 5
    examples = memorizable_examples(heads, context, 8, kruskal_rank)
    contexts, queries = uniform_examples(examples, context, 12, seed=7)
    queries = queries[:, :kruskal_rank] @ np.random.default_rng(7).standard_normal((kruskal_rank, 12))
    found = memorize(contexts, queries, np.arange(float(examples)), heads, 8, kruskal_rank=kruskal_rank)
    assert (examples, found.rank.rank) == (17, 17)
    assert found.max_error < 1e-9
    with pytest.raises(UserError, match=r"The 8 queries of examples 0 to 7 .* rank is 5"):
        memorize(contexts, queries, np.arange(float(examples)), heads, 8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heads": 3}, "22 examples are more than the 19"),
        ({"head_dim": 4}, "22 examples are more than the 13"),
        ({"heads": 0}, "heads = 0"),
        ({"labels": np.zeros((22, 13))}, "Labels of 13 numbers"),
        ({"labels": np.zeros((22, 3)), "value_dim": 2}, "Labels of 3 numbers"),
        ({"tolerance": 1e-30}, "does not reach the labels"),
    ],
)
def test_what_the_theorem_does_not_promise(change, words):
    contexts, queries = uniform_examples(22, 7, 12, seed=8)
    arguments = {"labels": np.arange(22.0) / 7, "heads": 4, "head_dim": 7, **change}
    if "heads" not in change and "head_dim" not in change:
        memorize(contexts, queries, np.arange(22.0) / 7, 4, 7)
    with pytest.raises(UserError, match=words):
        memorize(contexts, queries, **arguments)


def test_data_that_break_the_assumptions():
    contexts, queries = uniform_examples(22, 7, 12, seed=8, shared=False)
    labels = np.arange(22.0)
    twice = contexts.copy()
    twice[5, 3] = twice[5, 4]
    with pytest.raises(
        UserError, match="context tokens of example 5 are not linearly independent: their rank is 6"
    ):
        memorize(twice, queries, labels, 4, 7)
    close = queries.copy()
    close[3] = close[2]
    with pytest.raises(UserError, match="queries of examples 0 to 6 are not linearly independent"):
        memorize(contexts, close, labels, 4, 7)
    apart = queries.copy()
    apart[15] = apart[8]  # in the groups of two heads, each of which is independent
    with pytest.raises(UserError, match="No direction separates"):
        memorize(contexts, apart, labels, 4, 7)


def test_more_tokens_than_the_width():
    contexts, queries = uniform_examples(10, 9, 8, seed=9)
    with pytest.raises(UserError, match="The 9 context tokens of example 0"):
        memorize(contexts, queries, np.arange(10.0), 4, 8)


@pytest.mark.parametrize("labels", [np.zeros(21), np.full(22, np.nan), np.zeros((22, 1, 1))])
def test_labels_that_are_no_labels(labels):
    with pytest.raises(ValueError, match="labels must be finite"):
        memorize(*uniform_examples(22, 7, 12, seed=8), labels, 4, 7)
