"""A study's declaration: all that the rest of the project knows of it. Light: the Snakefile reads it at each start.

What the papers published is read and joined here too. It lies in workflow/reference/ of a clone, in shapelaw/reference/
where the package is installed. A row of published.csv is a number, or a statement where the paper prints none, of a
study: `study, quantity, setting, value, low, high, source`. A study's `answer` is the paper's answer to its question.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_origin

from shapelaw.specs.kinds import AnyRun, Kind

if TYPE_CHECKING:  # pandas and pydantic, which are not needed at each start, or for an answer for a size
    import pandas as pd

    from shapelaw.settings.sections import Settings

OURS = "our own"  # published nowhere else
OTHER_FOLDERS = frozenset(  # in results/, of no study
    (
        *("runs", "checkpoints", "corpora", "jobs", "logs", "submitted", "separation_ranks", "mlartifacts"),
        "perplexity",
    )
)
TABLE_ENDINGS, FIGURE_ENDINGS = ("html", "csv"), ("svg",)
# written too, by the same command, and no targets: Snakemake would keep a file of its own for each
TABLE_COPIES, FIGURE_COPIES = ("md", "tex"), ("png",)  # of all tables in one, and of each figure
DEPTH_WIDTH = "depth_width"
ANSWER = "answer"
TABLES = "tables"  # name of the files that have all tables


def _nothing(*_: object) -> list[Any]:
    return []


def seed_warnings(name: str, seeds: Iterable[int]) -> list[str]:
    """A sentence where some networks of a study of degrees have one seed."""
    if min(seeds, default=2) > 1:
        return []
    return [
        f"{name} has one seed of each network, so no difference between degrees has an error; give seeds: 2 or more"
    ]


@dataclass(frozen=True)
class Key:
    """A key of the config: its type and its meaning."""

    kind: Any
    description: str

    @property
    def default(self) -> Any:
        """The value that is checked where a config has none: no list, or a section's own defaults."""
        return [] if get_origin(self.kind) is list else {}


@dataclass(frozen=True)
class Study:
    """A study, as a study.py declares it.

    Attributes:
        name: name of the study, of its folder in results/, of its rule and of its experiment in MLflow.
        title: the report's heading.
        subtitle: its part of that heading, where several studies share one.
        published: the answer that was published, where the study's results name none; the report sets it beside ours.
        captions: folder with a text for each figure and one for all tables.
        tables: names of its tables.
        figures: names of its figures, with where each is published; the report's first page has the first drawn one.
        answering: names of the tables that carry its answer, of which that page has the first rows; by default its
            first table.
        results: module with `results(arguments)`, which scripts/analyse.py calls; maybe `add_options(parser)`.
        question: what it asks, in one sentence: the report's first page sets the answer beside it.
        kind: kind of its runs; None where nothing is trained.
        sections: its keys in the config.
        grid: its grid where the config's `grids` has none of its name, as it stands there; None is a study of no grid.
        runs: returns all runs of a config; relative paths start from the folder given.
        problems: returns a sentence for each problem that no single key of the config shows, given that folder too.
        warnings: returns a sentence for each result that a config's runs can't give, given that folder too.
        options: returns the options of the analysis, as scripts/analyse.py takes them.
        input: file to analyse, relative to the working directory; empty for the table of the study's runs.
        costs: returns lines of `snakemake plan` for what is measured without training.
        made_elsewhere: whose runs these are, where they are not the workflow's own; the report says so.
        extra: the study runs only where the config's `extras` names it, and has no summary run in MLflow.
        tables_caption: name of the text for all tables.
        verdict: page of docs/, and its section, where the verdict stands.
        place: folder of the results of all studies.
    """

    name: str
    title: str
    captions: Path
    tables: Sequence[str]
    figures: Mapping[str, str]
    results: str
    question: str
    subtitle: str = ""
    published: str = ""
    kind: Kind | None = None
    sections: Mapping[str, Key] = field(default_factory=dict)
    grid: Any = None
    runs: Callable[[Settings, Path], Iterable[AnyRun]] = _nothing
    problems: Callable[[Settings, Path], list[str]] = _nothing
    warnings: Callable[[Settings, Path], list[str]] = _nothing
    options: Callable[[Settings], Sequence[str]] = _nothing
    input: str = ""
    costs: Callable[[Settings], list[str]] = _nothing
    made_elsewhere: str = ""
    extra: bool = False
    tables_caption: str = "tables"
    verdict: str = "results.md"
    answering: Sequence[str] = ()
    place: str = "results"

    @property
    def message(self) -> str:
        """What Snakemake prints when it is analysed."""
        return f"analysing {self.name}: {self.question}"

    @property
    def folder(self) -> str:
        """The folder of its results."""
        return f"{self.place}/{self.name}"

    @property
    def analysed(self) -> str:
        """The file that its analysis reads."""
        return self.input or f"{self.folder}/runs.parquet"

    @property
    def target(self) -> str:
        """The file that stands for all of its results."""
        return f"{self.folder}/fit.json" if self.extra else f"{self.folder}/logged"

    def files(self, names: Iterable[str], endings: Sequence[str]) -> list[str]:
        """The files of some tables or figures."""
        return [f"{self.folder}/{name}.{ending}" for name in names for ending in endings]

    @property
    def carrying(self) -> Sequence[str]:
        """The names of the tables that carry its answer."""
        return self.answering or self.tables[:1]

    @property
    def artifacts(self) -> list[str]:
        """The files of all tables and figures that rules name and MLflow keeps."""
        return self.files(self.tables, TABLE_ENDINGS) + self.files(self.figures, FIGURE_ENDINGS)

    @property
    def copies(self) -> list[str]:
        """The same in other formats, which come with the artifacts: all tables in one file, and each figure."""
        return self.files([TABLES], TABLE_COPIES) + self.files(self.figures, FIGURE_COPIES)

    @property
    def heading(self) -> str:
        """The title with its part."""
        return f"{self.title}: {self.subtitle}" if self.subtitle else self.title

    @property
    def table_caption(self) -> Path:
        """The report's text for the tables."""
        return self.captions / f"{self.tables_caption}.rst"

    def figure_caption(self, name: str) -> Path:
        """The report's text for a figure."""
        return self.captions / f"{name}.rst"


_HERE = Path(__file__).resolve()
_IN_CLONE = _HERE.parents[3] / "workflow" / "reference"
REFERENCE = _IN_CLONE if _IN_CLONE.is_dir() else _HERE.parents[1] / "reference"


def published_json(name: str) -> dict[str, Any]:
    """The content of a JSON file, by its name without the ending."""
    return dict(json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8")))


class Published(NamedTuple):
    """A row of the table; without a value, a source and ends where nothing was published.

    Attributes:
        study, quantity, setting: what it is of; an empty setting is the only one.
        value: the number, or the statement in words.
        low, high: the ends of its error or of its rounding; the number itself where none was published.
        source: its paper, with the table, figure, equation or section.
    """

    study: str
    quantity: str
    setting: str
    value: str
    low: float
    high: float
    source: str

    @property
    def number(self) -> float:
        """The value; NaN of a statement."""
        return _number(self.value)

    @property
    def err(self) -> float:
        """The standard error; NaN where none was published."""
        return float(f"{(self.high - self.low) / 2:.9g}") or math.nan


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@cache
def _table() -> dict[tuple[str, str, str], Published]:
    with (REFERENCE / "published.csv").open(newline="", encoding="utf-8") as file:
        rows = [
            Published(study, quantity, setting, value, _number(low or value), _number(high or value), source)
            for study, quantity, setting, value, low, high, source in list(csv.reader(file))[1:]
        ]
    return {one[:3]: one for one in rows}


def published(study: str, quantity: str, setting: object = "") -> Published:
    """What stands beside a quantity of ours in a setting."""
    key = study, quantity, f"{setting}"
    return _table().get(key) or Published(*key, "", math.nan, math.nan, "")


def published_of(study: str, quantity: str) -> dict[str, Published]:
    """A quantity by its settings, in the table's order."""
    return {one.setting: one for one in _table().values() if one[:2] == (study, quantity)}


def beside_published(study: str, table: pd.DataFrame) -> pd.DataFrame:
    """The table with what was published of its quantities in `published`, where a row has nothing itself."""
    theirs = [published(study, quantity).value or "–" for quantity in table["quantity"]]
    return table.assign(published=table["published"].where(table["published"] != "", theirs))


def published_log_width(depth: float) -> float:
    """The logarithm of the transition width at a depth by the line of Levine et al. 2020, where it extrapolates too."""
    a, b = (published(DEPTH_WIDTH, name).number for name in ("a", "b"))
    return a + b * depth
