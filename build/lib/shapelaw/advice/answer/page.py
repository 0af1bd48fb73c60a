"""The numbers of a page that answers as `shapelaw shape` does.

Its scripts (`advisor/costs.js`, `advisor/config.js`) compute what `costs.py` and `fields.py` do, from the same draws
and constants, so the page has no answers in it but what they follow from. Numbers of draws have the digits of the
committed fits, and normal scores six.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from shapelaw.advice.answer import costs
from shapelaw.advice.answer.answer import Network, Transitions
from shapelaw.advice.answer.costs import Evidence
from shapelaw.advice.answer.serving import BANDWIDTHS, LAYER_SECONDS, SECONDS, Serving
from shapelaw.advice.evidence import losses
from shapelaw.advice.evidence.clocks import SETTLED, TURNS, Clock, polynomial, shuffled_scores
from shapelaw.advice.evidence.losses import COLUMNS, LEVELS, Draws, Floats
from shapelaw.advice.models.bottlenecks import redundancy_text
from shapelaw.advice.models.config_json import FIELDS
from shapelaw.advice.models.fields import GPT2_NAMES, GPT2_POSITIONS, LLAMA_NAMES, PLAIN, UNUSUAL
from shapelaw.advice.models.measured import RANK, Series, estimate, rank_setting

STRENGTHS = np.geomspace(1.02, 100.0, 48)  # d / rank; between them the page takes the nearest
NEAR = 0.3  # log size within which a shipped model is shown
CONTEXT = 2048  # tokens a window, of training times
EXAMPLES = {
    "size": "1.3B",
    "vocab": "32k",
    "tokens": "30B",
    "depth": "24",
    "rank": "128",
    "positions": "1024",
    "batch": "8",
    "context": "4096",
    "kv": "8",
}


def content_of(
    evidence: Evidence,
    laws: Sequence[Transitions],
    clocks: Mapping[str, Clock],
    models: Sequence[Network],
    series: Iterable[Series],
) -> dict[str, Any]:
    """The numbers that the page needs.

    Args:
        evidence: the fits of public losses.
        laws: sources beside the evidence.
        clocks: machines' training times by what `--machine` calls them, the usual one first.
        models: that were shipped.
        series: measured redundancies, the preferred ones first.
    """
    grid, draws = evidence.grid, evidence.draws
    recipes, p0 = evidence.recipes, COLUMNS.index("p0")
    assert isinstance(draws, Draws)
    assert isinstance(recipes, Draws)
    return {
        "draws": _draws(draws),
        "constants": _constants(),
        "grid": [float(grid[0]), float(grid[-1]), len(grid)],
        "evidence": {
            "name": evidence.name,
            "blocks": evidence.blocks,
            "totals": evidence.totals,
            "tokens": evidence.tokens,
            "depths": evidence.depths,
            "leastTokens": evidence.least_tokens,
            "mostTokens": evidence.most_tokens,
            "spread": asdict(evidence.spread),
            "normals": _rounded(evidence.normals),
            "recipes": _rounded(recipes.values[:, p0] - draws.values[:, p0]),
        },
        "machines": {name: _machine(clock) for name, clock in clocks.items()},
        "normals": _rounded(
            shuffled_scores(len(draws), 2 + max(len(clock.log_depth) for clock in clocks.values())).T
        ),
        "laws": [_law(law) for law in laws],
        "models": [
            {
                "name": one.name,
                "year": one.year,
                "depth": one.depth,
                "width": one.width,
                "vocab": one.counting.vocab_size,
                "tied": one.counting.tied,
                "blocks": one.block_params,
                "params": one.total_params,
                "tokens": one.tokens,
                "origin": one.origin,
            }
            for one in models
        ],
        "config": {
            "families": {name: asdict(plain) for name, plain in PLAIN.items()},
            "llamaNames": LLAMA_NAMES,
            "gpt2Names": GPT2_NAMES,
            "gpt2Positions": GPT2_POSITIONS,
            "unusual": UNUSUAL,
            "experts": FIELDS["experts"],
        },
        "redundancies": redundancies_of(series),
        "within": costs.WITHIN,
        "shown": costs.SHOWN * costs.WITHIN,
        "near": NEAR,
        "context": CONTEXT,
        "tokensAParameter": costs.TOKENS_A_PARAMETER,
        "bandwidths": BANDWIDTHS,
        "seconds": SECONDS,
        "layerSeconds": LAYER_SECONDS,
        "examples": EXAMPLES,
    }


def _draws(draws: Draws) -> dict[str, Any]:
    """The parameters that differences of losses depend on, an array over draws each, and what kind each draw is."""
    return {
        **{name: draws.values[:, j].tolist() for j, name in enumerate(COLUMNS[: LEVELS.start])},
        "penalty": draws.penalty.tolist(),
        "inNats": draws.in_nats.astype(int).tolist(),
        "ofTotal": draws.of_total.astype(int).tolist(),
        "tokens": draws.tokens,
    }


def _constants() -> dict[str, Any]:
    of_losses = (
        "MIDDLE_SIZE",
        "MIDDLE_DEPTH",
        "MIDDLE_TOKENS",
        "FEW_TOKENS",
        "BLOCK_SHARE",
        "TABLE",
        "TURN",
        "PENALTIES",
    )
    of_costs = (
        "LOW",
        "HIGH",
        "OUTSIDE",
        "MOSTLY_EMBEDDING",
        "LEAST_WIDTH",
        "UNTIMED",
        "COARSE",
        "NUDGE",
        "ROWS",
        "MANY_TOKENS",
    )
    return {
        **{name: getattr(losses, name) for name in of_losses},
        **{name: getattr(costs, name) for name in of_costs},
        "SETTLED": SETTLED,
        "TURNS": TURNS,
        "NUMBER_BYTES": Serving.number_bytes,
    }


def _machine(clock: Clock) -> dict[str, Any]:
    """A clock, with the polynomial of depth by the times of its depths: (terms, k) coefficients."""
    middle = float(clock.log_depth.mean())
    solved = polynomial(tuple(clock.log_depth - middle), min(3, len(clock.log_depth)))
    no_errors = np.zeros(len(clock.log_depth))
    return {
        "name": clock.name,
        "source": clock.source,
        "exponent": clock.exponent,
        "exponentErr": clock.exponent_err,
        "logDepth": clock.log_depth.tolist(),
        "logTime": clock.log_time.tolist(),
        "timeErr": (no_errors if clock.time_err is None else clock.time_err).tolist(),
        "solved": solved.tolist(),
        "works": clock.works,
        "perLogWork": clock.per_log_work,
    }


def _law(law: Transitions) -> dict[str, Any]:
    low, middle, high = (_rounded(one) for one in law.log_blocks)
    log_depth = _rounded(law.log_depth)
    return {
        "name": law.source,
        "blocks": law.sizes,
        "logDepth": log_depth,
        "low": low,
        "middle": middle,
        "high": high,
    }


def _rounded(numbers: Floats) -> list[Any]:
    """Numbers with six digits after the point, far below what they are known to."""
    return list(np.round(numbers, 6).tolist())


def redundancies_of(series: Iterable[Series]) -> list[tuple[float, str]]:
    """What a rank d / `strength` of the embedding wastes, in words, for each of `STRENGTHS`."""
    known, setting = list(series), rank_setting(False)
    rows = []
    for strength in STRENGTHS:
        found = estimate(RANK, float(strength), setting, known)
        text = "" if found is None else f"{redundancy_text(found)}, {found.basis.value} ({found.source})"
        rows.append((round(float(strength), 4), text))
    return rows
