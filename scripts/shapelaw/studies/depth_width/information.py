"""The order of runs by how much they tell about where one depth overtakes the next."""

from __future__ import annotations

import math
from collections.abc import Iterable

from shapelaw.specs.runs import Run
from shapelaw.studies.reference import published_json

LATER_SEED = 0.7  # in log size: how much less a further seed tells than a first run at the same distance


def by_information(runs: Iterable[Run]) -> list[Run]:
    """The runs, first those that decide where one depth overtakes the next.

    A run's distance is |log P - log P_t| with P = 12 L d^2 and P_t the expected size at the transition from its depth
    to the next deeper of the grid, or to its depth from the one before: the nearer one.
    """
    chosen, line = list(runs), published_json("levine2020_fit")
    depths = sorted({run.shape.depth for run in chosen})
    sizes = {depth: math.log(12 * depth) + 2 * (line["a"] + line["b"] * depth) for depth in depths}

    def distance(run: Run) -> float:
        place, shape = depths.index(run.shape.depth), run.shape
        shallower = [depth for depth in depths[max(0, place - 1) : place + 1] if depth != depths[-1]]
        size = math.log(12 * shape.depth * shape.width**2)
        return min((abs(size - sizes[depth]) for depth in shallower), default=0.0) + LATER_SEED * run.seed

    return sorted(chosen, key=distance)
