"""The model of the paper's public code, from a checkout of it: a peer that packed memorizers are measured against."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch

from shapelaw.errors import UserError
from shapelaw.models.memorizer import Parameters
from shapelaw.specs.memorizers import Memorizer


def public_memorizer(folder: Path, m: Memorizer, p: Parameters) -> torch.nn.Module:
    """The model of smahdavi4/attention-memorization (as of commit 34305e9), with parameters of ours.

    It takes tokens [B, n + 1, d], the query first, and gives outputs [B, n + 1, c], of which the first is read.

    Raises:
        UserError: the folder has no src/attn_models.py with BaselineAttention, or m is not of its kind.
    """
    if m.values != 1 or m.logit_scale != "width" or m.attend_to_query:
        raise UserError("The public code has value_dim 1, logit_scale width, and a query that is no key.")
    specification = importlib.util.spec_from_file_location("attn_models", folder / "src/attn_models.py")
    try:
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        kind = module.BaselineAttention
    except (OSError, AssertionError, AttributeError) as error:
        raise UserError(
            f"{folder} is no checkout of attention-memorization: it has no src/attn_models.py with "
            "BaselineAttention."
        ) from error
    model: torch.nn.Module = kind(m.width, m.outputs, m.width, m.heads, m.head_dim)
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
