"""Text to token ids, exactly as the `tokenizers` library gives them, at a multiple of its speed.

With 257 ids a token is a byte, and one table lookup encodes a batch.

With more ids a batch is cut into pre-tokens (`PreTokenizer`), and each distinct one is looked up in a cache of ids.
Pre-tokens that the cache lacks are merged all at once (`Merges`); the rare long ones go to the library.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer
from tokenizers.normalizers import Replace

from shapelaw.corpora.documents import Split, count_row_groups, read_row_group
from shapelaw.corpora.token_store import EncodedBatch, TokenStore, token_dtype, write_token_store
from shapelaw.corpora.tokenizer import BYTE_VOCAB_SIZE, byte_ids, end_of_text_id, load_tokenizer, token_bytes

Encoder = Callable[[Sequence[str]], NDArray[Any]]

_CACHE_BYTES = 128 * 2**20  # per process
_ENTRY_BYTES = 150  # of a pre-token in the cache, beside its letters and ids: two objects and a slot
_LONGEST_MERGED = 100  # bytes; the library merges longer pre-tokens faster
_ROW_GROUPS_PER_WORKER = 2  # in flight, to limit the memory; fewer in all are not worth a process


def make_encoder(tokenizer: Tokenizer) -> Encoder:
    """The fastest encoder of a tokenizer: a function from texts to ids [T] in the store's type.

    Each text is followed by the end-of-text id. The ids of a text are those of `tokenizer.encode` with
    `encode_special_tokens` set.
    """
    if tokenizer.get_vocab_size() == BYTE_VOCAB_SIZE:
        return byte_encoder(tokenizer)
    return CachedEncoder(tokenizer)


def byte_encoder(tokenizer: Tokenizer) -> Encoder:
    """The encoder of a tokenizer without merges."""
    table = byte_ids(tokenizer).astype(token_dtype(tokenizer.get_vocab_size()))
    table[END[0]] = end_of_text_id(tokenizer)

    def encode(texts: Sequence[str]) -> NDArray[Any]:
        return table[np.frombuffer(mark_ends(texts), dtype=np.uint8)[1:]]

    return encode


class CachedEncoder:
    """The encoder of a tokenizer with merges; it keeps the ids of pre-tokens, in bounded memory."""

    def __init__(self, tokenizer: Tokenizer, cache_bytes: int = _CACHE_BYTES) -> None:
        self._tokenizer = tokenizer
        self._dtype = token_dtype(tokenizer.get_vocab_size())
        self._pre_tokens = PreTokenizer()
        self._merges = Merges(tokenizer)
        self._cache_bytes = cache_bytes
        self._forget()

    def __call__(self, texts: Sequence[str]) -> NDArray[Any]:
        """Ids [T] of the texts, each followed by the end-of-text id."""
        if not texts:
            return np.empty(0, self._dtype)
        content = mark_ends(texts)
        bounds = np.append(self._pre_tokens(content)[1:], len(content))  # without the first END
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(content)]
        pre_tokens = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers).dictionary_encode()
        distinct = pre_tokens.dictionary.to_pylist()
        if new := [pre_token for pre_token in distinct if pre_token not in self._cache]:
            self._learn(new)
        cached = pa.array([self._cache[pre_token] for pre_token in distinct], pa.large_binary())
        ids = cached.take(pre_tokens.indices)
        if self._used_bytes > self._cache_bytes:
            self._forget()
        return np.frombuffer(ids.buffers()[2], self._dtype, ids.total_values_length // self._dtype.itemsize)

    def _learn(self, pre_tokens: list[bytes]) -> None:
        """Put new pre-tokens and their ids, as bytes, into the cache."""
        short = [pre_token for pre_token in pre_tokens if len(pre_token) <= _LONGEST_MERGED]
        long = [pre_token for pre_token in pre_tokens if len(pre_token) > _LONGEST_MERGED]
        learnt = dict(zip(short, self._merges(short), strict=True))
        encodings = self._tokenizer.encode_batch_fast([p.decode() for p in long], add_special_tokens=False)
        for pre_token, encoding in zip(long, encodings, strict=True):
            learnt[pre_token] = np.array(encoding.ids, self._dtype).tobytes()
        self._cache.update(learnt)
        content_bytes = sum(map(len, learnt)) + sum(map(len, learnt.values()))
        self._used_bytes += _ENTRY_BYTES * len(learnt) + content_bytes

    def _forget(self) -> None:
        self._cache = {END: np.array([end_of_text_id(self._tokenizer)], self._dtype).tobytes()}
        self._used_bytes = 0


def encode_corpus(
    documents: Path, tokenizer_path: Path, split: Split, header_path: Path, workers: int | None = None
) -> TokenStore:
    """Encode one split of `documents.parquet` into the token store at `header_path`.

    Row groups are encoded in parallel and written in order; at most two for each worker are in memory.

    Args:
        workers: processes; by default one for each core that this process may use.

    Raises:
        UserError: a file is missing or of the wrong kind, or the split is empty.
    """
    tokenizer = load_tokenizer(tokenizer_path)
    digest = hashlib.sha256(tokenizer_path.read_bytes()).hexdigest()
    row_groups = count_row_groups(documents)
    task = partial(_encode_row_group, documents, split, tokenizer_path, digest)
    workers = workers or _usable_cores()
    if tokenizer.get_vocab_size() == BYTE_VOCAB_SIZE or row_groups < _ROW_GROUPS_PER_WORKER * workers:
        workers = 1  # reading, or starting processes, takes longer than encoding
    return write_token_store(
        header_path,
        map(task, range(row_groups)) if workers == 1 else _parallel(task, range(row_groups), workers),
        end_of_text=end_of_text_id(tokenizer),
        token_bytes=token_bytes(tokenizer),
        tokenizer_sha256=digest,
    )


def _parallel(
    task: Callable[[int], EncodedBatch], indices: Iterable[int], workers: int
) -> Iterator[EncodedBatch]:
    """`map(task, indices)` in processes, in order, with a bounded number of tasks and results in flight."""
    remaining = iter(indices)
    with ProcessPoolExecutor(workers, get_context("spawn"), _be_single_threaded) as pool:
        pending: deque[Future[EncodedBatch]] = deque(
            pool.submit(task, index) for index in islice(remaining, _ROW_GROUPS_PER_WORKER * workers)
        )
        try:
            while pending:
                yield pending.popleft().result()
                pending.extend(pool.submit(task, index) for index in islice(remaining, 1))
        finally:
            pool.shutdown(cancel_futures=True)


def _usable_cores() -> int:
    """Number of cores that this process may use; Slurm gives a job fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _be_single_threaded() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _encode_row_group(
    documents: Path, split: Split, tokenizer_path: Path, tokenizer_sha256: str, index: int
) -> EncodedBatch:
    texts, text_bytes = read_row_group(documents, index, split)
    return EncodedBatch(_process_encoder(tokenizer_path, tokenizer_sha256)(texts), text_bytes, len(texts))


@lru_cache(maxsize=1)
def _process_encoder(tokenizer_path: Path, tokenizer_sha256: str) -> Encoder:
    """The encoder that a process keeps from one row group to the next; the hash detects a rewritten file."""
    return make_encoder(load_tokenizer(tokenizer_path))


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
    """Finds GPT-2's pre-tokens in UTF-8 bytes, exactly as the library cuts them.

    The pattern is `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+`. Whether it cuts
    between two characters depends on the kinds of characters around them, so comparisons of whole arrays find all cuts.
    The library's own regex engine says which characters are letters, numbers and white space, once for each character
    that occurs, as Unicode tables differ between engines.
    """

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


_GONE = -1  # a token that was merged into the one on its left
_HIGH = 32  # two numbers share an int64: one is shifted by this


class Merges:
    """Gives the ids of many pre-tokens at once, from the merges of a tokenizer.

    In each round every pre-token merges its pair of lowest rank, the leftmost of equals, as the library does with one
    pre-token after the other. A round costs as much as there are tokens in the pre-tokens that still merge, so this is
    for short pre-tokens: one of n bytes can take n - 1 rounds.
    """

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
