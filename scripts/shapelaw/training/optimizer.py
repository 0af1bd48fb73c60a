"""What a step does, apart from its network: learning rate, data order and windows, and the update of the weights.

Rate, order and windows are pure functions of the step. Adam, AdamW and Muon have the kernels and the state of
torch.optim, without its classes. Those classes import torch's compiler when an optimizer is made, 1.2 s of CPU and 85
MB at each start, more than a small network takes to train; they refuse the meta device; and a pack's models are at
different steps within one tensor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import _muon
from torch.optim.adam import adam

from shapelaw.corpora.token_store import TokenStore, gather_windows, windows
from shapelaw.models.decoder import ParameterGroup
from shapelaw.specs.kinds import PackedRun
from shapelaw.specs.runs import FALL_PARTS, Training

DEVICE_SHARE = 0.05  # share of a GPU's free memory for tokens that stay there
_TOKEN_BYTES = 4  # on the device: GPUs index few tables by uint16


def learning_rate(training: Training, step: int) -> float:
    """The rate of update `step` (from 1): linear warm-up to the peak, then as `training.schedule` says."""
    if step <= training.warmup_steps:
        return training.learning_rate * step / training.warmup_steps
    if training.schedule == "constant":
        return training.learning_rate
    if training.schedule == "redecayed":
        return training.learning_rate * _left(training, step)
    progress = (step - training.warmup_steps) / max(1, training.steps - training.warmup_steps)
    return training.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))


def _left(training: Training, step: int) -> float:
    """The share of a redecayed rate that is left: it falls from 1 to 0 in the last fifth before a test loss."""
    every = training.evaluate_every
    begun = (step - 1) // every * every
    end = min(begun + every, training.steps)
    fall = max(1, (end - begun) // FALL_PARTS)
    return min(1.0, (end - step) / fall)


def window_starts(seed: int, step: int, windows: int, batch_size: int) -> NDArray[np.int64]:
    """The starts of the windows of a step's batch, uniform over [0, windows): [batch_size].

    A pure function of its arguments (a counter-based generator), so a resumed run draws the same starts as an
    uninterrupted one; all shapes trained with one seed on one corpus see the same batches.
    """
    bits = np.random.Philox(key=seed, counter=[0, 0, 0, step])
    return np.random.Generator(bits).integers(0, windows, batch_size)


def dropout_seed(seed: int, step: int, part: int) -> int:
    """Seed of the dropout masks of one part (rank, micro-batch) of a step, below 2^63."""
    state = np.random.SeedSequence([seed, step, part]).generate_state(1, np.uint64)[0]
    return int(state) >> 1


def packed_rate(run: PackedRun, step: int) -> float:
    """The rate of a packed model's step (from 0): linear from a hundredth of the peak, then a cosine to zero."""
    warm = int(run.warmup * run.steps)
    if step < warm:
        return run.learning_rate * (0.01 + 0.99 * step / warm)
    return run.learning_rate * (1 + float(np.cos(np.pi * (step - warm) / (run.steps - warm)))) / 2


class Batches:
    """Windows of a store by their starts.

    Args:
        store: the tokens.
        context_length: N; a window has N + 1 tokens.
        device: device of the batches.
        resident: keep the tokens on the device; when None, on a GPU with room for them.

    Attributes:
        windows: the number of possible starts.

    Raises:
        UserError: the store is shorter than one window.
    """

    def __init__(
        self, store: TokenStore, context_length: int, device: torch.device, resident: bool | None = None
    ) -> None:
        self.store, self.context_length, self.device = store, context_length, device
        self.windows = len(windows(store, context_length))
        self._tokens: Tensor | None = None
        if resident is None and device.type == "cuda":  # a CPU reads the memory map
            free = torch.cuda.mem_get_info(device)[0]
            resident = _TOKEN_BYTES * len(store.tokens) <= DEVICE_SHARE * free
        if resident:
            self._tokens = torch.from_numpy(store.tokens.astype(np.int32)).to(device)
            self._offsets = torch.arange(context_length + 1, device=device)

    def gather(self, starts: NDArray[np.integer[Any]]) -> Tensor:
        """The windows that begin at `starts` [B]: int64 [B, N + 1], on the device."""
        if self._tokens is None:
            batch = gather_windows(self.store, starts, self.context_length)
            return torch.from_numpy(batch).to(self.device, non_blocking=True)
        places = torch.from_numpy(starts).to(self.device, non_blocking=True)[:, None] + self._offsets
        return self._tokens[places].long()


EPS = 1e-8  # torch.optim's
MUON_MOMENTUM = 0.95  # Jordan et al. 2024


@torch.no_grad()
def fused_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    first: list[Tensor],
    second: list[Tensor],
    steps: list[Tensor],
    *,
    learning_rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.0,
    decoupled: bool = False,
    eps: float = EPS,
) -> None:
    """One step of Adam, in place; each parameter's `steps` before (a float32 scalar) goes up by one.

    Args:
        first: the first moments.
        second: the second moments.
        decoupled: take the decay from the weights (AdamW); else it is added to the gradient (Adam with L2).
        eps: what is added to the root of the second moment, in the gradient's unit.
    """
    adam(
        *(parameters, gradients, first, second, [], steps),
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
    *,
    learning_rate: float,
    weight_decay: float,
) -> None:
    """One step of Muon for matrices, in place: orthogonal updates (Jordan et al. 2024) as large as AdamW's.

    Their root mean square is 0.2 times the learning rate (Liu et al. 2025, eq. 4), so that rates and decays of AdamW
    serve.
    """
    _muon.muon(
        *(parameters, gradients, momenta),
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
                maps = (_maps(every, group.muon_rows) for every in (group.parameters, gradients, momenta))
                muon_step(*maps, learning_rate=rate, weight_decay=group.weight_decay)
                continue
            parameters: list[Tensor] = list(group.parameters)
            moments = ([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step"))
            fused_step(
                *(parameters, gradients, *moments),
                learning_rate=rate,
                betas=self.betas,
                weight_decay=group.weight_decay,
                decoupled=self.decoupled,
                eps=group.of_eps * EPS,
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
