"""The printed block against equations 1 and 2 of the depth-width paper, written plainly, and that it trains."""

import math

import pytest
import torch
from torch import Tensor

from shapelaw.errors import UserError
from shapelaw.models.decoder import INIT_STD, Decoder, initialise
from shapelaw.specs.shapes import Shape, make_shape

SHAPE = make_shape(3, 12, 2, 23, 7, block="printed")


def decoder_of(shape: Shape, seed: int = 0) -> Decoder:
    """A decoder whose weights and norms are large, so that agreement is not by smallness."""
    model = Decoder(shape).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    return model


def layer_norm(x_D: Tensor, gain_D: Tensor, bias_D: Tensor) -> Tensor:
    centred_D = x_D - x_D.mean()
    return gain_D * centred_D / (centred_D.square().mean() + 1e-5).sqrt() + bias_D


def attention(x_TD: Tensor, weights: dict[str, Tensor], heads: int) -> list[Tensor]:
    """Equation 1 for each i: the sum over heads of W_O sum_j SM_j(<W_Q x_i, W_K x_j> / sqrt(d_a)) W_V x_j, j <= i."""
    q_HKD, k_HKD, v_HKD = weights["attention.qkv.weight"].unflatten(0, (3, heads, -1))
    o_HDK = weights["attention.out.weight"].unflatten(1, (heads, -1)).transpose(0, 1)
    found = []
    for i in range(len(x_TD)):
        y_D = torch.zeros_like(x_TD[i])
        for q_KD, k_KD, v_KD, o_DK in zip(q_HKD, k_HKD, v_HKD, o_HDK, strict=True):
            scores = [torch.dot(q_KD @ x_TD[i], k_KD @ x_TD[j]) / math.sqrt(len(q_KD)) for j in range(i + 1)]
            total = sum(torch.exp(score) for score in scores)
            values = [torch.exp(score) / total * (v_KD @ x_TD[j]) for j, score in enumerate(scores)]
            y_D = y_D + o_DK @ sum(values)  # type: ignore[operator]
        found.append(y_D)
    return found


def layer(x_TD: Tensor, weights: dict[str, Tensor], heads: int) -> Tensor:
    """Equation 2, and the LayerNorm through which its output enters the next layer."""
    rows = []
    for x_D, attended_D in zip(x_TD, attention(x_TD, weights, heads), strict=True):
        inner_D = layer_norm(attended_D + x_D, weights["norm1.weight"], weights["norm1.bias"])
        out_D = weights["down.weight"] @ torch.clamp(weights["up.weight"] @ inner_D, min=0)
        rows.append(layer_norm(out_D, weights["norm2.weight"], weights["norm2.bias"]))
    return torch.stack(rows)


def test_logits_and_gradients_equal_the_equations() -> None:
    model = decoder_of(SHAPE)
    ids_T = torch.tensor([3, 1, 4, 1, 5, 9, 2])
    x_TD = model.tokens.weight[ids_T] + model.positions.weight
    for block in model.blocks:
        x_TD = layer(x_TD, dict(block.named_parameters()), SHAPE.heads)
    expected = x_TD @ model.classifier.weight.T
    found = model.logits(ids_T[None])[0]
    torch.testing.assert_close(found, expected)
    parameters, weights = list(model.parameters()), torch.linspace(-1, 1, found.numel()).view_as(found)
    gradients = [torch.autograd.grad((out * weights).sum(), parameters) for out in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_its_maps_have_no_biases_and_all_matrices_start_alike() -> None:
    model = Decoder(make_shape(8, 64, 2, 500, 16, block="printed"))
    initialise(model, 0)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            assert parameter.std().item() == pytest.approx(INIT_STD, rel=0.05)
        else:
            assert "norm" in name


@pytest.mark.parametrize("depth", [1, 6])
def test_its_loss_falls(depth: int, one_thread: None) -> None:
    """Far below that of the tokens' frequencies, ln 4: each token follows from the one before.

    At a rate of 1e-2 it falls with one layer and not with six.
    """
    model = Decoder(make_shape(depth, 16, 2, 4, 8, block="printed"))
    initialise(model, 0)
    model.use_kernel()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    starts, generator = torch.arange(9), torch.Generator().manual_seed(0)
    losses = []
    for _ in range(200):
        ids = (torch.randint(0, 4, (16, 1), generator=generator) + starts) % 4
        loss = model(ids[:, :-1], ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(math.log(4), rel=0.05)
    assert losses[-1] < 0.2


def test_completep_has_no_branch_to_scale() -> None:
    with pytest.raises(UserError, match="completep, which scales residual branches, and block is printed"):
        Decoder(SHAPE, parametrization="completep")
