"""How a budget of FLOPs is best shared out between size and tokens: by the evidence, and by laws of other labs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapelaw.advice.answer.costs import HIGH, LEAST_WIDTH, LOW, OUTSIDE, lowest_mean, outside
from shapelaw.advice.answer.sizes import Counting, big
from shapelaw.advice.answer.text import aligned, wrapped
from shapelaw.advice.evidence.clocks import log_blocks_at, log_width
from shapelaw.advice.evidence.losses import MIDDLE_DEPTH, Draws, Floats, lowest
from shapelaw.advice.evidence.public import public_content, public_evidence
from shapelaw.errors import UserError

FLOPS_A_PARAMETER = 6.0  # for each token: two of the forward pass, four of the backward
# e-folds of size about that of the laws among which the best is looked for
AROUND = np.linspace(-3.0, 3.0, 61)


@dataclass(frozen=True)
class Law:
    """A law of the best size, N = factor C^exponent, where C = 6 N D for D tokens.

    Attributes:
        name: whose it is.
        factor, exponent: its numbers.
        flops: the smallest and the largest budget that it was fitted to.
    """

    name: str
    factor: float
    exponent: float
    flops: tuple[float, float]

    def size(self, flops: float) -> float:
        """The best number of parameters."""
        return float(self.factor * flops**self.exponent)


def law_of_losses(
    name: str, powers: Sequence[float], factors: Sequence[float], flops: tuple[float, float]
) -> Law:
    """The law that follows from L = E + A N^-alpha + B D^-beta (Hoffmann et al. 2022, equation 4).

    Args:
        name: whose it is.
        powers: alpha and beta.
        factors: A and B.
        flops: of its runs.
    """
    alpha, beta = powers
    ratio = (alpha * factors[0] / (beta * factors[1])) ** (1.0 / (alpha + beta))
    exponent = beta / (alpha + beta)
    return Law(name, ratio / FLOPS_A_PARAMETER**exponent, exponent, flops)


PUBLISHED = (
    # Besiroglu et al. 2024 (Chinchilla Scaling: A replication attempt), the fit to the runs of Hoffmann et al. 2022
    law_of_losses(
        "Hoffmann et al. 2022, as refitted in 2024", (0.3478, 0.3658), (482.01, 2085.43), (6e18, 3e21)
    ),
    # DeepSeek-AI 2024 (DeepSeek LLM), equation 4: D = 5.8316 C^0.4757
    Law("DeepSeek-AI 2024", 1.0 / (FLOPS_A_PARAMETER * 5.8316), 1.0 - 0.4757, (1e17, 3e20)),
)


@dataclass(frozen=True)
class Allocation:
    """What to train by a budget.

    Attributes:
        flops: the budget.
        size: parameters as the question counts them, and `tokens` to train them on.
        low, high: 68% interval of the size, which holds how far sources differ; None where only laws tell it.
        flat: the smallest and the largest size that cost less than `within` nats at this budget; None as the interval.
        within: nats that count as nothing.
        laws: of other labs.
    """

    flops: float
    size: float
    tokens: float
    low: float | None
    high: float | None
    flat: tuple[float, float] | None
    within: float
    laws: tuple[Law, ...]


def public_allocation(counting: Counting, flops: float, within: float) -> Allocation:
    """The size and the tokens at which a budget loses the least, by the committed fits, other labs' runs and laws.

    A size has its best depth, and the tokens that its blocks and its classifier leave: FLOPs of attention are not
    counted, as in the laws. Where the evidence doesn't reach, the laws' geometric mean is the size.

    Args:
        counting: what size means, with the vocabulary.
        flops: the budget.
        within: nats that count as nothing.

    Raises:
        UserError: no size near the laws' leaves room for blocks beside the vocabulary.
    """
    evidence, content = public_evidence(), public_content()["allocation"]
    laws = [*(Law(**{**law, "flops": tuple(law["flops"])}) for law in content), *PUBLISHED]
    guess = math.exp(float(np.mean([math.log(law.size(flops)) for law in laws])))
    log_sizes = np.array(
        [
            one
            for one in math.log(guess) + AROUND
            if math.exp(one) > counting.fixed and counting.width_at(math.exp(one), 1.0) >= LEAST_WIDTH
        ]
    )
    if len(log_sizes) < 3:
        raise UserError(
            f"{powers_of_ten(flops)} FLOPs are best spent on about {big(guess)} parameters, which have no room for "
            f"blocks beside a vocabulary of {counting.vocab_size:,}. Take more FLOPs, a smaller vocabulary, or --tied."
        )
    best = [_best_of_size(counting, flops, math.exp(one)) for one in log_sizes]
    losses = np.stack([own for own, *_ in best], axis=1)
    mean = losses.mean(axis=0)
    middle = float(lowest(mean[None], log_sizes)[0][0])
    size = math.exp(middle)
    blocks, depth, log_tokens = (
        float(np.interp(middle, log_sizes, values)) for values in np.array([rest for _, *rest in best]).T
    )
    tokens = math.exp(log_tokens)
    apart = math.sqrt(float(np.mean([math.log(law.size(flops) / size) ** 2 for law in laws])))
    assert isinstance(evidence.draws, Draws)
    if (
        evidence.beyond(math.exp(blocks), size, math.exp(depth)) > 0
        or outside(tokens, evidence.draws.tokens) > math.log(OUTSIDE)
        or not 0 < mean.argmin() < len(mean) - 1
    ):
        tokens = flops / (FLOPS_A_PARAMETER * guess)
        return Allocation(flops, guess, tokens, None, None, None, within, tuple(laws))
    ends = np.quantile(lowest(losses, log_sizes)[0], (LOW, HIGH)) - middle
    down, up = (math.hypot(float(end), apart) for end in ends)
    fine = np.linspace(log_sizes[0], log_sizes[-1], 601)
    nothing = np.exp(fine[np.interp(fine, log_sizes, mean) - mean.min() < within])
    flat = float(nothing[0]), float(nothing[-1])
    low, high = size * math.exp(-down), size * math.exp(up)
    return Allocation(flops, size, tokens, low, high, flat, within, tuple(laws))


def _best_of_size(counting: Counting, flops: float, size: float) -> tuple[Floats, float, float, float]:
    """Of a size: (D,) losses of its best depth; logs of its blocks, of this depth, and of the tokens that are left."""
    evidence = public_evidence()
    assert isinstance(evidence.draws, Draws)
    draws, grid = evidence.draws.by_levels(), evidence.grid
    log_blocks = log_blocks_at(size, counting, grid)
    width = np.exp(log_width(log_blocks, grid))
    log_tokens = math.log(flops / FLOPS_A_PARAMETER) - np.log(
        np.exp(log_blocks) + width * counting.vocab_size
    )
    at = MIDDLE_DEPTH
    for _ in range(2):
        at, _ = lowest_mean(draws, log_blocks, grid, float(np.interp(at, grid, log_tokens)))
    blocks, tokens = (float(np.interp(at, grid, one)) for one in (log_blocks, log_tokens))
    losses = draws.losses(np.array([blocks]), np.array([at]), tokens)[:, 0] + draws.level(tokens)
    return losses, blocks, at, tokens


def powers_of_ten(flops: float, digits: int = 3) -> str:
    """A number of FLOPs as people write it: `1e20`."""
    return f"{flops:.{digits}g}".replace("e+", "e")


def allocation_text(found: Allocation) -> str:
    """The budget's answer in words, with what laws of other labs say."""
    rows = [
        ("best size by", "parameters", "tokens", "for each", "fitted to FLOPs"),
        *(
            _row(law.name, size, found.flops / (FLOPS_A_PARAMETER * size), law.flops)
            for law in found.laws
            for size in [law.size(found.flops)]
        ),
    ]
    head = (
        f"{powers_of_ten(found.flops)} FLOPs: {big(found.size)} parameters on {big(found.tokens)} tokens, "
        f"{found.tokens / found.size:.3g} for each parameter"
    )
    name = public_evidence().name
    if found.low is None or found.high is None or found.flat is None:
        head += f"; that is the laws' mean, since the losses of {name} don't reach so far."
    else:
        least, most = map(big, found.flat)
        head += (
            f" (68%: {big(found.low)} to {big(found.high)}, by how far sources differ). {least} to {most} cost less "
            f"than {found.within:g} nats."
        )
        rows.insert(1, _row(name, found.size, found.tokens))
    return f"{wrapped(head)}\n\n{aligned(rows, str.ljust)}"


def _row(
    name: str, size: float, tokens: float, flops: tuple[float, float] | None = None
) -> tuple[str, str, str, str, str]:
    span = "inside" if flops is None else " to ".join(powers_of_ten(end, 1) for end in flops)
    return name, big(size), big(tokens), f"{tokens / size:.3g}", span


def allocation_json(found: Allocation) -> dict[str, Any]:
    """The same as numbers."""
    return vars(found) | {"laws": [{"name": law.name, "size": law.size(found.flops)} for law in found.laws]}
