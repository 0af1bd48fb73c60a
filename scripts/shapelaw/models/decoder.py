"""The decoder that every language study trains: GPT-2's pre-norm blocks, Llama's or printed ones, with a free shape.

Beyond GPT-2: the heads' dimension need not be width / heads, the token and positional embeddings can have a
lower rank (factored, vocabulary paper section 5.1), and the classifier is a full-rank matrix of its own unless `tied`.
Dimensions in names: B sequences, T tokens, D width, H heads, G heads of keys, K attention_dim, V vocabulary.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from shapelaw.errors import UserError
from shapelaw.models.functions import (
    Rotary,
    attend_by_products,
    attend_fused,
    attend_linearly,
    linear_cross_entropy,
    takes_products,
)
from shapelaw.models.kernels import llama as kernels
from shapelaw.specs.making import depth_scaling_sentence
from shapelaw.specs.runs import Parametrization
from shapelaw.specs.shapes import INPUTS, Gelu, Shape, numbers_of_ids

INIT_STD = 0.02  # GPT-2's
RMS_EPS = 1e-5  # Llama 2's
BASE_DEPTH = 1  # blocks at which CompleteP scales nothing
_GELUS: dict[Gelu, str] = {"tanh": "tanh", "erf": "none"}  # as PyTorch calls them
FULL_RANK_NAMES = ("tokens.weight", "tokens.kernel.weight", "positions.weight")


class RMSNorm(nn.Module):
    """`weight * x / sqrt(mean(x^2) + eps)` over the last dimension (Zhang and Sennrich 2019).

    On a CPU its gradient is written out, in half the time of autograd's; `by_kernel` lets C++ compute both.
    """

    by_kernel = False

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x_BTD: Tensor) -> Tensor:
        if self.by_kernel and not kernels.is_plain(x_BTD, self.weight):
            return kernels.rms_norm(x_BTD, self.weight, RMS_EPS)
        if x_BTD.device.type == "cpu" and not torch.compiler.is_compiling():
            y_BTD: Tensor = _RMSNorm.apply(x_BTD, self.weight)  # type: ignore[no-untyped-call]
            return y_BTD
        return F.rms_norm(x_BTD, self.weight.shape, self.weight, RMS_EPS)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_BTD: Tensor, weight_D: Tensor) -> Tensor:
        length_BT1 = torch.linalg.vector_norm(x_BTD, dim=-1, keepdim=True)
        inverse_BT1 = length_BT1.square_().div_(x_BTD.shape[-1]).add_(RMS_EPS).rsqrt_()
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


class PatchEmbedding(nn.Module):
    """The embedding of patches of an image: a linear map, of rank at most `rank`, of the numbers of each."""

    numbers_VI: Tensor  # I inputs

    def __init__(self, entries: int, rank: int | None, width: int) -> None:
        super().__init__()
        known = torch.tensor(numbers_of_ids())
        rest = known.new_zeros(entries - len(known), INPUTS)  # no image has these ids
        self.register_buffer("numbers_VI", torch.cat([known, rest]), persistent=False)
        sizes = (INPUTS, width) if rank is None else (INPUTS, rank, width)
        maps = [nn.Linear(*pair, bias=False) for pair in pairwise(sizes)]
        self.kernel = maps[0] if rank is None else nn.Sequential(*maps)

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.kernel(self.numbers_VI[ids])
        return out


def _embedding(entries: int, width: int, rank: int | None) -> nn.Module:
    """An embedding table, or one of rank at most `rank`: lookup (entries x rank), then a linear map."""
    if rank is None:
        return nn.Embedding(entries, width)
    return nn.Sequential(OrderedDict(down=nn.Embedding(entries, rank), up=nn.Linear(rank, width, bias=False)))


class Attention(nn.Module):
    """Causal self-attention with H heads of dimension K, and with `rotary` positions where it is given.

    `by_kernel` lets C++ compute it where it has rotary positions.
    """

    by_kernel = False

    def __init__(self, shape: Shape, dropout: float, rotary: Rotary | None = None) -> None:
        super().__init__()
        self.heads, self.degree, self.dropout = shape.heads, shape.attention_degree, dropout
        self.kv_heads = shape.key_heads
        self.attention_dim, self.scale = shape.attention_dim, shape.score_scale
        self.by_products: bool | None = None  # None: where that is faster
        biased = shape.block == "gpt2"
        self.qkv = nn.Linear(shape.width, shape.maps_width, bias=biased)
        queries, keys = shape.attention_width, self.kv_heads * shape.attention_dim
        self.maps = [queries] + [keys] * (shape.attention_maps - 1)  # rows of each in `qkv`
        self.out = nn.Linear(shape.attention_width, shape.width, bias=biased)
        self.rotary = rotary

    def forward(self, x_BTD: Tensor) -> Tensor:
        out: Tensor = self.out(self._attend(self.qkv(x_BTD)))
        return out

    def _attend(self, maps_BTE: Tensor) -> Tensor:
        """The heads' outputs side by side, [B, T, H K], before their linear map."""
        if self.degree is not None:
            return attend_linearly(maps_BTE, self.heads, self.degree)
        dropout = self.dropout if self.training else 0.0
        products = self.by_products
        if products is None:
            products = takes_products(maps_BTE.device.type, maps_BTE.shape[1], self.attention_dim)
        if self.rotary is not None:
            if self.by_kernel and self.by_products is None and products and not dropout:
                heads = kernels.Heads(self.heads, self.kv_heads, self.scale)
                turns_2Tk = self.rotary.turns_of_head(maps_BTE.shape[1])
                if kernels.takes(maps_BTE, turns_2Tk, heads):
                    return kernels.attend(maps_BTE, turns_2Tk, heads)
            maps_BTE = self.rotary(maps_BTE)
        attend = attend_by_products if products else attend_fused
        return attend(maps_BTE, self.heads, self.kv_heads, self.scale, dropout)


class Block(nn.Module):
    """x + c attention(norm(x)), then x + c mlp(norm(x)), with c the `multiplier` of branches.

    GPT-2's has LayerNorm, GELU and biases; with `rotary` positions it is Llama's, with RMSNorm and SwiGLU and without
    biases (Touvron et al. 2023).
    """

    def __init__(self, shape: Shape, dropout: float, multiplier: float, rotary: Rotary | None) -> None:
        super().__init__()
        d, hidden, is_llama = shape.width, shape.hidden_width, rotary is not None
        self.norm1, self.norm2 = _norm(shape), _norm(shape)
        self.attention = Attention(shape, dropout, rotary)
        self.gate = nn.Linear(d, hidden, bias=False) if is_llama else None
        self.up, self.down = nn.Linear(d, hidden, bias=not is_llama), nn.Linear(hidden, d, bias=not is_llama)
        self.dropout, self.multiplier, self.gelu = dropout, multiplier, _GELUS[shape.gelu]

    def forward(self, x_BTD: Tensor) -> Tensor:
        branch_BTD = F.dropout(self.attention(self.norm1(x_BTD)), self.dropout, self.training)
        x_BTD = torch.add(x_BTD, branch_BTD, alpha=self.multiplier)
        normal_BTD = self.norm2(x_BTD)
        if self.gate is None:
            hidden = F.gelu(self.up(normal_BTD), approximate=self.gelu)
        else:
            gate, up = self.gate(normal_BTD), self.up(normal_BTD)
            hidden = F.silu(gate) * up
        branch_BTD = F.dropout(self.down(hidden), self.dropout, self.training)
        return torch.add(x_BTD, branch_BTD, alpha=self.multiplier)


def _norm(shape: Shape) -> nn.Module:
    return RMSNorm(shape.width) if shape.block == "llama" else nn.LayerNorm(shape.width)


class PrintedBlock(nn.Module):
    """LayerNorm(W2 ReLU(W1 LayerNorm(x + attention(x)))), as equations 1 and 2 of Levine et al. 2020 have it.

    No map has a bias, and nothing goes around the feed-forward network. The norm at the end is the one that the paper
    has between layers; after the last layer it stands before the classifier.
    """

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        d = shape.width
        self.attention, self.dropout = Attention(shape, dropout), dropout
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.up = nn.Linear(d, shape.hidden_width, bias=False)
        self.down = nn.Linear(shape.hidden_width, d, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = x_BTD + F.dropout(self.attention(x_BTD), self.dropout, self.training)
        hidden = F.relu(self.up(self.norm1(x_BTD)))
        out: Tensor = self.norm2(F.dropout(self.down(hidden), self.dropout, self.training))
        return out


class Decoder(nn.Module):
    """Tokens to logits, or to the summed loss of the next tokens.

    Attributes:
        by_llama_kernel: C++ computes parts of it, to PyTorch's numbers up to rounding.

    Raises:
        UserError: CompleteP of printed blocks.
    """

    by_llama_kernel = False

    def __init__(
        self, shape: Shape, dropout: float = 0.0, parametrization: Parametrization = "standard"
    ) -> None:
        super().__init__()
        self.shape, self.dropout, self.parametrization = shape, dropout, parametrization
        embed = PatchEmbedding if shape.patch_embedding else _embedding
        self.tokens: nn.Module = embed(shape.vocab_size, rank=shape.embedding_rank, width=shape.width)
        if shape.block != "llama":
            self.positions = _embedding(shape.context_length, shape.width, shape.positional_rank)
        if sentence := depth_scaling_sentence(shape.block, parametrization):
            raise UserError(f"{sentence}.")
        if shape.block == "printed":
            self.blocks = nn.ModuleList(PrintedBlock(shape, dropout) for _ in range(shape.depth))
            self.norm: nn.Module = nn.Identity()  # the last block ends with it
        else:
            rotary, kept = None, shape.key_heads
            if shape.block == "llama":
                rotary = Rotary(shape.context_length, shape.attention_dim, shape.heads + kept, kept)
            self.blocks = nn.ModuleList(
                Block(shape, dropout, self.depth_ratio, rotary) for _ in range(shape.depth)
            )
            self.norm = _norm(shape)
        self.classifier = nn.Linear(shape.width, shape.vocab_size, bias=False)
        if shape.tied:
            assert isinstance(self.tokens, nn.Embedding)
            self.classifier.weight = self.tokens.weight

    @property
    def depth_ratio(self) -> float:
        """CompleteP's base depth over the blocks that a token passes, 1 / m_L; 1 in the standard parametrization."""
        return BASE_DEPTH / self.shape.passes if self.parametrization == "completep" else 1.0

    def features(self, ids_BT: Tensor, blocks: Iterable[Callable[[Tensor], Tensor]] | None = None) -> Tensor:
        """The final hidden states, [B, T, D]; `blocks` are the model's own, or their compiled versions."""
        x_BTD: Tensor = self.tokens(ids_BT)
        if self.shape.block != "llama":
            x_BTD = x_BTD + self.positions(torch.arange(ids_BT.shape[1], device=ids_BT.device))
        x_BTD = F.dropout(x_BTD, self.dropout, self.training)
        stack: list[Callable[[Tensor], Tensor]] = list(self.blocks if blocks is None else blocks)
        for block in stack * self.shape.loops:
            x_BTD = block(x_BTD)
        out: Tensor = self.norm(x_BTD)
        return out if self.shape.base_width is None else out * self.shape.width_ratio

    def logits(self, ids_BT: Tensor, last: int = 0) -> Tensor:
        """Scores of every next token, [B, T, V], or of so many last ones."""
        out: Tensor = self.classifier(self.features(ids_BT)[:, -last:])
        return out

    def forward(self, ids_BT: Tensor, targets_BT: Tensor) -> Tensor:
        """Mean cross-entropy of the targets in nats per token, a scalar in float32."""
        return self.loss(self.features(ids_BT), targets_BT)

    def loss(self, x_BTD: Tensor, targets_BT: Tensor, compiled: bool = False) -> Tensor:
        """The same of final hidden states; `compiled` is that of `linear_cross_entropy`."""
        x_ND = x_BTD.flatten(0, 1)
        return linear_cross_entropy(x_ND, self.classifier.weight, targets_BT.flatten(), compiled=compiled)

    def use_kernel(self) -> None:
        """Let C++ compute attention and norms of Llama's blocks from now on: the same numbers up to rounding."""
        self.by_llama_kernel = self.shape.block == "llama" and kernels.has_llama()
        for module in self.modules():
            if self.by_llama_kernel and isinstance(module, Attention | RMSNorm):
                module.by_kernel = True


def initialise(model: Decoder, seed: int) -> None:
    """GPT-2's initialisation, a pure function of (shape, seed): N(0, 0.02), residual outputs by 1/sqrt(2L).

    L counts the blocks that a token passes, in all loops. CompleteP leaves residual outputs at 0.02 too (Dey et al.
    2025, table 1), and so do printed blocks, of which no stream adds up the outputs of many.

    The two factors of a factored embedding are scaled so that the product's entries have the same 0.02. With a base
    width the blocks' matrices are scaled by sqrt(base / width) (muP, Yang et al. 2022, table 8).
    """
    generator = torch.Generator().manual_seed(seed)
    standard = model.parametrization == "standard" and model.shape.block != "printed"
    residual_std = INIT_STD / math.sqrt(2 * model.shape.passes) if standard else INIT_STD
    of_width = math.sqrt(model.shape.width_ratio)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)
            elif name.endswith("bias"):
                parameter.zero_()
            elif name.startswith(("tokens.", "positions.")) and not name.startswith(FULL_RANK_NAMES):
                rank = min(parameter.shape)  # of each factor: entries x rank, width x rank
                parameter.normal_(0.0, math.sqrt(INIT_STD / math.sqrt(rank)), generator=generator)
            else:
                std = residual_std if name.endswith(("attention.out.weight", "down.weight")) else INIT_STD
                in_blocks = name.startswith("blocks.")
                parameter.normal_(0.0, std * of_width if in_blocks else std, generator=generator)


class ParameterGroup(NamedTuple):
    """Parameters that one rule updates.

    Attributes:
        of_rate, of_eps: factors of the learning rate and of Adam's epsilon.
        muon_rows: for Muon, the rows of the maps that stand above each other in each matrix; None is Adam's rule.
    """

    parameters: list[nn.Parameter]
    weight_decay: float
    of_rate: float = 1.0
    of_eps: float = 1.0
    muon_rows: list[list[int]] | None = None


def parameter_groups(model: Decoder, weight_decay: float, by_muon: bool = False) -> list[ParameterGroup]:
    """Parameters with their weight decay and the factors of their learning rate and of Adam's epsilon.

    Matrices and embeddings decay, biases and norms do not. With a base width the rate of the blocks' matrices has the
    factor base / width (muP's rule for Adam, Yang et al. 2022, table 8). CompleteP (Dey et al. 2025, table 1 at
    alpha = 1) has it too and divides their decay by it; epsilon in the blocks has it and the factor of the depth, which
    no rate follows.

    Args:
        by_muon: Muon updates the blocks' matrices; queries, keys and values are maps of their own, as in Jordan et al.
            2024.
    """
    ratio, inside = model.shape.width_ratio, set(model.blocks.parameters())
    hidden, others, of_blocks, free = (
        [p for p in model.parameters() if (p.ndim >= 2) == matrices and (p in inside) == in_blocks]
        for matrices in (True, False)
        for in_blocks in (True, False)
    )
    if model.parametrization == "completep":
        of_eps = ratio * model.depth_ratio
        return [
            ParameterGroup(hidden, weight_decay / ratio, ratio, of_eps),
            ParameterGroup(others, weight_decay),
            ParameterGroup(of_blocks, 0.0, of_eps=of_eps),
            ParameterGroup(free, 0.0),
        ]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    rows = None
    if by_muon:
        attentions = (module for module in model.blocks.modules() if isinstance(module, Attention))
        stacked = {attention.qkv.weight: attention.maps for attention in attentions}
        rows = [stacked.get(p, [len(p)]) for p in hidden]
    elif ratio == 1.0:
        matrices = [p for p in model.parameters() if p.ndim >= 2]
        return [ParameterGroup(matrices, weight_decay), ParameterGroup(vectors, 0.0)]
    return [
        ParameterGroup(hidden, weight_decay, ratio, muon_rows=rows),
        ParameterGroup(others, weight_decay),
        ParameterGroup(vectors, 0.0),
    ]
