"""The one writer of a study's tables, figures and fit.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from shutil import copyfile
from typing import Any

import pandas as pd

from shapelaw.errors import PartFailed, Parts
from shapelaw.report.charts import Chart
from shapelaw.report.plots import notice, save_figure
from shapelaw.report.reading import PREAMBLE, Reading, latex_of, markdown_of, reading_of, text_of
from shapelaw.report.tables import grouped, table_page, writing_to

ANSWER, NOTES, FINDINGS = "answer", "notes", "findings"  # keys of fit.json that the report reads
FAILED = "failed"  # key of fit.json that lists what failed, and the status of a fit that did
TABLES = "tables"  # name of the files that have all tables
Drawn = Chart | str  # a figure; or the reason why there is none


def _as_it_is(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def without(*columns: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """How a table is read of which some columns stand in its CSV file alone."""
    return lambda frame: frame.drop(columns=[name for name in columns if name in frame])


@dataclass(frozen=True)
class Table:
    """A table and how it is read.

    Attributes:
        frame: its CSV file.
        caption: a sentence above it.
        formats: formats of its columns (`reading_of`).
        read: makes the frame that is read from that of the CSV file.
        counted: rows without their main value are counted and not listed (`reading_of`).
    """

    frame: pd.DataFrame
    caption: str
    formats: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[pd.DataFrame], pd.DataFrame] = _as_it_is
    counted: bool = False

    @cached_property
    def reading(self) -> Reading:
        """The table as it is read."""
        return reading_of(self.read(self.frame), self.formats, self.counted, self.caption)


@dataclass(frozen=True)
class TableOf:
    """A table before there is an analysis: `frame` makes its frame from one; the rest is as in `Table`."""

    frame: Callable[[Any], pd.DataFrame]
    caption: str
    formats: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[pd.DataFrame], pd.DataFrame] = _as_it_is
    counted: bool = False

    def of(self, analysis: Any) -> Table:
        """The table from an analysis."""
        return Table(self.frame(analysis), self.caption, self.formats, self.read, self.counted)


def tables_of(specifications: Mapping[str, TableOf], names: Iterable[str], analysis: Any) -> dict[str, Table]:
    """The tables of some names from an analysis."""
    return {name: specifications[name].of(analysis) for name in names}


@dataclass(frozen=True)
class Answer:
    """A study's answer to its question, one line of the report's first page.

    Attributes:
        sentence: the answer, short: yes, no, not at these sizes, or what was asked for, with one number and its
            interval; where the runs don't decide, why they don't.
        decided: the runs answer the question, with yes or with no.
        published: the answer that was published, in the same words; empty where there is none.
        more: what belongs to the answer beyond that, in sentences; a workflow's last lines leave it out.
        partly: a part of the question stays undecided, as the sentence says.
    """

    sentence: str
    decided: bool
    published: str = ""
    more: str = ""
    partly: bool = False

    @property
    def words(self) -> str:
        """The whole answer, and that it is none where the runs don't decide."""
        return f"{'' if self.decided else 'Undecided: '}{self.sentence} {self.more}".strip()


@dataclass(frozen=True)
class Results:
    """A study's results before they are files.

    Attributes:
        tables: tables by name.
        figures: figures by name; a text where there is nothing to draw: the reason, which is written in the place of
            the figure, since Snakemake wants its files.
        fit: content of fit.json: plain JSON values without NaN, among them `status`.
        summary: what no table says, in sentences, one per line.
        left_out: for each declared table or figure that can't be made from this input, the reason.
        answer: the answer to the study's question; None for an analysis that no study of the registry declares.
        parts: what of the analysis failed; a table or figure that did has its reason in its place.
        notes: sentences on what of the input was left out or read in another way.
    """

    tables: Mapping[str, Table]
    figures: Mapping[str, Drawn]
    fit: Mapping[str, Any]
    summary: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    answer: Answer | None = None
    parts: Parts = field(default_factory=Parts)
    notes: Sequence[str] = ()

    @property
    def fit_file(self) -> dict[str, Any]:
        """The content of fit.json as it is written: the fit, what failed, and for the report answer and findings."""
        failed = [{"part": part, "reason": why} for part, why in self.parts.failed.items()]
        answered = {} if self.answer is None else {ANSWER: asdict(self.answer)}
        notes = {NOTES: list(self.notes)} if self.notes else {}
        findings = {FINDINGS: [*self.summary.splitlines(), *self.parts.sentences]}
        return {**self.fit, **({FAILED: failed} if failed else {}), **answered, **notes, **findings}

    def after(self, notes: Sequence[str]) -> Results:
        """The same results, with notes on their input, which are the first findings too."""
        return replace(self, summary="\n".join([*notes, self.summary]), notes=notes) if notes else self


class Made(dict[str, Table]):
    """Tables by name, without those that failed."""

    def __missing__(self, name: str) -> Table:
        raise PartFailed(f"it needs table {name}, which failed")


def assembled(
    parts: Parts,
    tables: Mapping[str, Callable[[], Table]],
    figures: Mapping[str, Callable[[Made], Drawn]],
    findings: Mapping[str, Callable[[Made], Iterable[str]]],
    fit: Callable[[Made], Mapping[str, Any]],
    answer: Callable[[Made], Answer] | None = None,
) -> Results:
    """The results of an analysis whose parts are made one by one, the tables first.

    Args:
        parts: what of the analysis failed before.
        findings: sentences, by what they are on.
        answer: None for an analysis that no study of the registry declares.
    """
    found = {name: parts.attempt(f"table {name}", make) for name, make in tables.items()}
    made = Made((name, table) for name, table in found.items() if table is not None)
    drawn = {name: parts.attempt(f"figure {name}", partial(draw, made)) for name, draw in figures.items()}
    told = [
        line
        for name, tell in findings.items()
        for line in parts.attempt(f"sentences on {name}", partial(_listed, tell, made)) or ()
    ]
    content = parts.attempt("fit", lambda: fit(made))
    answered = answer and parts.attempt("answer", lambda: answer(made))
    failed = parts.failed
    return Results(
        {name: made.get(name) or _no_table(failed[f"table {name}"]) for name in tables},
        {name: failed[f"figure {name}"] if figure is None else figure for name, figure in drawn.items()},
        {"status": FAILED} if content is None else content,
        "\n".join(told),
        answer=Answer(f"Not told: {failed['answer']}", False) if answer and answered is None else answered,
        parts=parts,
    )


def _no_table(why: str) -> Table:
    """What stands where a table failed: the reason."""
    return Table(pd.DataFrame({FAILED: [why]}), "This table failed.")


class UndeclaredResults(Exception):
    """A study made other tables or figures than it declares, or does not answer its question."""


def _listed(tell: Callable[[Made], Iterable[str]], made: Made) -> list[str]:
    return list(tell(made))


def check_declared(results: Results, tables: Collection[str], figures: Collection[str]) -> None:
    """Compare the names of results with those that a study declares.

    Raises:
        UndeclaredResults: a name is missing or was not declared, or there is no answer.
    """
    wrong = []
    for kind, made, declared in (("table", results.tables, tables), ("figure", results.figures, figures)):
        lacking = {*declared} - {*made} - {*results.left_out}
        wrong += [f"{kind} {name} is not declared" for name in sorted({*made} - {*declared})]
        wrong += [f"{kind} {name} is declared and was not made" for name in sorted(lacking)]
    if results.answer is None:
        wrong.append("the study's question has no answer (Results.answer)")
    if wrong:
        raise UndeclaredResults("; ".join(wrong))


def show_results(results: Results, out: Path, study: str, carrying: Iterable[str] = ()) -> None:
    """Write the results into a folder, and print the answer, the tables that carry it and what no table says.

    Args:
        carrying: names of these tables, of which the first rows are printed, as on the report's first page.

    Raises:
        UserError: the folder can't be written.
    """
    write_results(results, out, study)
    if results.answer is not None:
        print(f"{results.answer.words}\n")
    for name in carrying:
        if name in results.tables:
            print(text_of(results.tables[name].reading, name, out / f"{name}.csv"))
    for line in (*results.summary.splitlines(), *results.parts.sentences):
        print(line)
    undrawn = {f"figure {name}": why for name, why in results.figures.items() if isinstance(why, str)}
    nothing = {**results.left_out, **undrawn}.items()
    known = ((why.removesuffix("."), name) for name, why in nothing if name not in results.parts.failed)
    for why, names in grouped(known).items():
        print(f"No {'; '.join(names)}: {why}.")
    print(f"Tables and figures are in {out}.")


def write_results(results: Results, out: Path, study: str) -> list[Path]:
    """Write results into a folder and return the paths of the files.

    A table is .csv and .html, a figure .svg and .png; tables.md and tables.tex have all tables, fit.json the rest. What
    can't be written as it is, such as a figure that can't be drawn, has its reason in its place (`Results.parts`).

    Args:
        study: name of the study, with which LaTeX labels begin.

    Raises:
        UserError: the folder can't be written.
    """
    with writing_to(out):
        files: list[Path] = []
        markdown, latex = [], []
        for name, table in results.tables.items():
            write = partial(write_table, out / name, study)
            written = results.parts.attempt(f"table {name}", partial(write, table))
            paths, text, source = written or write(_no_table(results.parts.failed[f"table {name}"]))
            files += paths
            markdown.append(text)
            latex.append(source)
        if results.tables:
            for ending, texts in ((".md", markdown), (".tex", [PREAMBLE, *latex])):
                files.append(out / f"{TABLES}{ending}")
                files[-1].write_text("\n".join(texts), encoding="utf-8")
        saved: dict[int, list[Path]] = {}
        for name, figure in results.figures.items():
            if id(figure) not in saved:
                save = partial(_save, out / name)
                drawn = results.parts.attempt(f"figure {name}", partial(save, figure))
                saved[id(figure)] = drawn or save(results.parts.failed[f"figure {name}"])
                files += saved[id(figure)]
            else:  # drawn under another name
                files += [copyfile(file, out / f"{name}{file.suffix}") for file in saved[id(figure)]]
        fit = out / "fit.json"
        fit.write_text(json.dumps(results.fit_file, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        return [*files, fit]


def write_table(path: Path, study: str, table: Table) -> tuple[list[Path], str, str]:
    """Write PATH.csv with every digit and PATH.html to read; the index is left out.

    Args:
        path: path without suffix; a dot in the name is kept. Missing folders are made.

    Returns:
        The files, and its Markdown and LaTeX, which stand in one file with the other tables'.
    """
    reading, frame = table.reading, table.frame
    caption = f"{table.caption} {reading.note}".strip()
    label = f"tab:{study}-{path.name}".replace("_", "-")
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_name(path.name + suffix) for suffix in (".csv", ".html")]
    frame.to_csv(files[0], index=False)
    files[1].write_text(table_page(path, caption, reading, frame), encoding="utf-8")
    return files, f"## {path.name}\n\n{markdown_of(reading, caption)}", latex_of(reading, caption, label)


def _save(path: Path, figure: Drawn) -> list[Path]:
    """Draw a figure of results and save it."""
    return save_figure(notice(figure) if isinstance(figure, str) else figure.figure(), path)
