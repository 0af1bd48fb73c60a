"""The grid of the study of the positional embedding's rank."""

import pandas as pd
import pytest
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import Run

SCALES = REPOSITORY / "workflow" / "scales"
GRID = {
    "depth": 2,
    "width": 24,
    "heads": 2,
    "vocab_size": 300,
    "context_length": 16,
    "positional_ranks": [1, 4, 16],
    "vocabulary_ranks": [2, 24],
    "repeated_positional_ranks": [1],
    "repeated_vocabulary_ranks": [],
    "repeated_seeds": 2,
}


def config_of(**changes: object) -> Settings:
    values = {"scale": "demo", "studies": ["positional_rank"], "positional_rank": GRID | changes}
    return load_config(values, SCALES)


def test_the_grid_is_the_plain_network_and_every_rank() -> None:
    """16 positions have rank 16 at most, and 300 tokens rank 24 at width 24: factored they are other networks."""
    runs = runs_of(config_of(), "positional_rank", REPOSITORY).values()
    assert {run.label for run in runs if isinstance(run, Run)} == {
        "wiki-V300-L2-d24-H2-lr0.003-t400-s0",
        "wiki-V300-L2-d24-H2-lr0.003-t400-s1",
        "wiki-V300-L2-d24-H2-p1-lr0.003-t400-s0",
        "wiki-V300-L2-d24-H2-p1-lr0.003-t400-s1",
        "wiki-V300-L2-d24-H2-p4-lr0.003-t400-s0",
        "wiki-V300-L2-d24-H2-p16-lr0.003-t400-s0",
        "wiki-V300-L2-d24-r2-H2-lr0.003-t400-s0",
        "wiki-V300-L2-d24-r24-H2-lr0.003-t400-s0",
    }


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"positional_ranks": []}, "positional_rank.positional_ranks is empty; give it ranks"),
        ({"vocabulary_ranks": []}, "positional_rank.vocabulary_ranks is empty; give it ranks"),
        ({"positional_ranks": [0, 1]}, "positional_rank.positional_ranks.1st is 0"),
        (
            {"positional_ranks": [1, 17]},
            "positional_rank.positional_ranks: positional_rank 17 is above min(width, context_length) = 16, the rank "
            "of a full positional embedding; leave it out or use at most 16",
        ),
        (
            {"context_length": 64, "positional_ranks": [1, 25]},
            "positional_rank 25 is above min(width, context_length) = 24",
        ),
        ({"vocabulary_ranks": [25]}, "embedding_rank 25 is above min(width, vocab_size) = 24"),
        ({"width": 23}, "positional_rank: width 23 is not divisible by 2 heads"),
        (
            {"repeated_positional_ranks": [2]},
            "positional_rank.repeated_positional_ranks has 2, which positional_ranks does not have",
        ),
        ({"recipe": {"droput": 0.1}}, "positional_rank.recipe.droput is not a key of training"),
    ],
)
def test_each_mistake_is_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        config_of(**changes)
    said = str(error.value)
    assert said.count(sentence) == 1


def test_scale_paper_is_the_paper_s_grid() -> None:
    grid = pd.read_csv(REPOSITORY / "workflow" / "reference" / "positional_rank_grid.csv")
    config = load_config({"scale": "paper", "studies": ["positional_rank"]}, SCALES, REPOSITORY)
    shapes = [
        run.shape
        for run in runs_of(config, "positional_rank", REPOSITORY).values()
        if isinstance(run, Run) and run.seed == 0
    ]
    plain, *factored = shapes
    assert (plain.embedding_rank, plain.positional_rank) == (None, None)
    rows = []
    for shape in factored:
        sizes = (shape.depth, shape.width, shape.vocab_size, shape.context_length)
        if shape.embedding_rank is None:
            rows.append(("positional", *sizes, shape.positional_rank))
        else:
            assert shape.positional_rank is None
            rows.append(("vocabulary", *sizes, shape.embedding_rank))
    columns = ["series", "depth", "width", "vocab_size", "context", "rank"]
    assert rows == list(grid[columns].itertuples(index=False, name=None))
