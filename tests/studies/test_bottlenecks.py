"""The studies of bottlenecks: wrong runs are sentences, grids have their sizes, and redundancies beside others."""

import io
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple

import pandas as pd
import pytest
import torch
from bottleneck_runs import positional_runs, rank_runs, ratio_runs, with_another, with_recipe
from golden_tables import golden
from small import REPOSITORY
from trained import counted_flops

from shapelaw.advice.models.measured import AS_T5, MEASURED, RANK, RATIO, TOKENS, Basis, known_redundancies
from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.fits.inputs import RECIPE
from shapelaw.fits.redundancy import Redundancy, RedundancyStatus
from shapelaw.models.decoder import Decoder
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import Shape
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.decoders import attention_ratio, embedding_rank, positional_rank
from shapelaw.studies.decoders.redundancies import Drawn, compared_redundancy, redundancy_figure
from shapelaw.studies.study import published

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


SCALES = REPOSITORY / "workflow" / "scales"


def shapes_of_scale(scale: str, study: str) -> list[Shape]:
    """The shapes of a scale's grid, each once."""
    config = load_config({"scale": scale, "studies": [study]}, SCALES, REPOSITORY)
    shapes = []
    for run in runs_of(config, study, REPOSITORY).values():
        assert isinstance(run, Run)
        if run.seed == 0:
            shapes.append(run.shape)
    return shapes


@pytest.mark.parametrize("scale", ["demo", "laptop"])
def test_counts_of_parameters_and_operations_are_the_modules(scale: str) -> None:
    for wide in shapes_of_scale(scale, "attention_ratio"):
        if wide.attention_ratio in (4, 16):
            shape = replace(wide, context_length=8)
            model, ids = Decoder(shape), torch.zeros(1, 8, dtype=torch.long)
            assert sum(p.numel() for p in model.parameters()) == shape.total_params
            assert counted_flops(model, ids) == shape.forward_flops(1)


def found(status: RedundancyStatus, value: float) -> Redundancy:
    return Redundancy(value, value - 0.01, value + 0.01, 0.0, status)


@pytest.mark.parametrize(
    ("status", "value", "agrees"),
    [
        (RedundancyStatus.AT_LEAST, 0.2, "yes"),
        (RedundancyStatus.AT_LEAST, 0.3, "no"),
        (RedundancyStatus.AT_MOST, 0.2, "no"),
        (RedundancyStatus.AT_MOST, 0.3, "open"),
        (RedundancyStatus.MEASURED, 0.28, "yes"),
        (RedundancyStatus.MEASURED, 0.3, "no"),
        (RedundancyStatus.NO_NOISE, 0.25, "open"),
    ],
)
def test_a_bound_agrees_only_on_its_side(status: RedundancyStatus, value: float, agrees: str) -> None:
    """With 0.225 to 0.275, "about 75%"."""
    theirs = published("attention_ratio", "redundancy", 4)
    row = compared_redundancy(theirs, "redundancy of ratio 4", "L = 12", found(status, value))
    assert (row["ours"], row["published"], row["status"]) == (value, "0.25", status.value)
    assert row["agrees"] == agrees


def test_bounds_and_intervals_are_named_apart() -> None:
    points = [
        Drawn("tokens", 4, found(RedundancyStatus.MEASURED, 0.2), (1.0, "")),
        Drawn("tokens", 4, found(RedundancyStatus.AT_LEAST, 0.3), (2.0, "")),
    ]
    chart = redundancy_figure(
        {SizeAxis.BLOCK: points}, {"tokens": ("k", "o"), "patches": ("r", "s")}, "rank", None, {16: 0.5}
    )
    figure = chart.figure()
    names = figure.axes[0].get_legend_handles_labels()[1]
    assert names == ["nothing wasted", "published, 30M to 70M", "tokens, 68% interval", "tokens, at least"]
    assert "no intervals" in figure.axes[0].texts[0].get_text()


@pytest.mark.parametrize("study", ["embedding_rank", "attention_ratio"])
def test_they_are_made_from_the_committed_runs(study: str) -> None:
    """The golden tables are (tests/test_tables.py)."""
    for name in ("redundancy", "losses"):
        made, ours = io.StringIO(golden(study)[name]), MEASURED / study / f"{name}.csv"
        pd.testing.assert_frame_equal(pd.read_csv(made), pd.read_csv(ours), rtol=1e-6)


@pytest.mark.parametrize("axis", list(SizeAxis))
def test_ours_come_before_the_published(axis: SizeAxis) -> None:
    known = known_redundancies(axis)
    for kind, setting in ((RANK, TOKENS), (RATIO, AS_T5)):
        of_kind = [one.basis for one in known if (one.kind, one.setting) == (kind, setting)]
        assert of_kind == [Basis.FIT, Basis.PUBLISHED]
