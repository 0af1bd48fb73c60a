"""The paragraphs of a marked-up text: HTML as browsers read it, or XML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from html.parser import HTMLParser

_HTML_BLOCKS = ("p", "div", "blockquote", "center", "hr", "li", "ol", "ul", "dt", "dd", "table", "tr", "td")
_OSIS_BLOCKS = ("div", "title", "chapter", "lg", "list", "item")
_BLOCKS = frozenset((*_HTML_BLOCKS, *(f"h{level}" for level in range(1, 7)), *_OSIS_BLOCKS))
_LINES = frozenset(("br", "l"))
_PARAGRAPH, _LINE = "\f", "\v"  # in the text itself they count as white space
# control characters, soft hyphens and byte order marks
_UNSEEN = dict.fromkeys((*range(9), *range(14, 32), *range(0x7F, 0xA0), 0xAD, 0xFEFF))


def paragraphs_of_html(html: str) -> list[str]:
    """The paragraphs of a piece of HTML, without white space around them; lines that `br` breaks stay lines."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    return _paragraphs(parser.parts)


def paragraphs_of_xml(xml: str) -> list[str]:
    """The paragraphs of a piece of well-formed XML (OSIS), likewise.

    Raises:
        xml.etree.ElementTree.ParseError: it is not well-formed.
    """
    parts: list[str] = []
    _walk(ElementTree.fromstring(f"<text>{xml}</text>"), parts)
    return _paragraphs(parts)


def plain(text: str) -> str:
    """The text with single spaces between words, none at its ends, and no control characters."""
    return " ".join(text.translate(_UNSEEN).split())


class _Text(HTMLParser):
    """Collects the text, with a mark where a paragraph or a line ends."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.parts.append(_mark(tag))

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(_mark(tag))

    def handle_data(self, data: str) -> None:
        self.parts.append(_without_marks(data))


def _walk(element: ElementTree.Element, parts: list[str]) -> None:
    parts += (_mark(element.tag), _without_marks(element.text or ""))
    for child in element:
        _walk(child, parts)
        parts.append(_without_marks(child.tail or ""))
    parts.append(_mark(element.tag))


def _mark(tag: str) -> str:
    return _PARAGRAPH if tag in _BLOCKS else _LINE if tag in _LINES else ""


def _without_marks(text: str) -> str:
    return text.replace(_PARAGRAPH, " ").replace(_LINE, " ")


def _paragraphs(parts: Iterable[str]) -> list[str]:
    found = []
    for paragraph in re.split(_PARAGRAPH, "".join(parts)):
        lines = [line for line in map(plain, paragraph.split(_LINE)) if line]
        if lines:
            found.append("\n".join(lines))
    return found
