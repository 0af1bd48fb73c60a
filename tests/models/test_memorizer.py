"""The memorizers against the paper's equations written out, and their gradients against autograd."""

from dataclasses import replace
from pathlib import Path

import packed_memorization
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_memorization import NaiveMemorizer, public_memorizer
from torch import Tensor

from shapelaw.errors import UserError
from shapelaw.models import memorizer
from shapelaw.specs.memorizers import Memorizer

shapes = st.builds(
    Memorizer,
    heads=st.integers(1, 4),
    context=st.integers(1, 6),
    head_dim=st.integers(1, 8),
    width=st.just(8),
    value_dim=st.sampled_from([None, 1, 3]),
    outputs=st.sampled_from([1, 2, 5]),
    logit_scale=st.sampled_from(["none", "head_dim", "width"]),
    attend_to_query=st.booleans(),
)


def pack(m: Memorizer, models: int) -> memorizer.Parameters:
    """The initial parameters of models of the seeds 0, 1, ..., stacked."""
    every = [memorizer.initial_parameters(m, seed, torch.float64) for seed in range(models)]
    return {name: torch.stack([p[name] for p in every]) for name in every[0]}


def problem(m: Memorizer, models: int, examples: int, shared: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [P, B, d], contexts [P, n, d] or [P, B, n, d], and labels [P, B]: classes, or numbers for one output."""
    generator = torch.Generator().manual_seed(7)
    queries = torch.rand(models, examples, m.width, generator=generator, dtype=torch.float64)
    size = (models, m.context, m.width) if shared else (models, examples, m.context, m.width)
    contexts = torch.rand(size, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, m.outputs, (models, examples), generator=generator)
    return queries, contexts, labels if m.outputs > 1 else labels + queries[..., 0]


def equations(p: memorizer.Parameters, m: Memorizer, query: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
    """Eqs. 1-6 for one model and one example, head by head: output [c] and attention weights [H, n or n + 1]."""
    place = memorizer.positions(m, query.dtype)
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
    p, place = pack(m, 3), memorizer.positions(m, torch.float64)
    assert sum(value[0].numel() for value in p.values()) == m.total_params
    queries, contexts, _ = problem(m, 3, 4, shared)
    outputs, weights = memorizer.forward(p, m, place, queries, contexts)
    for model in range(3):
        alone = {name: value[model] for name, value in p.items()}
        for b in range(4):
            context = contexts[model] if shared else contexts[model, b]
            output, theta = equations(alone, m, queries[model, b], context)
            torch.testing.assert_close(outputs[model, b], output, rtol=1e-11, atol=1e-11)
            torch.testing.assert_close(weights[model, b], theta, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("shared", "value_dim"), [(True, None), (False, 1)])
def test_the_naive_model_of_the_benchmark_is_the_same_model(shared: bool, value_dim: int | None) -> None:
    m = Memorizer(
        heads=3, context=6, head_dim=4, width=8, value_dim=value_dim, outputs=5, logit_scale="width"
    )
    p, place = pack(m, 1), memorizer.positions(m, torch.float64)
    queries, contexts, labels = problem(m, 1, 7, shared)
    naive = NaiveMemorizer(m, {name: value[0] for name, value in p.items()})
    each = contexts[0].expand(7, -1, -1) if shared else contexts[0]
    outputs = naive(torch.cat([queries[0][:, None], each], 1))
    torch.testing.assert_close(
        outputs, memorizer.forward(p, m, place, queries, contexts)[0][0], rtol=1e-11, atol=1e-11
    )
    memorizer.losses(outputs[None], labels).sum().backward()
    expected = memorizer.gradients(p, m, memorizer.Batch(place, queries, contexts, labels))[1]
    torch.testing.assert_close(naive.w_q.grad, expected["w_q"][0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(naive.w_o.grad, expected["w_o"][0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        naive.embedding.weight.grad, expected["embedding"][0].T, rtol=1e-10, atol=1e-12
    )


def test_packs_are_timed_beside_models_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"can_compile": lambda device: False, "LEAST_SECONDS": 0.0, "SEVERAL": (1, 2)}.items():
        monkeypatch.setattr(packed_memorization, name, value)
    for context_type in ("shared", "per_example"):
        case = (2, 4, 9, context_type)
        rows = packed_memorization.against_peers(case, [1, 2], 1, torch.device("cpu"), None)
        assert [row["what"] for row in rows] == ["naive", "one at a time", "pack of 1", "pack of 2"]
        assert all(float(str(row["ms"])) > 0 for row in rows)
    row = packed_memorization.several_shapes(1, 1, torch.device("cpu"))
    assert float(str(row["times the operations"])) > 1


@settings(max_examples=40, deadline=None)
@given(shapes, st.booleans())
def test_the_written_gradients_are_those_of_autograd(m: Memorizer, shared: bool) -> None:
    m = replace(m, attend_to_query=False, value_dim=m.value_dim if shared else 1)
    p, place = pack(m, 3), memorizer.positions(m, torch.float64)
    queries, contexts, labels = problem(m, 3, 5, shared)
    written = memorizer.shared_gradients if shared else memorizer.per_example_gradients
    batch = memorizer.Batch(place, queries, contexts, labels)
    (loss, found), (expected_loss, expected) = written(p, m, batch), memorizer.gradients(p, m, batch)
    torch.testing.assert_close(loss, expected_loss, rtol=1e-12, atol=1e-12)
    assert list(found) == list(expected) == list(memorizer.parameter_shapes(m))
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-10, atol=1e-12)


def test_the_loss_is_nats_or_squared_error() -> None:
    outputs = torch.tensor([[[0.0, 0.0], [0.0, 0.0]]])
    assert memorizer.losses(outputs, torch.tensor([[0, 1]])).item() == pytest.approx(0.6931, abs=1e-4)
    assert memorizer.losses(outputs[..., :1], torch.tensor([[1.0, 2.0]])).item() == pytest.approx(2.5)


@pytest.mark.parametrize("numbers", [False, True])
def test_places_without_an_example_count_for_nothing(numbers: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(2, 5, 1 if numbers else 3, generator=generator)
    labels = torch.rand(2, 5, generator=generator)
    if not numbers:
        labels = (3 * labels).long()
    there = torch.tensor([[True, True, True, False, False], [True] * 5])
    found = memorizer.losses(outputs, labels, there)
    assert found[0] == pytest.approx(memorizer.losses(outputs[:1, :3], labels[:1, :3]).item(), rel=1e-6)
    assert found[1] == pytest.approx(memorizer.losses(outputs[1:], labels[1:]).item(), rel=1e-6)


SHAPE = Memorizer(heads=2, context=3, head_dim=4, width=8, value_dim=1, outputs=5, logit_scale="width")


def test_a_folder_without_the_public_code_and_a_shape_that_it_does_not_have(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(UserError, match="is no checkout of attention-memorization"):
            public_memorizer(tmp_path, SHAPE, memorizer.initial_parameters(SHAPE, 0, torch.float32))
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src/attn_models.py").write_text("class Other: ...")
    for other in (replace(SHAPE, value_dim=2), replace(SHAPE, logit_scale="none")):
        with pytest.raises(UserError, match="value_dim 1, logit_scale width"):
            public_memorizer(tmp_path, other, memorizer.initial_parameters(other, 0, torch.float32))
