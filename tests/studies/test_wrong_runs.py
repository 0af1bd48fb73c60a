"""Runs that a study can't compare are sentences: wrong ones (wrong_runs.yaml), and those of several recipes."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import degree_runs
import pandas as pd
import pytest
import yaml
from bottleneck_runs import positional_runs, rank_runs, ratio_runs, with_another, with_recipe
from small import REPOSITORY, listed
from transition_runs import analysed_series, todays_runs, undertraining_runs, vocabulary_runs

from shapelaw.errors import UserError
from shapelaw.fits.inputs import RECIPE, TEXT_AND_BLOCK
from shapelaw.studies.block_degree.analysis import check_runs
from shapelaw.studies.decoders import attention_degree, attention_ratio, embedding_rank, positional_rank
from shapelaw.studies.decoders.todays_decoder import analyse_cells
from shapelaw.studies.transitions.analysis import Options

WRONG = "studies/wrong_runs.yaml"


class Room(NamedTuple):
    """What a study checks of a table of runs, and a right one.

    Attributes:
        same: query of the runs to which the others are compared.
        equal: columns of which all runs have one value, beside those of `same`.
    """

    runs: Callable[[], pd.DataFrame]
    check: Callable[[pd.DataFrame, str], object]
    same: str = ""
    equal: tuple[str, ...] = ()


def attention_degree_runs() -> pd.DataFrame:
    """Softmax attention and three degrees, two seeds each."""
    degrees = pd.Series([None, 2, 3, 4] * 2, dtype="float64")
    sizes = {"depth": 2, "width": 64, "attention_dim": 32, "total_params": 24 * 64**2}
    return pd.DataFrame({"attention_degree": degrees, "seed": degrees.index // 4, "test_loss": 2.0, **sizes})


ROOMS = {
    "embedding_rank": Room(
        partial(rank_runs, seeds=1),
        lambda *given: embedding_rank.analyse_runs(embedding_rank.check_rank_runs(*given)),
        *("embedding_rank.isna()", ("depth", *RECIPE)),
    ),
    "positional_rank": Room(
        partial(positional_runs, seeds=1),
        lambda *given: positional_rank.analyse_runs(positional_rank.check_positional_runs(*given)),
        *("embedding_rank.isna()", ("depth", "width", *RECIPE)),
    ),
    "attention_ratio": Room(
        partial(ratio_runs, seeds=1),
        lambda *given: attention_ratio.analyse_runs(attention_ratio.check_ratio_runs(*given)),
        *("ff_width.isna()", RECIPE),
    ),
    "attention_degree": Room(
        attention_degree_runs,
        attention_degree.read_decoders,
        *("attention_degree.isna()", tuple(name for name in RECIPE if name != "attention_degree")),
    ),
    "todays_decoder": Room(todays_runs, partial(analyse_cells, options=Options(draws=100))),
    "undertraining": Room(
        undertraining_runs,
        partial(analyse_cells, options=Options(draws=100)),
        *(
            "steps == steps.min()",
            tuple(name for name in TEXT_AND_BLOCK if name not in ("block", "schedule")),
        ),
    ),
    "vocabulary": Room(lambda: vocabulary_runs({(257, None): 257.0}), lambda runs, _: analysed_series(runs)),
    "block_degree": Room(degree_runs.table, check_runs),
}


def changed(runs: pd.DataFrame, change: dict[str, Any]) -> pd.DataFrame:
    """The runs with what a case of wrong_runs.yaml asks for."""
    runs = runs.drop(columns=change.get("without", []))
    runs = runs.query(change.get("only", "index >= 0"), engine="python").assign(**change.get("with", {}))
    for row, values in change.get("at", {}).items():
        runs.loc[row, list(values)] = list(values.values())
    return pd.concat([runs, runs.iloc[change.get("again", [])]])


CASES = yaml.safe_load((REPOSITORY / "tests" / WRONG).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("study", "change", "sentence"), [(study, *case) for study in CASES for case in listed(WRONG, study)]
)
def test_unusable_runs_are_a_sentence(study: str, change: dict[str, Any], sentence: str) -> None:
    room = ROOMS[study]
    with pytest.raises(UserError, match=sentence):
        room.check(changed(room.runs(), change), "runs.csv")


@pytest.mark.parametrize(
    ("study", "name"), [(study, name) for study, room in ROOMS.items() for name in room.equal]
)
def test_networks_that_differ_in_more_than_the_study_varies_are_a_sentence(study: str, name: str) -> None:
    room = ROOMS[study]
    runs = with_recipe(room.runs())
    same = runs.index.isin(runs.query(room.same, engine="python").index)
    with pytest.raises(UserError, match=f"with different values of {name} "):
        room.check(with_another(runs, name, pd.Series(same, runs.index)), "runs.csv")
