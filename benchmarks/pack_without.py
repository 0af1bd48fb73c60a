"""The gradients of a pack without one of its ideas each, for benchmarks/packed_memorization.py.

They are equal to `shapelaw.models.memorizer.gradients` to rounding (a test holds them to that). Suffixes as there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from shapelaw.models.memorizer import Parameters, forward, gradients_through, per_example_gradients
from shapelaw.specs.memorizers import Memorizer
from shapelaw.training.memorizer_pack import Gradients


def by_autograd(outputs_of: Callable[..., Tensor]) -> Gradients:
    """`gradients` through another way to the outputs."""

    def gradients(
        p: Mapping[str, Tensor],
        m: Memorizer,
        positions: Tensor,
        queries: Tensor,
        contexts: Tensor,
        labels: Tensor,
    ) -> tuple[Tensor, Parameters]:
        return gradients_through(
            lambda leaves: outputs_of(leaves, m, positions, queries, contexts), p, labels
        )

    return gradients


def unfolded(
    p: Parameters, m: Memorizer, positions: Tensor, queries_PBd: Tensor, context_Pnd: Tensor
) -> Tensor:
    """Outputs without a fold: each query is embedded and projected by W_Q, and W_O comes before the read-out."""
    models, examples, _ = queries_PBd.shape
    bias_P1d = p["embedding_bias"][:, None]
    q_PBd = torch.baddbmm(bias_P1d + positions[:1], queries_PBd, p["embedding"])
    c_Pnd = torch.baddbmm(bias_P1d + positions[1:], context_Pnd, p["embedding"])
    q_PHBk = torch.matmul(q_PBd[:, None], p["w_q"])
    k_PHnk = torch.bmm(c_Pnd, p["w_k"]).view(models, m.context, m.heads, m.head_dim).transpose(1, 2)
    v_PHnv = torch.bmm(c_Pnd, p["w_v"]).view(models, m.context, m.heads, m.values).transpose(1, 2)
    weights_PHBn = torch.softmax(torch.matmul(q_PHBk, k_PHnk.mT) * m.scale, dim=-1)
    o_PBo = torch.matmul(weights_PHBn, v_PHnv).transpose(1, 2).reshape(models, examples, -1)
    return torch.baddbmm(p["bias"][:, None], torch.bmm(o_PBo, p["w_o"]), p["w_d"])


def all_outputs(
    p: Parameters, m: Memorizer, positions: Tensor, queries_PBd: Tensor, context_Pnd: Tensor
) -> Tensor:
    """Outputs of the query and of every context token of each example, of which only the query's is read."""
    tokens_PBnd = context_Pnd[:, None].expand(-1, queries_PBd.shape[1], -1, -1)
    every = torch.cat([queries_PBd[:, :, None], tokens_PBnd], dim=2).flatten(1, 2)
    outputs, _ = forward(p, m, positions, every, context_Pnd)
    return outputs[:, :: m.context + 1]


def keys_for_each(
    p: Mapping[str, Tensor],
    m: Memorizer,
    positions: Tensor,
    queries: Tensor,
    context_Pnd: Tensor,
    labels: Tensor,
) -> tuple[Tensor, Parameters]:
    """The gradients as if each example had a context of its own."""
    contexts_PBnd = context_Pnd[:, None].expand(-1, queries.shape[1], -1, -1).contiguous()
    return per_example_gradients(p, m, positions, queries, contexts_PBnd, labels)


# for a shared context and one value a head
WITHOUT: dict[str, Gradients] = {
    "keys for each example": keys_for_each,
    "autograd, no folds": by_autograd(unfolded),
    "autograd, all outputs": by_autograd(all_outputs),
}
