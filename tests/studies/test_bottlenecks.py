"""What the studies of bottlenecks share: wrong runs and wrong grids are sentences, and all that is declared is made."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import pandas as pd
import pytest
from bottleneck_runs import positional_runs, rank_runs, ratio_runs, with_another, with_recipe

from shapelaw.errors import UserError
from shapelaw.fits.inputs import RECIPE
from shapelaw.studies.decoders import attention_ratio, embedding_rank, positional_rank

Check = Callable[[pd.DataFrame, str], pd.DataFrame]


class Room(NamedTuple):
    """A study's module, its check of a table and runs whose truth is known.

    Attributes:
        bottleneck: column that is empty where there is none.
        equal: columns of which all runs have one value, beside the recipe.
    """

    module: ModuleType
    check: Check
    runs: Callable[..., pd.DataFrame]
    bottleneck: str
    equal: tuple[str, ...]


ROOMS = {
    "embedding_rank": Room(
        embedding_rank, embedding_rank.check_rank_runs, rank_runs, "embedding_rank", ("depth",)
    ),
    "positional_rank": Room(
        positional_rank, positional_rank.check_positional_runs, positional_runs, "embedding_rank", ("depth", "width")
    ),
    "attention_ratio": Room(
        attention_ratio, attention_ratio.check_ratio_runs, ratio_runs, "ff_width", ()
    ),
}  # fmt: skip


UNUSABLE = {
    "embedding_rank": [
        (lambda runs: runs.drop(columns="embedding_rank"), "lacks embedding_rank"),
        (lambda runs: runs[runs["embedding_rank"].isna()], "a network of low rank"),
        (lambda runs: pd.concat([runs, runs.head(1)]), "must have one row"),
        (lambda runs: runs.assign(positional_rank=4), "study positional_rank is for those"),
        (lambda runs: runs.assign(width=0), "width must be above zero"),
        (
            lambda runs: runs.assign(embedding_rank=2.5),
            "embedding_rank must be a whole number of 1 or more, or empty for full rank",
        ),
    ],
    "positional_rank": [
        (lambda runs: runs.drop(columns="context_length"), "lacks context_length"),
        (
            lambda runs: runs.assign(positional_rank=0),
            "positional_rank must be a whole number of 1 or more, or empty for a plain embedding",
        ),
        (lambda runs: runs.assign(positional_rank=129), "positional_rank must not be above width or context"),
        (
            lambda runs: runs.assign(positional_rank=4),
            "one of embedding_rank and positional_rank must be empty",
        ),
        (lambda runs: pd.concat([runs, runs.head(1)]), "must have one row"),
        (lambda runs: runs[runs["positional_rank"].isna()], "one with a positional rank"),
    ],
    "attention_ratio": [
        (lambda runs: runs.drop(columns="attention_dim"), "lacks attention_dim"),
        (lambda runs: runs.assign(ff_width="wide"), "ff_width must be a whole number of 1 or more, or empty"),
        (lambda runs: runs.assign(ff_width=17), "ff_width must be 4 H d_a or 4 d"),
        (lambda runs: pd.concat([runs, runs.head(1)]), "must have one row"),
        (lambda runs: runs[runs["ff_width"].isna()], "one with another H d_a to compare"),
        (lambda runs: runs[runs["ff_width"].notna()], "need two networks with H d_a = d"),
    ],
}


@pytest.mark.parametrize(
    ("study", "change", "sentence"), [(study, *case) for study, cases in UNUSABLE.items() for case in cases]
)
def test_unusable_runs_are_a_sentence(study: str, change: Any, sentence: str) -> None:
    room = ROOMS[study]
    with pytest.raises(UserError, match=sentence):
        room.module.analyse_runs(room.check(change(room.runs(seeds=1)), "runs.csv"))


@pytest.mark.parametrize(
    ("study", "name"), [(study, name) for study, room in ROOMS.items() for name in (*room.equal, *RECIPE)]
)
def test_networks_that_differ_in_more_than_the_bottleneck_are_a_sentence(study: str, name: str) -> None:
    room = ROOMS[study]
    runs = with_recipe(room.runs(seeds=1))
    room.check(runs, "runs.csv")
    with pytest.raises(UserError, match=f"with different values of {name} "):
        room.check(with_another(runs, name, runs[room.bottleneck].isna()), "runs.csv")
