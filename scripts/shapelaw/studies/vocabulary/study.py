"""The effect of the vocabulary on the best depth: where a deep network overtakes a shallow one, for each V and r."""

from pathlib import Path

from shapelaw.studies.grid.study import Grid, declared_study
from shapelaw.studies.study import OURS

NAME = "vocabulary"
STUDIES = (
    declared_study(
        Grid(NAME, ("vocab_size", "embedding_rank", "patch_embedding", "steps"), "transitions"),
        Path(__file__).parent,
        {
            "axes": {"vocab_size": [257, 500]},
            "widths": {1: [32, 64, 96, 128], 2: [22, 46, 68, 90]},
            "repeated": {1: [64], 2: [46]},
            "repeated_seeds": 2,
        },
        title="Vocabulary",
        message="what the vocabulary does to the best depth",
        subtitle="",
        answering=("relation", "comparison"),
        tables=("transitions", "size_axes", "gaps", "relation", "losses", "seed_noise", "comparison"),
        figures={
            "losses": "figures 1, 3 and 5 of the vocabulary paper",
            "relation": OURS,
            "bits_per_byte": OURS,
        },
        results="shapelaw.studies.vocabulary.results",
        question="Does a small vocabulary, or a low rank, move the width at which depth pays?",
        verdict="results/vocabulary.md#vocabulary-and-rank",
    ),
)
