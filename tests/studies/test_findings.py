"""What studies found, from their files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from shapelaw.errors import UserError
from shapelaw.report.write import Answer
from shapelaw.studies.findings import read_finding
from shapelaw.studies.study import Study

STUDY = Study(
    "bread", "Bread", "Bakes.", Path("/rooms/bread"), (), {"crust": "a book", "crumb": "our own"}, "bread.results",
    "Does it rise?", subtitle="rye", made_elsewhere="Baked last year.",
)  # fmt: skip


def test_question_and_figures_come_from_the_room_answer_and_links_from_files(tmp_path: Path) -> None:
    folder = tmp_path / "bread"
    folder.mkdir()
    fit = {"answer": {"sentence": "Yes.", "decided": True, "published": "No."}, "findings": ["It rose."]}
    (folder / "fit.json").write_text(json.dumps(fit))
    (folder / "logged").write_text(json.dumps({"pages": {"runs": "http://h/#/experiments/1"}}))
    (folder / "crust.svg").write_text("<svg><!-- No figure: no oven --></svg>")
    (folder / "crumb.svg").write_text("<svg/>")
    found = read_finding(STUDY, tmp_path)
    assert (found.question, found.heading) == ("Does it rise?", "Bread: rye")
    assert (found.answer, found.findings) == (Answer("Yes.", True, "No."), ("It rose.",))
    assert (found.figure, found.published_as) == (folder / "crumb.svg", "our own")
    assert (found.made_elsewhere, found.links) == ("Baked last year.", {"runs": "http://h/#/experiments/1"})


def test_results_of_an_older_version_have_no_answer_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "bread").mkdir()
    (tmp_path / "bread" / "fit.json").write_text('{"status": "converged"}')
    (tmp_path / "bread" / "logged").write_text("")
    found = read_finding(replace(STUDY, figures={}), tmp_path)
    assert (found.answer, found.figure, found.links) == (None, None, {})


def test_a_study_without_results_is_named_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"bread/fit.json is missing or broken; make it with: snakemake"):
        read_finding(STUDY, tmp_path)
