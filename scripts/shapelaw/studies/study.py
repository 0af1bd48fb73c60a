"""A study's declaration: all that the rest of the project knows of it. Light: the Snakefile reads it at each start.

The papers' published numbers lie in workflow/reference/ of a clone, in shapelaw/reference/ where it is installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

from shapelaw.specs.kinds import AnyRun, Kind
from shapelaw.specs.runs import Run

if TYPE_CHECKING:  # pydantic, which an answer for a size does without
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
TABLES = "tables"  # name of the files that have all tables


def _first_seeds(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run.seed)


def _nothing(*_: object) -> list[Any]:
    return []


@dataclass(frozen=True)
class Key:
    """A key of the config: its type and its meaning. Where a config does not set it, it has `value`; without one a list
    is empty, and a section has its own keys' defaults."""

    kind: Any
    description: str
    value: Any = None

    @property
    def default(self) -> Any:
        """The value that is checked where a config has none."""
        if self.value is not None:
            return self.value
        return [] if get_origin(self.kind) is list else {}


@dataclass(frozen=True)
class Study:
    """A study, as its room declares it in study.py.

    Attributes:
        name: name of the study, of its folder in results/, of its rule and of its experiment in MLflow.
        title: the report's heading.
        subtitle: its part of that heading, where several studies share one.
        published: the answer that was published, where the study's results name none; the report sets it beside ours.
        message: the message that Snakemake prints for its analysis.
        room: the study's folder; captions/ in it has a text for each figure and one for all tables.
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
        tables_caption: name of the text in captions/ for all tables.
        verdict: page of docs/, and its section, where the verdict stands.
        informative_first: sorts the runs, the most informative first, for the case that time runs out.
        place: folder of the results of all studies.
    """

    name: str
    title: str
    message: str
    room: Path
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
    informative_first: Callable[[Iterable[Run]], list[Run]] = _first_seeds
    place: str = "results"

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

    def files(self, names: Iterable[str], endings: Iterable[str]) -> list[str]:
        """The files of some tables or figures."""
        kinds = list(endings)
        return [f"{self.folder}/{name}.{ending}" for name in names for ending in kinds]

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
        return self.room / "captions" / f"{self.tables_caption}.rst"

    def figure_caption(self, name: str) -> Path:
        """The report's text for a figure."""
        return self.room / "captions" / f"{name}.rst"


_HERE = Path(__file__).resolve()
_IN_CLONE = _HERE.parents[3] / "workflow" / "reference"
REFERENCE = _IN_CLONE if _IN_CLONE.is_dir() else _HERE.parents[1] / "reference"


def published_json(name: str) -> dict[str, Any]:
    """The content of a JSON file, by its name without the ending."""
    return dict(json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8")))
