"""The cost of attention that is wider than the network, H d_a > d, as in T5 (Wies et al. 2021, section 5.3)."""

from pathlib import Path

from shapelaw.studies.grid.study import Baseline, Grid, declared_study
from shapelaw.studies.study import OURS

NAME = "attention_ratio"
NARROW = Baseline("of ratio 1", 2, lambda shape: shape.attention_ratio == 1)
STUDIES = (
    declared_study(
        Grid(NAME, ("heads", "attention_dim", "ff_width"), "nothing", NARROW),
        Path(__file__).parent,
        [
            {"widths": {1: [48, 64, 96], 2: [48, 68]}},
            {
                "widths": {1: [34, 48], 2: [24, 34]},
                "attention_dim": {"ratio": 4},
                "ff_width": "4 * heads * attention_dim",
            },
        ],
        title="Attention wider than the network",
        message="what attention wider than the network costs",
        subtitle="",
        tables=("losses", "best_depth", "redundancy", "monotony", "spread", "comparison"),
        answering=("best_depth", "redundancy"),
        figures={
            "losses": "figure 4 of the vocabulary paper",
            "depths": "figure 6 of the vocabulary paper",
            "redundancy": OURS,
        },
        results="shapelaw.studies.attention_ratio.results",
        question="What does attention wider than the network cost?",
        verdict="results/ranks.md#attention-wider-than-the-network",
    ),
)
