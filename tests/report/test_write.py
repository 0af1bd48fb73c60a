"""Results become files, those that were declared; frames and pages of HTML that need nothing beside themselves."""

import base64
import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from page_parts import pipe_table, with_parts
from shapelaw.errors import UserError
from shapelaw.report.charts import Chart
from shapelaw.report.reading import MISSING, reading_of
from shapelaw.report.tables import table_page
from shapelaw.report.write import (
    Answer,
    Results,
    Table,
    UndeclaredResults,
    check_declared,
    show_results,
    write_results,
    write_table,
)

ANSWER = Answer("Both.", True)


def test_other_results_than_declared_are_refused() -> None:
    table, figure = Table(pd.DataFrame(), ""), Chart([])
    check_declared(Results({"a": table}, {"f": figure}, {}, "", answer=ANSWER), ["a"], ["f"])
    check_declared(Results({}, {"f": figure}, {}, "", {"a": "no runs"}, ANSWER), ["a"], ["f"])
    with pytest.raises(UndeclaredResults, match="table b is not declared; table a is declared and was not"):
        check_declared(Results({"b": table}, {"f": figure}, {}, "", answer=ANSWER), ["a"], ["f"])
    with pytest.raises(UndeclaredResults, match="figure f is declared and was not made"):
        check_declared(Results({"a": table}, {}, {}, "", answer=ANSWER), ["a"], ["f"])
    with pytest.raises(UndeclaredResults, match="no answer"):
        check_declared(Results({"a": table}, {"f": figure}, {}, ""), ["a"], ["f"])


def test_the_answer_and_the_findings_stand_in_fit_json(tmp_path: Path) -> None:
    results = Results({}, {}, {"status": "converged"}, "One.\nTwo.", answer=Answer("Both.", True, "Neither."))
    write_results(results, tmp_path, "study")
    assert json.loads((tmp_path / "fit.json").read_text()) == {
        "status": "converged",
        "answer": {
            "sentence": "Both.",
            "decided": True,
            "published": "Neither.",
            "more": "",
            "partly": False,
        },
        "findings": ["One.", "Two."],
    }


def test_a_figure_with_nothing_to_draw_is_a_sentence_in_its_files_and_in_the_output(tmp_path, capsys) -> None:
    results = Results({}, {"speed": "no threshold is reached"}, {}, "Found.", answer=ANSWER)
    check_declared(results, [], ["speed"])
    show_results(results, tmp_path, "study")
    assert "No figure speed: no threshold is reached.\n" in capsys.readouterr().out
    drawn = (tmp_path / "speed.svg").read_text(encoding="utf-8")
    assert "<!-- No figure: no threshold is reached -->" in drawn
    assert 'id="axes_' not in drawn
    assert (tmp_path / "speed.png").is_file()


def test_the_output_has_the_answer_its_tables_first_rows_and_what_no_table_says(tmp_path, capsys) -> None:
    losses = pd.DataFrame({"depth": range(12), "test_loss": 2.5, "test_loss_err": 0.125})
    tables = {"losses": Table(losses, "Losses."), "others": Table(losses, "More.")}
    results = Results(tables, {}, {}, "No seeds.", answer=Answer("It may.", False, more="Or not."))
    show_results(results, tmp_path, "study", ["losses"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "Undecided: It may. Or not.",
        "",
        "losses:",
        "  depth L    test loss (nats/token)",
    ]
    assert lines[14:] == [
        "        9               2.50 ± 0.12",
        f"2 more rows: {tmp_path / 'losses.csv'}. ± is one standard error.",
        "",
        "No seeds.",
        f"Tables and figures are in {tmp_path}.",
    ]


def test_one_file_has_all_tables_to_read_and_one_all_of_them_for_a_paper(tmp_path: Path) -> None:
    tables = {
        "sizes": Table(pd.DataFrame({"width": [8]}), "Shapes."),
        "seed_noise": Table(pd.DataFrame({"deviation": [0.01234]}), "Noise.", {"deviation": ".1g"}),
    }
    files = write_results(Results(tables, {}, {}, "", answer=ANSWER), tmp_path, "a_study")
    assert sorted(path.name for path in files) == sorted(path.name for path in tmp_path.iterdir())
    of_each = {f"{name}.{ending}" for name in tables for ending in ("csv", "html")}
    assert {path.name for path in files} == of_each | {"tables.md", "tables.tex", "fit.json"}
    markdown, latex = ((tmp_path / f"tables.{ending}").read_text() for ending in ("md", "tex"))
    assert markdown.split("\n\n") == [
        *("## sizes", "Shapes.", "|   width d |\n|----------:|\n|         8 |\n".rstrip()),
        *("## seed_noise", "Noise.", "|   deviation |\n|------------:|\n|        0.01 |\n"),
    ]
    assert [line for line in latex.splitlines() if line.startswith("\\label")] == [
        r"\label{tab:a-study-sizes}",
        r"\label{tab:a-study-seed-noise}",
    ]
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 2


TABLE = pd.DataFrame(
    {
        "model_name": ["a|b & c_d", "50% of $1 #2 {x}"],
        "width": [1234.56789, np.nan],
        "depth": pd.array([12, None], dtype="Int64"),
    }
)


def test_the_csv_keeps_every_digit(tmp_path):
    """Also where the name has a dot."""
    files, _, _ = write_table(tmp_path / "deep" / "v0.5", "study", Table(TABLE, "", {"width": ",.1f"}))
    assert [file.name for file in files] == ["v0.5.csv", "v0.5.html"]
    back = pd.read_csv(files[0])
    assert back["width"][0] == TABLE["width"][0]
    assert back["model_name"].tolist() == TABLE["model_name"].tolist()
    assert list(csv.reader(files[0].open()))[2][1:] == ["", ""]


def test_a_page_shows_rounded_cells_keeps_every_digit_and_needs_nothing_beside_itself() -> None:
    exact = pd.DataFrame({"a <b>": ["x & y", "z"], "width": [1234.5678, None]})
    text = table_page(Path("bread/sizes"), "All <sizes>.", reading_of(exact, {"width": ",.0f"}), exact)
    assert text.startswith("<!doctype html>")
    assert "All &lt;sizes&gt;. 2 rows" in text
    assert ">a &lt;b&gt;</th>" in text
    assert ">x &amp; y</th>" in text
    assert ">1,235</td>" in text
    assert f">{MISSING}</td>" in text
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    file = re.search(r'download="sizes.csv" href="data:text/csv;base64,([^"]+)"', text)
    assert file
    assert base64.b64decode(file[1]).decode() == exact.to_csv(index=False)


def test_what_stands_between_a_page_s_markers_is_made_anew_and_every_part_has_some() -> None:
    text = "Before.\n<!-- one: by hand -->\nold\n<!-- end -->\nAfter, \\1.\n"
    new = with_parts(text, {"one": lambda: pipe_table([("a", "b"), ("1", "\\2")])}, "a.md")
    assert new == text.replace("old", "| a | b |\n|---|---|\n| 1 | \\2 |")
    with pytest.raises(UserError, match=r"a\.md has no <!-- two: "):
        with_parts(text, {"two": str}, "a.md")
