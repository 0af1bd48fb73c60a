"""Every study has a page, or a section of one, that opens with its question, the answer and the evidence."""

from __future__ import annotations

import re

import pytest
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.scheduling.plan import cost_line, speed_of
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


PLANS = [
    (path.name, *found)
    for path in sorted((DOCS / "results").glob("*.md"))
    for found in PLANNED.findall(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("page", "study", "count", "hours"), PLANS, ids=[f"{plan[1]}" for plan in PLANS])
def test_the_planned_cost_of_a_study_is_that_of_its_page(
    page: str, study: str, count: str, hours: str
) -> None:
    config = load_config(
        {"scale": "laptop", "studies": [study]}, REPOSITORY / "workflow" / "scales", REPOSITORY
    )
    runs = list(runs_of(config, study, REPOSITORY).values())
    line = cost_line(study, runs, config.execution, speed_of(config, REPOSITORY))
    assert count.replace(",", "") == f"{len(runs)}", page
    assert f"about {hours} hours of one device" in line, page


def test_studies_with_runs_at_scale_laptop_state_their_cost() -> None:
    assert {study for _, study, _, _ in PLANS} >= {"vocabulary", "embedding_rank", "attention_ratio"}
