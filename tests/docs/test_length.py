"""All pages together stay short enough to be read."""

from __future__ import annotations

import pytest

from count_pages import MOST_LINES, MOST_WORDS, counts, lines_of, words_of


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
