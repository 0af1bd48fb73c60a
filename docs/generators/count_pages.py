"""Count the lines and words of README.md, CONTRIBUTING.md and the pages of docs/, however their source is broken.

Not docs/config.md, which grows with the keys of the config: its sentences are those of the code.

  PYTHONPATH=scripts python docs/generators/count_pages.py

Lines are those of the text wrapped at 120 characters: the lines of a paragraph or of a list's item are joined first; a
row of a table, a line of code, a heading and a picture are one line each. What nobody reads counts for nothing: blank
lines, comments, with which generators say where a table comes from, the fences of code, and the dashes below a table's
head. A word is what stands between blanks and has a letter or a digit. Exit code: 0, or 1 beyond a limit.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from shapelaw.errors import command_line, end_with

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 120
MOST_LINES, MOST_WORDS = 2_950, 37_000
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_ALONE = re.compile(r"\s*(\||#|!\[)")  # a row, a heading, a picture
_ITEM = re.compile(r"\s*([-*]|\d+\.) ")
_RULE = re.compile(r"\s*\|[-:| ]+\|\s*$")


def pages() -> list[Path]:
    """The pages that are counted."""
    docs = sorted({*(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "config.md"})
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *docs]


def lines_of(text: str) -> list[str]:
    """The lines of a page as the limit counts them."""
    found: list[str] = []
    for paragraph in _paragraphs(_COMMENT.sub("", text)):
        found += [paragraph] if _ALONE.match(paragraph) else textwrap.wrap(paragraph, WIDTH)
    return found


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs and items joined; each row, heading, picture and line of code by itself."""
    joined: list[str] = []
    code = False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        if fence or code or not line.strip() or _ALONE.match(line) or _ITEM.match(line):
            if joined:
                yield " ".join(joined)
            joined = []
        if fence:
            code = not code
        elif code:
            if line.strip():
                yield f"| {line}"  # never wrapped
        elif _ALONE.match(line):
            if not _RULE.match(line):
                yield line
        elif line.strip():
            joined.append(line.strip())
    if joined:
        yield " ".join(joined)


def words_of(lines: list[str]) -> int:
    """The number of words in these lines."""
    return sum(bool(re.search(r"\w", word)) for line in lines for word in line.split())


def counts() -> dict[str, tuple[int, int]]:
    """Lines and words of each page, by its path."""
    found = {}
    for page in pages():
        lines = lines_of(page.read_text(encoding="utf-8"))
        found[str(page.relative_to(ROOT))] = len(lines), words_of(lines)
    return found


def main() -> None:
    """Print a line for each page, and their sum beside the limits."""
    command_line(__doc__).parse_args()
    found = counts()
    lines, words = (sum(column) for column in zip(*found.values(), strict=True))
    for name, (page_lines, page_words) in found.items():
        print(f"{page_lines:6,} {page_words:7,}  {name}")
    print(f"{lines:6,} {words:7,}  in all; at most {MOST_LINES:,} lines and {MOST_WORDS:,} words")
    if lines > MOST_LINES or words > MOST_WORDS:
        sys.exit(1)


if __name__ == "__main__":
    end_with(main)
