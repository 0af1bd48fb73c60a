"""Tables in the pages are those that the committed results give."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run_here
from small import REPOSITORY, SCRIPTS

from page_tables import MADE, cell_of, pages, table_of, written
from shapelaw.errors import UserError

RUNS = """depth,width,loss,steps
1,16,2.5,100
1,16,2.7,100
2,16,2.25,100
2,32,,100
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("page_tables.ROOT", tmp_path)
    (tmp_path / "runs.csv").write_text(RUNS, encoding="utf-8")
    return "runs.csv"


@pytest.mark.slow
def test_each_table_is_that_of_the_committed_results() -> None:
    done = run_here(SCRIPTS / "page_tables.py", "--check", cwd=REPOSITORY)
    assert done.returncode == 0, (
        f"{done.stdout}{done.stderr}\nWrite them again: python scripts/page_tables.py"
    )


def test_the_pages_with_verdicts_have_tables() -> None:
    with_tables = {page.name for page in pages()}
    assert with_tables >= {"depth_width.md", "ranks.md", "memorization.md", "degrees.md"}


def test_every_command_has_its_runs() -> None:
    for command in MADE.values():
        for part in command:
            assert not isinstance(part, Path) or part.is_file(), part


def test_a_row_for_each_row(runs: str, tmp_path: Path) -> None:
    asked = {"from": runs, "where": "depth == 2", "columns": {"d": "{width}", "loss": "{loss:.1f}"}}
    assert table_of(asked, tmp_path) == "| d | loss |\n| --- | --- |\n| 16 | 2.2 |\n| 32 | – |\n"


def test_a_column_for_each_value_of_means(runs: str, tmp_path: Path) -> None:
    asked = {
        "from": runs,
        "mean_over": ["depth", "width"],
        "rows": "{width}",
        "across": "L = {depth}",
        "cell": "{loss:.2f}",
        "corner": "width",
    }
    lines = table_of(asked, tmp_path).splitlines()
    assert lines[0] == "| width | L = 1 | L = 2 |"
    assert lines[2:] == ["| 16 | 2.60 | 2.25 |", "| 32 | – | – |"]


def test_what_stands_between_the_comments_is_replaced(runs: str, tmp_path: Path) -> None:
    page = f"Before.\n\n<!-- table\nfrom: {runs}\ncolumns: {{L: '{{depth}}'}}\n-->\nold\n<!-- end -->\n\nAfter.\n"
    new = written(page, tmp_path)
    assert "old" not in new
    assert new.startswith("Before.\n")
    assert new.endswith("<!-- end -->\n\nAfter.\n")
    assert written(new, tmp_path) == new


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"from": "nothing.csv", "columns": {}}, "no table"),
        ({"from": "runs.csv", "columns": {"L": "{layers}"}}, "layers"),
        ({"from": "runs.csv", "where": "layers == 1", "columns": {"L": "{depth}"}}, "layers"),
        ({"from": "runs.csv", "where": "depth == 9", "columns": {"L": "{depth}"}}, "no row"),
    ],
)
def test_a_table_that_cannot_be_made_is_a_sentence(
    asked: dict[str, object], said: str, runs: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said):
        table_of(asked, tmp_path)


def test_a_missing_value_is_a_dash() -> None:
    assert cell_of("{x:.2f}", {"x": float("nan")}) == "–"
    assert cell_of("transition", {"status": "too noisy", "bound": float("nan"), "side": None}) == "too noisy"
