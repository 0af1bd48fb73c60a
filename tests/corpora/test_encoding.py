"""Ids and pre-tokens are the library's for any text, in any batch, by any number of workers."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from shapelaw.corpora import documents, encoding
from shapelaw.corpora.documents import SCHEMA, Document, count_row_groups, read_texts, write_documents
from shapelaw.corpora.token_store import token_dtype, window_bytes
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
    ids = encoding.make_encoder(tokenizer)(texts).tolist()
    assert ids == library_ids(tokenizer, texts)
    assert decoded(tokenizer, ids) == texts


@given(batches=st.lists(TEXTS, max_size=3))
def test_what_one_batch_learns_serves_the_next(tokenizer_path: Path, batches: list[list[str]]) -> None:
    tokenizer = load_tokenizer(tokenizer_path)
    encoder = encoding.CachedEncoder(tokenizer)
    for texts in [*batches, *batches]:
        assert encoder(texts).tolist() == library_ids(tokenizer, texts)


def test_the_end_of_text_letters_are_plain_text(tokenizer: Tokenizer) -> None:
    text = f"one{END_OF_TEXT}two {END_OF_TEXT}"
    ids = encoding.make_encoder(tokenizer)([text, text]).tolist()
    assert ids == library_ids(tokenizer, [text, text])
    assert ids.count(end_of_text_id(tokenizer)) == 2
    assert decoded(tokenizer, ids) == [text, text]


def test_a_full_cache_is_emptied_and_ids_stay_right(tokenizer_path: Path, prose: list[str]) -> None:
    tokenizer = load_tokenizer(tokenizer_path)
    small, large = encoding.CachedEncoder(tokenizer, cache_bytes=50_000), encoding.CachedEncoder(tokenizer)
    texts = prose[:20]
    sizes = []
    for text in texts:
        assert small([text]).tolist() == large([text]).tolist() == library_ids(tokenizer, [text])
        sizes.append(len(small._cache))
    assert len(large._cache) > 1.5 * max(sizes)
    assert any(later < earlier for earlier, later in pairwise(sizes))


@pytest.fixture
def prose_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prose: list[str]) -> Path:
    """The prose as documents.parquet, in many small row groups."""
    monkeypatch.setattr(documents, "ROW_GROUP_BYTES", 40_000)
    path = tmp_path / "documents.parquet"
    write_documents([[Document(text, "topics") for text in prose]], path, test_fraction=0.2)
    assert count_row_groups(path) > 8
    return path


def test_workers_change_nothing(prose_documents: Path, tokenizer_path: Path, tmp_path: Path) -> None:
    one = encoding.encode_corpus(prose_documents, tokenizer_path, "train", tmp_path / "one.json", workers=1)
    two = encoding.encode_corpus(prose_documents, tokenizer_path, "train", tmp_path / "two.json", workers=2)
    assert one.sha256 == two.sha256
    assert one.path.read_text() == two.path.read_text()


@pytest.mark.parametrize("split", documents.SPLITS)
def test_a_store_holds_the_documents_of_its_split(
    prose_documents: Path, tokenizer_path: Path, tmp_path: Path, split: documents.Split
) -> None:
    store = encoding.encode_corpus(prose_documents, tokenizer_path, split, tmp_path / "x.json", workers=1)
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
        store = encoding.encode_corpus(prose_documents, path, "test", tmp_path / "x.json", workers=1)
        assert store.tokens.tolist() == library_ids(
            load_tokenizer(path), list(read_texts(prose_documents, "test"))
        )


def test_an_empty_split_is_an_error(tokenizer_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "documents.parquet"
    pq.write_table(pa.table([["a"], ["s"], ["train"]], schema=SCHEMA), path)
    with pytest.raises(UserError, match="no document to encode"):
        encoding.encode_corpus(path, tokenizer_path, "test", tmp_path / "x.json")


# Every white space, what looks like it, and what contractions and numbers are made of.
ODD_SPACES = st.text(
    st.sampled_from(
        "\t\n\v\f\r  \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\x1c\x1f\u180e\u200b\ufeff"
        "abé中1²'’.!_strevldmSTLL🦊𝐀\u0301"
    )
)


def library_pre_tokens(text: str) -> list[bytes]:
    cuts = ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    return [text[start:stop].encode() for _, (start, stop) in cuts]


def our_pre_tokens(texts: list[str]) -> list[bytes]:
    content = encoding.mark_ends(texts)
    starts = [*encoding.PreTokenizer()(content).tolist(), len(content)]
    return [content[start:stop] for start, stop in pairwise(starts)]


@given(texts=st.lists(st.text() | ODD_SPACES, max_size=5))
def test_any_texts_are_cut_as_the_library_cuts_them(texts: list[str]) -> None:
    assert our_pre_tokens(texts) == [
        encoding.END,
        *(p for text in texts for p in [*library_pre_tokens(text), encoding.END]),
    ]


def test_every_character_is_of_the_kind_that_the_library_takes_it_for() -> None:
    unassigned = range(0x40000, 0xE0000)  # whole planes, and surrogates are no characters
    everything = [chr(c) for c in range(0xF0000) if c not in unassigned and not 0xD800 <= c < 0xE000]
    for text in ("".join(everything), ".".join(everything)):
        assert our_pre_tokens([text]) == [encoding.END, *library_pre_tokens(text), encoding.END]


def bpe(merges: Sequence[tuple[str, str]], unused: int = 0) -> Tokenizer:
    """Byte-level BPE with these merges; `unused` ids lie below those of the merged tokens."""
    tokens = dict.fromkeys([*sorted(ByteLevel.alphabet()), END_OF_TEXT, *map(str, range(10, 10 + unused))])
    tokens.update(dict.fromkeys(left + right for left, right in merges))
    return Tokenizer(BPE({token: i for i, token in enumerate(tokens)}, list(merges)))


def check(tokenizer: Tokenizer, pre_tokens: list[str]) -> None:
    """Our ids of these pre-tokens are the library's; anything may be a pre-token."""
    dtype = token_dtype(tokenizer.get_vocab_size())
    ours = encoding.Merges(tokenizer)([pre_token.encode() for pre_token in pre_tokens])
    letters = ByteLevel(add_prefix_space=False, use_regex=False)
    for pre_token, ids in zip(pre_tokens, ours, strict=True):
        theirs = tokenizer.model.tokenize(letters.pre_tokenize_str(pre_token)[0][0])
        assert np.frombuffer(ids, dtype).tolist() == [token.id for token in theirs], pre_token


@st.composite
def merge_lists(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Merges over two letters, of any rank: those of a token may come before those of its parts."""
    tokens = ["a", "b"]
    merges: dict[tuple[str, str], None] = {}
    for _ in range(draw(st.integers(0, 12))):
        pair = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        merges[pair] = None
        tokens.append("".join(pair))
    return draw(st.permutations(list(merges)))


@given(merges=merge_lists(), pre_tokens=st.lists(st.text("ab", min_size=1, max_size=40), max_size=6))
@settings(deadline=None)
def test_any_merges_in_any_order_are_applied_as_the_library_applies_them(
    merges: list[tuple[str, str]], pre_tokens: list[str]
) -> None:
    check(bpe(merges), pre_tokens)


def test_ids_above_65535_are_wide() -> None:
    tokenizer = bpe([("a", "b"), ("ab", "ab")], unused=70_000)
    assert np.frombuffer(encoding.Merges(tokenizer)([b"ababab"])[0], "<u4").tolist() == [70_258, 70_257]
    check(tokenizer, ["ababab", "ba", "é"])
