"""Many independent memorizers of one shape as one computation (Mahdavi et al. 2024, eqs. 1-6).

Suffixes: P models, B examples, H heads, n context tokens, d width, k head_dim, v value_dim, c outputs.

The algebra of the problem is used. Only the query's output is read, so only the query is attended from. With one
context for all examples its keys and values are computed once a step, W_K W_Q^T and the embedding are folded into
one matrix from raw query to logits, and W_O W_D into one from head outputs to labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from shapelaw.memorizers import Memorizer

Parameters = dict[str, Tensor]


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


def positions(m: Memorizer, dtype: torch.dtype) -> Tensor:
    """Sinusoidal positions [n + 1, d]: the query's first, then the context's."""
    position = torch.arange(m.context + 1, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, m.width, 2, dtype=torch.float64) * (-math.log(10_000) / m.width))
    table = torch.empty(m.context + 1, m.width, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
    return table.to(dtype)


def forward(
    p: Parameters, m: Memorizer, positions: Tensor, queries_PBd: Tensor, contexts: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [P, B, c] and attention weights [P, B, H, n]; with `attend_to_query` [P, B, H, n + 1], the query first.

    Args:
        contexts: [P, n, d] shared by all examples, or [P, B, n, d].
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


def losses(outputs_PBc: Tensor, labels_PB: Tensor) -> Tensor:
    """Each model's loss [P]: cross-entropy in nats for classes, mean squared error for numbers."""
    if labels_PB.is_floating_point():
        return (outputs_PBc[..., 0] - labels_PB).square().mean(1)
    flat = functional.cross_entropy(outputs_PBc.flatten(0, 1), labels_PB.flatten(), reduction="none")
    return flat.view(labels_PB.shape).mean(1)


def gradients(
    p: Mapping[str, Tensor],
    m: Memorizer,
    positions: Tensor,
    queries_PBd: Tensor,
    contexts: Tensor,
    labels_PB: Tensor,
) -> tuple[Tensor, Parameters]:
    """Each model's loss [P] and the gradients of all parameters, by autograd."""
    with torch.enable_grad():
        leaves = {name: value.detach().requires_grad_() for name, value in p.items()}
        loss_P = losses(forward(leaves, m, positions, queries_PBd, contexts)[0], labels_PB)
        found = torch.autograd.grad(loss_P.sum(), list(leaves.values()))
    return loss_P.detach(), dict(zip(leaves, found, strict=True))


def shared_gradients(
    p: Mapping[str, Tensor],
    m: Memorizer,
    positions: Tensor,
    queries_PBd: Tensor,
    context_Pnd: Tensor,
    labels_PB: Tensor,
) -> tuple[Tensor, Parameters]:
    """`gradients` for a shared context, written out: no product for the inputs, fewer passes over [P, B, H, n]."""
    models, examples, d = queries_PBd.shape
    heads, n, k, v = m.heads, m.context, m.head_dim, m.values
    embedding, w_q, w_k, w_v, w_o, w_d = (
        p[name] for name in ("embedding", "w_q", "w_k", "w_v", "w_o", "w_d")
    )
    # keys, values, and what takes a raw query to its logits
    c_Pnd = torch.baddbmm(p["embedding_bias"][:, None] + positions[1:], context_Pnd, embedding)
    q_bias_Pd = p["embedding_bias"] + positions[0]
    k_PHnk = torch.bmm(c_Pnd, w_k).view(models, n, heads, k).transpose(1, 2).contiguous()
    fold_PJd = torch.matmul(k_PHnk, w_q.transpose(2, 3)).view(models, heads * n, d) * m.scale  # J = H n
    raw_PJd = torch.bmm(fold_PJd, embedding.transpose(1, 2))
    offset_P1J = torch.bmm(fold_PJd, q_bias_Pd[:, :, None]).transpose(1, 2)
    logits_PBJ = torch.baddbmm(offset_P1J, queries_PBd, raw_PJd.transpose(1, 2))
    weights_PBHn = torch.softmax(logits_PBJ.view(models, examples, heads, n), dim=-1)
    if v == 1:
        v_P1Hn = torch.bmm(w_v.transpose(1, 2), c_Pnd.transpose(1, 2)).view(models, 1, heads, n)
        o_PBo = (weights_PBHn * v_P1Hn).sum(-1)
    else:
        v_PHnv = torch.bmm(c_Pnd, w_v).view(models, n, heads, v).transpose(1, 2).contiguous()
        o_PBo = torch.matmul(weights_PBHn.transpose(1, 2), v_PHnv).transpose(1, 2).flatten(2)
    read_out_Poc = torch.bmm(w_o, w_d)
    outputs_PBc = torch.baddbmm(p["bias"][:, None], o_PBo, read_out_Poc)
    loss_P, d_outputs_PBc = _loss_gradient(outputs_PBc, labels_PB)

    g: Parameters = {"bias": d_outputs_PBc.sum(1)}
    d_read_out_Poc = torch.bmm(o_PBo.transpose(1, 2), d_outputs_PBc)
    g["w_o"] = torch.bmm(d_read_out_Poc, w_d.transpose(1, 2))
    g["w_d"] = torch.bmm(w_o.transpose(1, 2), d_read_out_Poc)
    d_o_PBo = torch.bmm(d_outputs_PBc, read_out_Poc.transpose(1, 2))
    if v == 1:  # softmax backward in closed form: sum_i weights_i v_i is the output itself
        spread_PBHn = weights_PBHn * d_o_PBo[..., None]
        d_v_PoN = spread_PBHn.sum(1)  # [P, H, n]
        d_logits_PBHn = spread_PBHn * (v_P1Hn - o_PBo[..., None])
    else:
        d_o_PHBv = d_o_PBo.view(models, examples, heads, v).transpose(1, 2)
        d_v_PoN = torch.matmul(d_o_PHBv.transpose(2, 3), weights_PBHn.transpose(1, 2)).flatten(1, 2)
        d_weights_PBHn = torch.matmul(d_o_PHBv, v_PHnv.transpose(2, 3)).transpose(1, 2)
        mean_PBH1 = (d_weights_PBHn * weights_PBHn).sum(-1, keepdim=True)
        d_logits_PBHn = weights_PBHn * (d_weights_PBHn - mean_PBH1)
    d_logits_PBJ = d_logits_PBHn.reshape(models, examples, heads * n)
    d_raw_PJd = torch.bmm(d_logits_PBJ.transpose(1, 2), queries_PBd)
    d_offset_PJ = d_logits_PBJ.sum(1)
    d_fold_PJd = (torch.bmm(d_raw_PJd, embedding) + d_offset_PJ[:, :, None] * q_bias_Pd[:, None]) * m.scale
    d_fold_PHnd = d_fold_PJd.view(models, heads, n, d)
    g["w_q"] = torch.matmul(d_fold_PHnd.transpose(2, 3), k_PHnk)
    d_k_Pnj = torch.matmul(d_fold_PHnd, w_q).transpose(1, 2).reshape(models, n, heads * k)
    g["w_k"] = torch.bmm(c_Pnd.transpose(1, 2), d_k_Pnj)
    g["w_v"] = torch.bmm(c_Pnd.transpose(1, 2), d_v_PoN.transpose(1, 2))
    d_c_Pnd = torch.bmm(d_v_PoN.transpose(1, 2), w_v.transpose(1, 2))
    d_c_Pnd = torch.baddbmm(d_c_Pnd, d_k_Pnj, w_k.transpose(1, 2))
    g["embedding"] = torch.bmm(d_raw_PJd.transpose(1, 2), fold_PJd)
    g["embedding"] = torch.baddbmm(g["embedding"], context_Pnd.transpose(1, 2), d_c_Pnd)
    g["embedding_bias"] = torch.bmm(d_offset_PJ[:, None], fold_PJd)[:, 0] + d_c_Pnd.sum(1)
    return loss_P, {name: g[name] for name in parameter_shapes(m)}


def _loss_gradient(outputs_PBc: Tensor, labels_PB: Tensor) -> tuple[Tensor, Tensor]:
    """`losses` [P] and their gradient by the outputs [P, B, c]."""
    examples = labels_PB.shape[1]
    if labels_PB.is_floating_point():
        error_PB1 = outputs_PBc - labels_PB[..., None]
        return error_PB1.square().mean((1, 2)), error_PB1 * (2 / examples)
    log_sum_PB1 = torch.logsumexp(outputs_PBc, -1, keepdim=True)
    loss_P = (log_sum_PB1 - outputs_PBc.gather(2, labels_PB[..., None])).mean((1, 2))
    off = torch.full_like(log_sum_PB1, -1.0)
    return loss_P, torch.exp(outputs_PBc - log_sum_PB1).scatter_add(2, labels_PB[..., None], off) / examples
