"""The texts in packages: each reader on a made package, and all of them on the true ones where these are."""

import json
from pathlib import Path

import pytest
from made_packages import DOWNLOADS, put_package, sword_files

from shapelaw.corpora import books, dictionary
from shapelaw.corpora.packaged import PACKAGED
from shapelaw.corpora.sources import Packaged, read_source
from shapelaw.errors import UserError


def read(name: str, cache: Path) -> list[tuple[str, str | None, str]]:
    return [(one.source, one.title, one.text) for one in read_source(Packaged(name), cache)]


@pytest.mark.parametrize(
    ("files", "reason"),
    [({"v": b"x", "s": b"", "z": b""}, "no lists"), ({}, "'v'"), (sword_files([b"<div>"]), "mismatched tag")],
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
    with pytest.raises(UserError, match=f"is no module of SWORD as it is expected .*{reason}"):
        read("treasury", tmp_path)


def test_the_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(word: str, text: str) -> dict[str, object]:
        uses = [{"part_of_speech": "n.", "definitions": [{"text": text, "examples": []}]}]
        return {"entry": word, "pos": uses}

    words = {word: entry(word, text) for word, text in (("hen", "A bird."), ("hex", "See ."))}
    files = {
        f"{dictionary.GCIDE.member}H.json": json.dumps(words).encode(),
        "dictionary/__init__.py": b"1 / 0",
    }
    put_package(monkeypatch, dictionary, "GCIDE", files, tmp_path)
    assert read("gcide", tmp_path) == [("gcide:hen", None, "hen, n.\nA bird.")]


COUNTS = {  # documents, bytes of text
    "gcide": (107_187, 19_581_852),
    "bible": (1_189, 4_136_262),
    "sotu": (233, 10_760_948),
    "anarchism": (633, 10_329_468),
    "treasury": (151, 11_816_234),
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_true_packages(name: str) -> None:
    if not (DOWNLOADS / PACKAGED[name].package.filename).is_file():
        pytest.skip(f"{PACKAGED[name].package.filename} is not downloaded")
    documents = read(name, DOWNLOADS)
    texts = [text for _, _, text in documents]
    assert (len(texts), sum(len(text.encode()) for text in texts)) == COUNTS[name]
    assert len(set(texts)) == len(texts)
    assert all(source.startswith(f"{name}:") for source, _, _ in documents)
    for junk in ("<p", "</", "&amp;", "&quot;", "osisID", "1913 Webster", "\x00", "\ufeff"):
        assert not any(junk in text for text in texts), junk
