"""The random examples of memorizers, and the order in which steps take them."""

import math
from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from memorizer_options import RUN, SMALL

from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.training.examples import NONE, draw_examples, example_order


@given(
    examples=st.integers(1, 40),
    batch=st.integers(1, 16),
    first=st.integers(0, 30),
    seed=st.integers(0, 2**31),
)
@settings(deadline=None)
def test_every_epoch_takes_every_example_once(examples: int, batch: int, first: int, seed: int) -> None:
    run = replace(RUN, examples=examples, batch_size=batch, seed=seed)
    order = example_order(run, 0, 40)
    taken = order.ravel()
    for epoch in range(len(taken) // examples):
        assert sorted(taken[epoch * examples : (epoch + 1) * examples]) == list(range(examples))
    assert np.array_equal(example_order(run, first, 40 - first), order[first:])  # wherever it begins
    short = example_order(replace(run, last_batch="short"), 0, 40)
    steps = math.ceil(examples / run.batch)
    for epoch in range(40 // steps):
        batches = short[epoch * steps : (epoch + 1) * steps]
        assert np.array_equal(batches[batches != NONE], taken_of(run, epoch))
        assert (batches[:-1] != NONE).all()  # only the last one is short


def taken_of(run: MemorizationRun, epoch: int) -> np.ndarray:
    """An epoch's order, where batches are filled."""
    alone = replace(run, batch_size=run.examples)  # one batch an epoch
    return np.asarray(example_order(alone, epoch, 1)[0])


def test_more_examples_begin_with_those_of_fewer() -> None:
    for context_type in ("shared", "per_example"):
        fewer, more = (
            draw_examples(replace(RUN, context_type=context_type, examples=examples)) for examples in (20, 60)
        )
        assert torch.equal(more.queries[:20], fewer.queries)
        assert torch.equal(more.labels[:20], fewer.labels)
        assert torch.equal(more.contexts[: len(fewer.contexts)], fewer.contexts)
        assert more.labels.max() < SMALL.outputs
