"""The token store: what is written comes back, and whatever is wrong with its files is a sentence."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.corpora import token_store
from shapelaw.errors import UserError

TOKEN_BYTES = np.array([0, 1, 2, 3, 4])


def batch(ids: list[int]) -> token_store.EncodedBatch:
    return token_store.EncodedBatch(np.array(ids), int(TOKEN_BYTES[ids].sum()), ids.count(0))


def write(
    path: Path, *batches: token_store.EncodedBatch, token_bytes: np.ndarray = TOKEN_BYTES
) -> token_store.TokenStore:
    return token_store.write_token_store(
        path, batches, end_of_text=0, token_bytes=token_bytes, tokenizer_sha256="a tokenizer"
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The header of a store of 100 tokens."""
    write(tmp_path / "train.json", batch([1, 2, 3, 4, 0] * 20))
    return tmp_path / "train.json"


def test_a_store_gives_back_what_was_written(tmp_path: Path) -> None:
    store = write(tmp_path / "a" / "train.json", batch([1, 2, 0]), batch([3, 0, 4, 0]))
    assert store.tokens.tolist() == [1, 2, 0, 3, 0, 4, 0]
    assert store.tokens.dtype == np.uint16
    assert not store.tokens.flags.writeable
    assert (store.vocab_size, store.documents, store.text_bytes) == (5, 3, 10)
    header = token_store.read_header(store.path)
    assert (header["tokenizer_sha256"], header["end_of_text"]) == ("a tokenizer", 0)
    assert store.token_bytes.tolist() == TOKEN_BYTES.tolist()
    again = token_store.open_token_store(store.path, verify=True)
    assert again.sha256 == store.sha256
    assert sorted(file.name for file in store.path.parent.iterdir()) == ["train.bin", "train.json"]


@pytest.mark.parametrize(("vocab_size", "bytes_each"), [(65_536, 2), (65_537, 4)])
def test_ids_take_two_bytes_up_to_65536(tmp_path: Path, vocab_size: int, bytes_each: int) -> None:
    ids = np.array([vocab_size - 1, 0])
    write(tmp_path / "x.json", token_store.EncodedBatch(ids, 1, 1), token_bytes=np.ones(vocab_size, np.int64))
    assert (tmp_path / "x.bin").stat().st_size == 2 * bytes_each
    assert token_store.open_token_store(tmp_path / "x.json").tokens.tolist() == ids.tolist()


def test_a_failed_write_leaves_the_old_store_whole(path: Path) -> None:
    before = token_store.open_token_store(path)

    def broken() -> Iterator[token_store.EncodedBatch]:
        yield batch([1, 0])
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        token_store.write_token_store(
            path, broken(), end_of_text=0, token_bytes=TOKEN_BYTES, tokenizer_sha256=""
        )
    assert token_store.open_token_store(path, verify=True).sha256 == before.sha256
    write(path, batch([4, 0]))
    assert token_store.open_token_store(path, verify=True).tokens.tolist() == [4, 0]
    assert sorted(file.name for file in path.parent.iterdir()) == ["train.bin", "train.json"]


def test_the_header_must_be_json_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"must end in \.json"):
        write(tmp_path / "x.bin", batch([0]))


def changed(**change: object) -> Callable[[str], str]:
    return lambda header: json.dumps(json.loads(header) | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            changed(schema_version=token_store.SCHEMA_VERSION + 1),
            f"schema version {token_store.SCHEMA_VERSION + 1}, .* reads version",
        ),
        (changed(dtype="float32"), "wrong in the header of a token store: dtype"),
        (changed(tokens=0), "wrong in the header of a token store: tokens"),
        (changed(tokens="100", end_of_text=None), "token store: tokens, end_of_text"),
        (changed(vocab_size=6), "wrong in the header of a token store: token_bytes"),
        (lambda _: "{", r"can't be read .*line 1 column 2"),
        (lambda _: "[]", "has no schema_version"),
    ],
)
def test_a_wrong_header_is_named(path: Path, change: Callable[[str], str], message: str) -> None:
    path.write_text(change(path.read_text()))
    with pytest.raises(UserError, match=message):
        token_store.open_token_store(path)


def test_missing_files_are_named(path: Path) -> None:
    path.with_suffix(".bin").unlink()
    with pytest.raises(UserError, match=r"train\.bin, the tokens of .*, is missing"):
        token_store.open_token_store(path)
    path.unlink()
    with pytest.raises(UserError, match=r"no token store .*train\.json; make it: snakemake .*train\.json"):
        token_store.open_token_store(path)


def test_wrong_bytes_of_the_same_length_are_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, header = path.with_suffix(".bin"), path.stat().st_mtime_ns
    content = data.read_bytes()
    data.write_bytes(bytes(byte ^ 1 for byte in content[:100]) + content[100:])
    os.utime(data, ns=(header - 10**9, header - 10**9))
    with pytest.raises(
        UserError, match=r"\.bin is damaged: .* encode the corpus again: rm .*\.json && snakemake"
    ):
        token_store.open_token_store(path)
    monkeypatch.setattr(
        token_store, "_QUICK_BYTES", 10
    )  # of a large file only where it is newer than its header
    assert len(token_store.open_token_store(path).tokens) == 100
    assert len(token_store.open_token_store(path, verify=False).tokens) == 100
    os.utime(data, ns=(header + 1, header + 1))
    with pytest.raises(UserError, match="is damaged"):
        token_store.open_token_store(path)


@pytest.mark.parametrize(("size", "state"), [(198, "truncated"), (202, "longer than its header says")])
def test_a_token_file_of_another_length(path: Path, size: int, state: str) -> None:
    data = path.with_suffix(".bin")
    data.write_bytes(data.read_bytes().ljust(size, b"\0")[:size])
    with pytest.raises(
        UserError, match=f"is {state}: it has {size} bytes, and 100 tokens of 2 bytes are 200"
    ):
        token_store.open_token_store(path)


@given(tokens=st.integers(2, 60), context_length=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
def test_windows_are_slices(
    tmp_path_factory: pytest.TempPathFactory, tokens: int, context_length: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    ids = generator.integers(0, 5, tokens)
    store = write(tmp_path_factory.mktemp("w") / "x.json", token_store.EncodedBatch(ids, 0, 1))
    if tokens <= context_length:
        with pytest.raises(UserError, match=f"has {tokens} tokens, fewer than one window"):
            token_store.windows(store, context_length)
        return
    view = token_store.windows(store, context_length)
    assert view.shape == (tokens - context_length, context_length + 1)
    assert np.shares_memory(view, store.tokens)
    starts = generator.integers(0, len(view), 7)
    batch = token_store.gather_windows(store, starts, context_length)
    assert batch.dtype == np.int64
    assert batch.tolist() == [ids[s : s + context_length + 1].tolist() for s in starts]


@given(context_length=st.integers(1, 60), sequences=st.integers(1, 50))
def test_evaluation_windows_spread_without_overlap(
    stores: tuple[token_store.TokenStore, token_store.TokenStore], context_length: int, sequences: int
) -> None:
    store = stores[1]
    starts = token_store.evaluation_starts(store, context_length, sequences)
    spread = len(store.tokens) / sequences
    assert len(starts) == sequences
    assert starts[0] == 0
    assert np.abs(starts - np.arange(sequences) * spread).max() < 1
    assert sequences == 1 or np.diff(starts).min() > context_length
    assert starts[-1] + context_length < len(store.tokens)


def test_all_of_the_store_can_be_tested_but_no_more(path: Path) -> None:
    store = token_store.open_token_store(path)
    assert token_store.evaluation_starts(store, 9, 10).tolist() == list(range(0, 100, 10))
    with pytest.raises(
        UserError, match=r"100 tokens, which make 10 windows of 9 \+ 1 .* test_sequences is 11"
    ):
        token_store.evaluation_starts(store, 9, 11)
    with pytest.raises(UserError, match="test_sequences is 0"):
        token_store.evaluation_starts(store, 9, 0)


def test_bytes_of_all_tokens_are_the_text(path: Path) -> None:
    store = token_store.open_token_store(path)
    assert token_store.window_bytes(store, store.tokens) == store.text_bytes == 200
    assert (
        token_store.window_bytes(store, token_store.gather_windows(store, np.array([0, 3]), 2)[:, 1:])
        == 2 + 3 + 0 + 1
    )
