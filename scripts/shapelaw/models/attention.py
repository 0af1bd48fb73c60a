"""What attention does with its maps, queries, keys and values side by side: rotary positions, then one of several ways.

Dimensions in names: B sequences, T tokens, H heads, G heads of keys, K dimension of a head, E all maps into the heads.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PRODUCTS_UP_TO = 512  # tokens of context: up to here attention by plain products is faster on a CPU
FLASH_UP_TO = 256  # dimension of a head: above it a GPU has no flash kernel
ROPE_BASE = 10000.0  # Su et al. 2021


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
        if (
            maps_BTE.device.type == "cpu"
            and maps_BTE.dtype == cos_Te.dtype
            and not torch.compiler.is_compiling()
        ):
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
        q_BHTK,
        k_BGTK,
        v_BGTK,
        is_causal=True,
        dropout_p=dropout,
        scale=scale,
        enable_gqa=kv_heads < heads,
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
