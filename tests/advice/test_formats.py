"""Configs of a shape for libraries that train it."""

import ast
import json
from pathlib import Path

import pytest
import yaml
from commands import output_of
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.advice.answer.formats import config_of, shape_for
from shapelaw.specs.sizes import Counting, SizeAxis

ASKED = ("350M", "--vocab", "32k", "--tokens", "30B")


def built_params(folder: Path) -> int:
    """Parameters of the model that transformers builds by a config.json, without memory."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    assert [type(model).__name__] == model.config.architectures
    return int(sum(one.numel() for one in model.parameters()))


@pytest.mark.parametrize(
    "options",
    [
        ("--format", "hf"),
        ("--format", "hf", "--kv-heads", 4, "--tied", "--context", 4096),
        ("--format", "hf", "--block", "gpt2", "--tied", "--context", 1024),
        ("--format", "nanochat"),
        ("--format", "nanochat", "--kv-heads", 2, "--depth", 16),
    ],
)
def test_transformers_builds_the_config_in_the_size_that_was_asked(
    tmp_path: Path, options: tuple[object, ...]
) -> None:
    (tmp_path / "config.json").write_text(
        output_of("shape", *ASKED, *options, cwd=tmp_path), encoding="utf-8"
    )
    near = 0.02 if "hf" in options else 0.08  # nanochat's width alone makes the size, in steps of 64
    assert built_params(tmp_path) == pytest.approx(350e6, rel=near)


@given(st.sampled_from([6, 12, 24, 48]), st.floats(3e7, 3e9), st.sampled_from([None, 4]))
def test_torchtitan_makes_the_feed_forward_width_again(depth: int, size: float, kv_heads: int | None) -> None:
    """`models/llama3/model/args.py` and `model.py: FeedForward` of pytorch/torchtitan at 183f6fce."""
    shape = shape_for("torchtitan", size, depth, Counting(SizeAxis.BLOCK, 32000, kv_heads=kv_heads))
    call = ast.parse(config_of(shape, "torchtitan", 2048), mode="eval").body
    assert isinstance(call, ast.Call)
    args = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    assert set(args) <= {
        *("dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "multiple_of", "ffn_dim_multiplier"),
        "max_seq_len",
    }
    hidden = int(args["ffn_dim_multiplier"] * int(2 * 4 * args["dim"] / 3))
    step = args["multiple_of"]
    assert step * ((hidden + step - 1) // step) == shape.hidden_width
    assert (args["dim"], args["n_layers"], args["n_heads"]) == (shape.width, shape.depth, shape.heads)


@given(st.sampled_from([6, 12, 24]), st.floats(3e7, 3e9), st.integers(2, 8))
def test_nanochat_s_heads_are_shared_out_among_its_heads_of_keys(
    depth: int, size: float, kv_heads: int
) -> None:
    shape = shape_for("nanochat", size, depth, Counting(vocab_size=32000, kv_heads=kv_heads))
    assert shape.heads % kv_heads == 0
    assert shape.heads * shape.attention_dim == shape.width


def test_litgpt_has_the_fields(tmp_path: Path) -> None:
    """`litgpt/config.py: Config` of Lightning-AI/litgpt at 0006c973, of which it reads a model_config.yaml."""
    config = yaml.safe_load(output_of("shape", *ASKED, "--format", "litgpt", "--depth", 24, cwd=tmp_path))
    fields = {
        *(
            "name",
            "block_size",
            "vocab_size",
            "padded_vocab_size",
            "n_layer",
            "n_embd",
            "n_head",
            "n_query_groups",
        ),
        *(
            "head_size",
            "intermediate_size",
            "rotary_percentage",
            "parallel_residual",
            "bias",
            "norm_class_name",
        ),
        "mlp_class_name",
    }
    assert set(config) == fields
    d, queries, keys = config["n_embd"], config["n_head"], config["n_query_groups"]
    block = d * config["head_size"] * 2 * (queries + keys) + 3 * d * config["intermediate_size"]
    assert config["n_layer"] * block + 2 * config["padded_vocab_size"] * d == pytest.approx(350e6, rel=0.01)
    assert config["parallel_residual"] is config["bias"] is False


def test_a_budget_has_a_config_too(tmp_path: Path) -> None:
    found = json.loads(
        output_of("shape", "--flops", "1e20", "--vocab", "32k", "--format", "hf", cwd=tmp_path)
    )
    assert found["num_hidden_layers"] > 20
