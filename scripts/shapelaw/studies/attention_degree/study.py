"""Decoders with linear attention of each degree, beside softmax, at equal parameters (block-degree note, eq. 2).

Without dropout, since linear attention has no weights to drop.
"""

from pathlib import Path

from shapelaw.settings.sections import Settings
from shapelaw.studies.grid.study import Grid, declared_study
from shapelaw.studies.shape_grids import seed_warnings
from shapelaw.studies.study import OURS

NAME = "attention_degree"
GRID = Grid(NAME, ("attention_degree", "attention_dim"), "nothing")


def warnings(config: Settings, root: Path) -> list[str]:
    """Those of the grid, and a sentence where no two networks differ in their seed alone."""
    seeds = [one.seeds for one in GRID.networks(config, root)]
    return GRID.warnings(config, root) + seed_warnings(GRID.place, seeds)


STUDIES = (
    declared_study(
        GRID,
        Path(__file__).parent,
        {
            "axes": {"attention_degree": [None, 2, 3, 4], "attention_dim": "equal_params"},
            "widths": {1: [64, 96]},
            "dropout": 0.0,
            "seeds": 4,
        },
        title="Degree of the building block",
        message="comparing degrees of attention",
        subtitle="Linear attention",
        tables=("losses", "differences"),
        answering=("differences",),
        figures={"losses": OURS},
        results="shapelaw.studies.attention_degree.results",
        question="Which degree of attention, or softmax, learns text best at equal parameters?",
        verdict="results/degrees.md#linear-attention-in-a-decoder",
        options=lambda _config: (),
        warnings=warnings,
    ),
)
