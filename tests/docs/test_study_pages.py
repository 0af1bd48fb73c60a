"""Every study has a page, or a section of one, that opens with its question, the answer and the evidence."""

from __future__ import annotations

import re

import pytest
from small import REPOSITORY

from shapelaw.scheduling.plan import cost_line, speed_of
from shapelaw.studies.config import load_config, runs_of
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import Study

DOCS = REPOSITORY / "docs"
OPENING = "| question | answer | evidence |"
PLANNED = re.compile(r"scale=laptop studies='\[(\w+)\]' +# ([\d,]+) runs, about ([\d.]+) hours of one core")


def opening(study: Study) -> str:
    """The page, or its section, up to the next heading."""
    page, _, anchor = study.verdict.partition("#")
    parts = re.split(r"^(#+ .*)$", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        name = re.sub(r"[^\w -]", "", heading.lstrip("# ").lower()).replace(" ", "-")
        if not anchor or name == anchor:
            return text
    raise AssertionError(f"{study.verdict} is no section")


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_it_opens_with_question_answer_and_evidence(study: Study) -> None:
    lines = opening(study).strip().splitlines()
    assert lines[0] == OPENING, study.verdict
    rows = [re.split(r" *(?<!\\)\| *", line.strip("| ")) for line in lines[2:] if line.startswith("|")]
    answers = [row[1] for row in rows if row[0].startswith(study.question)]
    assert len(answers) == 1, f"{study.verdict} must answer: {study.question}"
    assert "**" in answers[0], "the answer itself is in bold"


def test_readme_and_results_lead_to_every_page() -> None:
    for text, folder in ((REPOSITORY / "README.md", "docs/"), (DOCS / "results.md", "")):
        linked = re.findall(r"\]\(([^)#]*)[)#]", text.read_text(encoding="utf-8"))
        for study in STUDIES.values():
            assert folder + study.verdict.partition("#")[0] in linked, f"{text.name}: {study.name}"


def test_what_is_not_answered_has_its_command_and_its_planned_cost() -> None:
    waiting = {study.name for study in STUDIES.values() if "Not answered yet" in opening(study)}
    assert waiting
    for name in waiting:
        text = (DOCS / STUDIES[name].verdict.partition("#")[0]).read_text(encoding="utf-8")
        planned = {study: (runs, hours) for study, runs, hours in PLANNED.findall(text)}
        config = load_config(
            {"scale": "laptop", "studies": [name]}, REPOSITORY / "workflow" / "scales", REPOSITORY
        )
        runs = list(runs_of(config, name, REPOSITORY).values())
        line = cost_line(name, runs, config.execution, speed_of(config, REPOSITORY))
        assert planned[name][0] == f"{len(runs)}"
        assert f"about {planned[name][1]} hours of one device" in line
        overview = (DOCS / "results.md").read_text(encoding="utf-8")
        assert f"Not answered yet: {len(runs)} runs wait." in overview
