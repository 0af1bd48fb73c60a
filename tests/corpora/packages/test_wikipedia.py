"""Leads and articles of Wikipedia, from their wheels."""

import bz2
import dataclasses
import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest

from shapelaw.corpora import packages
from shapelaw.corpora.packages import articles_of_dump, without_markup
from shapelaw.corpora.sources import Packaged, read_source

WIKITEXT = """{{Infobox|name=Fox}}
The '''fox''' is a [[Canidae|canid]].<ref>{{cite book|title=Foxes}}</ref> See [[vixen]].
[[File:Fox.jpg|thumb|A [[red fox]].<ref>x</ref>]]
{| class="wikitable"
| cell
|}
== Habitat ==
* Forests &amp; fields, <math>x^2</math>.
[[Category:Foxes]]"""


def test_wiki_markup_is_taken_out() -> None:
    assert without_markup(WIKITEXT).split("\n") == [
        "The fox is a canid. See vixen.",
        "",
        " Habitat ",
        " Forests & fields, .",
    ]


def made_dump() -> bytes:
    """A packed dump of three pages: an article, its talk page and a redirect to it."""
    namespace = "http://www.mediawiki.org/xml/export-0.3/"
    pages = [("Fox", 0, "", WIKITEXT), ("Talk:Fox", 1, "", "chat"), ("Foxes", 0, "<redirect/>", "#REDIRECT")]
    xml = "".join(
        f"<page><title>{title}</title><ns>{ns}</ns>{redirect}<revision><text>"
        + text.replace("&", "&amp;").replace("<", "&lt;")
        + "</text></revision></page>"
        for title, ns, redirect, text in pages
    )
    return bz2.compress(f'<mediawiki xmlns="{namespace}">{xml}</mediawiki>'.encode())


def test_only_articles_of_a_dump_are_read() -> None:
    with bz2.open(io.BytesIO(made_dump())) as dump:
        assert list(articles_of_dump(dump)) == [("Fox", without_markup(WIKITEXT))]


def test_documents_of_the_wheels_have_titles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summaries = json.dumps({"Hen": {"extract": "A hen."}, "Fox": {"extract": "A fox."}}).encode()
    for name, content in (("SUMMARIES", summaries), ("ARTICLES", made_dump())):
        wheel = getattr(packages, name)
        path = tmp_path / wheel.filename
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(wheel.member, content)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setattr(packages, name, dataclasses.replace(wheel, sha256=sha256))
    documents = [*read_source(Packaged("wiki"), tmp_path), *read_source(Packaged("gensim"), tmp_path)]
    assert [(document.title, document.source) for document in documents] == [
        ("Hen", "wiki:Hen"),
        ("Fox", "wiki:Fox"),
        ("Fox", "gensim:Fox"),
    ]
