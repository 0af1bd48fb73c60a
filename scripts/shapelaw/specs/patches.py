"""Images as text: a letter for each patch of pixels.

A patch is 2 x 2 pixels of 3 levels of grey, read row by row: 81 patches, so that each is one visible ASCII letter and
one token of the vocabulary of bytes. A linear map of the patch's numbers is the convolutional embedding of a vision
Transformer: as a matrix its kernel has a rank of at most the numbers of a patch (Wies et al. 2021, eqs. 2 and 4).
"""

from __future__ import annotations

SIDE, LEVELS = 2, 3  # pixels along a side of a patch; levels of grey
NUMBERS = SIDE * SIDE  # of a patch
PATCHES = LEVELS**NUMBERS
FIRST_LETTER = "!"  # of patch 0; the letters after it are those of the others
BYTE_VOCABULARY = 257  # of bytes, where a letter is a token; a larger one merges letters
FIRST_ID = 1  # of patch 0 in the vocabulary of bytes, whose id 0 ends a document
INPUTS = NUMBERS + 1  # of a patch embedding: a patch's numbers, and one that says that an image ended


def numbers_of_ids() -> list[list[float]]:
    """The inputs of a patch embedding for ids 0 ... 81, [82, 5].

    Id 0 ends an image: its last number is 1. The levels of a patch are -1, 0 and 1, its first pixel the highest digit
    of its number in base 3.
    """
    rows = [[0.0] * NUMBERS + [1.0]]
    for patch in range(PATCHES):
        digits = [patch // LEVELS**place % LEVELS for place in reversed(range(NUMBERS))]
        rows.append([*(digit - (LEVELS - 1) / 2 for digit in digits), 0.0])
    return rows
