"""Every study has its verdict on a page, which README and the results lead to, and pages count its runs."""

import re

import pytest
from shipped import SCALES, shipped
from small import REPOSITORY
from test_site import anchors

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.jobs.plan import cost_line, speed_of
from shapelaw.specs.runs import Run
from shapelaw.storage.pool import Counts
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import Study

DOCS = REPOSITORY / "docs"
PLANNED = re.compile(r"scale=laptop studies='\[(\w+)\]' +# ([\d,]+) runs, about ([\d.]+) hours of one core")


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_the_verdict_of_a_study_is_a_page_or_a_section_of_one(study: Study) -> None:
    page, _, anchor = study.verdict.partition("#")
    assert (DOCS / page).is_file()
    assert not anchor or anchor in anchors(DOCS / page), study.verdict


def test_readme_and_results_lead_to_every_page() -> None:
    for text, folder in ((REPOSITORY / "README.md", "docs/"), (DOCS / "results.md", "")):
        linked = re.findall(r"\]\(([^)#]*)[)#]", text.read_text(encoding="utf-8"))
        for study in STUDIES.values():
            if study.verdict == "results.md":  # no page of its own yet
                continue
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
    config = load_config({"scale": "laptop", "studies": [study]}, SCALES, REPOSITORY)
    runs = list(runs_of(config, study, REPOSITORY).values())
    line = cost_line(study, Counts(len(runs), 0, 0), runs, config.execution, speed_of(config, REPOSITORY))
    assert count.replace(",", "") == f"{len(runs)}", page
    assert f"about {hours} hours of one device" in line, page


def test_studies_with_runs_at_scale_laptop_state_their_cost() -> None:
    assert {study for _, study, _, _ in PLANS} >= {"vocabulary", "embedding_rank", "attention_ratio"}


PAGE = " ".join((REPOSITORY / "docs" / "cluster.md").read_text(encoding="utf-8").split())


def test_the_papers_grid_is_counted() -> None:
    config = load_config(shipped(scale="paper", extras=[]), SCALES)
    runs = [run for study in config.studies for run in runs_of(config, study, REPOSITORY).values()]
    decoders = [run for run in runs if isinstance(run, Run)]
    largest = max(run.total_params for run in decoders)
    assert (
        f"`--config scale=paper` has {len(decoders)} decoders of up to {largest / 1e6:.0f} million parameters, and "
        f"{len(runs) - len(decoders):,} memorizers besides"
    ) in PAGE
