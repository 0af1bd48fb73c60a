"""Llama's block against transformers' model, and its written-out parts against autograd."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from peers import llama_model
from torch import Tensor, nn

from shapelaw.models.attention import ROPE_BASE
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.models.llama import EPS, RMSNorm
from shapelaw.specs.shapes import Shape, make_shape


def theirs_like(shape: Shape) -> nn.Module:
    """transformers' model of a shape, with large weights, so that agreement is not by smallness."""
    model = llama_model(
        shape,
        head_dim=shape.attention_dim,
        rms_norm_eps=EPS,
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


def test_the_written_out_gradient_of_the_norm_is_autograds() -> None:
    norm = RMSNorm(7).double()
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2.0)
    x = torch.randn(2, 3, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm, (x,))
    torch.testing.assert_close(norm(x), F.rms_norm(x, (7,), norm.weight, EPS))
    grad = torch.randn_like(x)
    (mine,) = torch.autograd.grad(norm(x), norm.weight, grad)
    (its,) = torch.autograd.grad(F.rms_norm(x, (7,), norm.weight, EPS), norm.weight, grad)
    torch.testing.assert_close(mine, its)


def test_blocks_share_one_table_of_positions_that_is_in_no_checkpoint() -> None:
    model = Decoder(make_shape(3, 8, 2, 11, 6, block="llama"))
    initialise(model, 0)
    assert len({block.attention.rotary for block in model.blocks}) == 1
    assert len(list(model.buffers())) == 1
    assert not [name for name in model.state_dict() if "rotary" in name]


def test_a_tied_classifier_is_the_embedding_and_counts_once() -> None:
    model = Decoder(make_shape(1, 8, 2, 11, 6, block="llama", tied=True))
    assert model.classifier.weight is model.tokens.weight
    assert sum(p.numel() for p in model.parameters()) == model.shape.total_params
