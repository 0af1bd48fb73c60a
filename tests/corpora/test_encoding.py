from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from shapelaw.corpora import documents
from shapelaw.corpora.documents import SCHEMA, Document, count_row_groups, read_texts, write_documents
from shapelaw.corpora.encoding import CachedEncoder, encode_corpus, make_encoder
from shapelaw.corpora.token_store import window_bytes
from shapelaw.corpora.tokenizer import END_OF_TEXT, end_of_text_id, load_tokenizer, train_tokenizer
from shapelaw.errors import UserError

# Text where GPT-2's pre-tokens are delicate, and pre-tokens so long that the library merges them.
DELICATE = st.text(st.sampled_from("\n \x85\xa0\u2000\u3000\x1c\u200b\ufeffabé中1²'.!st🦊\u0301"))
LONG = st.builds(
    str.__mul__, st.sampled_from(["a", "ab'", "the", "1", " ", "中", "🦊 "]), st.integers(30, 150)
)
TEXTS = st.lists(st.text() | DELICATE | LONG, max_size=6)


def library_ids(tokenizer: Tokenizer, texts: list[str]) -> list[int]:
    end = end_of_text_id(tokenizer)
    return [i for text in texts for i in [*tokenizer.encode(text, add_special_tokens=False).ids, end]]


def decoded(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    """The texts, from ids that end with the end-of-text id."""
    end = end_of_text_id(tokenizer)
    ends = [number for number, i in enumerate(ids) if i == end]
    return [tokenizer.decode(ids[a:b]) for a, b in zip([0, *(e + 1 for e in ends)], ends, strict=False)]


@given(texts=TEXTS)
def test_any_text_has_the_librarys_ids_and_comes_back(tokenizer: Tokenizer, texts: list[str]) -> None:
    ids = make_encoder(tokenizer)(texts).tolist()
    assert ids == library_ids(tokenizer, texts)
    assert decoded(tokenizer, ids) == texts


@given(batches=st.lists(TEXTS, max_size=3))
def test_what_one_batch_learns_serves_the_next(tokenizer_path: Path, batches: list[list[str]]) -> None:
    tokenizer = load_tokenizer(tokenizer_path)
    encoder = CachedEncoder(tokenizer)
    for texts in [*batches, *batches]:
        assert encoder(texts).tolist() == library_ids(tokenizer, texts)


@pytest.mark.slow
def test_the_whole_default_corpus_has_the_librarys_ids(default_documents: Path) -> None:
    texts = list(read_texts(default_documents, "train")) + list(read_texts(default_documents, "test"))
    tokenizer = train_tokenizer(texts, 2000)
    assert len(texts) == 10_033
    assert np.array_equal(make_encoder(tokenizer)(texts), library_ids(tokenizer, texts))


def test_the_end_of_text_letters_are_plain_text(tokenizer: Tokenizer) -> None:
    text = f"one{END_OF_TEXT}two {END_OF_TEXT}"
    ids = make_encoder(tokenizer)([text, text]).tolist()
    assert ids == library_ids(tokenizer, [text, text])
    assert ids.count(end_of_text_id(tokenizer)) == 2
    assert decoded(tokenizer, ids) == [text, text]


def test_a_full_cache_is_emptied_and_ids_stay_right(tokenizer_path: Path, prose: list[str]) -> None:
    tokenizer = load_tokenizer(tokenizer_path)
    small, large = CachedEncoder(tokenizer, cache_bytes=50_000), CachedEncoder(tokenizer)
    texts = prose[:20]
    sizes = []
    for text in texts:
        assert small([text]).tolist() == large([text]).tolist() == library_ids(tokenizer, [text])
        sizes.append(len(small._cache))
    assert len(large._cache) > 1.5 * max(sizes)
    assert any(later < earlier for earlier, later in pairwise(sizes))


def test_no_texts_have_no_ids(tokenizer: Tokenizer) -> None:
    assert make_encoder(tokenizer)([]).tolist() == []


@pytest.fixture
def prose_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prose: list[str]) -> Path:
    """The prose as documents.parquet, in many small row groups."""
    monkeypatch.setattr(documents, "ROW_GROUP_BYTES", 40_000)
    path = tmp_path / "documents.parquet"
    write_documents([[Document(text, "topics") for text in prose]], path, test_fraction=0.2)
    assert count_row_groups(path) > 8
    return path


def test_workers_change_nothing(prose_documents: Path, tokenizer_path: Path, tmp_path: Path) -> None:
    one = encode_corpus(prose_documents, tokenizer_path, "train", tmp_path / "one.json", workers=1)
    two = encode_corpus(prose_documents, tokenizer_path, "train", tmp_path / "two.json", workers=2)
    assert one.sha256 == two.sha256
    assert one.path.read_text() == two.path.read_text()


@pytest.mark.parametrize("split", documents.SPLITS)
def test_a_store_holds_the_documents_of_its_split(
    prose_documents: Path, tokenizer_path: Path, tmp_path: Path, split: documents.Split
) -> None:
    store = encode_corpus(prose_documents, tokenizer_path, split, tmp_path / "x.json", workers=1)
    texts = list(read_texts(prose_documents, split))
    tokenizer = load_tokenizer(tokenizer_path)
    assert decoded(tokenizer, store.tokens.tolist()) == texts
    assert store.documents == len(texts)
    assert store.text_bytes == window_bytes(store, store.tokens) == sum(len(t.encode()) for t in texts)
    assert store.vocab_size == 500


def test_a_tokenizer_that_was_trained_again_is_read_again(
    prose_documents: Path, tmp_path: Path, prose: list[str]
) -> None:
    path = tmp_path / "tokenizer.json"
    for size in (300, 320):
        train_tokenizer(prose, size).save(str(path))
        store = encode_corpus(prose_documents, path, "test", tmp_path / "x.json", workers=1)
        assert store.tokens.tolist() == library_ids(
            load_tokenizer(path), list(read_texts(prose_documents, "test"))
        )


def test_an_empty_split_is_an_error(tokenizer_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "documents.parquet"
    pq.write_table(pa.table([["a"], ["s"], ["train"]], schema=SCHEMA), path)
    with pytest.raises(UserError, match="no document to encode"):
        encode_corpus(path, tokenizer_path, "test", tmp_path / "x.json")
