"""The commands that the pages show, as words."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from small import REPOSITORY

PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "results/README.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
PROGRAMS = ("python", "snakemake", "shapelaw", "make", "pytest")
# a command of a sentence begins so; a script of ours with options needs no `python` before it
CALL = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:python (?:-m )?\S+|(?:scripts|benchmarks|tests)/\S+\.py -\S+|"
    r"(?:snakemake|shapelaw|make|pytest)(?!\S)|rm -\S+ .* && snakemake)"
)
# written in capitals, or as <name>, where the reader puts something of their own
PLACEHOLDERS = {"SIZE": "1.3B", "D": "24", "W": "2048", "STUDY": "depth_width", "COMMAND": "bottlenecks"}
SUBSTITUTED = {
    r"<study>": "depth_width",
    r"<key>": "wiki-V257-L1-d16-H2-llama-lr0.006-t1200-s0-d95a1a2a",
    r"<(\w+)>": r"\1",
    r"\$\(seq 1 2 79\)": " ".join(map(str, range(1, 80, 2))),
    r"\$0": "pack.json",  # of a shell that is given the name of a file
    r"\bRATE\b": "1.0e-3",
}
BEFORE = ("exec", "timeout")  # words that a command may stand behind


@dataclass(frozen=True)
class Shown:
    """A command of a page.

    Attributes:
        page: from the project's folder.
        words: `words[0]` is one of `PROGRAMS`.
        environment: variables that are set for it, as NAME=VALUE.
        comment: what the page says behind it.
    """

    page: str
    words: tuple[str, ...]
    environment: tuple[str, ...] = field(default=(), compare=False)
    comment: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def shown_commands() -> list[Shown]:
    """Every command of every page, once a page."""
    found = dict.fromkeys(
        Shown(str(page.relative_to(REPOSITORY)), *command)
        for page in PAGES
        for command in commands_of(page.read_text(encoding="utf-8"))
    )
    return list(found)


Command = tuple[tuple[str, ...], tuple[str, ...], str]  # words, environment, comment


def commands_of(text: str) -> Iterator[Command]:
    """Every command of a page's text."""
    exported = tuple(" ".join(re.findall(r"\bexport ((?:[A-Z_]+=\S+ ?)+)", text)).split())
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in _logical_lines(block):
            yield from _split(line, exported)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for code in re.findall(r"`([^`]+)`", prose):
        line = " ".join(code.split())
        if CALL.match(line):
            yield from _split(re.sub(r"^(?=(?:scripts|benchmarks|tests)/)", "python ", line), exported)


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


def _split(line: str, exported: tuple[str, ...]) -> Iterator[Command]:
    """The commands of a line, without what stands between and before them, in a page that exports variables."""
    for pattern, text in SUBSTITUTED.items():
        line = re.sub(pattern, text, line)
    comment = re.search(r"\s#\s+([^'\"]*)$", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not set(word) <= set("();<>|&"):
            words.append(word)
            continue
        starts = [place for place, one in enumerate(words) if one in PROGRAMS]
        if starts and all(_goes_before(one) for one in words[: starts[0]]):
            before, command = words[: starts[0]], words[starts[0] :]
            if command[1:2] == ["-m"]:  # the same by its other name
                command = command[2:]
            environment = tuple(one for one in before if re.match(r"[A-Z_]+=", one))
            said = comment[1] if comment else ""
            yield tuple(PLACEHOLDERS.get(one, one) for one in command), exported + environment, said
        for *shell, given in zip(words, words[1:], words[2:], strict=False):
            if shell == ["sh", "-c"]:
                yield from _split(given, exported)
        words = []


def _goes_before(word: str) -> bool:
    return word in BEFORE or bool(re.fullmatch(r"[A-Z_]+=.*|\d+|\{|\}|\[|\]", word))
