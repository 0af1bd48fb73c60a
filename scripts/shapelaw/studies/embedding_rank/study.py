"""The cost of a low rank of the embedding: factored embeddings against narrower networks (Wies et al. 2021)."""

from pathlib import Path

from shapelaw.studies.grid.study import Baseline, Grid, declared_study
from shapelaw.studies.study import OURS

NAME = "embedding_rank"
FULL = Baseline("with embeddings of full rank", 2, lambda shape: shape.embedding_rank is None)
STUDIES = (
    declared_study(
        Grid(NAME, ("embedding_rank", "positional_rank"), "nothing", FULL),
        Path(__file__).parent,
        [
            {"widths": {2: [24, 32, 48, 64]}},
            *({"widths": {2: [64]}, "embedding_rank": rank, "positional_rank": rank} for rank in (4, 16)),
        ],
        title="Rank of the embedding",
        message="what a low rank of the embedding costs",
        subtitle="",
        tables=("losses", "redundancy", "needed", "seed_noise", "comparison"),
        answering=("needed", "redundancy"),
        figures={"losses": "figure 2 of the vocabulary paper", "redundancy": OURS},
        results="shapelaw.studies.embedding_rank.results",
        question="How much of a network is wasted where the embedding's rank is low?",
        verdict="results/ranks.md#the-embeddings-rank",
        options=lambda _config: (),
    ),
)
