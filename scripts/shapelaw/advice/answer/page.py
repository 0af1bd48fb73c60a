"""A page that answers as `shapelaw shape` does: a template with its style, its scripts, and the numbers in it.

Its scripts (`advisor/costs.js`, `advisor/config.js`) compute what `costs.py` and `config_json.py` do, from the same
draws and constants under the same names, so the page has no answers in it but what they follow from. Numbers of draws
have the digits of the committed fits, and normal scores six.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from shapelaw.advice.answer import costs
from shapelaw.advice.evidence import clocks, losses
from shapelaw.advice.evidence.clocks import Clock, polynomial, shuffled_scores
from shapelaw.advice.evidence.losses import COLUMNS, LEVELS, Draws
from shapelaw.advice.evidence.public import Transitions, public_evidence, published_law, shipped_models
from shapelaw.advice.models import bottlenecks, config_json
from shapelaw.report.tables import picked
from shapelaw.specs.sizes import SizeAxis

STRENGTHS = np.geomspace(1.02, 100.0, 48)  # d / rank; between them the page takes the nearest
DIGITS = 6  # of normal scores after the point, far below what they are known to
NEAR = 0.3  # log size within which a shipped model is shown
FOLDER = Path(__file__).with_name("advisor")
# in the order in which the page runs them
SCRIPTS = ("costs.js", "config.js", "words.js", "figure.js", "page.js")


def page_of(content: dict[str, Any]) -> str:
    """The whole page, HTML."""
    numbers = json.dumps(content, default=_plain, separators=(",", ":"), ensure_ascii=False)
    numbers = numbers.replace("</", "<\\/")  # which would end the script's element
    scripts = [f'"use strict";\nconst DATA = {numbers};\n', *map(_read, SCRIPTS), "begin();\n"]
    style, script = "<style></style>", "<script></script>"
    before, _, rest = _read("page.html").partition(style)
    middle, _, after = rest.partition(script)
    return f"{before}<style>\n{_read('page.css')}</style>{middle}<script>\n{''.join(scripts)}</script>{after}"


def _plain(value: Any) -> Any:
    """An array, or a record of what JSON has."""
    return value.tolist() if isinstance(value, np.ndarray) else vars(value)


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def content_of(own_laws: Sequence[Transitions], machines: Mapping[str, Clock]) -> dict[str, Any]:
    """The numbers that the page needs, as `page_of` takes them.

    Args:
        own_laws: of the user's own transitions, beside the public evidence and the published law.
        machines: their training times by what `--machine` calls them, the usual one first.
    """
    evidence = public_evidence()
    grid, draws = evidence.grid, evidence.draws
    recipes, p0 = evidence.recipes, COLUMNS.index("p0")
    assert isinstance(draws, Draws)
    assert isinstance(recipes, Draws)
    depths = max(len(clock.log_depth) for clock in machines.values())
    return {
        "draws": {
            **{name: draws.values[:, j] for j, name in enumerate(COLUMNS[: LEVELS.start])},
            **picked(draws, "penalty", "tokens"),
            "in_nats": draws.in_nats.astype(int),
            "of_total": draws.of_total.astype(int),
        },
        "constants": {"NEAR": NEAR}
        | _constants(clocks, costs, config_json, losses)
        | {"NUMBER_BYTES": clocks.Serving.number_bytes},
        "grid": [grid[0], grid[-1], len(grid)],
        "evidence": {
            **picked(evidence, "name", "blocks", "totals", "tokens", "depths", "least_tokens", "most_tokens"),
            "spread": evidence.spread,
            "normals": np.round(evidence.normals, DIGITS),
            "recipes": np.round(recipes.values[:, p0] - draws.values[:, p0], DIGITS),
        },
        "machines": {name: _machine(clock) for name, clock in machines.items()},
        "normals": np.round(shuffled_scores(len(draws), 2 + depths).T, DIGITS),
        "laws": [*own_laws, published_law()],
        "models": shipped_models(SizeAxis.TOTAL),
        "redundancies": _redundancies(),
    }


def _constants(*modules: ModuleType) -> dict[str, Any]:
    """The numbers and tables of modules, whose names are capitals."""
    every = (named for module in modules for named in vars(module).items())
    kinds = int, float, tuple, dict
    return {
        name: value for name, value in every if name.isupper() and name[0] != "_" and type(value) in kinds
    }


def _machine(clock: Clock) -> dict[str, Any]:
    """A clock, with the polynomial of depth by the times of its depths: (terms, k) coefficients."""
    depths = clock.log_depth
    return asdict(clock) | {"solved": polynomial(tuple(depths - depths.mean()), min(3, len(depths)))}


def _redundancies() -> list[tuple[float, str]]:
    """What a rank d / `strength` of the embedding wastes, in words, for each of `STRENGTHS`."""
    known, setting = bottlenecks.published_redundancies(), bottlenecks.rank_setting(False)
    rows = []
    for strength in STRENGTHS:
        found = bottlenecks.estimate(bottlenecks.RANK, float(strength), setting, known)
        text = (
            ""
            if found is None
            else f"{bottlenecks.redundancy_text(found)}, {found.basis.value} ({found.source})"
        )
        rows.append((round(float(strength), 4), text))
    return rows
