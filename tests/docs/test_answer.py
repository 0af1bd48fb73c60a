"""The page that answers for a size says what the command says."""

import re
from pathlib import Path

import pytest
from commands import script
from small import REPOSITORY

from answer_page import EVIDENCE, FIGURE, PAGE, page_of, write_figure

TEXT = (REPOSITORY / PAGE).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [PAGE, EVIDENCE], ids=lambda page: page.stem)
def test_a_page_s_generated_parts_are_up_to_date(page: Path) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    assert page_of(text, page) == text, (
        f"{page} is out of date; write it anew: docs/generators/answer_page.py"
    )


def test_the_figure_is_the_committed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("answer_page.ROOT", tmp_path)
    (tmp_path / FIGURE).parent.mkdir(parents=True)
    write_figure()
    assert (tmp_path / FIGURE).read_bytes() == (REPOSITORY / FIGURE).read_bytes()


def test_the_readme_s_answer_is_the_page_s() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```sh\nshapelaw shape .*\n```\n\n```text\n((?:.*\n)*?)```", readme)
    assert shown is not None
    assert [line for line in shown[1].splitlines() if line not in TEXT] == []


def test_what_pages_show_of_a_fit_is_the_command_s(tmp_path: Path) -> None:
    runs = "docs/results/laptop_depth_width.parquet"
    said = script("fit_surface", runs, "--out", tmp_path).stdout.splitlines()
    for page in ("README.md", "docs/advice/own_runs.md"):
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        shown = re.search(rf"```sh\nshapelaw fit {re.escape(runs)}.*\n```\n\n```.*\n((?:.*\n)*?)```", text)
        assert shown is not None, page
        assert [line for line in shown[1].splitlines() if line not in [*said, "..."]] == [], page
