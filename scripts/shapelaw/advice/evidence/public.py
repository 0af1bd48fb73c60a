"""What `shapelaw shape`, its page and the docs answer from: the committed fits of public losses, and shipped models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from shapelaw.advice.answer.answer import (
    Network,
    Own,
    ShapeAnswer,
    Transitions,
    answer,
    read_shipped,
    transitions_of,
)
from shapelaw.advice.answer.costs import Evidence, Question, evidence_of
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.study import REFERENCE, published_json

MODELS = REFERENCE / "models.csv"  # decoders that were shipped, facts of public configs, each with its source


@cache
def _content() -> dict[str, Any]:
    return published_json("evidence")


@cache
def public_evidence() -> Evidence:
    """The fits of Gemstones' losses (workflow/reference/evidence.json, which says whose and by which command)."""
    return evidence_of(_content())


@cache
def published_law() -> Transitions:
    """The law of transitions that stands beside the fits as a witness (Levine et al. 2020)."""
    return transitions_of(_content()["law"])


@cache
def shipped_models(axis: SizeAxis) -> tuple[Network, ...]:
    """The decoders of models.csv, sized as an axis counts them."""
    return tuple(read_shipped(MODELS, axis))


def public_answer(
    question: Question,
    own: Sequence[Transitions] = (),
    given: Network | None = None,
    surfaces: Sequence[Own] = (),
) -> ShapeAnswer:
    """The answer by the committed fits and the published law.

    Args:
        question: size, vocabulary, tokens; its clock may be `public_evidence().clock`.
        own: laws of the user's own transitions.
        given: a shape to price.
        surfaces: of the user's own shapes.

    Raises:
        UserError: the vocabulary leaves no room for blocks.
    """
    laws, models = [*own, published_law()], shipped_models(question.counting.axis)
    return answer(question, public_evidence(), _content()["block"], laws, models, given, surfaces)
