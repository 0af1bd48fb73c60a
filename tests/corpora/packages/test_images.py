"""Images as text: letters of patches, from a made package and from the true one."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from made_packages import DOWNLOADS, put_package, read

from shapelaw.corpora import packages
from shapelaw.corpora.packages import FASHION, image_texts
from shapelaw.corpora.tokenizer import end_of_text_id, train_tokenizer
from shapelaw.errors import UserError
from shapelaw.specs.shapes import FIRST_ID, FIRST_LETTER, PATCHES, numbers_of_ids

HEADER = bytes([0, 0, 8, 3])


def idx(pixels: np.ndarray) -> bytes:
    """Images as MNIST's files hold them."""
    return gzip.compress(HEADER + np.array(pixels.shape, ">u4").tobytes() + pixels.tobytes())


def test_a_letter_is_a_patch_of_four_pixels() -> None:
    image = np.array([[0, 85, 255, 255], [86, 170, 255, 255]], np.uint8)
    first, second = next(image_texts(image[None]))
    assert ord(first) - ord(FIRST_LETTER) == 0 * 27 + 0 * 9 + 1 * 3 + 1
    assert ord(second) - ord(FIRST_LETTER) == PATCHES - 1
    with pytest.raises(ValueError, match="don't divide images of 3 x 4"):
        next(image_texts(np.zeros((1, 3, 4), np.uint8)))


def test_ids_of_the_vocabulary_of_bytes_have_the_numbers_of_their_patches() -> None:
    tokenizer = train_tokenizer([], 257)
    numbers = numbers_of_ids()
    assert numbers[end_of_text_id(tokenizer)] == [0, 0, 0, 0, 1]
    letters = "".join(chr(ord(FIRST_LETTER) + patch) for patch in range(PATCHES))
    ids = [tokenizer.encode(letter, add_special_tokens=False).ids for letter in letters]
    assert ids == [[FIRST_ID + patch] for patch in range(PATCHES)]
    pixels = (np.array(numbers)[1:, :4] * 127.5 + 127.5).astype(np.uint8).reshape(-1, 2, 2)
    assert "".join(image_texts(pixels)) == letters
    assert np.linalg.matrix_rank(numbers) == 5


def test_the_images_for_training_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = FASHION.member
    files = {
        f"{folder}t10k-images-idx3-ubyte.gz": idx(np.zeros((1, 2, 4), np.uint8)),
        f"{folder}t10k-labels-idx1-ubyte.gz": b"labels",
        f"{folder}train-images-idx3-ubyte.gz": idx(np.full((2, 2, 2), 255, np.uint8)),
    }
    put_package(monkeypatch, packages, "FASHION", files, tmp_path)
    assert read("fashion", tmp_path) == [
        ("fashion:train/0", None, "q"),
        ("fashion:train/1", None, "q"),
        ("fashion:t10k/0", None, "!!"),
    ]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"./readme": b""}, "has no images; delete it and try again"),
        ({f"{FASHION.member}train-images-idx3-ubyte.gz": b"?"}, "can't be read"),
        ({f"{FASHION.member}train-images-idx3-ubyte.gz": gzip.compress(b"text")}, "not an IDX file"),
    ],
)
def test_a_wrong_package_is_a_sentence(
    files: dict[str, bytes], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_package(monkeypatch, packages, "FASHION", files, tmp_path)
    with pytest.raises(UserError, match=sentence):
        read("fashion", tmp_path)


def test_the_true_package() -> None:
    if not (DOWNLOADS / FASHION.filename).is_file():
        pytest.skip(f"{FASHION.filename} is not downloaded")
    texts = [text for _, _, text in read("fashion", DOWNLOADS)]
    assert (len(texts), len(set(texts))) == (70_000, 69_997)
    assert {len(text) for text in texts} == {196}
    assert len(set("".join(texts))) == PATCHES
