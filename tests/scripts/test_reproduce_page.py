"""docs/reproduce.md is what the registry and the scales say."""

import re

from small import REPOSITORY

from reproduce_page import PAGE, PICTURES, POINTS, reproduce_page
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import OURS

TEXT = (REPOSITORY / PAGE).read_text(encoding="utf-8")


def test_the_page_is_up_to_date() -> None:
    assert reproduce_page() == TEXT, f"{PAGE} is out of date; write it anew: python scripts/reproduce_page.py"


def test_every_figure_of_a_paper_stands_beside_ours_with_its_file() -> None:
    for study in STUDIES.values():
        for figure, source in study.figures.items():
            if not source.startswith(OURS) and study.name != "committed_runs":
                assert re.search(rf"\| {re.escape(source)} \| .*`results/{study.name}/{figure}.svg`", TEXT)


def test_what_the_page_names_is_there_and_of_a_study() -> None:
    figures = {f"{study.name}/{figure}" for study in STUDIES.values() for figure in study.figures}
    assert (PICTURES.keys() | POINTS.keys()) <= figures
    for name in PICTURES.values():
        assert (REPOSITORY / "docs" / "figures" / f"{name}.svg").is_file()
    for points in POINTS.values():
        assert (REPOSITORY / "workflow" / "reference" / points.rpartition(":")[2]).is_file()


def test_every_verdict_stands_somewhere() -> None:
    for study in STUDIES.values():
        page, _, section = study.verdict.partition("#")
        text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        named = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not section or section in named, study.verdict
