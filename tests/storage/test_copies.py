"""A finished record as one file: whole, or as it was before; read as its files are."""

from pathlib import Path

import pytest

from shapelaw.storage.copies import COPY, FILES, content, fold, forget, has
from shapelaw.storage.files import WriteFailed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).write_bytes(name.encode() * 100)
    (tmp_path / "live.json").write_text("{}")
    return tmp_path


def test_a_record_becomes_one_file(folder: Path) -> None:
    fold(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["live.json", COPY]
    for name in FILES:
        assert has(folder, name)
        assert content(folder, name) == name.encode() * 100
    assert content(folder, "live.json") == b"{}"
    before = (folder / COPY).read_bytes()
    fold(folder)  # there is nothing left to do
    assert (folder / COPY).read_bytes() == before
    forget(folder)
    assert not has(folder, "summary.json")
    with pytest.raises(FileNotFoundError):
        content(folder, "summary.json")


def test_a_record_that_is_not_finished_stays(folder: Path) -> None:
    (folder / "summary.json").unlink()
    fold(folder)
    assert not (folder / COPY).exists()
    assert content(folder, "spec.json").startswith(b"spec.json")


def test_the_copy_wins_over_files_that_a_killed_process_left(folder: Path) -> None:
    fold(folder)
    (folder / "spec.json").write_text("half")
    assert content(folder, "spec.json") == b"spec.json" * 100


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.99])
def test_a_damaged_copy_is_an_error(folder: Path, part: float) -> None:
    fold(folder)
    whole = (folder / COPY).read_bytes()
    (folder / COPY).write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(ValueError, match=r"record\.zip is damaged"):
        content(folder, "history.parquet")


def test_a_flipped_bit_is_an_error(folder: Path) -> None:
    fold(folder)
    whole = bytearray((folder / COPY).read_bytes())
    whole[whole.index(b"history.parquethistory") + 30] ^= 1
    (folder / COPY).write_bytes(whole)
    with pytest.raises(ValueError, match=r"record\.zip is damaged"):
        content(folder, "history.parquet")


def test_a_full_disk_costs_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(WriteFailed):
        fold(folder)
    assert content(folder, "history.parquet") == b"history.parquet" * 100
