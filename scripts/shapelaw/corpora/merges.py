"""The merges of byte-level BPE, applied to many pre-tokens at once with numpy.

In each round every pre-token merges its pair of lowest rank, the leftmost of equals, as the `tokenizers` library
does with one pre-token after the other. A round costs as much as there are tokens in the pre-tokens that still merge,
so this is for short pre-tokens: one of n bytes can take n - 1 rounds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tokenizers import Tokenizer

from shapelaw.corpora.pre_tokens import END
from shapelaw.corpora.token_store import token_dtype
from shapelaw.corpora.tokenizer import byte_ids, end_of_text_id

_GONE = -1  # a token that was merged into the one on its left
_HIGH = 32  # two numbers share an int64: one is shifted by this


class Merges:
    """Gives the ids of pre-tokens, from the merges of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        model = json.loads(tokenizer.to_str())["model"]
        ids, merges = model["vocab"], model["merges"]
        self._dtype = token_dtype(tokenizer.get_vocab_size())
        self._end = end_of_text_id(tokenizer)  # an end merges with nothing
        self._byte_ids = byte_ids(tokenizer)
        self._byte_ids[END[0]] = self._end
        self._merged = np.array([ids[left + right] for left, right in merges], np.int64)  # ids by rank
        self._none = len(merges)  # the rank of a pair that doesn't merge
        ranks = {ids[left] << _HIGH | ids[right]: rank for rank, (left, right) in enumerate(merges)}
        self._pairs = pd.Index(list(ranks))
        self._ranks = np.array([*ranks.values(), self._none])  # the last is for pairs not found, at -1

    def __call__(self, pre_tokens: Iterable[bytes]) -> list[bytes]:
        """The ids of each pre-token, as bytes of the token store's type."""
        ids = self._merge(self._byte_ids[np.frombuffer(END.join([b"", *pre_tokens, b""]), np.uint8)])
        ends = np.flatnonzero(ids == self._end) * self._dtype.itemsize
        content = ids.astype(self._dtype).tobytes()
        starts = (ends[:-1] + self._dtype.itemsize).tolist()
        return [content[start:stop] for start, stop in zip(starts, ends[1:].tolist(), strict=True)]

    def _merge(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids after all merges; `ids` has an end before, between and after the pre-tokens.

        The working arrays hold, for each token of the pre-tokens that still merge and for the end before each of
        them, the id, the place in `ids`, and the rank of the pair with the next token. The last end closes the row.
        """
        token, place = ids.copy(), np.arange(len(ids))
        rank = np.append(self._rank(token[:-1], token[1:]), self._none)
        while True:
            starts = np.flatnonzero(token == self._end)
            best = np.minimum.reduceat(rank << _HIGH | np.arange(len(rank)), starts)
            merging = best < self._none << _HIGH
            if not merging.any():
                return np.compress(ids != _GONE, ids)
            left, best_rank = best[merging] & (1 << _HIGH) - 1, best[merging] >> _HIGH
            token[left] = ids[place[left]] = self._merged[best_rank]
            ids[place[left + 1]] = _GONE

            merging[-1] = True  # the last end stays
            stays = np.repeat(merging, np.diff(starts, append=len(token)))
            stays[left + 1] = False
            token, place, rank = token[stays], place[stays], rank[stays]
            left = (np.cumsum(stays) - 1)[left]
            rank[left] = self._rank(token[left], token[left + 1])
            rank[left - 1] = self._rank(token[left - 1], token[left])

    def _rank(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        ranks: NDArray[np.int64] = self._ranks[self._pairs.get_indexer(left << _HIGH | right)]
        return ranks
