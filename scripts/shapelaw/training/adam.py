"""Adam and AdamW with the fused kernel and state of torch.optim, without its classes.

Those classes import torch's compiler when an optimizer is made: 1 to 2 s of CPU at each start, more than a small
network takes to train.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

EPS = 1e-8  # torch.optim's


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


class Adam:
    """One fused step for all parameters (Kingma and Ba 2015; Loshchilov and Hutter 2019).

    Args:
        groups: parameters, each group with its weight decay and the factors of its learning rate and of `EPS`.
        decoupled: take the decay from the weights (AdamW); else it is added to the gradient (Adam with L2).
        betas: decay rates of the two moments.

    Attributes:
        learning_rate: rate of the next step.
    """

    def __init__(
        self,
        groups: Sequence[tuple[Sequence[Tensor], float, float, float]],
        decoupled: bool,
        learning_rate: float,
        betas: tuple[float, float],
    ) -> None:
        self.groups = [
            (list(parameters), decay, of_rate, of_eps) for parameters, decay, of_rate, of_eps in groups
        ]
        self.decoupled, self.learning_rate, self.betas = decoupled, learning_rate, betas
        self.parameters = [p for parameters, *_ in self.groups for p in parameters]
        self._state: dict[Tensor, dict[str, Tensor]] = {}  # of the parameters that were stepped

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for p in self.parameters:
            p.grad = None

    def step(self) -> None:
        """Step every parameter that has a gradient."""
        for parameters, decay, of_rate, of_eps in self.groups:
            stepped = [p for p in parameters if p.grad is not None]
            states = [self._state_of(p) for p in stepped]
            fused_step(
                stepped,
                [p.grad for p in stepped if p.grad is not None],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [state["step"] for state in states],
                of_rate * self.learning_rate,
                self.betas,
                decay,
                self.decoupled,
                of_eps * EPS,
            )

    def _state_of(self, p: Tensor) -> dict[str, Tensor]:
        if p not in self._state:
            self._state[p] = {
                "step": torch.zeros((), dtype=torch.float32, device=p.device),
                "exp_avg": torch.zeros_like(p, memory_format=torch.preserve_format),
                "exp_avg_sq": torch.zeros_like(p, memory_format=torch.preserve_format),
            }
        return self._state[p]

    def state_dict(self) -> dict[str, Any]:
        """The moments of each parameter by its place, in torch.optim's format."""
        places = {p: place for place, p in enumerate(self.parameters)}
        groups = [{"params": [places[p] for p in parameters]} for parameters, *_ in self.groups]
        return {"state": {places[p]: state for p, state in self._state.items()}, "param_groups": groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state_dict` of this class or of torch.optim.

        Raises:
            ValueError: the state belongs to other parameters.
        """
        found: dict[int, dict[str, Tensor]] = state["state"]
        sizes = [len(group["params"]) for group in state["param_groups"]]
        if sizes != [len(parameters) for parameters, *_ in self.groups] or any(
            moments["exp_avg"].shape != self.parameters[place].shape for place, moments in found.items()
        ):
            raise ValueError("the optimizer's state belongs to other parameters")
        self._state = {
            self.parameters[place]: {
                "step": moments["step"].to(self.parameters[place].device, copy=True),
                "exp_avg": moments["exp_avg"].to(self.parameters[place], copy=True),
                "exp_avg_sq": moments["exp_avg_sq"].to(self.parameters[place], copy=True),
            }
            for place, moments in found.items()
        }
