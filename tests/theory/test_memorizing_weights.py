"""The weights of the proof of theorem 1 memorize every example, in the model that is trained."""

import numpy as np
import pytest
import torch
from built_memorizers import embedded, parameters_of
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.models.memorizer import forward, positions
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.theory.memorization import memorizable_examples, shared_context_rank
from shapelaw.theory.memorizing_weights import limit_rank, memorizing_weights
from shapelaw.theory.polynomials import PRIMES
from shapelaw.training.memorizer_pack import draw_examples

WIDTH = 16


def run_of(
    heads: int, context: int, head_dim: int, context_type: str, extra: int = 0, seed: int = 0
) -> MemorizationRun:
    examples = memorizable_examples(heads, context, head_dim) + extra
    shape = Memorizer(heads, context, head_dim, WIDTH, outputs=5)
    return MemorizationRun(shape, "classification", context_type, examples, 1, seed, precision="float64")


shapes = st.tuples(st.integers(1, 5), st.integers(2, 12), st.integers(2, 14))


@settings(max_examples=25)
@given(shapes, st.sampled_from(["shared", "per_example"]), st.integers(0, 9))
def test_every_example_is_memorized_and_the_rank_is_exact(shape, context_type, seed):
    run = run_of(*shape, context_type, seed=seed)
    examples = draw_examples(run)
    queries, contexts = embedded(run.memorizer, examples)
    weights = memorizing_weights(queries, contexts, run.memorizer.heads, run.memorizer.head_dim, seed)
    assert limit_rank(contexts, weights.parts, PRIMES[0]) == run.examples
    labels = np.eye(5)[examples.labels]
    pack = {name: value[None] for name, value in parameters_of(run.memorizer, weights, labels).items()}
    place = positions(run.memorizer, torch.float64)
    outputs, attention = forward(pack, run.memorizer, place, examples.queries[None], examples.contexts[None])
    assert np.abs(outputs[0].numpy() - labels).max() < 1e-6
    first = min(run.memorizer.context, run.memorizer.head_dim)
    assert (attention[0, :first, 1:].max(-1).values > 1 - 1e-5).all(), (
        "further heads give the first ones one token each"
    )


@pytest.mark.parametrize("context_type", ["shared", "per_example"])
def test_a_skip_connection_memorizes_as_many(context_type):
    """Remark 2, in the equation of appendix C; without the queries taken off, the labels are missed."""
    run = run_of(3, 6, 5, context_type)
    examples = draw_examples(run)
    queries, contexts = embedded(run.memorizer, examples)
    weights = memorizing_weights(queries, contexts, 3, 5)
    labels = np.eye(5)[examples.labels]

    def largest_error(read_out):
        return np.abs(weights.outputs @ read_out + queries[:, :5] - labels).max()

    assert largest_error(weights.read_out(labels, skipped=queries)) < 1e-6
    assert largest_error(weights.read_out(labels)) > 0.1


def test_one_more_example_of_a_shared_context_is_beyond_the_rank():
    run = run_of(3, 4, 8, "shared", extra=1)
    queries, contexts = embedded(run.memorizer, draw_examples(run))
    with pytest.raises(ValueError, match="at most 10"):
        memorizing_weights(queries, contexts, 3, 8)
    more = memorizing_weights(
        queries, contexts, 4, 8
    )  # its first three heads have a rank of 10 for 11 examples
    assert limit_rank(contexts, more.parts[:, :3], PRIMES[0]) == 10 == shared_context_rank(3, 4)
