"""The answer's numbers, as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from shapelaw.advice.answer.answer import Priced, Row, ShapeAnswer, Verdict, whole
from shapelaw.advice.answer.costs import Best, Costs, Question
from shapelaw.advice.answer.sizes import SizedShape
from shapelaw.advice.answer.text import ends, paragraph
from shapelaw.advice.evidence.clocks import training_memory


def as_json(found: ShapeAnswer, notes: Sequence[str] = ()) -> dict[str, Any]:
    """The answer's numbers; costs in nats, None for what is not known."""
    question = found.question
    flat = found.costs.flat()
    return {
        "size": question.size,
        "size_means": _means(question),
        **_fields(question.counting, "vocab_size", "tied", "block", "kv_heads"),
        "tokens": question.tokens,
        "best": {
            **_depths(found.best),
            **({} if found.by else {"depth": None}),
            "by": found.by or None,
            "bound": None if found.bound is None else f"{found.bound.said} layers, by {found.bound.name}",
        },
        "nearest_told": None if found.nearest is None else _nearest(found.nearest),
        "with_more_tokens": None if found.enough is None else _nearest(found.enough),
        "within": {"nats": question.within, "low": flat[0], "high": flat[1]} if found.rows else None,
        "shape": None if found.advised is None else _advised(found.advised),
        "costs": [
            row.sized.numbers
            | {"size": row.sized.size, "cost": row.cost.value}
            | _fields(row.cost, "low", "high", "params_worth")
            | {"time": row.time}
            | _served(row, question)
            for row in found.rows
        ],
        "given": None if found.given is None else _priced(found.given),
        "witnesses": [
            {
                **_fields(one, "name", "block"),
                **{name: finite(getattr(one, name)) for name in ("depth", "low", "high")},
                "block_params": list(one.sizes),
                "times_outside": one.beyond,
                "said": one.said or None,
                "remarks": list(one.remarks),
            }
            for one in found.witnesses
        ],
        "shipped": [_priced(one) for one in found.shipped],
        "equal_times": {name: _depths(one) for name, one in found.equal_times.items()},
        "verdict": None if found.verdict is None else _verdict(found.verdict, question.within),
        "vocabulary_of_law": None if found.vocabulary is None else [round(one) for one in found.vocabulary],
        "time_measured_on": question.clock.source,
        "bottlenecks": list(notes),
        "advice": " ".join(paragraph(found)),
    }


def _nearest(costs: Costs) -> dict[str, float]:
    """Another question that the evidence answers, and its best depth."""
    return {"size": costs.question.size, "tokens": costs.question.tokens} | _depths(costs.best)


def _depths(best: Best) -> dict[str, int]:
    """The best depth and its interval in whole layers."""
    low, high = ends(best)
    return {"depth": whole(best.depth), "low": low, "high": high}


def _means(question: Question) -> str:
    """What its shapes agree in, as `--size` names it."""
    if question.equal_time:
        return "latency" if question.at_latency else "time"
    return question.counting.axis.value


def _served(row: Row, question: Question) -> dict[str, float]:
    """What a shape reads and takes to decode a token, in bytes and seconds."""
    if question.serving is None:
        return {}
    names = ("weight_bytes", "kv_bytes_per_token", "decode_seconds")
    return dict(zip(names, question.serving.of(row.sized.shape), strict=True))


def _advised(sized: SizedShape) -> dict[str, float]:
    """A shape, and the bytes that training it takes."""
    state, each = training_memory(sized.shape)
    sizes = {"size": sized.size, "block_params": sized.shape.block_params}
    return {**sized.numbers, **sizes, "state_bytes": state, "activation_bytes_per_token": each}


def _verdict(verdict: Verdict, within: float) -> dict[str, Any]:
    timed = verdict.at_equal_time
    return {
        "keep": verdict.keeps(within),
        "best": verdict.best.numbers | {"size": verdict.best.size},
        "slower": verdict.slower,
        "decoding_slower": verdict.decoding,
        "cost": [verdict.cost.value, verdict.cost.low, verdict.cost.high],
        "cost_at_equal_time": None if timed is None else [timed.value, timed.low, timed.high],
    }


def finite(value: float) -> float | None:
    """A number for JSON; None where it is infinite or none."""
    return value if math.isfinite(value) else None


def _priced(priced: Priced) -> dict[str, Any]:
    one, cost = priced.network, priced.cost
    return {
        "name": one.name,
        "year": one.year or None,
        **_fields(one.counting, "vocab_size", "tied"),
        **_fields(one, "depth", "width"),
        "size": one.size(),
        "tokens": one.tokens,
        "origin": one.origin or None,
        "cost": cost and cost.value,
        "cost_low": cost and cost.low,
        "cost_high": cost and cost.high,
        "params_worth": cost and cost.params_worth,
        "best_depth": priced.own and priced.own.best.depth,
    }


def _fields(one: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(one, name) for name in names}
