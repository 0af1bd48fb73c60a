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
from torch.nn.functional import pad

from shapelaw.memorizers import Memorizer
from shapelaw.models.memorizer import parameter_shapes
from shapelaw.models.memorizer_kernel import Folded, Picked, folded_gradients, look_size, places
from shapelaw.models.pack_gradients import Parameters

# the loss, the gradients by what queries become, by what tokens become, by their values, and those of the read-out
_Found = tuple[Tensor, Tensor, Tensor, Tensor, Parameters]


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
    if absent_Pn is not None:  # no weight for a token that is not there
        offset_P1J = offset_P1J.masked_fill(absent_Pn.repeat(1, heads)[:, None], -math.inf)
    # bmm and a sum, not baddbmm: compiled, the sum is a part of what comes next, while baddbmm copies it first
    logits_PBJ = torch.bmm(queries_PBd, raw_PJd.mT) + offset_P1J
    weights_PBHn = torch.softmax(logits_PBJ.view(models, examples, heads, n), dim=-1)
    if v == 1:
        v_P1Hn = torch.bmm(w_v.transpose(1, 2), c_Pnd.transpose(1, 2)).view(models, 1, heads, n)
        o_PBo = (weights_PBHn * v_P1Hn).sum(-1)
    else:
        v_PHnv = torch.bmm(c_Pnd, w_v).view(models, n, heads, v).transpose(1, 2).contiguous()
        o_PBo = torch.matmul(weights_PBHn.transpose(1, 2), v_PHnv).transpose(1, 2).flatten(2)
    loss_P, d_o_PBo, g = _through_read_out(p, o_PBo, labels_PB, there_PB)

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
    contexts: Tensor | Picked,
    labels_PB: Tensor,
    there_PB: Tensor | None = None,
    absent_Pn: Tensor | None = None,
) -> tuple[Tensor, Parameters]:
    """`gradients` for a context each and one value a head.

    A logit is bilinear in the raw query and the raw token, once a query has a one beside its d numbers (Q = d + 1) and
    a token the indicator of its place (S = d + n): embedding, positions, W_Q and W_K are folded into one matrix a head,
    once a step, so that no token is embedded and none has a key. A value is linear in the token in the same way.

    Args:
        contexts: [P, B, n, d], or rows of a table, where `memorizer_kernel.is_possible`.
    """
    models, _, d = queries_PBd.shape
    heads, n, k = m.heads, m.context, m.head_dim
    embedding, bias_P1d = p["embedding"], p["embedding_bias"][:, None]
    w_q, w_k, w_v = p["w_q"], p["w_k"], p["w_v"]
    queries_PBQ = pad(queries_PBd, (0, 1), value=1.0)
    of_query_PQd = torch.cat([embedding, bias_P1d + positions[:1]], dim=1)
    of_token_PSd = torch.cat([embedding, bias_P1d + positions[1:]], dim=1)
    query_PHQk = torch.matmul(of_query_PQd[:, None], w_q)
    key_PHSk = torch.bmm(of_token_PSd, w_k).view(models, d + n, heads, k).transpose(1, 2).contiguous()
    values_PHS = torch.bmm(w_v.mT, of_token_PSd.mT)
    through = _through_tokens if isinstance(contexts, Tensor) else _through_kernel
    loss_P, d_query_PHQk, d_key_PHSk, d_values_PHS, g = through(
        p, m, queries_PBQ, query_PHQk, key_PHSk, values_PHS, contexts, labels_PB, there_PB, absent_Pn
    )
    d_key_PSj = d_key_PHSk.transpose(1, 2).flatten(2)  # J = H k
    g["w_q"] = of_query_PQd.mT[:, None] @ d_query_PHQk
    g["w_k"] = torch.bmm(of_token_PSd.mT, d_key_PSj)
    g["w_v"] = torch.bmm(of_token_PSd.mT, d_values_PHS.mT)
    d_of_query_PQd = (d_query_PHQk @ w_q.mT).sum(1)
    d_of_token_PSd = torch.bmm(d_key_PSj, w_k.mT) + torch.bmm(d_values_PHS.mT, w_v.mT)
    g["embedding"] = d_of_query_PQd[:, :d] + d_of_token_PSd[:, :d]
    g["embedding_bias"] = d_of_query_PQd[:, d] + d_of_token_PSd[:, d:].sum(1)
    return loss_P, {name: g[name] for name in parameter_shapes(m)}


def _through_kernel(
    p: Mapping[str, Tensor],
    m: Memorizer,
    queries_PBQ: Tensor,
    query_PHQk: Tensor,
    key_PHSk: Tensor,
    values_PHS: Tensor,
    contexts: Picked,
    labels_PB: Tensor,
    there_PB: Tensor | None,
    absent_Pn: Tensor | None,
) -> _Found:
    """The loss, and the gradients by what queries and tokens become, with tokens that stay where they lie.

    Where d_h is small each head takes a query to its d_h numbers and these to the rows that tokens are seen by; else
    both are folded into one matrix.
    """
    models, examples, size = queries_PBQ.shape
    filled, look = places(m) - m.context, look_size(m)
    key_PHSk, values_PHS = pad(key_PHSk, (0, 0, 0, filled)), pad(values_PHS, (0, filled))
    if look is None:
        looks_PBLK, folds_PHKS = queries_PBQ[:, :, None], query_PHQk @ key_PHSk.mT * m.scale
    else:
        more = look - m.head_dim
        looks_PBLK = torch.matmul(queries_PBQ[:, None], pad(query_PHQk, (0, more))).transpose(1, 2)
        folds_PHKS = pad(key_PHSk, (0, more)).mT * m.scale
    absent_Pi = queries_PBQ.new_zeros(models, m.context)
    if absent_Pn is not None:
        absent_Pi = absent_Pi.masked_fill(absent_Pn, -math.inf)
    folded = Folded(
        looks_PBLK,
        folds_PHKS,
        values_PHS,
        torch.bmm(p["w_o"], p["w_d"]),
        p["bias"],
        pad(absent_Pi, (0, filled), value=-math.inf),
    )
    if there_PB is None:
        share_PB = queries_PBQ.new_full((models, examples), 1 / examples)
    else:
        share_PB = there_PB / there_PB.sum(1, keepdim=True)
    found = folded_gradients(folded, labels_PB, share_PB, *contexts)
    d_folds_PHKS = found.folds_PHKS[..., : size - 1 + m.context] * m.scale
    key_PHSk = key_PHSk[:, :, : size - 1 + m.context]
    if look is None:
        d_query_PHQk, d_key_PHSk = d_folds_PHKS @ key_PHSk, d_folds_PHKS.mT @ query_PHQk
    else:
        d_looks_PHBk = found.looks_PBLK[..., : m.head_dim].transpose(1, 2)
        d_query_PHQk = torch.matmul(queries_PBQ.mT[:, None], d_looks_PHBk)
        d_key_PHSk = d_folds_PHKS[:, :, : m.head_dim].mT
    g = _read_out_gradients(p, found.read_out_PHc, found.bias_Pc)
    return found.loss_P, d_query_PHQk, d_key_PHSk, found.values_PHS[..., : size - 1 + m.context], g


def _through_tokens(
    p: Mapping[str, Tensor],
    m: Memorizer,
    queries_PBQ: Tensor,
    query_PHQk: Tensor,
    key_PHSk: Tensor,
    values_PHS: Tensor,
    contexts_PBnd: Tensor,
    labels_PB: Tensor,
    there_PB: Tensor | None,
    absent_Pn: Tensor | None,
) -> _Found:
    """The same with tokens [P, B, n, d]."""
    models, examples, n, d = contexts_PBnd.shape
    heads = m.heads
    fold_PHQS = query_PHQk @ key_PHSk.mT * m.scale
    fold_PQJ = fold_PHQS.transpose(1, 2).flatten(2)  # J = H S
    seen_PBHS = torch.bmm(queries_PBQ, fold_PQJ).view(models, examples, heads, d + n)
    # two rows a head for each token: its logit and its value, in one pass over the tokens
    tokens_Xnd = contexts_PBnd.reshape(models * examples, n, d)  # X = P B
    rows_PB2HS = torch.stack([seen_PBHS, values_PHS[:, None].expand_as(seen_PBHS)], dim=2)
    of_tokens_XRn = torch.bmm(rows_PB2HS[..., :d].flatten(2, 3).flatten(0, 1), tokens_Xnd.mT)  # R = 2 H
    of_tokens_PB2Hn = of_tokens_XRn.view(models, examples, 2, heads, n) + rows_PB2HS[..., d:]
    logits_PBHn, v_PBHn = of_tokens_PB2Hn.unbind(2)
    if absent_Pn is not None:  # no weight for a token that is not there
        logits_PBHn = logits_PBHn.masked_fill(absent_Pn[:, None, None], -math.inf)
    weights_PBHn = torch.softmax(logits_PBHn, dim=-1)
    o_PBH = (weights_PBHn * v_PBHn).sum(-1)
    loss_P, d_o_PBH, g = _through_read_out(p, o_PBH, labels_PB, there_PB)

    spread_PBHn = weights_PBHn * d_o_PBH[..., None]
    d_of_tokens_PB2Hn = torch.stack([spread_PBHn * (v_PBHn - o_PBH[..., None]), spread_PBHn], dim=2)
    d_rows_XRd = torch.bmm(d_of_tokens_PB2Hn.view(models * examples, 2 * heads, n), tokens_Xnd)
    d_rows_PB2Hd = d_rows_XRd.view(models, examples, 2, heads, d)
    d_rows_PB2HS = torch.cat([d_rows_PB2Hd, d_of_tokens_PB2Hn], dim=-1)
    d_seen_PBHS, d_values_PHS = d_rows_PB2HS[:, :, 0], d_rows_PB2HS[:, :, 1].sum(1)
    d_fold_PQJ = torch.bmm(queries_PBQ.mT, d_seen_PBHS.flatten(2)) * m.scale
    d_fold_PHQS = d_fold_PQJ.view(models, d + 1, heads, d + n).transpose(1, 2).contiguous()
    return loss_P, d_fold_PHQS @ key_PHSk, d_fold_PHQS.mT @ query_PHQk, d_values_PHS, g


def _through_read_out(
    p: Mapping[str, Tensor], o_PBo: Tensor, labels_PB: Tensor, there_PB: Tensor | None
) -> tuple[Tensor, Tensor, Parameters]:
    """Losses [P] of head outputs [P, B, H v], their gradient by those, and the gradients of W_O, W_D and the bias."""
    read_out_Poc = torch.bmm(p["w_o"], p["w_d"])
    outputs_PBc = torch.bmm(o_PBo, read_out_Poc) + p["bias"][:, None]
    loss_P, d_outputs_PBc = _loss_gradient(outputs_PBc, labels_PB, there_PB)
    d_read_out_Poc = torch.bmm(o_PBo.mT, d_outputs_PBc)
    g = _read_out_gradients(p, d_read_out_Poc, d_outputs_PBc.sum(1))
    return loss_P, torch.bmm(d_outputs_PBc, read_out_Poc.mT), g


def _read_out_gradients(p: Mapping[str, Tensor], d_read_out_Poc: Tensor, d_bias_Pc: Tensor) -> Parameters:
    """The gradients of W_O, W_D and the bias."""
    return {
        "bias": d_bias_Pc,
        "w_o": torch.bmm(d_read_out_Poc, p["w_d"].mT),
        "w_d": torch.bmm(p["w_o"].mT, d_read_out_Poc),
    }
