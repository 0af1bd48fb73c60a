"""A shape as the config of a library that trains it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from shapelaw.advice.answer.sizes import Counting, head_dim_of, shape_of_size
from shapelaw.errors import UserError
from shapelaw.specs.shapes import Shape
from shapelaw.specs.sizes import SizeAxis

STEP, WIDEST = 64, 32768  # of nanochat's widths


def config_of(shape: Shape, name: str, context: int) -> str:
    """The config of a shape, as text to paste.

    Args:
        shape: the shape.
        name: of `FORMATS`.
        context: tokens of a window.

    Raises:
        UserError: the library has no such network.
    """
    library, make = FORMATS[name]
    options = {
        "--block gpt2": shape.block != "llama" and name != "hf",
        "--tied": shape.tied and name != "hf",
        "--rank": shape.embedding_rank is not None,
    }
    if lacking := [option for option, is_lacking in options.items() if is_lacking]:
        raise UserError(
            f"A config of {library} has nothing for {' and '.join(lacking)}; leave it out, or take --format hf."
        )
    return make(shape, context)


def _transformers(shape: Shape, context: int, family: str, builds: str) -> str:
    """A config.json; a shape of GPT-2's block is GPT-2's, whatever family is asked for."""
    numbers = {
        "hidden_size": shape.width,
        "num_hidden_layers": shape.depth,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.attention_dim,
        "intermediate_size": shape.hidden_width,
        "max_position_embeddings": context,
    }
    if shape.block != "llama":
        family, builds = "gpt2", "GPT2LMHeadModel"
        numbers = {
            "n_embd": shape.width,
            "n_layer": shape.depth,
            "n_head": shape.heads,
            "n_inner": shape.hidden_width,
            "n_positions": context,
        }
    tables = {"vocab_size": shape.vocab_size, "tie_word_embeddings": shape.tied}
    return json.dumps({"architectures": [builds], "model_type": family} | numbers | tables, indent=2)


def _litgpt(shape: Shape, context: int) -> str:
    """Fields of `litgpt/config.py: Config`, a model_config.yaml."""
    numbers: Mapping[str, Any] = {
        "name": f"shapelaw-{shape.depth}x{shape.width}",
        "block_size": context,
        "vocab_size": shape.vocab_size,
        "padded_vocab_size": shape.vocab_size,
        "n_layer": shape.depth,
        "n_embd": shape.width,
        "n_head": shape.heads,
        "n_query_groups": shape.key_heads,
        "head_size": shape.attention_dim,
        "intermediate_size": shape.hidden_width,
        "rotary_percentage": 1.0,
        "parallel_residual": "false",
        "bias": "false",
        "norm_class_name": "RMSNorm",
        "mlp_class_name": "LLaMAMLP",
    }
    return "\n".join(f"{key}: {value}" for key, value in numbers.items())


def _torchtitan(shape: Shape, context: int) -> str:
    """Fields of `models/llama3/model/args.py: TransformerModelArgs`; its feed-forward width is a factor of 8/3 d."""
    usual = 2 * 4 * shape.width // 3
    numbers = {
        "dim": shape.width,
        "n_layers": shape.depth,
        "n_heads": shape.heads,
        "n_kv_heads": shape.key_heads,
        "vocab_size": shape.vocab_size,
        "multiple_of": 8,
        "ffn_dim_multiplier": (shape.hidden_width - 4) / usual,  # rounded up to a multiple of 8: hidden_width
        "max_seq_len": context,
    }
    return (
        "TransformerModelArgs(\n" + "".join(f"    {key}={value!r},\n" for key, value in numbers.items()) + ")"
    )


# what a library is called, and its config
FORMATS: Mapping[str, tuple[str, Callable[[Shape, int], str]]] = {
    "hf": ("transformers", partial(_transformers, family="llama", builds="LlamaForCausalLM")),
    # nanochat's own `GPTConfig` has n_layer, n_embd, n_head and n_kv_head of these
    "nanochat": ("nanochat", partial(_transformers, family="nanochat", builds="NanoChatForCausalLM")),
    "litgpt": ("litgpt", _litgpt),
    "torchtitan": ("torchtitan", _torchtitan),
}


def shape_for(name: str, size: float, depth: int, counting: Counting) -> Shape:
    """The shape of a size and a depth that a library can have.

    nanochat's feed-forward networks are four times the width, without a gate, so that the width alone makes the size.
    """
    if name != "nanochat":
        return shape_of_size(size, depth, counting).shape
    tables = {SizeAxis.BLOCK: 0, SizeAxis.FLOPS: 1, SizeAxis.TOTAL: 2}[counting.axis]
    shapes = [
        counting.shape(depth, width, head_dim_of(width, counting.head_group), 4 * width)
        for width in range(STEP, WIDEST, STEP)
    ]
    sizes = {
        shape.block_params - 4 * depth * shape.width**2 + tables * shape.vocab_size * shape.width: shape
        for shape in shapes
        if shape.heads % shape.key_heads == 0
    }
    return sizes[min(sizes, key=lambda found: abs(found - size))]
