"""Other libraries' networks and a step of theirs, as a user of each would write it: what ours are measured against."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import torch

from shapelaw.errors import UserError
from shapelaw.specs.shapes import Shape

Step = Callable[[], object]
Autocast = Callable[[], AbstractContextManager[Any]]


def gpt2_model(shape: Shape) -> torch.nn.Module:
    """transformers' model of that shape, without dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=shape.vocab_size,
        n_positions=shape.context_length,
        n_embd=shape.width,
        n_layer=shape.depth,
        n_head=shape.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        tie_word_embeddings=False,
        use_cache=False,
    )
    return GPT2LMHeadModel(config).train()


def llama_model(shape: Shape, **options: Any) -> torch.nn.Module:
    """transformers' Llama of that shape; `options` are further ones of its config."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape.vocab_size,
        hidden_size=shape.width,
        intermediate_size=shape.hidden_width,
        num_hidden_layers=shape.depth,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.context_length,
        tie_word_embeddings=shape.tied,
        use_cache=False,
        **options,
    )
    return LlamaForCausalLM(config).train()


def transformers_step(
    model: torch.nn.Module,
    parts: Sequence[torch.Tensor],
    compiled: bool = False,
    autocast: Autocast = nullcontext,
) -> Step:
    """A step on micro-batches [B, T + 1]: the model shifts the labels itself, so T tokens give T - 1 predictions."""
    forward: Any = torch.compile(model) if compiled else model
    inputs = [part[:, :-1].contiguous() for part in parts]
    return training_step(model, [lambda x=x: forward(x, labels=x).loss for x in inputs], autocast)


def from_checkout(folder: Path, file: str, project: str, *names: str) -> list[Any]:
    """What a file of a checkout of a project has under some names.

    Raises:
        UserError: the folder has no such file with these names.
    """
    module_name = f"peer_{Path(file).stem}"
    specification = importlib.util.spec_from_file_location(module_name, folder / file)
    try:
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[module_name] = module  # dataclasses look there
        specification.loader.exec_module(module)
        return [getattr(module, name) for name in names]
    except (OSError, AssertionError, AttributeError) as error:
        raise UserError(
            f"{folder} is no checkout of {project}: it has no {file} with {' and '.join(names)}."
        ) from error


def nanogpt_model(folder: Path, shape: Shape) -> torch.nn.Module:
    """nanoGPT's model of that shape, from a checkout: exact GELU, the classifier tied to the embedding.

    Raises:
        UserError: the folder has no model.py with GPTConfig and GPT.
    """
    make_config, make_model = from_checkout(folder, "model.py", "nanoGPT", "GPTConfig", "GPT")
    config = make_config(
        block_size=shape.context_length,
        vocab_size=shape.vocab_size,
        n_layer=shape.depth,
        n_head=shape.heads,
        n_embd=shape.width,
        dropout=0.0,
        bias=True,
    )
    with redirect_stdout(sys.stderr):  # it prints its size
        model: torch.nn.Module = make_model(config)
    return model


def nanogpt_step(
    model: torch.nn.Module, parts: Sequence[torch.Tensor], compiled: bool, autocast: Autocast
) -> Step:
    """A step of its train.py on micro-batches [B, T + 1]."""
    forward: Any = torch.compile(model) if compiled else model
    pairs = [(part[:, :-1].contiguous(), part[:, 1:].contiguous()) for part in parts]
    return training_step(model, [lambda x=x, y=y: forward(x, y)[1] for x, y in pairs], autocast)


def training_step(
    model: torch.nn.Module, losses: Sequence[Callable[[], Any]], autocast: Autocast = nullcontext
) -> Step:
    """The step of AdamW on the mean of some losses, with its forward and backward passes."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.6e-3, weight_decay=0.01, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for loss in losses:
            with autocast():
                value = loss() / len(losses)
            value.backward()
        optimizer.step()

    return step
