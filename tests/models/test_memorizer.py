"""The memorizers against the paper's equations written out."""

import pytest
import torch
from batched_memorizers import pack, problem, shapes
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_memorizer import NaiveMemorizer
from torch import Tensor

from shapelaw.models.memorizer import Parameters, forward, gradients, initial_parameters, positions
from shapelaw.models.pack_gradients import losses
from shapelaw.specs.memorizers import Memorizer


def equations(p: Parameters, m: Memorizer, query: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
    """Eqs. 1-6 for one model and one example, head by head: output [c] and attention weights [H, n or n + 1]."""
    place = positions(m, query.dtype)
    e = query @ p["embedding"] + p["embedding_bias"] + place[0]
    tokens = context @ p["embedding"] + p["embedding_bias"] + place[1:]
    if m.attend_to_query:
        tokens = torch.cat([e[None], tokens])
    k, v = m.head_dim, m.values
    outputs, weights = [], []
    for h in range(m.heads):
        w_k, w_v = p["w_k"][:, h * k : (h + 1) * k], p["w_v"][:, h * v : (h + 1) * v]
        alpha = tokens @ w_k @ p["w_q"][h].T @ e * m.scale  # (1)
        theta = torch.softmax(alpha, 0)  # (2)
        z = tokens.T @ theta  # (3)
        outputs.append(w_v.T @ z)  # (4)
        weights.append(theta)
    o = p["w_o"].T @ torch.cat(outputs)  # (5)
    return p["w_d"].T @ o + p["bias"], torch.stack(weights)  # (6)


@settings(max_examples=40, deadline=None)
@given(shapes, st.booleans())
def test_a_pack_is_the_equations_of_each_model(m: Memorizer, shared: bool) -> None:
    p, place = pack(m, 3), positions(m, torch.float64)
    queries, contexts, _ = problem(m, 3, 4, shared)
    outputs, weights = forward(p, m, place, queries, contexts)
    for model in range(3):
        alone = {name: value[model] for name, value in p.items()}
        for b in range(4):
            context = contexts[model] if shared else contexts[model, b]
            output, theta = equations(alone, m, queries[model, b], context)
            torch.testing.assert_close(outputs[model, b], output, rtol=1e-11, atol=1e-11)
            torch.testing.assert_close(weights[model, b], theta, rtol=1e-11, atol=1e-11)


def test_the_number_of_parameters() -> None:
    m = Memorizer(heads=4, context=32, head_dim=16, value_dim=1)
    assert m.total_params == sum(value.numel() for value in initial_parameters(m, 0, torch.float32).values())


def test_initial_parameters_follow_from_the_seed() -> None:
    m = Memorizer(heads=2, context=3, head_dim=4, width=8)
    again, other = (initial_parameters(m, seed, torch.float32) for seed in (1, 2))
    assert all(
        torch.equal(value, again[name]) for name, value in initial_parameters(m, 1, torch.float32).items()
    )
    assert not torch.equal(again["w_q"], other["w_q"])
    assert initial_parameters(m, 1, torch.float32)["w_q"].abs().max() <= (6 / 12) ** 0.5


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("value_dim", [None, 1])
def test_the_naive_model_of_the_benchmark_is_the_same_model(shared: bool, value_dim: int | None) -> None:
    m = Memorizer(
        heads=3, context=6, head_dim=4, width=8, value_dim=value_dim, outputs=5, logit_scale="width"
    )
    p, place = pack(m, 1), positions(m, torch.float64)
    queries, contexts, labels = problem(m, 1, 7, shared)
    naive = NaiveMemorizer(m, {name: value[0] for name, value in p.items()})
    each = contexts[0].expand(7, -1, -1) if shared else contexts[0]
    outputs = naive(torch.cat([queries[0][:, None], each], 1))
    torch.testing.assert_close(outputs, forward(p, m, place, queries, contexts)[0][0], rtol=1e-11, atol=1e-11)
    losses(outputs[None], labels).sum().backward()
    expected = gradients(p, m, place, queries, contexts, labels)[1]
    torch.testing.assert_close(naive.w_q.grad, expected["w_q"][0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(naive.w_o.grad, expected["w_o"][0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        naive.embedding.weight.grad, expected["embedding"][0].T, rtol=1e-10, atol=1e-12
    )
