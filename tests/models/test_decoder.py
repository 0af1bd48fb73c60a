"""The decoder against its own counts, and against transformers' GPT-2."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trained import counted_flops, losses_and_gradients

from shapelaw.models.decoder import INIT_STD, Decoder, initialise, parameter_groups
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Parametrization
from shapelaw.specs.shapes import Block, Gelu, Shape

BASE = {"base_width": 16, "base_attention_dim": 8}


@st.composite
def shapes_of(draw: st.DrawFn, block: Block) -> Shape:
    some = st.none() | st.integers(1, 9)
    options: dict[str, Any] = {"block": block, "ff_width": draw(st.none() | st.integers(1, 50))}
    heads, dim = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    if block == "llama":
        options["kv_heads"] = draw(st.none() | st.integers(1, 2))
        heads, dim = heads * (options["kv_heads"] or 1), 2 * dim
        attention_dim = draw(st.none() | st.just(dim + 2))
    else:
        options["embedding_rank"], options["positional_rank"], attention_dim = (
            draw(some),
            draw(some),
            draw(some),
        )
    if block == "gpt2":
        options["attention_degree"] = draw(st.none() | st.integers(2, 5))
    options["tied"] = options.get("embedding_rank") is None and draw(st.booleans())
    options["loops"] = draw(st.integers(1, 3))
    sizes = draw(st.integers(2, 20)), draw(st.integers(2, 9)), attention_dim
    return make_shape(draw(st.integers(1, 3)), heads * dim, heads, *sizes, redundant_rank=True, **options)


@st.composite
def patch_shapes(draw: st.DrawFn) -> Shape:
    rank = draw(st.none() | st.integers(1, 9))
    block: Block = draw(st.sampled_from(["gpt2", "llama"]))
    options: dict[str, Any] = {"embedding_rank": rank, "redundant_rank": True, "block": block}
    return make_shape(draw(st.integers(1, 2)), 4, 2, 257, 3, patch_embedding=True, **options)


shapes = st.one_of(shapes_of("gpt2"), shapes_of("llama"), shapes_of("printed"), patch_shapes())


@settings(deadline=None, max_examples=50)
@given(shapes, st.integers(1, 3))
def test_parameters_and_flops_are_counted(shape: Shape, batch: int) -> None:
    model, ids = Decoder(shape), torch.zeros(batch, shape.context_length, dtype=torch.long)
    assert sum(p.numel() for p in model.parameters()) == shape.total_params
    assert counted_flops(model, ids) == shape.forward_flops(batch)


def copy_from_gpt2(model: Decoder, gpt2: Any) -> None:
    """Copy weights; transformers' Conv1D keeps them transposed."""
    t, target = gpt2.transformer, model.state_dict()
    pairs = {
        "tokens.weight": t.wte.weight,
        "positions.weight": t.wpe.weight,
        "norm.weight": t.ln_f.weight,
        "norm.bias": t.ln_f.bias,
        "classifier.weight": gpt2.lm_head.weight,
    }
    for i, block in enumerate(t.h):
        linears = {
            "attention.qkv": block.attn.c_attn,
            "attention.out": block.attn.c_proj,
            "up": block.mlp.c_fc,
            "down": block.mlp.c_proj,
        }
        for name, norm in (("norm1", block.ln_1), ("norm2", block.ln_2)):
            pairs |= {f"blocks.{i}.{name}.weight": norm.weight, f"blocks.{i}.{name}.bias": norm.bias}
        for name, conv in linears.items():
            pairs |= {f"blocks.{i}.{name}.weight": conv.weight.T, f"blocks.{i}.{name}.bias": conv.bias}
    assert pairs.keys() == target.keys()
    with torch.no_grad():
        for name, value in pairs.items():
            target[name].copy_(value)


@pytest.mark.parametrize(("gelu", "theirs_called"), [("tanh", "gelu_new"), ("erf", "gelu")])
def test_logits_and_gradients_equal_gpt2s(gelu: Gelu, theirs_called: str) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel  # two seconds of every worker's collection

    torch.manual_seed(0)
    shape = make_shape(depth=3, width=48, heads=4, vocab_size=101, context_length=32, gelu=gelu)
    config = GPT2Config(
        vocab_size=101,
        n_positions=32,
        n_embd=48,
        n_layer=3,
        n_head=4,
        **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
        initializer_range=0.2,  # large weights, so that agreement is not by smallness
        tie_word_embeddings=False,
        activation_function=theirs_called,
    )
    gpt2, model = GPT2LMHeadModel(config), Decoder(shape)
    copy_from_gpt2(model, gpt2)
    ids = torch.randint(0, 101, (5, 32))
    theirs = gpt2(ids, labels=ids)
    torch.testing.assert_close(model.logits(ids), theirs.logits, atol=1e-5, rtol=1e-5)
    other = Decoder(replace(shape, gelu="erf" if gelu == "tanh" else "tanh"))
    other.load_state_dict(model.state_dict())
    assert not torch.allclose(other.logits(ids), theirs.logits, atol=1e-4, rtol=1e-4)
    loss = model(ids[:, :-1], ids[:, 1:])
    torch.testing.assert_close(loss, theirs.loss, atol=1e-5, rtol=1e-5)
    theirs.loss.backward()
    loss.backward()
    torch.testing.assert_close(
        model.blocks[0].attention.qkv.weight.grad,
        gpt2.transformer.h[0].attn.c_attn.weight.grad.T,
        atol=1e-5,
        rtol=1e-4,
    )


@pytest.mark.parametrize(
    "options",
    [{"attention_dim": 3}, {"attention_degree": 3}, {"block": "llama", "kv_heads": 1}, {"block": "printed"}],
)
def test_attention_sees_no_future(options: dict[str, Any]) -> None:
    model = Decoder(make_shape(2, 8, 2, 11, 6, **options))
    initialise(model, 0)
    ids = torch.arange(6)[None]
    changed = ids.clone()
    changed[0, 4] = 10
    with torch.no_grad():
        torch.testing.assert_close(model.logits(ids)[:, :4], model.logits(changed)[:, :4], atol=0, rtol=0)
        assert not torch.equal(model.logits(ids)[:, 4:], model.logits(changed)[:, 4:])


@pytest.mark.parametrize("block", ["gpt2", "llama", "printed"])
def test_loops_pass_the_same_blocks_again(block: Block) -> None:
    """As a decoder of twice the depth whose upper half has the weights of the lower one."""
    looped = Decoder(make_shape(2, 8, 2, 11, 6, block=block, loops=2))
    unrolled = Decoder(make_shape(4, 8, 2, 11, 6, block=block))
    initialise(looped, 0)
    initialise(unrolled, 0)
    assert looped.blocks[0].down.weight.std() == unrolled.blocks[0].down.weight.std()
    unrolled.load_state_dict(looped.state_dict(), strict=False)
    for place, block_of in enumerate(looped.blocks):
        unrolled.blocks[2 + place].load_state_dict(block_of.state_dict())
    ids = torch.randint(0, 11, (3, 7), generator=torch.Generator().manual_seed(0))
    loss, other = (model(ids[:, :-1], ids[:, 1:]) for model in (looped, unrolled))
    loss.backward()
    other.backward()
    assert torch.equal(loss, other)
    for place in range(2):
        slopes = [unrolled.blocks[at].down.weight.grad for at in (place, 2 + place)]
        torch.testing.assert_close(looped.blocks[place].down.weight.grad, slopes[0] + slopes[1])


def test_a_factored_embedding_has_its_rank_and_the_usual_size() -> None:
    model = Decoder(make_shape(1, 64, 2, 500, 32, embedding_rank=5, positional_rank=3))
    initialise(model, 1)
    with torch.no_grad():
        table = model.tokens(torch.arange(500))
        assert torch.linalg.matrix_rank(table) == 5
        assert torch.linalg.matrix_rank(model.positions(torch.arange(32))) == 3
    assert table.std().item() == pytest.approx(INIT_STD, rel=0.15)


@pytest.mark.parametrize(("rank", "found"), [(None, 5), (2, 2)])
def test_a_patch_embedding_maps_the_numbers_of_a_patch(rank: int | None, found: int) -> None:
    model = Decoder(make_shape(1, 64, 2, 257, 32, embedding_rank=rank, patch_embedding=True))
    initialise(model, 1)
    with torch.no_grad():
        table = model.tokens(torch.arange(82))
        assert torch.linalg.matrix_rank(table, rtol=1e-5) == found
        # the map is linear: patch 40 is grey all over, and patches 0 and 80 are each other's negatives
        assert torch.allclose(table[1], -table[81])
        assert torch.equal(table[41], torch.zeros(64))
        assert torch.allclose(model.tokens(torch.tensor([[3, 7]])), table[[3, 7]][None])
    assert "numbers_VI" not in "".join(model.state_dict())


@pytest.mark.parametrize(
    "options", [{}, {"block": "llama"}, {"block": "llama", "kv_heads": 2}, {"block": "printed"}]
)
def test_both_ways_of_attention_give_the_same_losses(options: dict[str, Any]) -> None:
    model = Decoder(make_shape(2, 16, 4, 53, 8, **options)).double()
    initialise(model, 0)
    ids = torch.randint(0, 53, (4, 9), generator=torch.Generator().manual_seed(0))
    found = []
    for by_products in (True, False):
        for block in model.blocks:
            block.attention.by_products = by_products
        found.append(losses_and_gradients(model, model, ids))
    for products, fused in zip(*found, strict=True):
        torch.testing.assert_close(products, fused)


def test_at_its_base_width_a_scaled_decoder_is_the_plain_one() -> None:
    plain, scaled = (make_shape(2, 16, 2, 53, 8, **options) for options in ({}, BASE))
    ids = torch.randint(0, 53, (4, 9), generator=torch.Generator().manual_seed(0))
    found = []
    for shape in (plain, scaled):
        model = Decoder(shape)
        initialise(model, 0)
        found.append(losses_and_gradients(model, model, ids))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
    groups = parameter_groups(Decoder(scaled), 0.1)
    assert [group[1:4] for group in groups] == [(0.1, 1.0, 1.0), (0.0, 1.0, 1.0)]


# Dey et al. 2025, table 1, the column of alpha in {0.5, 1}, at alpha = 1: powers of m_N = width / base width, of
# m_L = depth / base depth. Of a group: its standard deviation at the start (0: constant), its rate, its weight decay
# (None: none), Adam's epsilon. Branches have m_L^-1, and logits m_N^-1.
TABLE: dict[str, dict[str, tuple[float, float] | None]] = {
    "embeddings": {"std": (0, 0), "rate": (0, 0), "decay": (0, 0), "eps": (0, 0)},
    "norms of blocks": {"std": None, "rate": (0, 0), "decay": None, "eps": (-1, -1)},
    "matrices of blocks": {"std": (-1 / 2, 0), "rate": (-1, 0), "decay": (1, 0), "eps": (-1, -1)},
    "biases of blocks": {"std": None, "rate": (0, 0), "decay": None, "eps": (-1, -1)},
    "last norm": {"std": None, "rate": (0, 0), "decay": None, "eps": (0, 0)},
    "classifier": {"std": (0, 0), "rate": (0, 0), "decay": (0, 0), "eps": (0, 0)},
}


def row_of(name: str) -> str:
    """The row of the table that a parameter is in."""
    if name.startswith("blocks."):
        if "norm" in name:
            return "norms of blocks"
        return "biases of blocks" if name.endswith("bias") else "matrices of blocks"
    if name.startswith("classifier"):
        return "classifier"
    return "last norm" if "norm" in name else "embeddings"


@pytest.mark.parametrize("parametrization", ["standard", "completep"])
@pytest.mark.parametrize("block", ["gpt2", "llama"])
@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("base", [{}, {"base_width": 16, "base_attention_dim": 4}])
def test_completep_scales_what_its_table_says_and_mup_less(
    parametrization: Parametrization, block: Block, depth: int, base: dict[str, int]
) -> None:
    """In the width alone, neither the weight decay nor epsilon; its residual outputs are GPT-2's, by 1/sqrt(2L)."""
    width, decay, mup = 64, 0.1, parametrization == "standard"
    m_N, m_L = width / base["base_width"] if base else 1.0, 1 if mup else depth

    def scaled(powers: tuple[float, float] | None) -> float:
        return 0.0 if powers is None else m_N ** powers[0] * m_L ** powers[1]

    model = Decoder(
        make_shape(depth, width, 4, 300, 300, block=block, **base), parametrization=parametrization
    )
    initialise(model, 0)
    assert [part.multiplier for part in model.blocks] == [pytest.approx(1 / m_L)] * depth
    assert model.blocks[0].attention.scale == pytest.approx(4**0.5 / 16 if base else 1 / 4)
    names, seen = {p: name for name, p in model.named_parameters()}, set()
    for parameters, of_decay, of_rate, of_eps, _ in parameter_groups(model, decay):
        for p in parameters:
            row = TABLE[row_of(names[p])]
            if mup:
                row = {**row, "decay": row["decay"] and (0, 0), "eps": (0, 0)}
            assert of_rate == pytest.approx(scaled(row["rate"]))
            assert of_decay == pytest.approx(decay * scaled(row["decay"]))
            assert of_eps == pytest.approx(scaled(row["eps"]))
            residual = mup and ("attention.out" in names[p] or "down" in names[p])
            std = INIT_STD * scaled(row["std"]) / ((2 * depth) ** 0.5 if residual else 1)
            assert p.detach().std().item() == pytest.approx(std, rel=0.05, abs=0)
            seen.add(names[p])
    assert seen == set(dict(model.named_parameters()))
    size = model.features(torch.arange(8)[None]).square().mean().sqrt().item()
    assert size == pytest.approx(1 / m_N, rel=0.02)


@pytest.mark.parametrize("options", [{}, {"attention_degree": 3}, {"block": "llama"}])
def test_every_branch_has_the_multiplier(options: dict[str, Any]) -> None:
    """Weights of a branch's output, over the multiplier, give back what a standard decoder computes."""
    shape = make_shape(4, 16, 2, 53, 8, **options)
    standard, completep = (Decoder(shape, parametrization=name) for name in ("standard", "completep"))
    initialise(standard, 0)
    completep.load_state_dict(standard.state_dict())
    with torch.no_grad():
        for name, p in completep.named_parameters():
            if name.startswith("blocks.") and ("attention.out" in name or "down" in name):
                p *= 4
    ids = torch.arange(8)[None]
    torch.testing.assert_close(completep.logits(ids), standard.logits(ids))


def kept_for_the_backward_pass(shape: Shape) -> int:
    """Bytes of all that autograd keeps of a step of two sequences, parameters apart."""
    model = Decoder(shape)
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    ids = torch.zeros(2, shape.context_length, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(ids, ids)
    assert loss.requires_grad  # what is kept lives as long as its graph
    return sum(kept.values())


@pytest.mark.parametrize("block", ["gpt2", "llama", "printed"])
@pytest.mark.parametrize(("width", "heads"), [(64, 4), (128, 4), (256, 2)])
def test_blocks_keep_the_activations_that_are_counted(block: Block, width: int, heads: int) -> None:
    """The count of two further layers is at most 2% below what they keep, and 30% above."""
    two, four = (make_shape(depth, width, heads, 500, 64, block=block) for depth in (2, 4))
    kept = kept_for_the_backward_pass(four) - kept_for_the_backward_pass(two)
    counted = four.activation_bytes(2, 4, scores=False) - two.activation_bytes(2, 4, scores=False)
    assert 0.98 * kept < counted < 1.3 * kept
