import json
from pathlib import Path
from typing import Any

import pytest
from made_packages import put_package, read

from shapelaw.corpora import dictionary
from shapelaw.corpora.dictionary import is_whole, text_of_entry


@pytest.mark.parametrize(
    "piece",
    [
        "To proceed by a certain gait peculiar to quadrupeds; to ride or drive at a trot. See Trot, n.",
        "Any tree of the genus Salix, including many species (see Osier); -- called also sallow.",
        "Gold. [Obs.] (a) The metal. (b) Its color.",
        'Rare, as "this one"; used by, or of, poets.',
        "the name of a town",
    ],
)
def test_whole_pieces(piece: str) -> None:
    assert is_whole(piece)


@pytest.mark.parametrize(
    "piece",
    [
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
    ],
)
def test_pieces_that_lost_text(piece: str) -> None:
    assert not is_whole(piece)


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
    assert text_of_entry(entry).split("\n") == [
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
    assert text_of_entry({"entry": "x", "pos": [use("n.", ("See .", []))]}) == ""


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
