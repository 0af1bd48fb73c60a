"""The page that answers for a size says what the command says."""

import re
from pathlib import Path

import pytest
from commands import run_here
from small import REPOSITORY, SCRIPTS

from answer_page import CHECKS, FIGURE, PAGE, figure, page_of, tables
from shapelaw.errors import UserError

TEXT = (REPOSITORY / PAGE).read_text(encoding="utf-8")


def test_the_page_s_generated_parts_are_up_to_date() -> None:
    assert page_of(TEXT) == TEXT, f"{PAGE} is out of date; write it anew: python scripts/answer_page.py"


def test_the_output_shown_is_the_command_s() -> None:
    command = re.search(
        r"```sh\nshapelaw shape (.*)\n```\n\n<!-- example.*-->\n```text\n((?:.*\n)*?)```", TEXT
    )
    assert command is not None
    done = run_here(SCRIPTS / "shape.py", *command[1].split(), cwd=REPOSITORY)
    assert done.stdout == command[2]


def test_a_page_without_a_marker_is_a_sentence() -> None:
    with pytest.raises(UserError, match="has no <!-- checks"):
        page_of(TEXT.replace("<!-- checks", "<!-- none"))


def test_every_part_is_in_the_page_and_its_files_are_there() -> None:
    assert {name for name in tables() if f"<!-- {name}:" in TEXT} == set(tables())
    assert (REPOSITORY / CHECKS).is_file()
    assert (REPOSITORY / FIGURE).is_file()
    assert Path("docs") / "figures" / FIGURE.name == FIGURE


def test_the_figure_has_a_curve_its_band_and_shipped_models() -> None:
    (axes,) = figure().axes
    labels = [text.get_text() for text in axes.texts]
    assert "Llama-3.2-1B" in labels
    assert len(labels) >= 8
    (curve,) = (line for line in axes.lines if line.get_label().startswith("cost"))
    assert min(curve.get_ydata()) == pytest.approx(0.0, abs=2e-5)


def test_the_readme_s_answer_is_the_page_s() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```sh\nshapelaw shape .*\n```\n\n```text\n((?:.*\n)*?)```", readme)
    assert shown is not None
    assert [line for line in shown[1].splitlines() if line not in TEXT] == []


def test_what_pages_show_of_a_fit_is_the_command_s(tmp_path: Path) -> None:
    runs = "docs/results/laptop_depth_width.parquet"
    said = run_here(SCRIPTS / "fit_surface.py", runs, "--out", tmp_path, cwd=REPOSITORY).stdout.splitlines()
    for page in ("README.md", "docs/own_runs.md"):
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        shown = re.search(rf"```sh\nshapelaw fit {re.escape(runs)}.*\n```\n\n```.*\n((?:.*\n)*?)```", text)
        assert shown is not None, page
        assert [line for line in shown[1].splitlines() if line not in [*said, "..."]] == [], page
