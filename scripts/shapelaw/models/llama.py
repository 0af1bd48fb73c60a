"""What Llama's block has and GPT-2's has not: RMSNorm and rotary positions (SwiGLU is one line of PyTorch).

Dimensions in names: B sequences, T tokens, D width, K dimension of a head, E all maps into the heads.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from shapelaw.models import decoder_kernel, llama_kernel

EPS = 1e-5  # Llama 2's
ROPE_BASE = 10000.0  # Su et al. 2021


class RMSNorm(nn.Module):
    """`weight * x / sqrt(mean(x^2) + eps)` over the last dimension (Zhang and Sennrich 2019).

    On a CPU its gradient is written out, in half the time of autograd's; `by_kernel` lets C++ compute both.
    """

    by_kernel = False

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x_BTD: Tensor) -> Tensor:
        y_BTD: Tensor
        if self.by_kernel and not decoder_kernel.is_plain(x_BTD, self.weight):
            y_BTD = llama_kernel.rms_norm(x_BTD, self.weight, EPS)
        elif x_BTD.device.type == "cpu" and not torch.compiler.is_compiling():
            y_BTD = _RMSNorm.apply(x_BTD, self.weight)  # type: ignore[no-untyped-call]
        else:
            y_BTD = F.rms_norm(x_BTD, self.weight.shape, self.weight, EPS)
        return y_BTD


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_BTD: Tensor, weight_D: Tensor) -> Tensor:
        length_BT1 = torch.linalg.vector_norm(x_BTD, dim=-1, keepdim=True)
        inverse_BT1 = length_BT1.square_().div_(x_BTD.shape[-1]).add_(EPS).rsqrt_()
        normal_BTD = x_BTD * inverse_BT1
        ctx.save_for_backward(normal_BTD, inverse_BT1, weight_D)
        y_BTD: Tensor = normal_BTD * weight_D
        return y_BTD

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BTD: Tensor) -> tuple[Tensor, Tensor]:
        normal_BTD, inverse_BT1, weight_D = ctx.saved_tensors
        product_BTD = grad_BTD * normal_BTD
        grad_weight_D = product_BTD.flatten(0, -2).sum(0)
        along_BT1 = (product_BTD @ weight_D).div_(len(weight_D))[..., None]
        grad_x_BTD = (grad_BTD * weight_D).addcmul_(normal_BTD, along_BT1, value=-1).mul_(inverse_BT1)
        return grad_x_BTD, grad_weight_D


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
