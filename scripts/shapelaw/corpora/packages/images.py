"""Fashion-MNIST as text: an image is a document, a letter for each patch of 2 x 2 pixels, row by row."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from shapelaw.corpora.documents import Document
from shapelaw.corpora.packages.archives import Package, fetch, members
from shapelaw.errors import UserError
from shapelaw.specs.patches import FIRST_LETTER, LEVELS, NUMBERS, SIDE

FASHION = Package(
    name="dataset-fashion-mnist",
    version="0.0~git20200523.55506a9-1",
    filename="dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
    sha256="39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
    member="./usr/share/datasets/fashion-mnist/",
    client="apt-get",
    instead="or leave the source fashion out",
)
_IMAGES = "-images-idx3-ubyte.gz"
_IDX_OF_BYTES = bytes([0, 0, 8, 3])  # the file format of MNIST: unsigned bytes in three dimensions
_HEADER = 16  # bytes: those four, and three sizes


def read_fashion(cache: Path) -> Iterator[Document]:
    """The images of Fashion-MNIST, those for training first (Xiao et al. 2017).

    Raises:
        UserError: the package can't be downloaded or read, or holds no images.
    """
    path = fetch(FASHION, cache)
    found = dict(members(path, lambda name: name.startswith(FASHION.member) and name.endswith(_IMAGES)))
    if not found:
        raise UserError(f"{path} has no images; delete it and try again.")
    for name in sorted(found, reverse=True):  # train before t10k
        part = PurePosixPath(name).name.removesuffix(_IMAGES)
        try:
            images = _images(gzip.decompress(found[name]))
        except (OSError, EOFError, ValueError) as error:
            raise UserError(f"{name} in {path} can't be read ({error}); delete it and try again.") from error
        for number, text in enumerate(image_texts(images)):
            yield Document(text, f"fashion:{part}/{number}")


def image_texts(images: NDArray[np.uint8]) -> Iterator[str]:
    """A text for each image: the letters of its patches, row by row.

    Args:
        images: grey values, [images, rows, columns].

    Raises:
        ValueError: patches don't divide the rows or the columns.
    """
    count, rows, columns = images.shape
    if rows % SIDE or columns % SIDE:
        raise ValueError(f"patches of {SIDE} x {SIDE} pixels don't divide images of {rows} x {columns}")
    levels = images.astype(np.int64) * LEVELS // 256
    patches = levels.reshape(count, rows // SIDE, SIDE, columns // SIDE, SIDE).transpose(0, 1, 3, 2, 4)
    powers = LEVELS ** np.arange(NUMBERS - 1, -1, -1)
    letters = (patches.reshape(count, -1, NUMBERS) @ powers + ord(FIRST_LETTER)).astype(np.uint8)
    for row in letters:
        yield row.tobytes().decode("ascii")


def _images(content: bytes) -> NDArray[np.uint8]:
    if content[:4] != _IDX_OF_BYTES:
        raise ValueError("it is not an IDX file of images")
    sizes = np.frombuffer(content, ">u4", count=3, offset=4)
    return np.frombuffer(content, np.uint8, offset=_HEADER).reshape(*map(int, sizes))
