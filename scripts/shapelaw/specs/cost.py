"""The time of a training step, as a model of four measured constants: `execution.cost_model` of the config.

    seconds of a step = overhead + per_layer L + per_number (activations + logits) + per_flop FLOPs

A step consists of what happens once (the optimizer, the batch, the schedule), launches of kernels for
every layer, passes through memory, and arithmetic. Small networks pay for the first two and narrow ones for the third,
so no single rate of FLOP/s fits a grid. `scripts/fit_cost.py` fits the constants to the runs of one kind of device.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import Shape

SCHEMA_VERSION = 1
TERMS = ("overhead", "per_layer", "per_number", "per_flop")


@dataclass(frozen=True)
class CostModel:
    """Seconds of training on one kind of device.

    Attributes:
        overhead: seconds of a step, whatever its shape.
        per_layer: seconds of a step for every layer.
        per_number: seconds for every activation and logit of a step.
        per_flop: seconds for every operation of a step's matrix products.
        extra_seconds: seconds of a run beside its steps: evaluations, checkpoints, start.
        factor: the standard deviation of measured over predicted seconds as a factor (1.2: some 20%), of shapes that
            the model was not fitted to.
    """

    overhead: float
    per_layer: float
    per_number: float
    per_flop: float
    extra_seconds: float
    factor: float

    def step_seconds(self, shape: Shape, batch_size: int) -> float:
        """Seconds of one step of `batch_size` sequences."""
        constants = (self.overhead, self.per_layer, self.per_number, self.per_flop)
        return sum(c * n for c, n in zip(constants, step_counts(shape, batch_size), strict=True))


LEAST_STEP_SECONDS = 0.005  # of a decoder, however small it is
Speed = float | CostModel  # FLOP/s that a job sustains, or the times of its steps


def step_counts(shape: Shape, batch_size: int) -> tuple[float, float, float, float]:
    """The factor of each constant in a step: one, passes of a block, activations and logits, FLOPs."""
    logits = batch_size * shape.context_length * shape.vocab_size
    numbers = shape.activation_bytes(batch_size, number_bytes=1) + logits
    return 1.0, float(shape.passes), float(numbers), float(shape.step_flops(batch_size))


def run_seconds(run: Run, speed: Speed) -> float:
    """Seconds of a decoder's steps, by a cost model those of the whole run."""
    if isinstance(speed, CostModel):
        return speed.extra_seconds + run.steps * speed.step_seconds(run.shape, run.training.batch_size)
    return run.steps * max(run.step_flops / speed, LEAST_STEP_SECONDS)


def model_to_dict(model: CostModel) -> dict[str, Any]:
    """The model as plain JSON values."""
    return {"schema_version": SCHEMA_VERSION, **asdict(model)}


def read_cost_model(path: Path) -> CostModel:
    """The model that `scripts/fit_cost.py` wrote.

    Raises:
        UserError: the file is missing, or isn't a cost model.
    """
    again = "make it with scripts/fit_cost.py"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"The cost model {path} can't be read ({error}); {again}.") from error
    if not isinstance(values, Mapping) or values.get("schema_version") != SCHEMA_VERSION:
        raise UserError(f"{path} is not a cost model of version {SCHEMA_VERSION}; {again}.")
    names = CostModel.__dataclass_fields__
    wrong = [name for name in names if not _is_constant(values.get(name))]
    if wrong or not any(values[name] for name in TERMS):
        listed = ", ".join(wrong) or "all of its terms are zero"
        raise UserError(f"{path} is not a cost model (missing or wrong: {listed}); {again}.")
    return CostModel(**{name: float(values[name]) for name in names})


def _is_constant(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def short_number(value: float) -> str:
    """`12_300_000` -> `12.3M`; three significant digits."""
    for limit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= limit * 0.9995:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """`40 seconds`, `12 minutes`, `5.2 hours`, `3.1 days`."""
    for unit, name in ((86400, "days"), (3600, "hours")):
        if seconds >= unit * (2 if name == "days" else 1):
            return f"{seconds / unit:,.1f} {name}"
    number, name = (seconds / 60, "minutes") if seconds >= 60 else (seconds, "seconds")
    return f"{number:.0f} {name}" if round(number) != 1 else f"1 {name[:-1]}"
