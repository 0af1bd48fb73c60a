"""What the studies found, read from their fit.json, and the report's first page made of it.

Questions come from the rooms, answers from their analyses; beside each stand the published one, a figure and the
command.

A study's main numbers are metrics of its summary run in MLflow too: `effect.heads_1_to_2`, `best_depth.at_100K`,
`transition_width.depth1_2.V500_r8_H2`: of letters, digits, points and underscores, so that a filter takes each as it
stands; MLflow reads a point before two digits as a number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from shapelaw.campaign.start import PAGE_OF, heading_of, read_json
from shapelaw.campaign.submission import REPEATED
from shapelaw.errors import UserError
from shapelaw.report.reading import FIRST_ROWS
from shapelaw.report.tables import data_uri, first_rows, page
from shapelaw.report.write import ANSWER, FINDINGS, NOTES, Answer
from shapelaw.specs.cost import short_number
from shapelaw.specs.kinds import AnyRun, in_words
from shapelaw.studies.grid.cells import plain, said
from shapelaw.studies.grid.tables import DIFFERENCE
from shapelaw.studies.study import Study

NEWLINE = "\n"
_WIDTH = re.compile(rb'<svg [^>]*\bwidth="([\d.]+)pt"')
# of the page alone and as the first of Snakemake's report, which takes it whole: nothing but .findings is styled; the
# report's own layout is in workflow/report/style.css
FINDINGS_STYLE = """
.findings { max-width: 74rem; margin: 0 auto; padding: .5rem 1rem; color: #1c2733; }
.findings { font: 15px/1.5 system-ui, sans-serif; }
.findings section { border-top: 1px solid #cfd8e1; padding: 1rem 0; }
.findings h2 { font-size: 1.05rem; margin: 0 0 .4rem; line-height: 1.35; }
.findings .study { font-size: .8rem; color: #51606f; margin: 0; }
.findings dl { display: grid; grid-template-columns: 5.4rem minmax(0, 1fr); gap: .25rem .8rem; margin: 0; }
.findings dt { color: #51606f; font-weight: 400; margin: 0; }
.findings dd { margin: 0; padding: 0; }
.findings .undecided { background: #fdf1dc; color: #6b4500; border-radius: .3rem; padding: 0 .4rem; font-weight: 600; }
.findings .elsewhere { background: #e4edf6; color: #17456d; border-radius: .3rem; padding: 0 .4rem; }
.findings code { background: #f2f5f8; padding: .1rem .3rem; border-radius: .2rem; font-size: .85rem; font-weight: 400; }
.findings code { overflow-wrap: anywhere; }
.findings code::before, .findings code::after { content: ""; }
.findings details.figure { margin: .6rem 0 0; }
.findings img { width: 100%; max-width: min(60rem, var(--drawn, 60rem)); }
.findings img { margin: .3rem 0 0; border: 1px solid #e3e8ee; background: #fff; }
.findings ul { margin: .2rem 0; padding-left: 1.2rem; }
.findings li { margin: 0; padding: 0; }
.findings .scroll { overflow-x: auto; }
.findings table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; margin: 0; }
.findings th, .findings td { padding: .2rem .6rem; border-bottom: 1px solid #dde3ea; text-align: left; }
.findings tr { background: #fff; }
.findings tbody th { font-weight: 400; }
.findings section > p { margin: .8rem 0 .3rem; }
.findings details summary { cursor: pointer; color: #51606f; }
@media (max-width: 40rem) { .findings dl { grid-template-columns: minmax(0, 1fr); } }
"""


@dataclass(frozen=True)
class Finding:
    """A study on the first page.

    Attributes:
        heading: its title, and what was trained for it: text, block, steps, number of runs.
        findings: all findings in sentences.
        figure: file of the figure that shows it (.svg); None where it has none.
        links: pages of the runs in MLflow, by name.
        place: the folder of the results of all studies.
        trained: what its runs have in common, in words; empty where that is not known.
        shown: the first rows of the tables that carry the answer, in HTML.
        tables: files of all its tables, relative to `place`.
        lacking: what would decide it, where its runs can't, in sentences.
        submitted: the file of the start that made it; None where it is not known.
        notes: which of its runs the answer leaves out, in sentences.
    """

    study: Study
    heading: str
    answer: Answer
    findings: Sequence[str] = ()
    figure: Path | None = None
    links: dict[str, str] = field(default_factory=dict)
    place: str = "results"
    submitted: Path | None = None
    trained: str = ""
    shown: str = ""
    tables: Sequence[str] = ()
    lacking: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def command(self) -> str:
        """The command that makes the study's results again, by what was submitted where that is known."""
        config = "" if self.submitted is None else f"--config {REPEATED}={self.submitted} "
        return f"snakemake {config}--forcerun {self.study.name} -- {self.place}/{self.study.name}/fit.json"


def findings_page(findings: Sequence[Finding], digest: str = "", others: Sequence[str] = ()) -> str:
    """The whole page, which needs nothing beside itself; workflow/report/workflow.rst puts it into the report.

    Args:
        digest: `Submission.results_digest` of the start that makes it; empty where it is not known.
        others: folders with results of other starts.
    """
    own = [one for one in findings if not one.study.made_elsewhere]
    elsewhere = [one for one in findings if one.study.made_elsewhere]
    decided, partly = (sum(getattr(one.answer, name) for one in own) for name in ("decided", "partly"))
    intro = (
        f"<p>{len(own)} {'question' if len(own) == 1 else 'questions'}, {decided} answered by these "
        f"runs{f' ({partly} in part)' if partly else ''}, "
        f"{len(own) - decided} undecided. Every number comes from the run records in <code>results/runs</code>. "
        "Links to runs open while <code>make ui</code> serves them.</p>"
    )
    if others:
        intro += f"<p>This page is of one start; results of others are in {escape(', '.join(others))}.</p>"
    parts = [f"<h1>What was found</h1>\n{intro}", *map(_section, own)]
    if elsewhere:
        parts += ["<h1>From runs that were trained elsewhere</h1>", *map(_section, elsewhere)]
    body = f'<div class="findings" {PAGE_OF.format(digest)}>\n{NEWLINE.join(parts)}\n</div>'
    return page("What was found", body, style=FINDINGS_STYLE)


def _section(one: Finding) -> str:
    published = escape(one.answer.published) or "nothing on this question"
    if one.trained and one.answer.published:
        published += f" Ours may differ: they are of {escape(one.trained)}."
    rows = {
        "Ours": _ours(one),
        "Its runs": " ".join(map(escape, one.notes)),
        "To decide": "; ".join(map(escape, one.lacking)) + "." if one.lacking else "",
        "Published": published,
    }
    tables = (f'<a href="{escape(name)}">{Path(name).stem}</a>' for name in one.tables)
    links = (f'<a href="{escape(url)}" target="_blank">{escape(name)}</a>' for name, url in one.links.items())
    again = {
        "Again with": f"<code>{escape(one.command)}</code>",
        "Tables": ", ".join(tables),
        "In MLflow": ", ".join(links),
    }
    made = escape(one.study.made_elsewhere)
    elsewhere = f' <span class="elsewhere">{made}</span>' if made else ""
    return (
        f'<section id="{escape(one.study.name)}">\n<p class="study">{escape(one.heading)}{elsewhere}</p>\n'
        f"<h2>{escape(one.study.question)}</h2>\n{_listed(rows)}\n{_figure(one)}{one.shown}"
        f"{_listed(again)}{_sentences(one)}</section>"
    )


def _listed(rows: Mapping[str, str]) -> str:
    """A list of what is said, by its name; what has nothing is left out."""
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{said}</dd>' for name, said in rows.items() if said)}</dl>"


def _ours(one: Finding) -> str:
    said, more = escape(one.answer.sentence), escape(f" {one.answer.more}" if one.answer.more else "")
    if one.answer.decided:
        return f"<strong>{said}</strong>{more}"
    return f'<span class="undecided">undecided</span> {said}{more}'


def _sentences(one: Finding) -> str:
    if not one.findings:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in one.findings)
    count = "1 finding" if len(one.findings) == 1 else f"all {len(one.findings)} findings"
    return f"\n<details><summary>{count}</summary><ul>{items}</ul></details>"


def _figure(one: Finding) -> str:
    if one.figure is None:
        return ""
    drawn = one.figure.read_bytes()
    source = data_uri(drawn, "image/svg+xml")
    wide = _WIDTH.search(drawn[:2000])  # a figure of one panel would fill the page
    style = f' style="--drawn: {1.5 * float(wide[1]):.0f}pt"' if wide else ""
    name = escape(one.figure.stem.replace("_", " "))
    published_as = escape(one.study.figures[one.figure.stem])
    shown = "" if one.study.made_elsewhere else " open"
    return (
        f'<details class="figure"{shown}><summary>figure: {name}, {published_as}</summary>'
        f'<img alt="{escape(one.heading)}: {name}"{style} src="{source}"></details>\n'
    )


NOTHING_DRAWN = "<!-- No figure: "  # written by report/write.py


def read_finding(
    study: Study,
    results: Path,
    runs: Collection[AnyRun] = (),
    submitted: Path | None = None,
    lacking: Sequence[str] = (),
) -> Finding:
    """A study's finding, from `results/<study>/`.

    Args:
        runs: its runs, which its heading names; none where they are not known.
        submitted: the file of the start that made it, if known.
        lacking: results that its runs can't give and what would, said where a part of its question is undecided.

    Raises:
        UserError: fit.json is missing, is no JSON object or has no answer.
    """
    folder = results / study.name
    fit = read_json(folder / "fit.json")
    if fit is None or ANSWER not in fit:
        raise UserError(
            f"{folder / 'fit.json'} is missing or broken; make it with: snakemake {folder / 'fit.json'}"
        )
    figure = next((name for name in study.figures if _is_drawn(folder / f"{name}.svg")), None)
    answer = Answer(**fit[ANSWER])
    pages = {name: folder / f"{name}.html" for name in study.tables}
    carrying = [pages[name] for name in study.carrying]
    return Finding(
        study,
        heading_of(study, runs),
        answer,
        tuple(fit.get(FINDINGS, ())),
        None if figure is None else folder / f"{figure}.svg",
        (read_json(folder / "logged") or {}).get("pages", {}),
        str(results),
        submitted,
        in_words(runs) if runs else "",
        "".join(
            first_rows(file.read_text(encoding="utf-8"), FIRST_ROWS) for file in carrying if file.is_file()
        ),
        [f"{study.name}/{name}.html" for name, file in pages.items() if file.is_file()],
        () if answer.decided and not answer.partly else lacking,
        fit.get(NOTES, ()),
    )


def described(study: Study, fit: Path) -> str:
    """A study's question, answer and findings as Markdown, for its experiment in MLflow.

    Args:
        fit: its fit.json.
    """
    said = read_json(fit) or {}
    lines = [study.question]
    if ANSWER in said:
        answer = Answer(**said[ANSWER])
        lines.append(answer.words)
        lines += [f"Published: {answer.published}"] if answer.published else []
    findings = "\n".join(f"- {line}" for line in said.get(FINDINGS, ()))
    return "\n\n".join([*lines, *([findings] if findings else [])])


def _is_drawn(figure: Path) -> bool:
    """True for a file with a figure, not with the sentence that there was nothing to draw."""
    return figure.is_file() and NOTHING_DRAWN not in figure.read_text(encoding="utf-8")


MOST = 40  # metrics of a summary run
_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")


def headline(tables: Mapping[str, Path]) -> dict[str, float]:
    """The effects of a study's axes, then the best depth of each size, then the transitions: at most 40.

    Args:
        tables: its tables, CSV files by name; of other tables nothing is taken.
    """
    numbers: dict[str, float] = {}
    for name, of in _OF.items():
        if name in tables:
            for parts, value in of(pd.read_csv(tables[name])):
                numbers.setdefault(".".join(parts), float(value))
    return dict(islice(numbers.items(), MOST))


Found = Iterator[tuple[tuple[str, ...], Any]]


def _effects(frame: pd.DataFrame) -> Found:
    """The loss difference of every two values of an axis: its mean over the settings of the others where it has one."""
    rows = frame[(frame["quantity"] == DIFFERENCE) & frame["value"].notna()]
    for row in rows.sort_values("settings", ascending=False, kind="stable").to_dict("records"):
        values = [_value(row["axis"], _plain(row[name])) for name in ("one", "other")]
        yield ("effect", f"{_word(row['axis'])}_{'_to_'.join(values)}"), row["value"]


def _best_shapes(frame: pd.DataFrame) -> Found:
    for row in frame[frame["standing"] == "best"].to_dict("records"):
        yield ("best_depth", f"at_{_word(short_number(row['size']))}"), row["depth"]


def _best_depths(frame: pd.DataFrame) -> Found:
    """Of ranges of sizes; a table that has a row for each setting, such as a ratio, has no one depth of a size."""
    for row in frame.to_dict("records") if "size_low" in frame else ():
        sizes = [_word(short_number(row[name])) for name in ("size_low", "size_high")]
        yield ("best_depth", f"at_{'_to_'.join(sizes)}"), row["best_depth"]


def _transitions(frame: pd.DataFrame) -> Found:
    """The widths by the bootstrap, with what tells a cell from the others: the columns before the depth that vary."""
    columns = list(frame.columns)
    cell = [name for name in columns[: columns.index("depth")] if frame[name].nunique(dropna=False) > 1]
    rows = frame[(frame["method"] == "bootstrap") & frame["width"].notna()]
    for row in rows.to_dict("records"):
        values = "_".join(_word(said(name, _plain(row[name]))) for name in cell)
        depths = f"depth{row['depth']}_{row['deeper_depth']}"
        yield ("transition_width", depths, *([values] if values else [])), row["width"]


_OF = {
    "effects": _effects,
    "best_shapes": _best_shapes,
    "best_depth": _best_depths,
    "transitions": _transitions,
}


def _plain(value: Any) -> Any:
    """A value of a CSV file as it was: numbers that stand beside texts are read as texts."""
    return plain(float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value)


def _value(axis: str, value: Any) -> str:
    """`0_002`, `llama`, and of a rank that nothing limits `full`, as in the runs' params."""
    return _word(str(value) if isinstance(value, int | float) else said(axis, value)).removesuffix("_rank")


def _word(text: str) -> str:
    """`V = 500` as `V500`, `4,000 steps` as `4000_steps`."""
    return re.sub(r"\W+", "_", re.sub(r"\b(\w) = ", r"\1", text.replace(",", "")), flags=re.ASCII).strip("_")
