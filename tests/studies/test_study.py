"""What the house makes of a study's declaration, and the papers' published numbers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import a_run

from shapelaw.studies.study import REFERENCE, Study, published_json

ROOM = Path("/rooms/bread")
STUDY = Study(
    "bread", "Bread", "Bakes.", ROOM, ("loaves",), {"crust": "a book"}, "bread.results", "Does it rise?"
)


def test_tables_and_figures_are_targets_and_their_copies_are_not() -> None:
    assert STUDY.artifacts == [
        *("results/bread/loaves.html", "results/bread/loaves.csv"),
        "results/bread/crust.svg",
    ]
    assert STUDY.copies == [
        *("results/bread/tables.md", "results/bread/tables.tex"),
        "results/bread/crust.png",
    ]
    assert STUDY.table_caption == ROOM / "captions" / "tables.rst"
    assert replace(STUDY, tables_caption="sizes").table_caption == ROOM / "captions" / "sizes.rst"
    assert STUDY.figure_caption("crust") == ROOM / "captions" / "crust.rst"


def test_a_study_reads_its_runs_or_a_file_of_the_project() -> None:
    assert STUDY.analysed == "results/bread/runs.parquet"
    assert replace(STUDY, input="docs/bread.csv").analysed == "docs/bread.csv"


def test_an_extra_is_not_logged() -> None:
    assert STUDY.target == "results/bread/logged"
    assert replace(STUDY, extra=True).target == "results/bread/fit.json"


def test_a_study_trains_nothing_unless_it_says_so() -> None:
    assert (list(STUDY.runs(None, ROOM)), STUDY.problems(None, ROOM), STUDY.costs(None)) == ([], [], [])  # type: ignore[arg-type]


def test_first_seeds_tell_most() -> None:
    runs = [a_run(2, 64, seed=seed) for seed in (2, 0, 1)]
    assert [run.seed for run in STUDY.informative_first(runs)] == [0, 1, 2]


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*.json")), ids=lambda path: path.stem)
def test_a_file_is_read_by_its_name(path) -> None:  # type: ignore[no-untyped-def]
    assert published_json(path.stem) == json.loads(path.read_text(encoding="utf-8")) != {}
