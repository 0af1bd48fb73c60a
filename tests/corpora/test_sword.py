import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_packages import sword_files

from shapelaw.corpora.sword import read_entries


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 5))
def test_what_was_written_is_read(entries: list[bytes], per_block: int) -> None:
    files = sword_files(entries, per_block)
    found = list(read_entries(files["v"], files["s"], files["z"]))
    assert found == [(number, entry) for number, entry in enumerate(entries) if entry]


def test_a_comment_on_several_verses_comes_once() -> None:
    files = sword_files([b"On both.", b"On another."])
    verses = files["v"][:12] + files["v"]
    assert [text for _, text in read_entries(verses, files["s"], files["z"])] == [b"On both.", b"On another."]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v": b"short"}, "not lists of three numbers"),
        ({"v": struct.pack("<III", 7, 0, 2)}, "there is no block 7"),
        ({"v": struct.pack("<III", 0, 3, 100)}, "entry 0 lies beyond its block of 8 bytes"),
        ({"z": b"not compressed"}, "block 0 can't be unpacked"),
        ({"s": struct.pack("<III", 0, 1000, 5)}, "block 0 has 8 bytes, but its index says 5"),
    ],
)
def test_files_that_are_no_module(changes: dict[str, bytes], message: str) -> None:
    files = sword_files([b"On both."]) | changes
    with pytest.raises(ValueError, match=message):
        list(read_entries(files["v"], files["s"], files["z"]))
