"""How the commands of the pages are carried out: as they are shown, with smaller sizes, or elsewhere.

In carried_out.yaml `smaller` and `elsewhere` hold what costs minutes, a card, a cluster or a network. A test fails
where one of their entries stands for no command of a page any longer.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import yaml
from golden_tables import COMMANDS, words_of

from page_tables import MADE

Words = tuple[str, ...]


_LISTED = yaml.safe_load((Path(__file__).parent / "carried_out.yaml").read_text(encoding="utf-8"))
SMALLER, ELSEWHERE, MADE_BY, SAID = (_LISTED[name] for name in ("smaller", "elsewhere", "made_by", "said"))
# analyses whose tables other tests make: tests/test_tables.py those of the first, test_page_tables.py the others
OF_TABLES = {*COMMANDS.values(), *map(words_of, MADE.values())}
# words that name a program and run nothing
ITSELF = {("shapelaw",), ("shapelaw", "transitions"), ("shapelaw", "fit")}


def starts(command: Words, start: str) -> bool:
    """Whether a command begins with these words."""
    first = tuple(shlex.split(start))
    return command[: len(first)] == first


def smaller(command: Words) -> Words:
    """The command with the options that make it small, if it needs any."""
    further = next((options for start, options in SMALLER.items() if starts(command, start)), "")
    return command if "--help" in command else (*command, *shlex.split(further))


def elsewhere(command: Words) -> bool:
    """Whether a command is not run here."""
    return _analysis(command) in OF_TABLES or any(starts(command, start) for start in ELSEWHERE)


def _analysis(command: Sequence[str]) -> Words:
    """The words of `python scripts/...` as tests of tables have them: without folder, and without --out FOLDER."""
    words = list(command[1:])
    if "--out" in words:
        place = words.index("--out")
        del words[place : place + 2]
    return (Path(words[0]).name, *words[1:]) if words else ()
