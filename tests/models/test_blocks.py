"""Llama's block against transformers' model, and the printed one against equations 1 and 2 of the depth-width paper."""

import math
from typing import Any

import pytest
import torch
from peers import llama_model
from torch import Tensor, nn

from shapelaw.errors import UserError
from shapelaw.models.decoder import INIT_STD, RMS_EPS, Decoder, initialise
from shapelaw.models.functions import ROPE_BASE
from shapelaw.specs.making import make_shape
from shapelaw.specs.shapes import Shape


def theirs_like(shape: Shape) -> nn.Module:
    """transformers' model of a shape, with large weights, so that agreement is not by smallness."""
    model = llama_model(
        shape,
        head_dim=shape.attention_dim,
        rms_norm_eps=RMS_EPS,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        initializer_range=0.1,
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
    return model


def paired(weight_ED: Tensor, dim: int) -> Tensor:
    """The rows of queries or keys in our order: the pair (i, i + K / 2) of transformers is (2 i, 2 i + 1) here."""
    rows_H2kD = weight_ED.unflatten(0, (-1, 2, dim // 2))
    return rows_H2kD.transpose(1, 2).flatten(0, 2)


def copy_from_llama(model: Decoder, llama: nn.Module) -> None:
    dim, target = model.shape.attention_dim, model.state_dict()
    pairs = {
        "tokens.weight": llama.model.embed_tokens.weight,
        "norm.weight": llama.model.norm.weight,
        "classifier.weight": llama.lm_head.weight,
    }
    for i, layer in enumerate(llama.model.layers):
        one, mlp = layer.self_attn, layer.mlp
        q, k = (paired(part.weight, dim) for part in (one.q_proj, one.k_proj))
        pairs |= {
            f"blocks.{i}.norm1.weight": layer.input_layernorm.weight,
            f"blocks.{i}.norm2.weight": layer.post_attention_layernorm.weight,
            f"blocks.{i}.attention.qkv.weight": torch.cat([q, k, one.v_proj.weight]),
            f"blocks.{i}.attention.out.weight": one.o_proj.weight,
            f"blocks.{i}.gate.weight": mlp.gate_proj.weight,
            f"blocks.{i}.up.weight": mlp.up_proj.weight,
            f"blocks.{i}.down.weight": mlp.down_proj.weight,
        }
    assert pairs.keys() == target.keys()
    with torch.no_grad():
        for name, value in pairs.items():
            target[name].copy_(value)


@pytest.mark.parametrize(
    "options",
    [{}, {"kv_heads": 2, "tied": True}, {"kv_heads": 1, "attention_dim": 6, "ff_width": 50}],
    ids=["plain", "grouped and tied", "one key head, narrow heads"],
)
def test_logits_and_gradients_equal_transformers_llamas(options: dict[str, Any], one_thread: None) -> None:
    torch.manual_seed(0)
    shape = make_shape(3, 48, 4, 101, 32, block="llama", **options)
    llama, model = theirs_like(shape), Decoder(shape)
    copy_from_llama(model, llama)
    assert sum(p.numel() for p in llama.parameters()) == shape.total_params
    ids = torch.randint(0, 101, (5, 32))
    theirs = llama(ids, labels=ids)
    theirs.loss.backward()
    for by_kernel in (False, True):
        if by_kernel:
            model.use_kernel()
        model.zero_grad()
        torch.testing.assert_close(model.logits(ids), theirs.logits, atol=1e-5, rtol=1e-5)
        loss = model(ids[:, :-1], ids[:, 1:])
        torch.testing.assert_close(loss, theirs.loss, atol=1e-5, rtol=1e-5)
        loss.backward()
        check_gradients(model, llama)


def check_gradients(model: Decoder, llama: nn.Module) -> None:
    block, layer = model.blocks[0], llama.model.layers[0]
    q, k = (
        paired(part.weight.grad, model.shape.attention_dim)
        for part in (layer.self_attn.q_proj, layer.self_attn.k_proj)
    )
    for ours, expected in (
        (block.attention.qkv.weight.grad, torch.cat([q, k, layer.self_attn.v_proj.weight.grad])),
        (block.gate.weight.grad, layer.mlp.gate_proj.weight.grad),
        (block.norm1.weight.grad, layer.input_layernorm.weight.grad),
        (model.tokens.weight.grad, llama.model.embed_tokens.weight.grad),
    ):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-4)


def test_blocks_share_one_table_of_positions_that_is_in_no_checkpoint() -> None:
    model = Decoder(make_shape(3, 8, 2, 11, 6, block="llama"))
    initialise(model, 0)
    assert len({block.attention.rotary for block in model.blocks}) == 1
    assert len(list(model.buffers())) == 1
    assert not [name for name in model.state_dict() if "rotary" in name]


SHAPE = make_shape(3, 12, 2, 23, 7, block="printed")


def decoder_of(shape: Shape) -> Decoder:
    """A decoder whose weights and norms are large, so that agreement is not by smallness."""
    model = Decoder(shape).double()
    generator = torch.Generator().manual_seed(0)
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
            y_D = y_D + o_DK @ sum(values)
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


def test_completep_has_no_branch_to_scale() -> None:
    with pytest.raises(UserError, match="completep, which scales residual branches, and block is printed"):
        Decoder(SHAPE, parametrization="completep")
