"""What a decoder computes, in PyTorch: rotary positions, attention in one of several ways, cross-entropy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PRODUCTS_UP_TO = 512  # tokens of context: up to here attention by plain products is faster on a CPU
FLASH_UP_TO = 256  # dimension of a head: above it a GPU has no flash kernel
ROPE_BASE = 10000.0  # Su et al. 2021
# logits in a chunk: 28 MiB in float32, so that the C library keeps the two buffers of a chunk for the next one (it
# gives back what is free beyond 64 MiB)
CHUNK_ELEMENTS = 7 * 2**20
GPU_CHUNK_ELEMENTS = 2**27  # the same on a GPU, which a small product leaves idle: 256 MiB in bfloat16
GPU_COLUMNS_OF = 64
CompiledLoss = Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]]


class Rotary(nn.Module):
    """Rotary positions: turns the pairs (2 i, 2 i + 1) of a head's numbers by position times base^(-2 i / K).

    The pairs lie as in Llama's own code and in RoFormer (Su et al. 2021). transformers has (i, i + K / 2) instead: the
    same function with the rows of the queries' and keys' weights in another order. One for all blocks.

    Args:
        context_length: tokens of a window.
        attention_dim: dimension of a head, even.
        turned: heads of queries and keys, which come first.
        kept: heads of values, which are left as they are.
    """

    turns_2Te: Tensor  # cosines and sines, for half of the numbers

    def __init__(self, context_length: int, attention_dim: int, turned: int, kept: int) -> None:
        super().__init__()
        self.angles = attention_dim // 2  # of a head
        rates_k = ROPE_BASE ** -(torch.arange(0, attention_dim, 2, dtype=torch.float64) / attention_dim)
        angles_Tk = torch.outer(torch.arange(context_length, dtype=torch.float64), rates_k)
        angles_Te = torch.cat(
            [angles_Tk.repeat(1, turned), torch.zeros_like(angles_Tk).repeat(1, kept)], dim=1
        )
        turns_2Te = torch.stack([angles_Te.cos(), angles_Te.sin()]).float()
        self.register_buffer("turns_2Te", turns_2Te, persistent=False)

    def turns_of_head(self, tokens: int) -> Tensor:
        """Cosines and sines of a head's K / 2 angles at each place, [2, T, K / 2]."""
        return self.turns_2Te[:, :tokens, : self.angles]

    def forward(self, maps_BTE: Tensor) -> Tensor:
        """Queries, keys and values of all heads side by side, [B, T, E], with their positions."""
        cos_Te, sin_Te = self.turns_2Te[:, : maps_BTE.shape[1]].unbind(0)
        pairs_BTe2 = maps_BTE.view(*maps_BTE.shape[:2], -1, 2)
        is_plain = maps_BTE.device.type == "cpu" and maps_BTE.dtype == cos_Te.dtype
        if is_plain and not torch.compiler.is_compiling():
            turned_BTe = torch.view_as_complex(pairs_BTe2) * torch.complex(cos_Te, sin_Te)  # one pass
            return torch.view_as_real(turned_BTe).flatten(-2)
        a_BTe, b_BTe = pairs_BTe2.unbind(-1)
        turned_BTe2 = torch.stack([a_BTe * cos_Te - b_BTe * sin_Te, b_BTe * cos_Te + a_BTe * sin_Te], dim=-1)
        return turned_BTe2.flatten(-2).type_as(maps_BTE)


def takes_products(device_type: str, tokens: int, attention_dim: int) -> bool:
    """True if attention is by plain products there: on a short context without a flash kernel."""
    return tokens <= PRODUCTS_UP_TO and (device_type == "cpu" or attention_dim > FLASH_UP_TO)


def attend_fused(qkv_BTE: Tensor, heads: int, kv_heads: int, scale: float, dropout: float) -> Tensor:
    """Causal attention, [B, T, H K], by PyTorch's own kernel from queries, keys and values side by side.

    E = (H + 2 G) K: each head of keys and values serves H / G heads of queries.
    """
    B, T, _ = qkv_BTE.shape
    parts_BHTK = qkv_BTE.view(B, T, heads + 2 * kv_heads, -1).transpose(1, 2)
    q_BHTK, k_BGTK, v_BGTK = torch.split(parts_BHTK, [heads, kv_heads, kv_heads], dim=1)
    y_BHTK = F.scaled_dot_product_attention(
        q_BHTK, k_BGTK, v_BGTK, is_causal=True, dropout_p=dropout, scale=scale, enable_gqa=kv_heads < heads
    )
    return y_BHTK.transpose(1, 2).reshape(B, T, -1)


def attend_by_products(qkv_BTE: Tensor, heads: int, kv_heads: int, scale: float, dropout: float) -> Tensor:
    """The same by two batched matrix products per head: without copies of q, k or v, with the T x T scores in memory.

    On a CPU and a short context this is 1.0 to 1.3 times as fast as the fused kernel, forward and backward.
    """
    B, T, _ = qkv_BTE.shape
    parts_BTK = qkv_BTE.view(B, T, heads + 2 * kv_heads, -1).unbind(2)
    future_TT = qkv_BTE.new_full((T, T), -math.inf).triu(1)
    heads_BTK = []
    for head in range(heads):
        of_keys = heads + head * kv_heads // heads
        q_BTK, k_BTK, v_BTK = parts_BTK[head], parts_BTK[of_keys], parts_BTK[of_keys + kv_heads]
        scores_BTT = torch.baddbmm(future_TT, q_BTK, k_BTK.transpose(1, 2), alpha=scale)
        heads_BTK.append(torch.bmm(F.dropout(scores_BTT.softmax(-1), dropout), v_BTK))
    return torch.cat(heads_BTK, dim=-1)


def attend_linearly(maps_BTE: Tensor, heads: int, degree: int) -> Tensor:
    """Causal attention without softmax, a polynomial of degree k in the tokens, from its k maps side by side.

    With queries q, keys k and values v, w, ... of a head, means over the tokens j <= i:
    k = 2: `q_i * mean_j v_j` (element-wise); k = 3: `mean_j <q_i, k_j> v_j`, the theory's attention (Levine et al.
    2020, eq. 3); k = 4: `mean_j <q_i, k_j> v_j * w_j`; and so on. Scores are divided by sqrt(K).
    """
    B, T, _ = maps_BTE.shape
    maps_BHTK = maps_BTE.view(B, T, degree, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
    seen_T1 = torch.arange(1, T + 1, device=maps_BTE.device, dtype=maps_BTE.dtype)[:, None]
    if degree == 2:
        y_BHTK = maps_BHTK[0] * maps_BHTK[1].cumsum(2) / seen_T1
    else:
        q_BHTK, k_BHTK, values_BHTK = maps_BHTK[0], maps_BHTK[1], maps_BHTK[2]
        for more_BHTK in maps_BHTK[3:]:
            values_BHTK = values_BHTK * more_BHTK
        past_TT = torch.ones(T, T, device=maps_BTE.device, dtype=maps_BTE.dtype).tril() / seen_T1
        scores_BHTT = q_BHTK @ k_BHTK.transpose(2, 3) * (past_TT / math.sqrt(q_BHTK.shape[-1]))
        y_BHTK = scores_BHTT @ values_BHTK
    return y_BHTK.transpose(1, 2).reshape(B, T, -1)


def linear_cross_entropy(
    x_ND: Tensor,
    weight_VD: Tensor,
    targets_N: Tensor,
    chunk_elements: int | None = None,
    compiled: bool = False,
    columns_of: int | None = None,
) -> Tensor:
    """Mean cross-entropy of `x @ weight.T` against the targets, in nats, float32.

    Computes all logits at once where they fit in one chunk, else chunk by chunk.

    Args:
        chunk_elements: logits in a chunk; chosen for the device when None.
        compiled: compute a chunk's loss and gradient from its logits in one compiled function, whatever their number.
        columns_of: pad a compiled chunk to a multiple of this many columns, since tensor cores want aligned rows, not
            rows of 257 or 50,257 numbers; 64 on a GPU when None, 1 on a CPU.
    """
    N, V = x_ND.shape[0], weight_VD.shape[0]
    if chunk_elements is None:
        chunk_elements = CHUNK_ELEMENTS if x_ND.device.type == "cpu" else GPU_CHUNK_ELEMENTS
    if chunk_elements >= N * V and not compiled:
        return F.cross_entropy(F.linear(x_ND, weight_VD).float(), targets_N)
    if torch.is_autocast_enabled(x_ND.device.type):
        dtype = torch.get_autocast_dtype(x_ND.device.type)
        x_ND, weight_VD = x_ND.to(dtype), weight_VD.to(dtype)
    rows = max(1, min(N, chunk_elements // V))
    if compiled:
        if columns_of is None:
            columns_of = 1 if x_ND.device.type == "cpu" else GPU_COLUMNS_OF
        rows, weight_VD = equal_rows(N, rows), F.pad(weight_VD, (0, 0, 0, -V % columns_of))
    loss: Tensor = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        x_ND, weight_VD, targets_N, rows, V if compiled else None
    )
    return loss


def equal_rows(rows: int, most: int) -> int:
    """Rows of a chunk, at most `most`: equal chunks where that takes less than twice as many of them.

    A compiled function is compiled once for each number of rows.
    """
    least = -(-rows // most)
    parts = next((n for n in range(least, min(2 * least, rows + 1)) if rows % n == 0), least)
    return -(-rows // parts)


def loss_and_gradient(logits_NV: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
    """The summed loss of some rows, and its gradient with respect to their logits, [N, V] in their own precision."""
    log_p = F.log_softmax(logits_NV.float(), dim=1)
    loss = -log_p.gather(1, targets_N[:, None]).sum()
    grad = log_p.exp_()  # softmax minus one at the target
    grad[torch.arange(len(grad), device=grad.device), targets_N] -= 1.0
    return loss, grad.to(logits_NV.dtype)


def loss_and_gradient_unscattered(
    logits_NV: Tensor, targets_N: Tensor, vocab_size: int
) -> tuple[Tensor, Tensor]:
    """The same without scattered writes, so that a compiler needs few passes over the logits.

    Columns from `vocab_size` on are ignored.
    """
    columns_V = torch.arange(logits_NV.shape[1], device=logits_NV.device)
    log_p = F.log_softmax(torch.where(columns_V < vocab_size, logits_NV.float(), -math.inf), dim=1)
    hot = columns_V == targets_N[:, None]
    loss = -torch.where(hot, log_p, 0.0).sum()
    return loss, (log_p.exp() - hot.float()).to(logits_NV.dtype)


@cache
def _compiled() -> CompiledLoss:
    """The compiled function, made on first use: torch.compile alone takes a second to import."""
    return torch.compile(loss_and_gradient_unscattered, dynamic=False)


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, rows: int, vocab_size: int | None
    ) -> Tensor:
        """The loss; with a `vocab_size` by a compiled function, and `weight_VD` may then have more rows."""
        N, is_trained = x_ND.shape[0], any(ctx.needs_input_grad[:2])
        total = torch.zeros((), dtype=torch.float32, device=x_ND.device)
        grad_x: Any = torch.empty_like(x_ND) if is_trained else None
        grad_weight: Any = torch.zeros_like(weight_VD, dtype=torch.float32) if is_trained else None
        for start in range(0, N, rows):
            x, targets = x_ND[start : start + rows], targets_N[start : start + rows]
            logits = F.linear(x, weight_VD)
            if not is_trained:
                log_p = F.log_softmax(logits[:, :vocab_size].float(), dim=1)
                total -= log_p.gather(1, targets[:, None]).sum()
                continue
            if vocab_size is None:
                loss, grad = loss_and_gradient(logits, targets)
            else:
                loss, grad = _compiled()(logits, targets, vocab_size)
            total += loss
            torch.mm(grad, weight_VD, out=grad_x[start : start + rows])
            if grad_weight.dtype == grad.dtype:
                grad_weight.addmm_(grad.T, x)
            else:
                grad_weight += grad.T @ x
        ctx.save_for_backward(grad_x, grad_weight)
        ctx.weight_dtype, ctx.tokens = weight_VD.dtype, N
        return total / N

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        scale = grad_outputs[0] / ctx.tokens
        grad_x, grad_weight = ctx.saved_tensors
        grad_weight = (grad_weight * scale).to(ctx.weight_dtype)
        return grad_x * scale.to(grad_x.dtype), grad_weight, None, None, None
