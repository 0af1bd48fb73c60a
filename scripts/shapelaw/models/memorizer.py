"""Many independent memorizers of one shape as one computation (Mahdavi et al. 2024, eqs. 1-6), and its gradients.

The computation uses the algebra of the problem. Only the query's output is read, so only the query attends. A context
shared by all examples has its keys and values computed once per step, W_K W_Q^T and the embedding are folded into one
matrix from raw query to logits, and W_O W_D into one from head outputs to labels.

Gradients are autograd's, or written out in fewer passes and equal to these (a test checks it). Inputs need no gradient,
so none is computed. Two things follow that autograd can't know: the embedding can be folded into the matrix from raw
query to logits, and with one value a head the backward of softmax has a closed form, because the weighted mean of the
values is the output itself.

On a CPU, with contexts of their own, gradients are computed in C++. A batch's contexts are megabytes. PyTorch gathers
them and multiplies them repeatedly, one by one, by small matrices; memorizer_kernel.cpp, compiled for one shape, reads
them once, in place, and computes everything else while they are in the cache.

Suffixes: P models, B examples, H heads, n context tokens, d width, k head_dim, v value_dim, c outputs, T rows of a
table.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import pad

from shapelaw.models.kernels.cpp import NUMBER, POINTER, Kernel
from shapelaw.specs.memorizers import Memorizer

Parameters = dict[str, Tensor]


def losses(outputs_PBc: Tensor, labels_PB: Tensor, there_PB: Tensor | None = None) -> Tensor:
    """Each model's loss [P]: cross-entropy in nats for classes, mean squared error for numbers.

    Args:
        there_PB: True where a place of the batch has an example; all when None.
    """
    if labels_PB.is_floating_point():
        each_PB = (outputs_PBc[..., 0] - labels_PB).square()
    else:
        flat = functional.cross_entropy(outputs_PBc.flatten(0, 1), labels_PB.flatten(), reduction="none")
        each_PB = flat.view(labels_PB.shape)
    if there_PB is None:
        return each_PB.mean(1)
    return (each_PB * there_PB).sum(1) / there_PB.sum(1)


def gradients_through(
    outputs_of: Callable[[Parameters], Tensor],
    p: Mapping[str, Tensor],
    labels_PB: Tensor,
    there_PB: Tensor | None = None,
) -> tuple[Tensor, Parameters]:
    """Each model's loss [P] and all parameters' gradients, by autograd through a function to outputs [P, B, c]."""
    with torch.enable_grad():
        leaves = {name: value.detach().requires_grad_() for name, value in p.items()}
        loss_P = losses(outputs_of(leaves), labels_PB, there_PB)
        found = torch.autograd.grad(loss_P.sum(), list(leaves.values()))
    return loss_P.detach(), dict(zip(leaves, found, strict=True))


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


def reshaped(p: Mapping[str, Tensor], m: Memorizer, to: Memorizer) -> Parameters:
    """Parameters of shape `m`, of one model or of some [P, ...], cut down to shape `to` or filled up with zeros.

    A head of zeros, or a zero dimension of a head, adds nothing to an output, and its gradients are zero: it stays
    zero.
    """
    found = {
        name: p[name].new_zeros(*p[name].shape[: -len(shape)], *shape)
        for name, shape in parameter_shapes(to).items()
    }
    for old, new in zip(_by_head(p, m), _by_head(found, to), strict=True):
        common = tuple(slice(min(sizes)) for sizes in zip(old.shape, new.shape, strict=True))
        new[common] = old[common]
    return found


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
    return sinusoids(m.context + 1, m.width, dtype)


def sinusoids(count: int, width: int, dtype: torch.dtype) -> Tensor:
    """Sinusoidal positions [count, width], of an even width (Vaswani et al. 2017, section 3.5)."""
    position = torch.arange(count, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10_000) / width))
    table = torch.empty(count, width, dtype=torch.float64)
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


class Batch(NamedTuple):
    """The examples of a step.

    Attributes:
        positions: those of a query and of its context's tokens, [n + 1, d].
        queries_PBd: the queries.
        contexts: [P, n, d] shared by all examples, or [P, B, n, d]; for the kernel `Picked`.
        labels_PB: classes, or numbers.
        there_PB: see `losses`.
        absent_Pn: see `forward`.
    """

    positions: Tensor
    queries_PBd: Tensor
    contexts: Any
    labels_PB: Tensor
    there_PB: Tensor | None = None
    absent_Pn: Tensor | None = None


class Picked(NamedTuple):
    """The contexts of a batch, as rows of a table."""

    table_Tnd: Tensor
    at_PB: Tensor


def gradients(p: Mapping[str, Tensor], m: Memorizer, batch: Batch) -> tuple[Tensor, Parameters]:
    """Each model's loss [P] and the gradients of all parameters, by autograd."""
    place, queries_PBd, contexts, labels_PB, there_PB, absent_Pn = batch

    def outputs(leaves: Parameters) -> Tensor:
        return forward(leaves, m, place, queries_PBd, contexts, absent_Pn)[0]

    return gradients_through(outputs, p, labels_PB, there_PB)


def shared_gradients(p: Mapping[str, Tensor], m: Memorizer, batch: Batch) -> tuple[Tensor, Parameters]:
    """`gradients` for a shared context, written out: no gradient of the inputs, fewer passes over [P, B, H, n]."""
    positions, queries_PBd, context_Pnd, labels_PB, there_PB, absent_Pn = batch
    models, examples, d = queries_PBd.shape
    heads, n, k, v = m.heads, m.context, m.head_dim, m.values
    embedding, w_q, w_k, w_v = (p[name] for name in ("embedding", "w_q", "w_k", "w_v"))
    # keys, values, and the map from a raw query to its logits
    c_Pnd = torch.baddbmm(p["embedding_bias"][:, None] + positions[1:], context_Pnd, embedding)
    q_bias_Pd = p["embedding_bias"] + positions[0]
    k_PHnk = torch.bmm(c_Pnd, w_k).view(models, n, heads, k).transpose(1, 2).contiguous()
    fold_PJd = torch.matmul(k_PHnk, w_q.transpose(2, 3)).view(models, heads * n, d) * m.scale  # J = H n
    raw_PJd = torch.bmm(fold_PJd, embedding.transpose(1, 2))
    offset_P1J = torch.bmm(fold_PJd, q_bias_Pd[:, :, None]).transpose(1, 2)
    if absent_Pn is not None:  # no weight for a token that is not there
        offset_P1J = offset_P1J.masked_fill(absent_Pn.repeat(1, heads)[:, None], -math.inf)
    # bmm and a sum, not baddbmm: a compiler fuses the sum with what follows, while baddbmm copies it first
    logits_PBJ = torch.bmm(queries_PBd, raw_PJd.mT) + offset_P1J
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
    """`losses` [P] and their gradient with respect to the outputs [P, B, c]."""
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


def per_example_gradients(p: Mapping[str, Tensor], m: Memorizer, batch: Batch) -> tuple[Tensor, Parameters]:
    """`gradients` for one context per example and one value per head.

    A logit is bilinear in the raw query and the raw token, if a query is extended by a one (Q = d + 1) and a token by
    the indicator of its place (S = d + n). So embedding, positions, W_Q and W_K are folded into one matrix per head,
    once per step, and no token needs an embedding or a key. A value is linear in the token in the same way.
    """
    positions, queries_PBd, contexts_PBnd, labels_PB, there_PB, absent_Pn = batch
    models, examples, d = queries_PBd.shape
    heads, n, k = m.heads, m.context, m.head_dim
    embedding, bias_P1d = p["embedding"], p["embedding_bias"][:, None]
    w_q, w_k, w_v = p["w_q"], p["w_k"], p["w_v"]

    def by_head(flat: Tensor, last: int) -> Tensor:
        """[P, rows, H last] as [P, H, rows, last]."""
        return flat.view(models, -1, heads, last).transpose(1, 2).contiguous()

    def flat(by_head: Tensor) -> Tensor:
        """The inverse of `by_head`."""
        return by_head.transpose(1, 2).flatten(2)

    queries_PBQ = pad(queries_PBd, (0, 1), value=1.0)
    of_query_PQd = torch.cat([embedding, bias_P1d + positions[:1]], dim=1)
    of_token_PSd = torch.cat([embedding, bias_P1d + positions[1:]], dim=1)
    query_PHQk = torch.matmul(of_query_PQd[:, None], w_q)
    key_PHSk = by_head(torch.bmm(of_token_PSd, w_k), k)
    fold_PHQS = query_PHQk @ key_PHSk.mT * m.scale
    seen_PBHS = torch.bmm(queries_PBQ, flat(fold_PHQS)).view(models, examples, heads, d + n)
    values_PHS = torch.bmm(w_v.mT, of_token_PSd.mT)
    # two rows per head for each token: its logit and its value, in one pass over the tokens
    tokens_Xnd = contexts_PBnd.reshape(models * examples, n, d)  # X = P B
    rows_PB2HS = torch.stack([seen_PBHS, values_PHS[:, None].expand_as(seen_PBHS)], dim=2)
    of_tokens_XRn = torch.bmm(rows_PB2HS[..., :d].flatten(2, 3).flatten(0, 1), tokens_Xnd.mT)  # R = 2 H
    of_tokens_PB2Hn = of_tokens_XRn.view(models, examples, 2, heads, n) + rows_PB2HS[..., d:]
    logits_PBHn, v_PBHn = of_tokens_PB2Hn.unbind(2)
    if absent_Pn is not None:  # no weight for a token that is not there
        logits_PBHn = logits_PBHn.masked_fill(absent_Pn[:, None, None], -math.inf)
    weights_PBHn = torch.softmax(logits_PBHn, dim=-1)
    o_PBH = (weights_PBHn * v_PBHn).sum(-1)
    loss_P, d_o_PBH, g = _read_out_gradients(p, o_PBH, labels_PB, there_PB)

    spread_PBHn = weights_PBHn * d_o_PBH[..., None]
    d_of_tokens_PB2Hn = torch.stack([spread_PBHn * (v_PBHn - o_PBH[..., None]), spread_PBHn], dim=2)
    d_rows_XRd = torch.bmm(d_of_tokens_PB2Hn.view(models * examples, 2 * heads, n), tokens_Xnd)
    d_rows_PB2Hd = d_rows_XRd.view(models, examples, 2, heads, d)
    d_rows_PB2HS = torch.cat([d_rows_PB2Hd, d_of_tokens_PB2Hn], dim=-1)
    d_seen_PBHS, d_values_PHS = d_rows_PB2HS[:, :, 0], d_rows_PB2HS[:, :, 1].sum(1)
    d_fold_PHQS = by_head(torch.bmm(queries_PBQ.mT, d_seen_PBHS.flatten(2)), d + n) * m.scale
    d_query_PHQk = d_fold_PHQS @ key_PHSk
    d_key_PSj = flat(d_fold_PHQS.mT @ query_PHQk)  # J = H k
    g["w_q"] = of_query_PQd.mT[:, None] @ d_query_PHQk
    g["w_k"] = torch.bmm(of_token_PSd.mT, d_key_PSj)
    g["w_v"] = torch.bmm(of_token_PSd.mT, d_values_PHS.mT)
    d_of_query_PQd = (d_query_PHQk @ w_q.mT).sum(1)
    d_of_token_PSd = torch.bmm(d_key_PSj, w_k.mT) + torch.bmm(d_values_PHS.mT, w_v.mT)
    g["embedding"] = d_of_query_PQd[:, :d] + d_of_token_PSd[:, :d]
    g["embedding_bias"] = d_of_query_PQd[:, d] + d_of_token_PSd[:, d:].sum(1)
    return loss_P, {name: g[name] for name in parameter_shapes(m)}


def _read_out_gradients(
    p: Mapping[str, Tensor], o_PBo: Tensor, labels_PB: Tensor, there_PB: Tensor | None
) -> tuple[Tensor, Tensor, Parameters]:
    """Losses [P] of head outputs [P, B, H v], with the gradients of those outputs, of W_O, of W_D and of the bias."""
    w_o, w_d = p["w_o"], p["w_d"]
    read_out_Poc = torch.bmm(w_o, w_d)
    outputs_PBc = torch.bmm(o_PBo, read_out_Poc) + p["bias"][:, None]
    loss_P, d_outputs_PBc = _loss_gradient(outputs_PBc, labels_PB, there_PB)
    d_read_out_Poc = torch.bmm(o_PBo.transpose(1, 2), d_outputs_PBc)
    g: Parameters = {
        "bias": d_outputs_PBc.sum(1),
        "w_o": torch.bmm(d_read_out_Poc, w_d.transpose(1, 2)),
        "w_d": torch.bmm(w_o.transpose(1, 2), d_read_out_Poc),
    }
    return loss_P, torch.bmm(d_outputs_PBc, read_out_Poc.transpose(1, 2)), g


_REALS = {torch.float32: "float", torch.float64: "double"}
_TILE = 8  # as in memorizer_kernel.cpp
KERNEL = Kernel(
    Path(__file__).parent / "kernels" / "memorizer_kernel.cpp",
    "contexts of their own take longer here",
    {
        "memorizer_gradients": (
            None,
            [*[POINTER] * 2, ctypes.c_double, *[POINTER] * 6, *[NUMBER] * 2, *[POINTER] * 2],
        )
    },
)


def is_possible(m: Memorizer, dtype: torch.dtype, device: torch.device) -> bool:
    """True if models of this shape can use the kernel here; warns why if it fails to compile or computes wrongly."""
    if m.attend_to_query or m.values != 1 or m.width % _TILE:
        return False
    if device.type != "cpu" or dtype not in _REALS:
        return False
    wrong = "its gradients are not PyTorch's on this CPU"
    return KERNEL.is_possible(lambda: _is_right(m, dtype), wrong, _macros(m, dtype))


def kernel_gradients(p: Mapping[str, Tensor], m: Memorizer, batch: Batch) -> tuple[Tensor, Parameters]:
    """`gradients` where the kernel `is_possible`, on one thread.

    Raises:
        ValueError: labels are numbers and there are several outputs, or classes and there is one output.
    """
    queries_PBd, labels_PB = batch.queries_PBd, batch.labels_PB
    if labels_PB.is_floating_point() != (m.outputs == 1):
        raise ValueError(
            "a memorizer with one output needs numbers as labels, one with more outputs needs classes"
        )
    models, examples, _ = queries_PBd.shape
    loss_P = queries_PBd.new_empty(models)
    given = {name: p[name].contiguous() for name in parameter_shapes(m)}
    found = {name: torch.empty_like(value) for name, value in given.items()}
    inputs = [batch.positions, queries_PBd, *batch.contexts, *batch[3:]]
    of_inputs = [None if x is None else x.contiguous() for x in inputs]
    place, *rest = (None if x is None else x.data_ptr() for x in of_inputs)
    library = KERNEL.library(*_macros(m, queries_PBd.dtype))
    library.memorizer_gradients(
        _addresses(given), place, m.scale, *rest, models, examples, loss_P.data_ptr(), _addresses(found)
    )
    return loss_P, found


@cache
def _is_right(m: Memorizer, dtype: torch.dtype) -> bool:
    """True if loss and gradients of a batch of two blocks equal autograd's; takes milliseconds, once per shape."""
    generator = torch.Generator().manual_seed(0)
    examples, at_PB = 33, torch.arange(33)[None]
    p = {name: value[None] for name, value in initial_parameters(m, 0, dtype).items()}
    queries_PBd = torch.rand(1, examples, m.width, generator=generator, dtype=dtype)
    table_Tnd = torch.rand(examples, m.context, m.width, generator=generator, dtype=dtype)
    labels_PB = at_PB.to(dtype) / examples if m.outputs == 1 else at_PB % m.outputs
    given = Batch(positions(m, dtype), queries_PBd, Picked(table_Tnd, at_PB), labels_PB)
    loss_P, found = kernel_gradients(p, m, given)
    expected_P, expected = gradients(p, m, given._replace(contexts=table_Tnd[at_PB]))
    pairs = [(loss_P, expected_P), *((found[name], expected[name]) for name in expected)]
    return all(torch.allclose(a, b, rtol=0, atol=1e-6 + 1e-3 * b.abs().max().item()) for a, b in pairs)


def _macros(m: Memorizer, dtype: torch.dtype) -> tuple[tuple[str, object], ...]:
    """The shape that a library is compiled for."""
    sizes = {"H": m.heads, "N": m.context, "K": m.head_dim, "D": m.width, "C": m.outputs}
    return (("REAL", _REALS[dtype]), *sizes.items())


def _addresses(p: Parameters) -> ctypes.Array[ctypes.c_void_p]:
    """The addresses of parameters, in the kernel's order, which is that of `parameter_shapes`."""
    return (ctypes.c_void_p * len(p))(*(value.data_ptr() for value in p.values()))
