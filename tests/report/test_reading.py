"""Tables as a reader sees them: in words, in one format a column, in HTML, Markdown and LaTeX."""

import math
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from browsers import needs_browser, started

from shapelaw.report.reading import LONG, PREAMBLE, latex_of, markdown_of, reading_of
from shapelaw.report.write import Table, write_table

NAN = math.nan
FITTED = pd.DataFrame(
    {
        "vocab_size": [257, 2000, 2000],
        "embedding_rank": pd.array([8, None, 16], dtype="Int64"),
        "block_params": [6912.0, 12290.0, 1e6],
        "test_loss": [1.44121, 2.0, NAN],
        "test_loss_err": [0.00371, NAN, NAN],
        "width": [48.31, 51.0, NAN],
        "width_low": [45.12, NAN, NAN],
        "width_high": [51.98, NAN, NAN],
        "p_holm": [0.0471, 1e-9, NAN],
        "verdict": ["a|b & c_d L⁴", "50% of $1 #2 {x}", None],
    }
)


@pytest.mark.parametrize(
    ("columns", "formats", "texts"),
    [
        ({"x": [6912.0, 12290.0]}, {}, ["6,912", "12,290"]),
        ({"x": [0.123456, 12.3]}, {}, ["0.12", "12.30"]),
        ({"x": [0.123456, 12.3]}, {"x": ".2g"}, ["0.1", "12.3"]),
        ({"x": [1e-5, 12.3]}, {}, ["1.000e-05", "1.230e+01"]),
        ({"x": [0.5, math.inf]}, {}, ["0.5000", "∞"]),
        ({"x": [3.0e11], "x_err": [2e10]}, {}, ["3.00e11 ± 0.20e11"]),
        (
            {"x": [NAN, 5.0], "x_low": [2.0, 4.0], "x_high": [math.inf, 6.0]},
            {},
            ["above 2.0", "5.0 (4.0 to 6.0)"],
        ),
        ({"size_low": [10.0], "size_high": [20.0]}, {}, ["10.0 to 20.0"]),
        ({"quantity": ["a", "b"], "ours": [0.123456, 1e6]}, {}, ["0.1235", "1,000,000"]),
    ],
)
def test_a_column_keeps_its_format_in_all_rows(columns, formats, texts) -> None:
    assert reading_of(pd.DataFrame(columns), formats).texts.iloc[:, -1].tolist() == texts


def test_rows_that_say_nothing_are_counted_by_their_reason() -> None:
    rows = pd.DataFrame({"value": [NAN, 1.0, NAN, NAN], "err": [NAN, 0.1, NAN, NAN]})
    rows["status"] = ["no noise", "measured", "too few sizes", "no noise"]
    reading = reading_of(rows, {}, counted=True)
    assert reading.texts.to_dict("list") == {"value": ["1.00 ± 0.10"]}
    assert "3 of 4 rows have no value and are not listed: no noise (2), too few sizes (1)." in reading.note
    nothing = reading_of(rows[rows["value"].isna()], {}, counted=True)
    assert nothing.note.endswith("No rows.")
    assert markdown_of(nothing, nothing.note) == f"{nothing.note}\n"
    assert latex_of(nothing, "None.", "tab:x") == "% tab:x: None.\n"


def test_markdown_and_latex_are_escaped() -> None:
    reading = reading_of(FITTED, {})
    markdown = markdown_of(reading, "Shapes.")
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert markdown.startswith("Shapes.\n\n")
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}
    assert r"a\|b & c_d" in markdown
    latex = latex_of(reading, "Shapes of 95%.", "tab:t")
    assert r"a|b \& c\_d" in latex
    assert r"50\% of \$1 \#2 \{x\}" in latex
    assert r"\caption{Shapes of 95\%.}" in latex
    assert r"\label{tab:t}" in latex


def test_latex_aligns_numbers_by_siunitx_and_breaks_a_long_table() -> None:
    latex = latex_of(reading_of(FITTED, {}), "Shapes.")
    assert "S[separate-uncertainty, table-format=1.4(2)]" in latex
    assert r"257 & 8 & 6912 & 1.4412 +- 0.0037 & \num{48.3} (\num{45.1} to \num{52.0}) & 0.047" in latex
    assert r"2000 & {full rank} & 12290 & 2.000 & \num{51.0} & {$<$ 0.001}" in latex
    assert latex.count(r"\begin{table}") == latex.count(r"\toprule") == 1
    long = latex_of(reading_of(pd.concat([FITTED] * LONG), {}), "Shapes.")
    assert long.count(r"\begin{longtable}") == long.count(r"\endfirsthead") == 1
    assert r"\begin{table}" not in long


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_latex_compiles_and_stays_within_the_page(tmp_path: Path) -> None:
    tables = [FITTED, pd.concat([FITTED] * LONG)]
    body = "\n".join(latex_of(reading_of(table, {}), "Shapes, ± of 95%.") for table in tables)
    head = r"\documentclass{article}\usepackage[margin=2cm]{geometry}" + PREAMBLE.removeprefix("% needs ")
    (tmp_path / "t.tex").write_text(f"{head}\\begin{{document}}\n{body}\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


class TestBrowser:
    pytestmark = needs_browser

    def test_a_page_sorts_and_its_header_and_first_column_stay(self, tmp_path: Path) -> None:
        table = pd.concat([FITTED] * LONG, ignore_index=True).assign(
            width=lambda rows: rows.index * 37.0 % 101
        )
        (_, page), *_ = write_table(tmp_path / "sizes", "study", Table(table, "Sizes."))
        with started(tmp_path / "profile") as browser:
            for width in (400, 1280):
                size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                browser.get(page.as_uri())
                assert browser.execute_script("return document.documentElement.scrollWidth") <= width
                browser.execute_script("document.querySelector('.scroll').scrollTo(200, 500)")
                head, first, box = browser.execute_script(
                    "return ['thead th:nth-child(2)', 'tbody tr:nth-child(30) th', '.scroll']"
                    ".map(of => document.querySelector(of).getBoundingClientRect())"
                )
                assert head["top"] == pytest.approx(box["top"], abs=1)
                assert first["left"] == pytest.approx(box["left"], abs=1)
            shown = "return [...document.querySelectorAll('tbody tr')].map(row => row.cells[4].textContent)"
            click = "document.querySelectorAll('thead button')[4].click()"
            browser.execute_script(click)
            rising = [float(text.split()[0]) for text in browser.execute_script(shown)]
            assert rising == sorted(rising)
            browser.execute_script(click)
            assert [float(text.split()[0]) for text in browser.execute_script(shown)] == sorted(rising)[::-1]
            assert not browser.get_log("browser")
