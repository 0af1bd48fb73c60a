"""The published numbers: each has a source, stands once and is of a study; what was not published has no value."""

import csv
import math
import re
from dataclasses import asdict

import pandas as pd
import pytest
from shipped import SCALES
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.specs.kinds import AnyRun
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.specs.runs import Run
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import (
    ANSWER,
    DEPTH_WIDTH,
    REFERENCE,
    published,
    published_log_width,
    published_of,
)

PAPER = re.compile(r"(Levine|Wies|Mahdavi) et al\. 202\d, (table|figure|section|appendix|eq\.) ")


def test_each_has_a_source_and_stands_once() -> None:
    with (REFERENCE / "published.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["study"] for row in rows} <= {*STUDIES, "perplexity"}
    assert len({(row["study"], row["quantity"], row["setting"]) for row in rows}) == len(rows)
    for row in rows:
        one = published(row["study"], row["quantity"], row["setting"])
        assert one.value
        assert PAPER.match(one.source), one
        assert math.isnan(one.number) or one.low <= one.number <= one.high, one
        assert row["quantity"] != ANSWER or one.value.endswith("."), one


def test_errors_are_half_the_interval_and_open_where_none_was_published() -> None:
    a, chi2 = (published(DEPTH_WIDTH, name) for name in ("a", "chi2_reduced"))
    assert (a.number, a.err) == (5.039, 0.03)
    assert (chi2.low, chi2.high) == (0.854, 0.854)
    assert math.isnan(chi2.err)
    assert published_log_width(12) == 5.039 + 0.0555 * 12


def test_what_was_not_published_has_no_value() -> None:
    nothing = published(DEPTH_WIDTH, "a", "depth 6")
    assert (nothing.value, nothing.source) == ("", "")
    assert math.isnan(nothing.number)
    assert math.isnan(nothing.err)
    assert published_of("relu", ANSWER) == {}


PRINTED = {  # columns that say the networks of a paper's grid, workflow/reference/NAME_grid.csv
    "depth_width": ["depth", "width"],
    "vocabulary": ["vocab_size", "depth", "width", "embedding_rank"],
    "embedding_rank": ["depth", "width", "embedding_rank"],
    "positional_rank": ["series", "depth", "width", "vocab_size", "context", "rank"],
    "attention_ratio": ["attention_to_width_ratio", "depth", "heads", "width"],
    "memorization": ["task", "context_type", "heads", "context", "head_dim", "examples"],
}


def printed_of(run: AnyRun) -> dict[str, object]:
    """What such columns say of a run."""
    if isinstance(run, MemorizationRun):
        return {**vars(run), **vars(run.memorizer)}
    assert isinstance(run, Run)
    series = "vocabulary" if run.shape.positional_rank is None else "positional"
    rank = run.shape.embedding_rank or run.shape.positional_rank
    ratio = {"attention_to_width_ratio": run.shape.attention_ratio, "context": run.shape.context_length}
    return {**asdict(run.shape), **ratio, "series": series, "rank": rank}


@pytest.mark.parametrize("name", PRINTED)
def test_scale_paper_trains_every_network_of_a_printed_grid(name: str) -> None:
    """That it trains no others, and with which seeds, is held by tests/golden/runs-paper.tsv."""
    table = pd.read_csv(REFERENCE / f"{name}_grid.csv")[PRINTED[name]].astype(object)
    studies = [study for study in STUDIES if study.startswith(name)]
    config = load_config({"scale": "paper", "studies": studies}, SCALES, REPOSITORY)
    runs = [run for study in studies for run in runs_of(config, study, REPOSITORY).values()]
    trained = {tuple(printed_of(run)[column] for column in PRINTED[name]) for run in runs}
    assert set(table.where(table.notna(), None).itertuples(index=False, name=None)) <= trained
