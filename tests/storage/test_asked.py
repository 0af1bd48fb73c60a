"""Which runs the studies ask for, noted beside the pool."""

from pathlib import Path

import pytest

from shapelaw.errors import UserError
from shapelaw.storage.asked import add_asked, read_asked, read_keys, studies_by_key


def test_the_studies_of_a_run_are_noted_beside_those_of_before(tmp_path: Path) -> None:
    assert read_asked(tmp_path) == {}
    add_asked(tmp_path, {"depth_width": ["b", "a"]})
    add_asked(tmp_path, {"vocabulary": ["b"], "depth_width": ["c"]})
    asked = {"depth_width": ["a", "b", "c"], "vocabulary": ["b"]}
    assert read_asked(tmp_path) == asked
    assert studies_by_key(asked) == {
        "a": ["depth_width"],
        "b": ["depth_width", "vocabulary"],
        "c": ["depth_width"],
    }


def test_what_was_noted_already_is_not_written_again(tmp_path: Path) -> None:
    add_asked(tmp_path, {"depth_width": ["a", "b"]})
    path = tmp_path / "runs" / "studies.json"
    before = path.stat()
    add_asked(tmp_path, {"depth_width": ["b"]})
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("content", ["{", "[1]", '{"depth_width": 5}', "\x80"])
def test_a_damaged_list_of_the_studies_is_a_sentence_with_the_command_that_mends_it(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "runs" / "studies.json"
    path.parent.mkdir()
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(
        UserError, match=rf"^{path}, .* can't be read .*; the next start writes it anew: rm {path}$"
    ):
        read_asked(tmp_path)
    with pytest.raises(UserError, match="can't be read"):
        add_asked(tmp_path, {"depth_width": ["a"]})


def test_a_file_of_keys_has_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("one\n\n two \n")
    assert read_keys(path) == ["one", "two"]
    path.write_text("\n")
    with pytest.raises(UserError, match="names no run"):
        read_keys(path)
    with pytest.raises(UserError, match="can't be read"):
        read_keys(tmp_path / "none.txt")
