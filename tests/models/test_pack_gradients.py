"""The losses of packed models, and their gradients by autograd."""

import pytest
import torch

from shapelaw.models.pack_gradients import gradients_through, losses


def test_the_loss_is_nats_or_squared_error() -> None:
    outputs = torch.tensor([[[0.0, 0.0], [0.0, 0.0]]])
    assert losses(outputs, torch.tensor([[0, 1]])).item() == pytest.approx(0.6931, abs=1e-4)
    assert losses(outputs[..., :1], torch.tensor([[1.0, 2.0]])).item() == pytest.approx(2.5)


@pytest.mark.parametrize("numbers", [False, True])
def test_places_without_an_example_count_for_nothing(numbers: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(2, 5, 1 if numbers else 3, generator=generator)
    labels = torch.rand(2, 5, generator=generator)
    if not numbers:
        labels = (3 * labels).long()
    there = torch.tensor([[True, True, True, False, False], [True] * 5])
    found = losses(outputs, labels, there)
    assert found[0] == pytest.approx(losses(outputs[:1, :3], labels[:1, :3]).item(), rel=1e-6)
    assert found[1] == pytest.approx(losses(outputs[1:], labels[1:]).item(), rel=1e-6)


def test_gradients_through_a_model_are_those_by_hand() -> None:
    """Of `y = w x + b` and squared errors: 2 (y - label) x and 2 (y - label), each model its own mean."""
    x, labels = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[0.0, 1.0], [2.0, 2.0]])
    p = {"w": torch.tensor([2.0, -1.0]), "b": torch.tensor([0.5, 0.0])}
    loss, found = gradients_through(lambda p: (p["w"][:, None] * x + p["b"][:, None])[..., None], p, labels)
    error = torch.tensor([[2.5, 3.5], [-5.0, -7.0]])
    torch.testing.assert_close(loss, error.square().mean(1))
    torch.testing.assert_close(found, {"w": (2 * error * x).mean(1), "b": (2 * error).mean(1)})
    assert not any(value.requires_grad for value in (loss, *p.values()))
