"""Others' networks and a step of theirs, as a user of each would write it: what training is measured against."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from shapelaw.errors import UserError
from shapelaw.memorizers import Memorizer
from shapelaw.shapes import Shape

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


def gpt2_step(
    model: torch.nn.Module,
    parts: Sequence[torch.Tensor],
    compiled: bool,
    autocast: Autocast,
    fused: bool = True,
) -> Step:
    """A step on micro-batches [B, T + 1]: GPT-2 shifts the labels itself, so T tokens give T - 1 predictions."""
    forward: Any = torch.compile(model) if compiled else model
    inputs = [part[:, :-1].contiguous() for part in parts]
    return _step(model, [lambda x=x: forward(x, labels=x).loss for x in inputs], autocast, fused)


def nanogpt_model(folder: Path, shape: Shape) -> torch.nn.Module:
    """nanoGPT's model of that shape, from a checkout.

    Raises:
        UserError: the folder has no model.py with GPTConfig and GPT.
    """
    try:
        module = _module_of(folder / "model.py")
        config = module.GPTConfig(
            block_size=shape.context_length,
            vocab_size=shape.vocab_size,
            n_layer=shape.depth,
            n_head=shape.heads,
            n_embd=shape.width,
            dropout=0.0,
            bias=True,
        )
        model: torch.nn.Module = module.GPT(config)
    except (OSError, AttributeError) as error:
        raise UserError(
            f"{folder} is no checkout of nanoGPT: it has no model.py with GPTConfig and GPT."
        ) from error
    return model


def nanogpt_step(
    model: torch.nn.Module, parts: Sequence[torch.Tensor], compiled: bool, autocast: Autocast
) -> Step:
    """A step of its train.py on micro-batches [B, T + 1]."""
    forward: Any = torch.compile(model) if compiled else model
    pairs = [(part[:, :-1].contiguous(), part[:, 1:].contiguous()) for part in parts]
    return _step(model, [lambda x=x, y=y: forward(x, y)[1] for x, y in pairs], autocast)


def _step(
    model: torch.nn.Module, losses: Sequence[Callable[[], Any]], autocast: Autocast, fused: bool = True
) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.6e-3, weight_decay=0.01, fused=fused)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for loss in losses:
            with autocast():
                value = loss() / len(losses)
            value.backward()
        optimizer.step()

    return step


def public_memorizer(folder: Path, m: Memorizer, p: Mapping[str, torch.Tensor]) -> torch.nn.Module:
    """The model of Mahdavi et al.'s public code (attention-memorization, commit 34305e9) with parameters of ours.

    It takes tokens [B, n + 1, d], the query first, and gives outputs [B, n + 1, c], of which the first is read.

    Raises:
        UserError: the folder has no src/attn_models.py with BaselineAttention, or m is not of its kind.
    """
    if m.values != 1 or m.logit_scale != "width" or m.attend_to_query:
        raise UserError(
            "the public code has one value a head, logits by sqrt(width), and a query that is no key"
        )
    try:
        model: torch.nn.Module = _module_of(folder / "src/attn_models.py").BaselineAttention(
            m.width, m.outputs, m.width, m.heads, m.head_dim
        )
    except (OSError, AttributeError) as error:
        raise UserError(
            f"{folder} is no checkout of attention-memorization: it has no src/attn_models.py with "
            "BaselineAttention."
        ) from error
    by_head = {name: p[name].view(m.width, m.heads, -1).transpose(0, 1) for name in ("w_k", "w_v")}
    ours = {
        "embedding.weight": p["embedding"].T,
        "embedding.bias": p["embedding_bias"],
        "attention.Wq": p["w_q"],
        "attention.Wk": by_head["w_k"],
        "attention.Wv": by_head["w_v"],
        "attention.Wo": p["w_o"],
        "decoder.weight": p["w_d"].T,
        "decoder.bias": p["bias"],
    }
    model.load_state_dict({**model.state_dict(), **ours})
    return model


def _module_of(path: Path) -> Any:
    """A module from a file; its name is that of the file's folder and its own."""
    name = f"{path.parent.name}_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses look there
    specification.loader.exec_module(module)
    return module
