"""Examples of text: what stands where, whatever the stream."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.corpora.tokenizer import END_OF_TEXT, train_tokenizer
from shapelaw.errors import UserError
from shapelaw.studies.assumptions.texts import batches, sentence_pairs, special_id, stream_of, windows

CLS, SEP = 10_001, 10_002


@given(st.integers(13, 60), st.integers(1, 50), st.integers(0, 10**6))
def test_pairs_are_two_pieces_of_the_stream(length, count, seed):
    stream = np.arange(2_000)
    pairs = sentence_pairs(stream, count, length, CLS, SEP, seed)
    assert pairs.shape == (count, length)
    assert (pairs[:, 0] == CLS).all()
    assert ((pairs == SEP).sum(axis=1) == 1).all()
    for row in pairs:
        cut = int(np.flatnonzero(row == SEP)[0])
        first, second = row[1:cut], row[cut + 1 :]
        assert len(first) >= 5
        assert len(second) >= 5
        assert (np.diff(first) == 1).all()
        assert (np.diff(second) == 1).all()


def test_half_of_the_second_pieces_go_on_after_the_first():
    pairs = sentence_pairs(np.arange(100_000), 2_000, 40, CLS, SEP, seed=3)
    at = np.argmax(pairs == SEP, axis=1)
    rows = np.arange(len(pairs))
    follows = (pairs[rows, at + 1] == pairs[rows, at - 1] + 1).mean()
    assert follows == pytest.approx(0.5, abs=0.05)


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 10**6))
def test_windows_begin_at_different_places(count, length, seed):
    stream = np.arange(count + length - 1, dtype=np.uint16)
    found = windows(stream, count, length, seed)
    assert found.dtype == np.int64
    assert sorted(found[:, 0].tolist()) == list(range(count))
    assert (found == found[:, :1] + np.arange(length)).all()
    np.testing.assert_array_equal(found, windows(stream, count, length, seed))
    assert np.concatenate(list(batches(found))).tolist() == found.tolist()


def test_a_text_that_is_too_short():
    with pytest.raises(UserError, match="has 19 tokens, too few for 10 windows of 11"):
        windows(np.arange(19), 10, 11, 0)
    with pytest.raises(UserError, match="give at least 13"):
        sentence_pairs(np.arange(100), 2, 12, CLS, SEP, 0)


def test_a_stream_is_all_texts_in_their_order():
    """Bytes as tokens: more texts than are encoded at once, with an end after each."""
    tokenizer = train_tokenizer([], 257)
    end = special_id(tokenizer, END_OF_TEXT)
    stream = stream_of((f"text {i}é" for i in range(600)), tokenizer, [end])
    pieces = np.split(stream, np.flatnonzero(stream == end) + 1)[:-1]
    assert [tokenizer.decode(piece[:-1].tolist()) for piece in pieces] == [f"text {i}é" for i in range(600)]
    with pytest.raises(UserError, match=r"no token \[CLS\]"):
        special_id(tokenizer, "[CLS]")
