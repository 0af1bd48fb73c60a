"""Llama's norm. Dimensions in names: B sequences, T tokens, D width."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from shapelaw.models import decoder_kernel, llama_kernel

EPS = 1e-5  # Llama 2's


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
