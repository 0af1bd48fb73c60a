"""docs/reproduce.md is what the registry and the scales say."""

import re

from small import REPOSITORY

from reproduce_page import PAGE, reproduce_page
from shapelaw.studies.registry import STUDIES

TEXT = (REPOSITORY / PAGE).read_text(encoding="utf-8")


def test_the_page_is_up_to_date() -> None:
    assert reproduce_page() == TEXT, f"{PAGE} is out of date; write it anew: python scripts/reproduce_page.py"


def test_every_figure_has_its_place_in_the_papers_and_its_file() -> None:
    for study in STUDIES.values():
        for figure, source in study.figures.items():
            assert f"| {source} | `results/{study.name}/{figure}.svg` |" in TEXT


def test_every_verdict_stands_somewhere() -> None:
    for study in STUDIES.values():
        page, _, section = study.verdict.partition("#")
        text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        named = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not section or section in named, study.verdict
