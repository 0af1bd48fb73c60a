"""The advice of `shapelaw.fits.advice` as one HTML page that needs nothing else: the law goes into it as numbers.

The page has no draws of the law, only three quantiles of log `N_transition(L)` along depth. For each draw they are of
the largest `N_transition` up to that depth, so that the depth at which a quantile first exceeds the size of the
blocks is a quantile of the first depths: the deeper a network of a given budget, the less its blocks have. Where a draw
falls before it rises this differs from `advise` by less than the page shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shapelaw.fits.advice import FEW_HEADS, HEAD_DIMS, MULTIPLES, WIDE, WIDE_HEADS
from shapelaw.fits.known_redundancy import RANK, Series, estimate, rank_setting
from shapelaw.fits.projection import FARTHEST, INTERVAL, Form, draw_sizes
from shapelaw.report.bottleneck_table import redundancy_text
from shapelaw.specs.architectures import Architecture

TEMPLATE = Path(__file__).with_suffix(".html")
PLACE = "/* the law goes here */ null"  # of the template
DEPTHS = np.geomspace(1.0, FARTHEST, 601)
STRENGTHS = np.geomspace(1.02, 100.0, 48)  # d / rank; between them the page takes the nearest


def quantiles_of(forms: Sequence[Form]) -> dict[str, list[float]]:
    """Logs of parameters in blocks, along `DEPTHS`, whose crossing gives the low, the middle and the high depth."""
    largest = np.maximum.accumulate(draw_sizes(forms, DEPTHS), axis=1)
    low, high = INTERVAL
    found = np.quantile(largest, [1.0 - low, 0.5, 1.0 - high], axis=0)
    return {
        name: [round(float(value), 5) for value in row]
        for name, row in zip(("low", "middle", "high"), found, strict=True)
    }


def redundancies_of(series: Iterable[Series]) -> list[tuple[float, str]]:
    """What a rank d / `strength` of the embedding wastes, in words, for each of `STRENGTHS`."""
    known, setting = list(series), rank_setting(False)
    rows = []
    for strength in STRENGTHS:
        found = estimate(RANK, float(strength), setting, known)
        text = "" if found is None else f"{redundancy_text(found)}, {found.basis.value} ({found.source})"
        rows.append((round(float(strength), 4), text))
    return rows


def content_of(
    forms: Sequence[Form],
    *,
    source: str,
    depths: tuple[int, int],
    sizes: tuple[float, float],
    series: Iterable[Series],
    models: Iterable[Architecture],
) -> dict[str, Any]:
    """The numbers that the page needs.

    Args:
        forms: the law.
        source: where its transitions come from.
        depths: smallest and largest depth of a transition.
        sizes: parameters of the blocks at the smallest and at the largest transition.
        series: measured redundancies, the preferred ones first.
        models: architectures to draw as points, those with a depth and a number of parameters.
    """
    return {
        "source": source,
        "measuredDepths": depths,
        "measuredSizes": sizes,
        "depths": [round(float(depth), 6) for depth in DEPTHS],
        "logSizes": quantiles_of(forms),
        "redundancies": redundancies_of(series),
        "models": [
            {"name": one.name, "params": one.params, "depth": one.depth, "width": one.width}
            for one in models
            if one.params is not None and one.depth is not None
        ],
        "rounding": {
            "wide": WIDE,
            "wideHeads": WIDE_HEADS,
            "headDims": HEAD_DIMS,
            "fewHeads": FEW_HEADS,
            "multiples": MULTIPLES,
        },
    }


def page_of(content: dict[str, Any]) -> str:
    """The whole page, HTML."""
    template = TEMPLATE.read_text(encoding="utf-8")
    # "</" would end the script's element
    numbers = json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    before, place, after = template.partition(PLACE)
    assert place, f"{TEMPLATE.name} has no place for the law"
    return before + numbers + after
