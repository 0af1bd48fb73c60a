"""Study 1: the transitions between depths, the line through them, and what it projects (Levine et al. 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import Run
from shapelaw.studies.grid.study import Grid, declared_study
from shapelaw.studies.published import published_log_width
from shapelaw.studies.study import Study

NAME = "depth_width"
LATER_SEED = 0.7  # in log size: how much less a further seed tells than a first run at the same distance
ROOM = Path(__file__).parent
QUESTION = (
    "Should the next parameter go into depth or into width: from which width on does a deeper network win?"
)
COMMITTED = ROOM.parents[3] / "docs" / "results" / "h200_llama.csv"
TABLES = ("transitions", "fit", "projection", "forms", "comparison", "size_axes", "seed_noise", "best_depth")
FIGURES = {
    "loss_adjacent": "figures 1b and 2 of the depth-width paper, adjacent depths",
    "loss_doubled": "figure 2 of the depth-width paper, one depth against its double",
    "transition_width": "figure 3a of the depth-width paper",
    "transition_size": "figure 3b of the depth-width paper",
    "best_depth": "figure 3c of the depth-width paper",
    "extrapolation": "figure 4 of the depth-width paper",
}


def by_information(runs: Iterable[Run]) -> list[Run]:
    """The runs, first those that decide where one depth overtakes the next.

    A run's distance is |log P - log P_t| with P = 12 L d^2 and P_t the expected size at the transition from its depth
    to the next deeper of the grid, or to its depth from the one before: the nearer one.
    """
    chosen = list(runs)
    depths = sorted({run.shape.depth for run in chosen})
    sizes = {depth: math.log(12 * depth) + 2 * published_log_width(depth) for depth in depths}

    def distance(run: Run) -> float:
        place, shape = depths.index(run.shape.depth), run.shape
        shallower = [depth for depth in depths[max(0, place - 1) : place + 1] if depth != depths[-1]]
        size = math.log(12 * shape.depth * shape.width**2)
        return min((abs(size - sizes[depth]) for depth in shallower), default=0.0) + LATER_SEED * run.seed

    return sorted(chosen, key=distance)


GRID = Grid(NAME, asks="line")


def options(config: Settings) -> list[str]:
    """The options of the analysis: the size, and the axes where there are some."""
    axes = GRID.axes(config)
    return [*GRID.sized(config), *(["--axes", *axes] if axes else [])]


BOTH: dict[str, Any] = {  # what the runs of a config and the committed ones share
    "title": "Depth and width",
    "tables": TABLES,
    "answering": ("transitions", "best_depth"),
    "figures": FIGURES,
    "results": "shapelaw.studies.depth_width.results",
    "question": QUESTION,
    "verdict": "results/depth_width.md",
}
STUDIES = (
    declared_study(
        GRID,
        ROOM,
        {
            "widths": {
                1: [64, 96, 128, 192],
                2: [46, 68, 90, 136],
                4: [32, 48, 64, 96],
                8: [22, 34, 46, 68],
            },
            "repeated": {1: [64, 192], 8: [22, 68]},
            "repeated_seeds": 2,
        },
        message="transitions and fits of depth_width",
        subtitle="",
        options=options,
        informative_first=by_information,
        **BOTH,
    ),
    Study(
        "committed_runs",
        room=ROOM,
        message="analysing the committed runs of Llama's block",
        options=GRID.sized,
        input=str(COMMITTED),
        made_elsewhere="115 decoders of Llama's block, trained in 18 minutes of one H200 and committed; all with 3,000 "
        "steps of 128 windows at one learning rate: other steps or another block move the crossings "
        "(docs/results/depth_width.md#more-steps-other-rates-another-block).",
        subtitle="runs trained before (seven packaged texts, Llama's block, 3,000 steps, 115 runs)",
        extra=True,
        tables_caption="committed_runs",
        **BOTH,
    ),
)
