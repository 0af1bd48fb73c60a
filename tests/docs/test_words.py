"""Texts for people use one word for one thing: pages as they are shown, captions, and help; and pages stay short.

Keys of JSON, columns of CSV and names in code keep theirs, so what is in backticks or in a block of code isn't read.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from small import REPOSITORY

from cli_page import help_of
from count_pages import MOST_LINES, MOST_WORDS, counts, lines_of, pages, words_of
from shapelaw.cli import COMMANDS

CAPTIONS = sorted((REPOSITORY / "scripts" / "shapelaw" / "studies").rglob("captions/*.rst"))
UNUSED = {  # what is no longer written, and what is written in its place
    r"(nats|bits|bytes) an? (token|byte|patch|parameter|free one|layer|step)": "per",
    r"(row|file|page|line|seed|job|folder) an? (run|study|shape|row|network|size|process)": "one ... per ...",
    r"(examples|bits) a (head|parameter)": "per",
    r"tokens a parameter": "per",
    r"linear maps a layer": "per",
    r"less (that|those) of": "minus",
    r"\b(257|500|2,000|32,000|50,257|few|many) words|words of a vocabulary": "tokens",
    r"\bworth\b": "wasted parameters",
    r"penalt(y|ies)": "excess loss",
    r"gives? away": "excess loss",
    r"\bwitness": "source",
    r"learn(ed)? by heart": "memorize",
    r"intervals? (hold|holds|held)\b": "contain the truth",
    r"\b(is|are|was|were) told\b|\btold by\b": "reported, predicted",
    r"line in the (depth|heads)\b": "exponential law; in proportion to the heads",
    r"none in range|everywhere, above": "no transition up to width ...",
    r"\bovertaking\b": "transition",
    r"\b(dear|dearer)\b": "expensive",
    r"\bthe (floors|doors|rooms) of\b": "layers, packages",
    r"\ba change owes\b|\ba study owes\b": "needs",
    r"at the edge,": "at the edge of the sizes, above (below) width ...",
}
CODE = re.compile(r"^(`{3,})[^`\n]*\n.*?^\1 *$|`[^`]+`|<!--.*?-->|\]\([^)\s]*\)", re.MULTILINE | re.DOTALL)


def texts() -> Iterator[tuple[str, str]]:
    """The name of each text for people, and the text without code."""
    for path in (*pages(), *CAPTIONS):
        text = path.read_text(encoding="utf-8")
        yield _named(path), CODE.sub(" ", text.replace("``", "`") if path.suffix == ".rst" else text)
    for name in COMMANDS:
        yield f"shapelaw {name} --help", help_of(name)


def _named(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize(("name", "text"), [pytest.param(*one, id=one[0]) for one in texts()])
def test_a_text_uses_none_of_the_words_that_others_replace(name: str, text: str) -> None:
    for word, better in ALLOWED.get(name, {}).items():
        text = text.replace(word, better)
    found = {
        found[0]: better
        for word, better in UNUSED.items()
        for found in re.finditer(word, text, re.IGNORECASE)
    }
    assert found == {}, f"{name}: say what stands behind each"


# quoted, or meant as it is written
ALLOWED: dict[str, dict[str, str]] = {
    "shapelaw fit --help": {"penalty (the": "", "forms and overtaking": "", "figures\npenalty": ""},
}


def test_the_pages_keep_to_their_limits() -> None:
    lines, words = (sum(column) for column in zip(*counts().values(), strict=True))
    assert lines <= MOST_LINES
    assert words <= MOST_WORDS, (
        f"{words - MOST_WORDS} words too many (docs/generators/count_pages.py); shorten pages"
    )


@pytest.mark.parametrize(
    ("text", "lines", "words"),
    [
        ("# A page\n\nOne sentence.\nAnother one.\n", ["# A page", "One sentence. Another one."], 6),
        ("- an item\n  and its end\n- another\n", ["- an item and its end", "- another"], 6),
        ("| a | b |\n|---|:-:|\n| 1 | – |\n", ["| a | b |", "| 1 | – |"], 3),
        ("<!-- table\nfrom: x.csv\n-->\n| a |\n| --- |\n<!-- end -->\n", ["| a |"], 1),
        ("```sh\nmake demo   # builds\n\nmake ui\n```\n", ["| make demo   # builds", "| make ui"], 5),
        ("word " * 30, [" ".join(["word"] * 24), " ".join(["word"] * 6)], 30),
        ("+0.1 ± 0.2", ["+0.1 ± 0.2"], 2),
    ],
)
def test_what_a_line_and_a_word_are(text: str, lines: list[str], words: int) -> None:
    assert lines_of(text) == lines
    assert words_of(lines) == words
