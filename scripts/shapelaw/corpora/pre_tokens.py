"""GPT-2's pre-tokens, found in UTF-8 bytes with numpy, exactly as the `tokenizers` library cuts them.

The pattern is `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+`. Whether it cuts
between two characters depends on the kinds of characters around them, so comparisons of whole arrays find all
cuts. The library's own regex engine says which characters are letters, numbers and white space, once for each
character that occurs, as Unicode tables differ between engines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex
from tokenizers.normalizers import Replace

END = b"\xff"  # before, between and after texts; UTF-8 never uses this byte
# Kinds of characters; white space comes last, and with it the blank that other pre-tokens may start with.
_END, _UNKNOWN, _OTHER, _LETTER, _NUMBER, _SPACE, _BLANK = range(7)
# Patterns that delete all characters but those of one kind.
_OTHERS = {_LETTER: r"\P{L}+", _NUMBER: r"\P{N}+", _SPACE: r"\S+"}
_APOSTROPHE = ord("'")
_CHARACTERS = 0x110000


def mark_ends(texts: Iterable[str]) -> bytes:
    """The texts in UTF-8, with END before the first and after each."""
    return END.join([b"", *(text.encode() for text in texts), b""])


class PreTokenizer:
    """Finds the pre-tokens of texts and keeps the kinds of the characters that it has seen."""

    def __init__(self) -> None:
        self._kinds = np.full(_CHARACTERS, _UNKNOWN, np.uint8)
        self._learn_kinds(np.arange(0x80))
        self._kinds[ord(" ")] = _BLANK
        self._byte_kinds = self._kinds[:256].copy()
        self._byte_kinds[0x80:] = _UNKNOWN  # a part of a character
        self._byte_kinds[END[0]] = _END

    def __call__(self, content: bytes) -> NDArray[np.int64]:
        """The starts of the pre-tokens of `mark_ends(texts)`, in bytes and in order; each END is a pre-token."""
        data = np.frombuffer(content, np.uint8)
        kinds = self._kinds_of(data)
        before, after = kinds[:-1], kinds[1:]
        cuts = np.ones(len(data), bool)
        cuts[1:] = (before != after) & (before != _BLANK)  # a blank belongs to what follows
        cuts[1:] |= (before == _END) | (after == _END)

        # The last character of white space before something else is cut from those before it.
        space = kinds >= _SPACE
        cuts[1:] &= ~(space[:-1] & space[1:])
        last = np.flatnonzero(space[:-2] & space[1:-1] & ~space[2:] & (kinds[2:] != _END)) + 1
        while np.any(inside := data[last] & 0xC0 == 0x80):
            last -= inside  # to its first byte
        cuts[last] = True

        # 's and its like are pre-tokens where the apostrophe starts one.
        apostrophe = np.flatnonzero((data[:-2] == _APOSTROPHE) & cuts[:-2])
        first, second = data[apostrophe + 1], data[apostrophe + 2]
        letters = np.isin(first, list(b"stmd")).astype(np.int64)
        for pair in (b"re", b"ve", b"ll"):
            letters[(first == pair[0]) & (second == pair[1])] = 2
        apostrophe, letters = apostrophe[letters > 0], letters[letters > 0]
        cuts[apostrophe + 1] = False
        cuts[apostrophe + 1 + letters] = True
        return np.flatnonzero(cuts)

    def _kinds_of(self, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The kind of the character that each byte belongs to."""
        kinds: NDArray[np.uint8] = self._byte_kinds[data]
        at = np.flatnonzero(kinds == _UNKNOWN)
        if len(at):
            characters = _code_points(data[at].tobytes().decode())
            unknown = characters[self._kinds[characters] == _UNKNOWN]
            if len(unknown):
                self._learn_kinds(np.unique(unknown))
            first_bytes = data[at] >= 0xC0
            kinds[at] = self._kinds[characters][np.cumsum(first_bytes) - 1]
        return kinds

    def _learn_kinds(self, code_points: NDArray[Any]) -> None:
        characters = "".join(map(chr, code_points))
        self._kinds[code_points] = _OTHER
        for kind, others in _OTHERS.items():
            self._kinds[_code_points(Replace(Regex(others), "").normalize_str(characters))] = kind


def _code_points(text: str) -> NDArray[Any]:
    return np.frombuffer(text.encode("utf-32-le"), "<u4")
