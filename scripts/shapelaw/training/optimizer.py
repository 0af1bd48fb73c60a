"""Adam, AdamW and Muon with the kernels and the state of torch.optim, without its classes.

Those classes import torch's compiler when an optimizer is made, 1.2 s of CPU and 85 MB at each start, more than a small
network takes to train; they refuse the meta device; and a pack's models are at different steps within one tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import _muon
from torch.optim.adam import adam

from shapelaw.models.decoder import ParameterGroup

EPS = 1e-8  # torch.optim's
MUON_MOMENTUM = 0.95  # Jordan et al. 2024


@torch.no_grad()
def fused_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    first: list[Tensor],
    second: list[Tensor],
    steps: list[Tensor],
    learning_rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.0,
    decoupled: bool = False,
    eps: float = EPS,
) -> None:
    """One step, in place; each parameter's `steps` (a float32 scalar), the number of steps before, goes up by one.

    Args:
        decoupled: take the decay from the weights (AdamW); else it is added to the gradient (Adam with L2).
        eps: what is added to the root of the second moment, in the gradient's unit.
    """
    adam(
        parameters,
        gradients,
        first,
        second,
        [],
        steps,
        fused=True,
        amsgrad=False,
        beta1=betas[0],
        beta2=betas[1],
        lr=learning_rate,
        weight_decay=weight_decay,
        eps=eps,
        maximize=False,
        decoupled_weight_decay=decoupled,
    )


@torch.no_grad()
def muon_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    momenta: list[Tensor],
    learning_rate: float,
    weight_decay: float,
) -> None:
    """One step of Muon for matrices, in place: orthogonal updates (Jordan et al. 2024) as large as AdamW's.

    Their root mean square is 0.2 times the learning rate (Liu et al. 2025, eq. 4), so that rates and decays of AdamW
    serve.
    """
    _muon.muon(
        parameters,
        gradients,
        momenta,
        lr=learning_rate,
        weight_decay=weight_decay,
        momentum=MUON_MOMENTUM,
        nesterov=True,
        ns_coefficients=(_muon.DEFAULT_A, _muon.DEFAULT_B, _muon.DEFAULT_C),
        ns_steps=_muon.DEFAULT_NS_STEPS,
        eps=_muon.EPS,
        adjust_lr_fn="match_rms_adamw",
        has_complex=False,
    )


class Optimizer:
    """One step for all parameters, each group by its rule: Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter
    2019) or Muon.

    Args:
        groups: parameters, each group with its weight decay and the factors of its learning rate and of `EPS`.
        decoupled: take the decay from the weights (AdamW); else it is added to the gradient (Adam with L2).
        betas: decay rates of Adam's two moments.

    Attributes:
        learning_rate: rate of the next step.
    """

    def __init__(
        self,
        groups: Sequence[ParameterGroup],
        decoupled: bool,
        learning_rate: float,
        betas: tuple[float, float],
    ) -> None:
        self.groups, self.decoupled, self.learning_rate, self.betas = groups, decoupled, learning_rate, betas
        self._states = [[_state_of(p, group) for p in group.parameters] for group in groups]

    def zero_grad(self) -> None:
        """Forget the gradients; a model's own way looks for its parameters first, a twentieth of a small one's step."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.grad = None

    def step(self) -> None:
        """Step every parameter along its gradient."""
        for group, states in zip(self.groups, self._states, strict=True):
            gradients = [p.grad for p in group.parameters if p.grad is not None]
            rate = group.of_rate * self.learning_rate
            if group.muon_rows is not None:
                momenta = [state["momentum_buffer"] for state in states]
                matrices, slopes, means = (
                    _maps(every, group.muon_rows) for every in (group.parameters, gradients, momenta)
                )
                muon_step(matrices, slopes, means, rate, group.weight_decay)
                continue
            fused_step(
                list(group.parameters),
                gradients,
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [state["step"] for state in states],
                rate,
                self.betas,
                group.weight_decay,
                self.decoupled,
                group.of_eps * EPS,
            )

    def state_dict(self) -> dict[str, Any]:
        """The state of each parameter by its place, as torch.optim has it."""
        return {"state": dict(enumerate(self._flat()))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state_dict` of this class or of torch.optim.

        Raises:
            ValueError: the state belongs to other parameters.
        """
        own, found = self._flat(), state["state"]
        if [_sizes(one) for one in own] != [_sizes(found[place]) for place in sorted(found)]:
            raise ValueError("the optimizer's state belongs to other parameters")
        for place, moments in enumerate(own):
            for name, value in moments.items():
                value.copy_(found[place][name])

    def _flat(self) -> list[dict[str, Tensor]]:
        return [moments for states in self._states for moments in states]


def _state_of(p: Tensor, group: ParameterGroup) -> dict[str, Tensor]:
    """The state of a parameter before its first step."""

    def zeros() -> Tensor:
        return torch.zeros_like(p, memory_format=torch.preserve_format)

    if group.muon_rows is not None:
        return {"momentum_buffer": zeros()}
    step = torch.zeros((), dtype=torch.float32, device=p.device)
    return {"step": step, "exp_avg": zeros(), "exp_avg_sq": zeros()}


def _maps(matrices: Sequence[Tensor], rows: Sequence[Sequence[int]]) -> list[Tensor]:
    """The maps that stand above each other in some matrices, as views."""
    return [
        part
        for matrix, heights in zip(matrices, rows, strict=True)
        for part in torch.split(matrix.detach(), list(heights))
    ]


def _sizes(moments: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in moments.items()}
