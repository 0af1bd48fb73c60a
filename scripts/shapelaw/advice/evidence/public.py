"""What `shapelaw shape`, its page and the docs answer from: the committed fits of public losses, and shipped models."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapelaw.advice.answer.allocation import PUBLISHED, Allocation, Law, allocation
from shapelaw.advice.answer.answer import Network, ShapeAnswer, Transitions, answer, transitions_of
from shapelaw.advice.answer.costs import Evidence, Question, evidence_of
from shapelaw.advice.answer.sizes import Counting
from shapelaw.advice.evidence.clocks import Clock, Times, read_clock
from shapelaw.errors import UserError
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.study import REFERENCE, published_json

if TYPE_CHECKING:  # needs pandas
    from shapelaw.advice.surface.answers import OwnSurface

MI250X = "mi250x"  # the machine of Gemstones' times
H200 = REFERENCE / "h200_speed.csv"  # of `shapelaw speed 1.3B --vocab 32k --depths 12,24,48` (docs/gpu.md)
MODELS = REFERENCE / "models.csv"  # decoders that were shipped, facts of public configs, each with its source


@cache
def _content() -> dict[str, Any]:
    return published_json("evidence")


@cache
def public_evidence() -> Evidence:
    """The fits of Gemstones' losses (workflow/reference/evidence.json, which says whose and by which command)."""
    return evidence_of(_content())


def machine_clock(machine: str | Path, vocab_size: int, context: int) -> Clock:
    """The training times of a machine: `mi250x`, `h200`, or those of a speed.csv.

    Args:
        machine: a name, or a file of `shapelaw speed`.
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
    if not Path(machine).suffix:
        raise UserError(
            f"--machine is {machine}; give mi250x, h200 or a file of `shapelaw speed`, such as speed.csv."
        )
    return read_clock(Path(machine), vocab_size, context, public)


@cache
def published_law() -> Transitions:
    """The law of transitions that stands beside the fits as a witness (Levine et al. 2020)."""
    return transitions_of(_content()["law"])


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


def public_allocation(counting: Counting, flops: float, within: float) -> Allocation:
    """How a budget is best shared out, by the committed fits, other labs' runs and published laws.

    Raises:
        UserError: no size that such a budget trains leaves room for blocks.
    """
    laws = [Law(**{**law, "flops": tuple(law["flops"])}) for law in _content()["allocation"]]
    return allocation(public_evidence(), counting, flops, within, [*laws, *PUBLISHED])


def public_answer(
    question: Question, own: Transitions | OwnSurface | None = None, given: Network | None = None
) -> ShapeAnswer:
    """The answer by the committed fits and the published law.

    Args:
        question: size, vocabulary, tokens; its clock may be `public_evidence().clock`.
        own: a law of the user's own transitions, or a surface of own shapes.
        given: a shape to price.

    Raises:
        UserError: the vocabulary leaves no room for blocks.
    """
    laws, surface = [published_law()], None
    if isinstance(own, Transitions):
        laws.insert(0, own)
    else:
        surface = own
    clocks: list[Times] = [question.clock]
    if question.clock is public_evidence().clock:  # nobody chose a machine
        clocks.append(machine_clock("h200", question.counting.vocab_size, question.context))
    if question.serving is not None:
        clocks.append(question.serving)
    models = shipped_models(question.counting.axis)
    return answer(question, public_evidence(), laws, models, given, surface, clocks)
