"""Many independent memorizers of one shape as one computation (Mahdavi et al. 2024, eqs. 1-6).

Suffixes: P models, B examples, H heads, n context tokens, d width, k head_dim, v value_dim, c outputs.

The computation uses the algebra of the problem. Only the query's output is read, so only the query attends. A context
shared by all examples has its keys and values computed once per step, W_K W_Q^T and the embedding are folded into one
matrix from raw query to logits, and W_O W_D into one from head outputs to labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from shapelaw.models.pack_gradients import Parameters, gradients_through
from shapelaw.specs.memorizers import Memorizer


def parameter_shapes(m: Memorizer) -> dict[str, tuple[int, ...]]:
    """The parameters of one model by name; a pack has P in front."""
    d, heads = m.width, m.heads
    return {
        "embedding": (d, d),
        "embedding_bias": (d,),
        "w_q": (heads, d, m.head_dim),
        "w_k": (d, heads * m.head_dim),
        "w_v": (d, heads * m.values),
        "w_o": (heads * m.values, d),
        "w_d": (d, m.outputs),
        "bias": (m.outputs,),
    }


def initial_parameters(m: Memorizer, seed: int, dtype: torch.dtype) -> Parameters:
    """One model's parameters, a function of shape and seed alone.

    Attention weights are Glorot-uniform per head; embedding and read-out are uniform in +-1/sqrt(d), as in the
    authors' code.
    """
    generator = torch.Generator().manual_seed(seed)
    d, k, v = m.width, m.head_dim, m.values
    glorot = {"w_q": d + k, "w_k": d + k, "w_v": d + v, "w_o": m.heads * v + d}
    parameters = {}
    for name, shape in parameter_shapes(m).items():
        limit = math.sqrt(6 / glorot[name]) if name in glorot else d**-0.5
        drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
        parameters[name] = ((2 * drawn - 1) * limit).to(dtype)
    return parameters


def filled_up(p: Mapping[str, Tensor], m: Memorizer, to: Memorizer) -> Parameters:
    """Parameters of some models [P, ...] of shape `m`, padded with zeros to shape `to`.

    A head of zeros, or a zero dimension of a head, adds nothing to an output, and its gradients are zero: it stays
    zero.
    """
    larger = {name: p[name].new_zeros(len(p[name]), *shape) for name, shape in parameter_shapes(to).items()}
    for own, filled in zip(_by_head(p, m), _by_head(larger, to), strict=True):
        filled[tuple(slice(size) for size in own.shape)] = own
    return larger


def cut_down(p: Mapping[str, Tensor], m: Memorizer, to: Memorizer) -> Parameters:
    """The inverse of `filled_up`: parameters of shape `m`, cut from those of shape `to`."""
    smaller = {name: p[name].new_empty(len(p[name]), *shape) for name, shape in parameter_shapes(to).items()}
    for filled, own in zip(_by_head(p, m), _by_head(smaller, to), strict=True):
        own.copy_(filled[tuple(slice(size) for size in own.shape)])
    return smaller


def _by_head(p: Mapping[str, Tensor], m: Memorizer) -> list[Tensor]:
    """Views of all parameters with separate dimensions for heads and for the numbers inside a head."""
    sizes = {
        "w_k": (m.width, m.heads, m.head_dim),
        "w_v": (m.width, m.heads, m.values),
        "w_o": (m.heads, m.values, m.width),
    }
    return [p[name].view(-1, *sizes.get(name, shape)) for name, shape in parameter_shapes(m).items()]


def positions(m: Memorizer, dtype: torch.dtype) -> Tensor:
    """Sinusoidal positions [n + 1, d]: the query's first, then the context's."""
    position = torch.arange(m.context + 1, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, m.width, 2, dtype=torch.float64) * (-math.log(10_000) / m.width))
    table = torch.empty(m.context + 1, m.width, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
    return table.to(dtype)


def forward(
    p: Parameters,
    m: Memorizer,
    positions: Tensor,
    queries_PBd: Tensor,
    contexts: Tensor,
    absent_Pn: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs [P, B, c] and attention weights [P, B, H, n]; with `attend_to_query` [P, B, H, n + 1], the query first.

    Args:
        contexts: [P, n, d] shared by all examples, or [P, B, n, d].
        absent_Pn: True where a context has no token because others of the pack are longer; None if none is missing.
    """
    models, examples, _ = queries_PBd.shape
    heads, values = m.heads, m.values
    place_1d, places_nd = positions[:1], positions[1:]
    bias_P1d = p["embedding_bias"][:, None]
    q_PBd = torch.baddbmm(bias_P1d + place_1d, queries_PBd, p["embedding"])
    w_k_PHdk = p["w_k"].view(models, m.width, heads, m.head_dim).transpose(1, 2)
    w_v_PHdv = p["w_v"].view(models, m.width, heads, values).transpose(1, 2)
    if contexts.dim() == 3:
        c_Pnd = torch.baddbmm(bias_P1d + places_nd, contexts, p["embedding"])
        k_PHnk = torch.matmul(c_Pnd[:, None], w_k_PHdk)
        fold_PHdn = torch.matmul(p["w_q"], k_PHnk.transpose(2, 3)) * m.scale
        logits_PBHn = torch.matmul(q_PBd[:, None], fold_PHdn).transpose(1, 2)
    else:
        # u: the query seen through W_Q W_K^T; the context stays raw, its embedding is folded into u
        u_PBHd = torch.einsum("pbd,phdk,phek->pbhe", q_PBd, p["w_q"], w_k_PHdk) * m.scale
        raw_PBHd = torch.matmul(u_PBHd, p["embedding"][:, None].transpose(2, 3))
        logits_PBHn = torch.matmul(raw_PBHd, contexts.transpose(2, 3))
        logits_PBHn = logits_PBHn + torch.matmul(u_PBHd, (bias_P1d + places_nd)[:, None].transpose(2, 3))
    if absent_Pn is not None:
        logits_PBHn = logits_PBHn.masked_fill(absent_Pn[:, None, None], -math.inf)
    if m.attend_to_query:
        own_PBH = torch.einsum("pbd,phdk,phek,pbe->pbh", q_PBd, p["w_q"], w_k_PHdk, q_PBd) * m.scale
        logits_PBHn = torch.cat([own_PBH[..., None], logits_PBHn], dim=-1)
    weights_PBHn = torch.softmax(logits_PBHn, dim=-1)
    context_PBHn = weights_PBHn[..., 1:] if m.attend_to_query else weights_PBHn
    if contexts.dim() == 3:
        v_PHnv = torch.matmul(c_Pnd[:, None], w_v_PHdv)
        o_PBHv = torch.matmul(context_PBHn.transpose(1, 2), v_PHnv).transpose(1, 2)
    else:
        z_PBHd = torch.matmul(torch.matmul(context_PBHn, contexts), p["embedding"][:, None])
        z_PBHd = z_PBHd + torch.matmul(context_PBHn, (bias_P1d + places_nd)[:, None])
        o_PBHv = torch.einsum("pbhd,phdv->pbhv", z_PBHd, w_v_PHdv)
    if m.attend_to_query:
        o_PBHv = o_PBHv + weights_PBHn[..., :1] * torch.einsum("pbd,phdv->pbhv", q_PBd, w_v_PHdv)
    read_out_Poc = torch.bmm(p["w_o"], p["w_d"])
    o_PBo = o_PBHv.reshape(models, examples, heads * values)
    return torch.baddbmm(p["bias"][:, None], o_PBo, read_out_Poc), weights_PBHn


def gradients(
    p: Mapping[str, Tensor],
    m: Memorizer,
    positions: Tensor,
    queries_PBd: Tensor,
    contexts: Tensor,
    labels_PB: Tensor,
    there_PB: Tensor | None = None,
    absent_Pn: Tensor | None = None,
) -> tuple[Tensor, Parameters]:
    """Each model's loss [P] and the gradients of all parameters, by autograd.

    Args:
        there_PB: see `losses`.
        absent_Pn: see `forward`.
    """
    return gradients_through(
        lambda leaves: forward(leaves, m, positions, queries_PBd, contexts, absent_Pn)[0],
        p,
        labels_PB,
        there_PB,
    )
