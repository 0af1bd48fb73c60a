import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.corpora.markup import paragraphs_of_html, paragraphs_of_xml, plain


def test_html() -> None:
    html = (
        '<h2><a name="x">1. What &amp; why?</a></h2>\n<p>One <i>two</i>\n three&#8217;s<!-- not this -->.</p><p></p>'
        "<blockquote><p>A line<br/>\nand another.</blockquote>unclosed <b>bold<ul><li>first<li>second</ul>"
    )
    assert paragraphs_of_html(html) == [
        "1. What & why?",
        "One two three’s.",
        "A line\nand another.",
        "unclosed bold",
        "first",
        "second",
    ]


def test_osis() -> None:
    osis = (
        '<title type="x-s">Psalm 1 OVERVIEW</title> <div sID="gen1" type="x-p"/> See <reference osisRef="Ps.1.1">Ps'
        ' 1:1</reference>, <hi type="italic">blessed</hi> &amp; so on. <div eID="gen1" type="x-p"/>'
        '<lg sID="g"/><l sID="l"/>one<l eID="l"/>two<lg eID="g"/>'
    )
    assert paragraphs_of_xml(osis) == ["Psalm 1 OVERVIEW", "See Ps 1:1, blessed & so on.", "one\ntwo"]
    with pytest.raises(ElementTree.ParseError):
        paragraphs_of_xml("<div>")


def test_plain() -> None:
    assert plain(" a\x00 b\t\x0b c­d\ufeff\x97 ") == "a b cd"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1)))
def test_paragraphs_come_back(texts: list[str]) -> None:
    html = "".join(f"<p>{escape(text)}</p>" for text in texts)
    expected = [text for text in map(plain, texts) if text]
    assert paragraphs_of_html(html) == expected
    if not any(character in text for text in texts for character in "\ufffe\uffff"):  # which XML has not
        assert paragraphs_of_xml(html.replace("<p>", "<div>").replace("</p>", "</div>")) == expected
