"""What `shapelaw shape`, its page and the docs answer from: the committed fits of public losses, and shipped models."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from shapelaw.advice.answer.costs import Costs, Evidence, evidence_of
from shapelaw.advice.answer.sizes import Counting
from shapelaw.advice.evidence.clocks import Clock, read_clock
from shapelaw.advice.evidence.losses import Floats
from shapelaw.errors import UserError
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.study import REFERENCE, published_json

MI250X = "mi250x"  # the machine of Gemstones' times
H200 = REFERENCE / "h200_speed.csv"  # of `shapelaw speed 1.3B --vocab 32k --depths 12,24,48` (docs/gpu.md)
MODELS = REFERENCE / "models.csv"  # decoders that were shipped, facts of public configs, each with its source


@dataclass(frozen=True)
class Network:
    """A network that has a shape already: the user's, or one that was shipped.

    Attributes:
        name: what to call it.
        depth, width: L and d.
        block_params, total_params: its parameters.
        counting: what size means, with its own vocabulary, which is tied or not.
        year: of its release; 0 where it has none.
        kv_width: heads of keys times their dimension; None where it isn't known.
        tokens: that it was trained on; None where they aren't known.
        origin: `pruned`, `distilled` or `upscaled` where it was made from another network, to which its loss owes much;
            else empty.
    """

    name: str
    depth: int
    width: int
    block_params: float
    total_params: float
    counting: Counting
    year: int = 0
    kv_width: int | None = None
    tokens: float | None = None
    origin: str = ""

    def size(self) -> float:
        """Its size as `counting` has it."""
        if self.counting.axis is SizeAxis.BLOCK:
            return self.block_params
        if self.counting.axis is SizeAxis.FLOPS:
            return self.block_params + self.width * self.counting.vocab_size
        return self.total_params


@dataclass(frozen=True)
class Transitions:
    """A law of transitions as a witness: how large a network each depth is worth, with its fit's error.

    Attributes:
        log_depth: (k,) logs of depths.
        log_blocks: low, middle and high: (k,) rising logs of the parameters of the blocks from which a deeper network
            is better; the depth at which `low` first exceeds a size's blocks is the shallow end, and so on.
        source: where its transitions come from.
        block: the block that they were measured with.
        depths, sizes: smallest and largest depth of a transition, and parameters of the blocks there.
        count: number of transitions.
        p_value: the chance that transitions on the law scatter so much.
        own: whether it is the user's.
    """

    log_depth: Floats
    log_blocks: tuple[Floats, Floats, Floats]
    source: str
    block: str
    depths: tuple[int, int]
    sizes: tuple[float, float]
    count: int
    p_value: float
    own: bool = False

    def depth(self, costs: Costs) -> tuple[float, float, float]:
        """The best depth of a comparison's sizes and its interval; infinite where no depth is worth so much."""
        blocks = np.interp(self.log_depth, costs.grid, costs.log_blocks)
        low, middle, high = (_first(self.log_depth, over - blocks) for over in self.log_blocks)
        return middle, low, high


def _first(log_depth: Floats, over: Floats) -> float:
    if not (over >= 0).any():
        return math.inf
    right = int((over >= 0).argmax())
    if right == 0:
        return float(np.exp(log_depth[0]))
    before, after = over[right - 1], over[right]
    share = before / (before - after)
    return float(np.exp((1.0 - share) * log_depth[right - 1] + share * log_depth[right]))


def transitions_of(content: Mapping[str, Any]) -> Transitions:
    """A law as a file has it."""
    low, middle, high = (np.array(content["log_blocks"][name]) for name in ("low", "middle", "high"))
    (shallow, deep), (small, large) = content["depths"], content["block_params"]
    curves = np.log(np.array(content["depth"], dtype=np.float64)), (low, middle, high)
    measured = (int(shallow), int(deep)), (float(small), float(large))
    fit = int(content["count"]), float(content["p_value"])
    return Transitions(*curves, content["source"], content["block"], *measured, *fit)


@cache
def public_content() -> dict[str, Any]:
    """The file of public evidence."""
    return published_json("evidence")


@cache
def public_evidence() -> Evidence:
    """The fits of Gemstones' losses (workflow/reference/evidence.json, which says whose and by which command)."""
    return evidence_of(public_content())


def machine_clock(machine: str | Path, vocab_size: int, context: int) -> Clock:
    """The training times of a machine: `mi250x`, `h200`, or those of a speed.csv.

    Args:
        machine: a name, or a file of `shapelaw speed`: a path, or a text with an ending.
        vocab_size, context: of the networks that were timed, where the file doesn't say.

    Raises:
        UserError: there is no such machine or file, or the file has fewer than two depths.
    """
    public = public_evidence().clock
    name = str(machine).lower()
    if name == MI250X:
        return public
    if name == "h200":
        measured = read_clock(H200, vocab_size, context, public)
        return replace(measured, name="H200", source="one H200, 16,384 tokens per step")
    if not (isinstance(machine, Path) or Path(machine).suffix):
        raise UserError(
            f"--machine is {machine}; give mi250x, h200 or a file of `shapelaw speed`, such as speed.csv."
        )
    return read_clock(Path(machine), vocab_size, context, public)


@cache
def published_law() -> Transitions:
    """The law of transitions that stands beside the fits as a witness (Levine et al. 2020)."""
    return transitions_of(public_content()["law"])


@cache
def shipped_models(axis: SizeAxis) -> tuple[Network, ...]:
    """The networks of models.csv with their own vocabularies and tokens, sized as an axis counts them."""
    with MODELS.open(encoding="utf-8") as lines:
        return tuple(
            Network(
                row["name"],
                int(row["layers"]),
                int(row["d_model"]),
                float(row["block_params"]),
                float(row["total_params"]),
                Counting(axis, int(row["vocab"]), row["tied"] == "True"),
                int(row["year"]),
                tokens=float(row["tokens"]) if row["tokens"] else None,
                origin=row["origin"],
            )
            for row in csv.DictReader(line for line in lines if not line.startswith("#"))
        )
