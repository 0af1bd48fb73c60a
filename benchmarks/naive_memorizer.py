"""The memorizer as one would first write it: keys for every example, an output for every token, one model.

Equal to `shapelaw.models.memorizer` to rounding (a test holds it to that); it is what packed training is measured
against. The shape of the computation is that of the paper's public code: the n + 1 tokens of an example go through
the whole layer, the query at place 0 is masked as a key, and only its output is read.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shapelaw.models.memorizer import Parameters, positions
from shapelaw.specs.memorizers import Memorizer


class NaiveMemorizer(nn.Module):
    """One model of a shape; takes tokens [B, n + 1, d], the query first, and gives outputs [B, c]."""

    def __init__(self, m: Memorizer, p: Parameters) -> None:
        super().__init__()
        d, heads, k, v = m.width, m.heads, m.head_dim, m.values
        self.scale = m.scale
        dtype = p["bias"].dtype
        self.embedding, self.read_out = nn.Linear(d, d, dtype=dtype), nn.Linear(d, m.outputs, dtype=dtype)
        with torch.no_grad():
            self.embedding.weight.copy_(p["embedding"].T)
            self.embedding.bias.copy_(p["embedding_bias"])
            self.read_out.weight.copy_(p["w_d"].T)
            self.read_out.bias.copy_(p["bias"])
        self.w_q = nn.Parameter(p["w_q"].clone())
        self.w_k = nn.Parameter(p["w_k"].view(d, heads, k).transpose(0, 1).contiguous())
        self.w_v = nn.Parameter(p["w_v"].view(d, heads, v).transpose(0, 1).contiguous())
        self.w_o = nn.Parameter(p["w_o"].clone())
        self.register_buffer("places", positions(m, dtype))

    def forward(self, tokens: Tensor) -> Tensor:
        """Outputs of the queries."""
        x = self.embedding(tokens) + self.places
        q, k, v = (x[:, None] @ w for w in (self.w_q, self.w_k, self.w_v))  # [B, H, n + 1, ...]
        logits = q @ k.transpose(2, 3) * self.scale
        logits[..., 0] = -torch.inf
        out = torch.softmax(logits, -1) @ v
        out = out.transpose(1, 2).flatten(2) @ self.w_o  # [B, n + 1, d]
        outputs: Tensor = self.read_out(out)[:, 0]
        return outputs
