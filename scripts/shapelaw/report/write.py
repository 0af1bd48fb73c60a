"""The one writer of a study's tables, figures and fit.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from shapelaw.report.charts import Chart
from shapelaw.report.plots import notice, save_figure
from shapelaw.report.tables import latex_of, markdown_of, write_table, writing_to

ANSWER, FINDINGS = "answer", "findings"  # keys of fit.json that the report reads
TABLES = "tables"  # name of the files that have all tables


@dataclass(frozen=True)
class Table:
    """A table, its caption, and the formats of its columns (see `write_table`)."""

    frame: pd.DataFrame
    caption: str
    formats: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableOf:
    """A table before there is an analysis: how its frame is made from one, its caption, and formats of its columns."""

    frame: Callable[[Any], pd.DataFrame]
    caption: str
    formats: Mapping[str, str] = field(default_factory=dict)


def tables_of(specifications: Mapping[str, TableOf], names: Iterable[str], analysis: Any) -> dict[str, Table]:
    """The tables of some names from an analysis; formats of columns that a table lacks there are left out."""
    tables = {}
    for name in names:
        one = specifications[name]
        frame = one.frame(analysis)
        formats = {column: spec for column, spec in one.formats.items() if column in frame}
        tables[name] = Table(frame, one.caption, formats)
    return tables


@dataclass(frozen=True)
class Answer:
    """A study's answer to its question, one line of the report's first page.

    Attributes:
        sentence: the answer, short: yes, no, not at these sizes, or what was asked for, with one number and its
            interval; where the runs don't decide, why they don't.
        decided: the runs answer the question, with yes or with no.
        published: the answer that was published, in the same words; empty where there is none.
        more: what belongs to the answer beyond that, in sentences; a workflow's last lines leave it out.
    """

    sentence: str
    decided: bool
    published: str = ""
    more: str = ""


@dataclass(frozen=True)
class Results:
    """A study's results before they are files.

    Attributes:
        tables: tables by name.
        figures: figures by name, as specifications or drawn; a text where there is nothing to draw: the reason, which
            is written in the place of the figure, since Snakemake wants its files.
        fit: content of fit.json: plain JSON values without NaN, among them `status`.
        summary: the findings in sentences, one a line.
        left_out: for each declared table or figure that can't be made from this input, the reason.
        answer: the answer to the study's question; None for an analysis that no study of the registry declares.
    """

    tables: Mapping[str, Table]
    figures: Mapping[str, Chart | Figure | str]
    fit: Mapping[str, Any]
    summary: str
    left_out: Mapping[str, str] = field(default_factory=dict)
    answer: Answer | None = None

    @property
    def fit_file(self) -> dict[str, Any]:
        """The content of fit.json as it is written: the fit, with the answer and the findings for the report."""
        answered = {} if self.answer is None else {ANSWER: asdict(self.answer)}
        return {**self.fit, **answered, FINDINGS: self.summary.splitlines()}

    def after(self, notes: Sequence[str]) -> Results:
        """The same results, with sentences before the findings."""
        return replace(self, summary="\n".join([*notes, self.summary])) if notes else self


class UndeclaredResults(Exception):
    """A study made other tables or figures than it declares, or does not answer its question."""


def check_declared(results: Results, tables: Collection[str], figures: Collection[str]) -> None:
    """Compare the names of results with those that a study declares.

    Raises:
        UndeclaredResults: a name is missing or was not declared, or there is no answer.
    """
    pairs = (("table", results.tables, tables), ("figure", results.figures, figures))
    wrong = [
        f"{kind} {name} {said}"
        for kind, made, declared in pairs
        for names, said in (
            (set(made) - set(declared), "is not declared"),
            (set(declared) - set(made) - set(results.left_out), "is declared and was not made"),
        )
        for name in sorted(names)
    ]
    if results.answer is None:
        wrong.append("the study's question has no answer (Results.answer)")
    if wrong:
        raise UndeclaredResults("; ".join(wrong))


def show_results(results: Results, out: Path, study: str) -> None:
    """Write the results into a folder, and print the findings, what was left out and where the files are.

    Raises:
        UserError: the folder can't be written.
    """
    write_results(results, out, study)
    print(results.summary)
    nothing = {f"figure {name}": why for name, why in results.figures.items() if isinstance(why, str)}
    for name, why in {**results.left_out, **nothing}.items():
        print(f"No {name}: {why.removesuffix('.')}.")
    print(f"Tables and figures are in {out}.")


def write_results(results: Results, out: Path, study: str) -> list[Path]:
    """Write results into a folder and return the paths of the files.

    A table is .csv and .html, a figure .svg and .png; tables.md and tables.tex have all tables, fit.json the rest.

    Args:
        study: name of the study, with which LaTeX labels begin.

    Raises:
        UserError: the folder can't be written.
    """
    with writing_to(out):
        files = []
        markdown, latex = [], []
        for name, table in results.tables.items():
            frame, formats, caption = table.frame, table.formats, table.caption
            files += write_table(frame, out / name, formats=formats, caption=caption)
            markdown.append(f"## {name}\n\n{markdown_of(frame, formats=formats, caption=caption)}")
            label = f"tab:{study}-{name}".replace("_", "-")
            latex.append(latex_of(frame, formats=formats, caption=caption, label=label))
        if results.tables:
            for ending, texts in ((".md", markdown), (".tex", latex)):
                files.append(out / f"{TABLES}{ending}")
                files[-1].write_text("\n".join(texts), encoding="utf-8")
        saved: dict[int, list[Path]] = {}
        for name, figure in results.figures.items():
            if id(figure) not in saved:
                saved[id(figure)] = save_figure(_drawn(figure), out / name)
                files += saved[id(figure)]
            else:  # drawn under another name
                files += [copyfile(file, out / f"{name}{file.suffix}") for file in saved[id(figure)]]
        fit = out / "fit.json"
        fit.write_text(json.dumps(results.fit_file, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        return [*files, fit]


def _drawn(figure: Chart | Figure | str) -> Figure:
    """A figure of results as it is written."""
    if isinstance(figure, str):
        return notice(figure)
    return figure.figure() if isinstance(figure, Chart) else figure
