"""The gradients that are written out, and those of the benchmark without one idea each, against autograd."""

from dataclasses import replace

import pytest
import torch
from batched_memorizers import pack, problem, shapes
from hypothesis import given, settings
from hypothesis import strategies as st
from pack_without import WITHOUT

from shapelaw.models.memorizer import gradients, parameter_shapes, positions
from shapelaw.models.memorizer_gradients import per_example_gradients, shared_gradients
from shapelaw.specs.memorizers import Memorizer


@settings(max_examples=40, deadline=None)
@given(shapes, st.booleans())
def test_the_written_gradients_are_those_of_autograd(m: Memorizer, shared: bool) -> None:
    m = replace(m, attend_to_query=False, value_dim=m.value_dim if shared else 1)
    p, place = pack(m, 3), positions(m, torch.float64)
    queries, contexts, labels = problem(m, 3, 5, shared)
    written = shared_gradients if shared else per_example_gradients
    loss, found = written(p, m, place, queries, contexts, labels)
    expected_loss, expected = gradients(p, m, place, queries, contexts, labels)
    torch.testing.assert_close(loss, expected_loss, rtol=1e-12, atol=1e-12)
    assert list(found) == list(expected) == list(parameter_shapes(m))
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", WITHOUT)
def test_the_pack_without_an_idea_is_the_same_pack(name: str) -> None:
    m = Memorizer(heads=3, context=6, head_dim=4, width=8, value_dim=1, outputs=5, logit_scale="width")
    p, place = pack(m, 2), positions(m, torch.float64)
    queries, contexts, labels = problem(m, 2, 7, True)
    loss, found = WITHOUT[name](p, m, place, queries, contexts, labels)
    expected_loss, expected = gradients(p, m, place, queries, contexts, labels)
    torch.testing.assert_close(loss, expected_loss, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
