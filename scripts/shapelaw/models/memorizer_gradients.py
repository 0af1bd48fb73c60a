"""The gradients of packed memorizers, written out: equal to autograd's (a test holds them to it), in fewer passes.

Inputs need no gradient, so no product is spent on one. Two things follow that autograd can't know: the embedding can
be folded into the matrix from raw query to logits, and with one value a head the backward of softmax has a closed
form, because the weighted mean of the values is the output itself. Suffixes as in `shapelaw.models.memorizer`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from shapelaw.memorizers import Memorizer
from shapelaw.models.memorizer import parameter_shapes
from shapelaw.models.pack_gradients import Parameters


def shared_gradients(
    p: Mapping[str, Tensor],
    m: Memorizer,
    positions: Tensor,
    queries_PBd: Tensor,
    context_Pnd: Tensor,
    labels_PB: Tensor,
    there_PB: Tensor | None = None,
    absent_Pn: Tensor | None = None,
) -> tuple[Tensor, Parameters]:
    """`gradients` for a shared context, written out: no product for the inputs, fewer passes over [P, B, H, n]."""
    models, examples, d = queries_PBd.shape
    heads, n, k, v = m.heads, m.context, m.head_dim, m.values
    embedding, w_q, w_k, w_v = (p[name] for name in ("embedding", "w_q", "w_k", "w_v"))
    # keys, values, and what takes a raw query to its logits
    c_Pnd = torch.baddbmm(p["embedding_bias"][:, None] + positions[1:], context_Pnd, embedding)
    q_bias_Pd = p["embedding_bias"] + positions[0]
    k_PHnk = torch.bmm(c_Pnd, w_k).view(models, n, heads, k).transpose(1, 2).contiguous()
    fold_PJd = torch.matmul(k_PHnk, w_q.transpose(2, 3)).view(models, heads * n, d) * m.scale  # J = H n
    raw_PJd = torch.bmm(fold_PJd, embedding.transpose(1, 2))
    offset_P1J = torch.bmm(fold_PJd, q_bias_Pd[:, :, None]).transpose(1, 2)
    logits_PBJ = torch.baddbmm(
        _without_absent(offset_P1J, heads, absent_Pn), queries_PBd, raw_PJd.transpose(1, 2)
    )
    weights_PBHn = torch.softmax(logits_PBJ.view(models, examples, heads, n), dim=-1)
    if v == 1:
        v_P1Hn = torch.bmm(w_v.transpose(1, 2), c_Pnd.transpose(1, 2)).view(models, 1, heads, n)
        o_PBo = (weights_PBHn * v_P1Hn).sum(-1)
    else:
        v_PHnv = torch.bmm(c_Pnd, w_v).view(models, n, heads, v).transpose(1, 2).contiguous()
        o_PBo = torch.matmul(weights_PBHn.transpose(1, 2), v_PHnv).transpose(1, 2).flatten(2)
    loss_P, d_o_PBo, g = _read_out_gradients(p, o_PBo, labels_PB, there_PB)

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


def _loss_gradient(outputs_PBc: Tensor, labels_PB: Tensor, there_PB: Tensor | None) -> tuple[Tensor, Tensor]:
    """`losses` [P] and their gradient by the outputs [P, B, c]."""
    if labels_PB.is_floating_point():
        error_PB1 = outputs_PBc - labels_PB[..., None]
        each_PB1, gradient_PBc = error_PB1.square(), 2 * error_PB1
    else:
        log_sum_PB1 = torch.logsumexp(outputs_PBc, -1, keepdim=True)
        each_PB1 = log_sum_PB1 - outputs_PBc.gather(2, labels_PB[..., None])
        off = torch.full_like(log_sum_PB1, -1.0)
        gradient_PBc = torch.exp(outputs_PBc - log_sum_PB1).scatter_add(2, labels_PB[..., None], off)
    if there_PB is None:
        return each_PB1.mean((1, 2)), gradient_PBc / labels_PB.shape[1]
    share_PB1 = (there_PB / there_PB.sum(1, keepdim=True))[..., None]
    return (each_PB1 * share_PB1).sum((1, 2)), gradient_PBc * share_PB1


def per_example_gradients(
    p: Mapping[str, Tensor],
    m: Memorizer,
    positions: Tensor,
    queries_PBd: Tensor,
    contexts_PBnd: Tensor,
    labels_PB: Tensor,
    there_PB: Tensor | None = None,
    absent_Pn: Tensor | None = None,
) -> tuple[Tensor, Parameters]:
    """`gradients` for a context each and one value a head.

    A logit of raw query x and raw token y is bilinear: x M y + x N_i + b y + c_i, with M, N, b, c made of embedding,
    positions, W_Q and W_K once a step, so that no token is embedded and none has a key.
    """
    models, examples, d = queries_PBd.shape
    heads, n, k = m.heads, m.context, m.head_dim
    embedding, w_q, w_k, w_v = (p[name] for name in ("embedding", "w_q", "w_k", "w_v"))
    place_Pnd, q_bias_Pd = p["embedding_bias"][:, None] + positions[1:], p["embedding_bias"] + positions[0]
    tokens_Xnd = contexts_PBnd.reshape(models * examples, n, d)  # X = P B

    def by_head(flat: Tensor, last: int) -> Tensor:
        """[P, rows, H last] as [P, H, rows, last]."""
        return flat.view(models, -1, heads, last).transpose(1, 2).contiguous()

    def flat(by_head: Tensor) -> Tensor:
        """The inverse."""
        return by_head.transpose(1, 2).flatten(2)

    query_PHdk = torch.matmul(embedding[:, None], w_q)
    query0_PH1k = torch.matmul(q_bias_Pd[:, None, None], w_q)
    key_PHdk, key0_PHnk = by_head(torch.bmm(embedding, w_k), k), by_head(torch.bmm(place_Pnd, w_k), k)
    m_PHdd, n_PHdn = query_PHdk @ key_PHdk.mT * m.scale, query_PHdk @ key0_PHnk.mT * m.scale
    b_PH1d, c_PH1n = query0_PH1k @ key_PHdk.mT * m.scale, query0_PH1k @ key0_PHnk.mT * m.scale
    seen_PBJ = torch.baddbmm(flat(b_PH1d), queries_PBd, flat(m_PHdd))  # J = H d
    places_P1J = _without_absent(flat(c_PH1n), heads, absent_Pn)  # J = H n
    at_place_PBJ = torch.baddbmm(places_P1J, queries_PBd, flat(n_PHdn))
    values_PHd, value0_PHn = torch.bmm(w_v.mT, embedding.mT), torch.bmm(w_v.mT, place_Pnd.mT)
    # two rows a head for each token: its logit and its value, in one pass over the tokens
    rows_PBHd = seen_PBJ.view(models, examples, heads, d)
    rows_PBRd = torch.cat([rows_PBHd, values_PHd[:, None].expand_as(rows_PBHd)], dim=2)  # R = 2 H
    of_tokens_PBRn = torch.bmm(rows_PBRd.flatten(0, 1), tokens_Xnd.mT).view(models, examples, 2 * heads, n)
    logits_PBHn = of_tokens_PBRn[:, :, :heads] + at_place_PBJ.view(models, examples, heads, n)
    weights_PBHn = torch.softmax(logits_PBHn, dim=-1)
    v_PBHn = of_tokens_PBRn[:, :, heads:] + value0_PHn[:, None]
    o_PBH = (weights_PBHn * v_PBHn).sum(-1)
    loss_P, d_o_PBH, g = _read_out_gradients(p, o_PBH, labels_PB, there_PB)

    spread_PBHn = weights_PBHn * d_o_PBH[..., None]
    d_logits_PBHn = spread_PBHn * (v_PBHn - o_PBH[..., None])
    d_of_tokens_XRn = torch.cat([d_logits_PBHn, spread_PBHn], dim=2).flatten(0, 1)
    d_rows_PBRd = torch.bmm(d_of_tokens_XRn, tokens_Xnd).view(models, examples, 2 * heads, d)
    d_seen_PBJ, d_logits_PBJ = d_rows_PBRd[:, :, :heads].flatten(2), d_logits_PBHn.flatten(2)
    d_values_PHd = d_rows_PBRd[:, :, heads:].sum(1)
    d_value0_PHn = spread_PBHn.sum(1)
    queries_PdB = queries_PBd.transpose(1, 2)
    d_m_PHdd = by_head(torch.bmm(queries_PdB, d_seen_PBJ), d) * m.scale
    d_n_PHdn = by_head(torch.bmm(queries_PdB, d_logits_PBJ), n) * m.scale
    d_b_PH1d = d_seen_PBJ.sum(1).view(models, heads, 1, d) * m.scale
    d_c_PH1n = d_logits_PBJ.sum(1).view(models, heads, 1, n) * m.scale

    d_query_PHdk = d_m_PHdd @ key_PHdk + d_n_PHdn @ key0_PHnk
    d_query0_PH1k = d_b_PH1d @ key_PHdk + d_c_PH1n @ key0_PHnk
    d_key_Pdj = flat(d_m_PHdd.mT @ query_PHdk + d_b_PH1d.mT @ query0_PH1k)
    d_key0_Pnj = flat(d_n_PHdn.mT @ query_PHdk + d_c_PH1n.mT @ query0_PH1k)
    g["w_q"] = embedding.mT[:, None] @ d_query_PHdk + q_bias_Pd[:, None, :, None] * d_query0_PH1k
    g["w_k"] = torch.baddbmm(torch.bmm(embedding.mT, d_key_Pdj), place_Pnd.mT, d_key0_Pnj)
    g["w_v"] = torch.baddbmm(torch.bmm(embedding.mT, d_values_PHd.mT), place_Pnd.mT, d_value0_PHn.mT)
    g["embedding"] = (d_query_PHdk @ w_q.mT).sum(1) + torch.bmm(d_key_Pdj, w_k.mT)
    g["embedding"] = torch.baddbmm(g["embedding"], d_values_PHd.mT, w_v.mT)
    d_place_Pnd = torch.baddbmm(torch.bmm(d_key0_Pnj, w_k.mT), d_value0_PHn.mT, w_v.mT)
    g["embedding_bias"] = (w_q @ d_query0_PH1k.mT).sum((1, 3)) + d_place_Pnd.sum(1)
    return loss_P, {name: g[name] for name in parameter_shapes(m)}


def _without_absent(offset_P1J: Tensor, heads: int, absent_Pn: Tensor | None) -> Tensor:
    """What is added to the logits, J = H n, of no weight where a context has no token."""
    if absent_Pn is None:
        return offset_P1J
    return offset_P1J.masked_fill(absent_Pn.repeat(1, heads)[:, None], -math.inf)


def _read_out_gradients(
    p: Mapping[str, Tensor], o_PBo: Tensor, labels_PB: Tensor, there_PB: Tensor | None
) -> tuple[Tensor, Tensor, Parameters]:
    """Losses [P] of head outputs [P, B, H v], their gradient by those, and the gradients of W_O, W_D and the bias."""
    w_o, w_d = p["w_o"], p["w_d"]
    read_out_Poc = torch.bmm(w_o, w_d)
    outputs_PBc = torch.baddbmm(p["bias"][:, None], o_PBo, read_out_Poc)
    loss_P, d_outputs_PBc = _loss_gradient(outputs_PBc, labels_PB, there_PB)
    d_read_out_Poc = torch.bmm(o_PBo.transpose(1, 2), d_outputs_PBc)
    g: Parameters = {
        "bias": d_outputs_PBc.sum(1),
        "w_o": torch.bmm(d_read_out_Poc, w_d.transpose(1, 2)),
        "w_d": torch.bmm(w_o.transpose(1, 2), d_read_out_Poc),
    }
    return loss_P, torch.bmm(d_outputs_PBc, read_out_Poc.transpose(1, 2)), g
