"""Tables and figures of the pages are those that the committed results give."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from golden_tables import COMMANDS, golden, tables_of, words_of
from pass_rates import TABLE
from small import REPOSITORY

from page_tables import MADE, cell_of, main, pages, table_of, written
from shapelaw.errors import UserError
from shapelaw.report.plots import save_figure
from shapelaw.studies.assumptions.results import DRAWN, pass_rate_chart

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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of tables that commands make: those that tests/test_tables.py holds them to, or made here."""
    folder, kept = tmp_path_factory.mktemp("made"), {words: name for name, words in COMMANDS.items()}
    for name, command in MADE.items():
        words = words_of(command)
        tables = golden(kept[words]) if words in kept else tables_of(words, folder / "out", REPOSITORY)
        for table, text in tables.items():
            path = folder / name / f"{table}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        shutil.rmtree(folder / "out", ignore_errors=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_each_table_is_that_of_the_committed_results(page: Path, made: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert written(text, made) == text, "write the tables again: docs/generators/page_tables.py"


def test_a_check_names_the_pages_that_differ_and_changes_none(
    runs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = f"<!-- table\nfrom: {runs}\ncolumns: {{L: '{{depth}}'}}\n-->\n"
    (tmp_path / "late.md").write_text(f"{table}old\n<!-- end -->\n", encoding="utf-8")
    (tmp_path / "answer.md").write_text("As it is.", encoding="utf-8")
    for page in ("PAGE", "EVIDENCE"):
        monkeypatch.setattr(f"answer_page.{page}", Path("answer.md"))
    monkeypatch.setattr("answer_page.page_of", lambda text, page: text)
    monkeypatch.setattr("page_tables.pages", lambda: [tmp_path / "late.md"])
    monkeypatch.setattr("sys.argv", ["page_tables.py", "--check"])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert capsys.readouterr().out == "Out of date: late.md\n"
    assert "old" in (tmp_path / "late.md").read_text(encoding="utf-8")


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
    assert (
        cell_of("transition", {"status": "too noisy", "bound": float("nan"), "side": None})
        == "too noisy for an estimate"
    )


TABLE_OF_RATES = pd.read_csv(TABLE)


def test_each_panel_has_all_tolerances_at_the_same_sizes() -> None:
    layers = TABLE_OF_RATES.groupby(["model", "weights", "layer"])
    assert layers.ngroups == 10
    for _, mine in layers:
        rates = mine.pivot_table(index="size", columns="tolerance", values="rate")
        assert set(rates) == set(DRAWN)
        assert rates.notna().all(axis=None)
        published = mine[mine["tolerance"].isna()]
        assert published["size"].tolist() == rates.index.tolist()
        # a looser tolerance counts fewer subsets as independent
        assert (rates[min(DRAWN)] >= rates[max(DRAWN)]).all()


@pytest.mark.slow
def test_the_committed_figure_is_of_these_numbers(tmp_path: Path) -> None:
    drawn, _ = save_figure(pass_rate_chart(TABLE_OF_RATES).figure(), tmp_path / "drawn")
    assert drawn.read_bytes() == (REPOSITORY / "docs/figures/assumptions_pass_rate.svg").read_bytes()
