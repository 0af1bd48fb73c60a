"""Crops of photographs, images of a folder, and examples of text: what stands where."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from shapelaw.corpora.tokenizer import END_OF_TEXT, train_tokenizer
from shapelaw.errors import UserError
from shapelaw.studies.assumptions import check


def gradient(width: int, height: int) -> Image.Image:
    """Red grows to the right, green downwards."""
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[..., 0] = np.linspace(0, 255, width)[None, :]
    pixels[..., 1] = np.linspace(0, 255, height)[:, None]
    return Image.fromarray(pixels)


def test_crops_are_different_parts_some_of_them_mirrored():
    photographs = [gradient(90, 60), gradient(50, 80)]
    crops = [np.asarray(crop, dtype=float) for crop in check.random_crops(photographs, 40, 16, seed=0)]
    again = [np.asarray(crop, dtype=float) for crop in check.random_crops(photographs, 40, 16, seed=0)]
    assert all(np.array_equal(a, b) for a, b in zip(crops, again, strict=True))
    assert {crop.shape for crop in crops} == {(16, 16, 3)}
    assert len({crop.tobytes() for crop in crops}) == 40
    rightwards = [crop[:, -1, 0].mean() > crop[:, 0, 0].mean() for crop in crops]
    assert 8 < sum(rightwards) < 32
    assert all(crop[-1, :, 1].mean() > crop[0, :, 1].mean() for crop in crops)
    spans = [np.ptp(crop[..., 0]) * np.ptp(crop[..., 1]) / 255**2 for crop in crops]
    assert 0.03 < min(spans) < 0.3 < 0.7 < max(spans)


def test_images_of_a_folder(tmp_path):
    (tmp_path / "deep").mkdir()
    gradient(30, 20).save(tmp_path / "deep" / "b.PNG")
    gradient(20, 30).save(tmp_path / "a.jpg", quality=95)
    gradient(20, 20).convert("L").save(tmp_path / "0grey.png")
    (tmp_path / "notes.txt").write_text("no image")
    (batch,), _ = check.images_of_folder(tmp_path, 2, 8)
    assert batch.shape == (2, 3, 8, 8)
    assert batch.dtype == np.float64
    assert -1 <= batch.min() < -0.8
    assert 0.8 < batch.max() <= 1
    assert (np.diff(batch[1, 0], axis=1) > 0).all()
    with pytest.raises(UserError, match="has 2 colour images, but 3 are asked for"):
        list(check.images_of_folder(tmp_path, 3, 8)[0])
    (tmp_path / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n cut short")
    with pytest.raises(UserError, match=r"c\.png can't be read"):
        list(check.images_of_folder(tmp_path, 3, 8)[0])
    with pytest.raises(UserError, match="There is no folder"):
        check.images_of_folder(tmp_path / "nothing", 1, 8)


CLS, SEP = 10_001, 10_002


@given(st.integers(13, 60), st.integers(1, 50), st.integers(0, 10**6))
def test_pairs_are_two_pieces_of_the_stream(length, count, seed):
    stream = np.arange(2_000)
    pairs = check.sentence_pairs(stream, count, length, CLS, SEP, seed)
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
    pairs = check.sentence_pairs(np.arange(100_000), 2_000, 40, CLS, SEP, seed=3)
    at = np.argmax(pairs == SEP, axis=1)
    rows = np.arange(len(pairs))
    follows = (pairs[rows, at + 1] == pairs[rows, at - 1] + 1).mean()
    assert follows == pytest.approx(0.5, abs=0.05)


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 10**6))
def test_windows_begin_at_different_places(count, length, seed):
    stream = np.arange(count + length - 1, dtype=np.uint16)
    found = check.windows(stream, count, length, seed)
    assert found.dtype == np.int64
    assert sorted(found[:, 0].tolist()) == list(range(count))
    assert (found == found[:, :1] + np.arange(length)).all()
    np.testing.assert_array_equal(found, check.windows(stream, count, length, seed))
    assert np.concatenate(list(check.batches(found))).tolist() == found.tolist()


def test_a_text_that_is_too_short():
    with pytest.raises(UserError, match="has 19 tokens, too few for 10 windows of 11"):
        check.windows(np.arange(19), 10, 11, 0)
    with pytest.raises(UserError, match="give at least 13"):
        check.sentence_pairs(np.arange(100), 2, 12, CLS, SEP, 0)


def test_a_stream_is_all_texts_in_their_order():
    """Bytes as tokens: more texts than are encoded at once, with an end after each."""
    tokenizer = train_tokenizer([], 257)
    end = check.special_id(tokenizer, END_OF_TEXT)
    stream = check.stream_of((f"text {i}é" for i in range(600)), tokenizer, [end])
    pieces = np.split(stream, np.flatnonzero(stream == end) + 1)[:-1]
    assert [tokenizer.decode(piece[:-1].tolist()) for piece in pieces] == [f"text {i}é" for i in range(600)]
    with pytest.raises(UserError, match=r"no token \[CLS\]"):
        check.special_id(tokenizer, "[CLS]")
