"""Runs of small memorizers with every option, to train in packs."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shapelaw.specs.memorizers import MemorizationRun, Memorizer

if TYPE_CHECKING:  # PyTorch is not needed for the runs
    from shapelaw.training.memorizer_pack import MemorizerPack

SMALL = Memorizer(heads=3, context=5, head_dim=4, width=8, value_dim=1, outputs=7)
RUN = MemorizationRun(
    *(SMALL, "classification", "shared", 60, 300, 0), batch_size=16, learning_rate=1e-2, evaluate_every=50
)


def changed(run: dict[str, Any], **shape: Any) -> MemorizationRun:
    """The run with other options, and of another shape."""
    return replace(RUN, memorizer=replace(SMALL, **shape), **run)


SHORT, NUMBERS, A_CONTEXT_EACH = (
    {"last_batch": "short"},
    {"task": "regression"},
    {"context_type": "per_example"},
)
OPTIONS = {
    "one value a head": RUN,
    "full values": changed({}, value_dim=None),
    "logits by width": changed({}, logit_scale="width"),
    "logits by head_dim": changed({}, logit_scale="head_dim"),
    "query among the keys": changed({}, attend_to_query=True),
    "numbers": changed(NUMBERS, outputs=1),
    "a context each": changed(A_CONTEXT_EACH),
    "short last batches": changed(SHORT),
    "short last batches, numbers, a context each": changed(SHORT | NUMBERS | A_CONTEXT_EACH, outputs=1),
    "short last batches, full values": changed(SHORT, value_dim=None),
    "short last batches, query among the keys": changed(SHORT, attend_to_query=True),
    "numbers, a context each": changed(NUMBERS | A_CONTEXT_EACH, outputs=1, value_dim=None),
}


def varied(run: MemorizationRun) -> list[MemorizationRun]:
    """Models of one pack that differ in everything that a pack allows."""
    return [run, replace(run, seed=1, examples=40), replace(run, seed=2, steps=700, learning_rate=3e-3)]


def of_other_shapes(run: MemorizationRun) -> list[MemorizationRun]:
    """Models of one pack that differ in their shapes too; the first and the last are no larger in anything."""
    m = run.memorizer
    head_dim = m.head_dim if m.logit_scale == "head_dim" else 3
    shapes = [
        replace(m, context=2),
        replace(m, heads=1, context=4),
        replace(m, heads=4, head_dim=head_dim, context=3),
        replace(m, heads=2, head_dim=head_dim, context=1),
    ]
    others = [run, *varied(run)]
    return [replace(one, memorizer=shape) for one, shape in zip(others, shapes, strict=True)]


def losses_of(pack: "MemorizerPack", steps: int) -> np.ndarray:
    """The training losses of each step and model: [steps, P]."""
    rows = []
    for _ in range(steps):
        pack.step()
        rows.append(pack.take_losses(range(len(pack.runs))))
    return np.array(rows)
