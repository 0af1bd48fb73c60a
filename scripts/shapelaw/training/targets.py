"""What product networks learn: functions of known separation rank, images of digits (Navon 2021, section 3.3, 3.4).

Inputs of a step are a pure function of (seed, step).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from shapelaw.degrees import DegreeRun

Array = npt.NDArray[np.float64]
FREQUENCY = 1.5  # standard deviation of a cosine's argument, in radians
TEST_EXAMPLES = 4096
_TARGET, _TRAIN, _TEST = range(3)  # streams of random numbers of a seed


@dataclass(frozen=True)
class SeparableTarget:
    """y(a, b) = s * sum over r of cos(<u_r, a> + p_r) cos(<v_r, b> + q_r): a sum of R products g_r(a) g'_r(b).

    With probability 1 its separation rank is R: the functions are independent on either side.

    Attributes:
        directions: [2, R, half the inputs], u and v.
        phases: [2, R], p and q, uniform over a turn.
        scale: s, for a variance of 1 over standard normal inputs.
    """

    directions: Tensor
    phases: Tensor
    scale: float

    def __call__(self, x_Bi: Tensor) -> Tensor:
        """Values [B] at inputs [B, i], whose first half is a."""
        sides = torch.stack(x_Bi.chunk(2, dim=1))
        waves_2BR = torch.cos(torch.baddbmm(self.phases[:, None], sides, self.directions.transpose(1, 2)))
        return self.scale * waves_2BR.prod(0).sum(-1)


def draw_separable(inputs: int, rank: int, seed: int) -> SeparableTarget:
    """A random target, a function of its size and seed."""
    random = np.random.default_rng([seed, _TARGET])
    half = inputs // 2
    directions = random.standard_normal((2, rank, half)) * (FREQUENCY / math.sqrt(half))
    phases = random.random((2, rank)) * 2 * math.pi
    return SeparableTarget(
        torch.from_numpy(directions).float(),
        torch.from_numpy(phases).float(),
        1 / math.sqrt(_variance(directions, phases)),
    )


def singular_values(target: SeparableTarget) -> npt.NDArray[np.float64]:
    """The singular values of y as an operator between functions of a and of b, largest first: [R].

    Over standard normal inputs, exactly: from the Gram matrices of the g and of the g'. The sum of their squares is
    the second moment of y; what is left of it beyond the first k is the least mean squared error of any function of
    separation rank k (Eckart and Young), which makes y's epsilon-separation rank (eq. 9) a number.
    """
    left, right = (
        _gram(u.double().numpy(), p.double().numpy())
        for u, p in zip(target.directions, target.phases, strict=True)
    )
    # of A B^T with A A^T = left and B B^T = right
    values = np.linalg.svd(_root(left) @ _root(right), compute_uv=False)
    return target.scale * np.asarray(values)


def rank_within(target: SeparableTarget, error: float) -> int:
    """The least separation rank of a function whose mean squared error is at most `error` (y has variance 1)."""
    left = np.cumsum(singular_values(target)[::-1] ** 2)[::-1]
    return int((left > error).sum())


def draw_inputs(run: DegreeRun, step: int) -> Tensor:
    """The inputs of a step (from 0), standard normal: [B, inputs]; the same for all networks of a seed and batch."""
    random = np.random.default_rng([run.seed, _TRAIN, step])
    return torch.from_numpy(random.standard_normal((run.batch_size, run.network.inputs), dtype=np.float32))


def held_out_inputs(run: DegreeRun) -> Tensor:
    """The inputs that a run is tested on: [4096, inputs]."""
    random = np.random.default_rng([run.seed, _TEST])
    return torch.from_numpy(random.standard_normal((TEST_EXAMPLES, run.network.inputs), dtype=np.float32))


def _gram(directions: Array, phases: Array) -> Array:
    """E[cos(<u_r, a> + p_r) cos(<u_s, a> + p_s)] over standard normal a: [R, R]."""
    products, squares = directions @ directions.T, (directions**2).sum(1)
    lengths, shifts = squares[:, None] + squares, phases[:, None] - phases
    sums = phases[:, None] + phases
    minus = np.exp(products - lengths / 2) * np.cos(shifts)
    plus = np.exp(-products - lengths / 2) * np.cos(sums)
    return np.asarray((minus + plus) / 2)


def _root(gram: Array) -> Array:
    """The symmetric root of a positive matrix."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * np.sqrt(values.clip(min=0))) @ vectors.T)


def _variance(directions: Array, phases: Array) -> float:
    """The variance of the sum of products over standard normal inputs."""
    grams = [_gram(u, p) for u, p in zip(directions, phases, strict=True)]
    means = np.exp(-(directions**2).sum(-1) / 2) * np.cos(phases)  # of each cosine
    return float((grams[0] * grams[1]).sum() - (means[0] * means[1]).sum() ** 2)
