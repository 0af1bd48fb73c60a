"""The commands that the pages show, as words."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from small import REPOSITORY

PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "results/README.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
PROGRAMS = ("python", "snakemake", "shapelaw", "make")
# written in capitals, or as <name>, where the reader puts something of their own
PLACEHOLDERS = {"SIZE": "1.3B", "D": "24", "W": "2048", "STUDY": "depth_width"}
SUBSTITUTED = {r"<study>": "depth_width", r"<(\w+)>": r"\1", r"\$\(seq [^)]*\)": "1 3", r"\bRATE\b": "1.0e-3"}
BEFORE = ("exec", "timeout", "one")  # words that a command may stand behind


@dataclass(frozen=True)
class Shown:
    """A command of a page; `words[0]` is one of `PROGRAMS`."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def shown_commands() -> list[Shown]:
    """Every command of every page, once a page."""
    found = dict.fromkeys(
        Shown(str(page.relative_to(REPOSITORY)), words)
        for page in PAGES
        for words in _commands(page.read_text(encoding="utf-8"))
    )
    return list(found)


def _commands(text: str) -> Iterator[tuple[str, ...]]:
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in _logical_lines(block):
            yield from _split(line)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for code in re.findall(r"`([^`]+)`", prose):
        words = " ".join(code.split())
        if re.match(r"(?:[A-Z_]+=\S+ )*(?:python \S+\.py|snakemake|shapelaw|make)\b(?!\.)", words):
            yield from _split(words)


def _logical_lines(block: str) -> Iterator[str]:
    """Lines of a shell, joined where one ends in a backslash or within quotes."""
    line = ""
    for piece in block.splitlines():
        line += piece
        if line.endswith("\\"):
            line = line[:-1]
        elif not _is_open(line):
            yield line
            line = ""
        else:
            line += "\n"
    assert not line.strip(), f"a command never ends: {line}"


def _is_open(line: str) -> bool:
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return True
    return False


def _split(line: str) -> Iterator[tuple[str, ...]]:
    """The commands of a line, without what stands between and before them."""
    for pattern, text in SUBSTITUTED.items():
        line = re.sub(pattern, text, line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not set(word) <= set("();<>|&"):
            words.append(word)
            continue
        starts = [place for place, one in enumerate(words) if one in PROGRAMS]
        if starts and all(_goes_before(one) for one in words[: starts[0]]):
            yield tuple(PLACEHOLDERS.get(one, one) for one in words[starts[0] :])
        words = []


def _goes_before(word: str) -> bool:
    return word in BEFORE or bool(re.fullmatch(r"[A-Z_]+=.*|\d+|-s|KILL|\{|\}", word))
