"""How long a network is trained: so many steps, tokens in proportion to its parameters, or so many operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shapelaw.specs.shapes import Shape

BudgetKind = Literal["steps", "tokens_per_param", "flops"]


@dataclass(frozen=True)
class Budget:
    """What is equal for all networks that are compared.

    Attributes:
        kind: "steps" are those of the papers; "tokens_per_param" counts all parameters (20 is compute-optimal by
            Hoffmann et al. 2022); "flops" the operations of all steps.
        amount: steps, tokens per parameter, or operations.
    """

    kind: BudgetKind
    amount: float

    def steps(self, shape: Shape, batch_size: int) -> int:
        """The optimizer steps of a shape, to the nearest whole one."""
        if self.kind == "steps":
            return round(self.amount)
        if self.kind == "tokens_per_param":
            return max(1, round(self.amount * shape.total_params / (batch_size * shape.context_length)))
        return max(1, round(self.amount / shape.step_flops(batch_size)))

    @property
    def tag(self) -> str:
        """Its part of a run's key: `20tpp`, `1e15flops`; empty for steps, which every key has."""
        if self.kind == "steps":
            return ""
        amount = f"{self.amount:.6g}".replace("+", "")
        return f"{amount}tpp" if self.kind == "tokens_per_param" else f"{amount}flops"

    @property
    def name(self) -> str:
        """`4,000 steps`, `20 tokens per parameter`, `1e+15 FLOPs`."""
        if self.kind == "steps":
            return f"{self.amount:,.0f} steps"
        what = "tokens per parameter" if self.kind == "tokens_per_param" else "FLOPs"
        return f"{self.amount:.6g} {what}"
