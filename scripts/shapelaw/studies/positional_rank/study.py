"""The cost of a low rank of the positional embedding beside one of the token embedding (Wies et al. 2021, C.4)."""

from pathlib import Path

from shapelaw.studies.grid.study import Baseline, Grid, declared_study
from shapelaw.studies.study import OURS

NAME = "positional_rank"
RANKS = ("embedding_rank", "positional_rank")
PLAIN = Baseline(
    "with plain embeddings", 1, lambda shape: not (shape.embedding_rank or shape.positional_rank)
)
STUDIES = (
    declared_study(
        Grid(NAME, RANKS, "nothing", PLAIN),
        Path(__file__).parent,
        [
            {"widths": {2: [64]}, "seeds": 3},
            {"widths": {2: [64]}, "axes": {"positional_rank": [1, 4, 16, 64]}},
            {"widths": {2: [64]}, "axes": {"embedding_rank": [2, 4, 16, 64]}},
        ],
        title="Rank of the positional embedding",
        message="what a low rank of the positional embedding costs",
        subtitle="",
        tables=("losses", "needed", "equivalents", "comparison"),
        answering=("needed", "equivalents"),
        figures={"losses": "figure 7 of the vocabulary paper", "equivalents": OURS},
        results="shapelaw.studies.positional_rank.results",
        question="Which rank does the positional embedding need?",
        verdict="results/ranks.md#the-positions-rank",
        options=lambda _config: (),
    ),
)
