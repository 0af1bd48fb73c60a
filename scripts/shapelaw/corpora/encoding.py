"""Text to token ids, exactly as the `tokenizers` library gives them, at a multiple of its speed.

With 257 ids a token is a byte, and one table lookup encodes a batch.

With more ids the text is cut before each run of white space ("The cat sat." -> "The", " cat", " sat."), and a cache
gives each piece's ids. GPT-2's pre-tokens never continue from another character into white space, so each cut lies
between two pre-tokens, and the pre-tokens inside a piece depend on nothing outside of it. The pieces are coarser
than pre-tokens, hence fewer to look up, and need no Unicode tables of letters, which differ between regex engines.
Pieces that the cache lacks go to the library.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from shapelaw.corpora.documents import Split, count_row_groups, read_row_group
from shapelaw.corpora.token_store import EncodedBatch, TokenStore, token_dtype, write_token_store
from shapelaw.corpora.tokenizer import BYTE_VOCAB_SIZE, byte_ids, end_of_text_id, load_tokenizer, token_bytes

Encoder = Callable[[Sequence[str]], NDArray[Any]]

# Unicode's White_Space, as the library's pre-tokenizer knows it; Python's own \s also takes U+001C to U+001F.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_PIECES = re.compile(f"[{WHITE_SPACE}]*[^{WHITE_SPACE}]+|[{WHITE_SPACE}]+")
_CACHE_BYTES = 128 * 2**20  # per process
_PIECE_BYTES = 250  # what a short piece costs in the cache: two objects and a slot
_TEXTS_AT_ONCE = 256  # their new pieces go to the library together
_JOINED_PIECES = 512  # longer texts are slower in the library
_ROW_GROUPS_PER_WORKER = 2  # in flight: they bound the memory; fewer than this in all are not worth a process


def make_encoder(tokenizer: Tokenizer) -> Encoder:
    """The fastest encoder of a tokenizer: a function from texts to ids [T] in the store's type.

    Each text is followed by the end-of-text id. The ids of a text are those of `tokenizer.encode` with
    `encode_special_tokens` set.
    """
    if tokenizer.get_vocab_size() == BYTE_VOCAB_SIZE:
        return byte_encoder(tokenizer)
    return CachedEncoder(tokenizer)


def byte_encoder(tokenizer: Tokenizer) -> Encoder:
    """The encoder of a tokenizer without merges. The byte 255, which UTF-8 never uses, marks the ends of texts."""
    table = byte_ids(tokenizer).astype(token_dtype(tokenizer.get_vocab_size()))
    table[255] = end_of_text_id(tokenizer)

    def encode(texts: Sequence[str]) -> NDArray[Any]:
        marked = b"\xff".join([text.encode() for text in texts] + [b""])
        return table[np.frombuffer(marked, dtype=np.uint8)]

    return encode


class CachedEncoder:
    """The encoder of a tokenizer with merges; it remembers the ids of the pieces it has seen, in bounded memory."""

    def __init__(self, tokenizer: Tokenizer, cache_bytes: int = _CACHE_BYTES) -> None:
        self._tokenizer = tokenizer
        self._dtype = token_dtype(tokenizer.get_vocab_size())
        self._token_bytes = token_bytes(tokenizer)
        self._end = np.array([end_of_text_id(tokenizer)], self._dtype).tobytes()
        self._cache = _PieceCache()
        self._cache_bytes = cache_bytes
        self._used_bytes = 0

    def __call__(self, texts: Sequence[str]) -> NDArray[Any]:
        """Ids [T] of the texts, each followed by the end-of-text id."""
        groups = (texts[i : i + _TEXTS_AT_ONCE] for i in range(0, len(texts), _TEXTS_AT_ONCE))
        ids = chain.from_iterable(map(self._encode, groups))
        return np.frombuffer(self._end.join([*ids, b""]), dtype=self._dtype)

    def _encode(self, texts: Sequence[str]) -> list[bytes]:
        """The ids of each text, as bytes."""
        ids: list[bytes] = []
        unfinished: list[tuple[int, list[str]]] = []  # texts with new pieces
        look_up, unknown = self._cache.__getitem__, self._cache.unknown
        for number, text in enumerate(texts):
            before = len(unknown)
            pieces = _PIECES.findall(text)
            ids.append(b"".join(map(look_up, pieces)))
            if len(unknown) > before:
                unfinished.append((number, pieces))
        if unfinished:
            self._learn(list(set(unknown)))
            for number, pieces in unfinished:
                ids[number] = b"".join(map(look_up, pieces))
            unknown.clear()
        if self._used_bytes > self._cache_bytes:
            self._cache.clear()
            self._used_bytes = 0
        return ids

    def _learn(self, pieces: list[str]) -> None:
        """Let the library encode new pieces.

        A piece that starts with white space and ends without it is still a piece when others like it stand around
        it, so these are joined; the library has a cost per text. The ids of a piece are those that fill its bytes.
        """
        joinable: list[str] = []
        alone: list[str] = []
        for piece in pieces:
            inner = piece[0] in WHITE_SPACE and piece[-1] not in WHITE_SPACE
            (joinable if inner else alone).append(piece)
        joined = ["".join(joinable[i : i + _JOINED_PIECES]) for i in range(0, len(joinable), _JOINED_PIECES)]
        encodings = self._tokenizer.encode_batch_fast(joined + alone, add_special_tokens=False)
        ids = np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), self._dtype)
        ordered = joinable + alone
        piece_ends = np.cumsum([len(piece.encode()) for piece in ordered])
        token_ends = np.cumsum(self._token_bytes[ids])
        stops = np.searchsorted(token_ends, piece_ends) + 1
        if stops[-1] != len(ids) or not np.array_equal(token_ends[stops - 1], piece_ends):
            raise RuntimeError("the tokenizer's ids don't end where the pieces of the text do")
        content = ids.tobytes()
        offsets = [0, *(stops * self._dtype.itemsize).tolist()]
        self._cache.update(
            (piece, content[start:stop])
            for piece, start, stop in zip(ordered, offsets[:-1], offsets[1:], strict=True)
        )
        self._used_bytes += _PIECE_BYTES * len(ordered) + 2 * int(piece_ends[-1]) + len(content)


class _PieceCache(dict[str, bytes]):
    """Ids of pieces, as bytes. A piece that it lacks gives none and is noted, so that hits cost no Python code."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def __missing__(self, piece: str) -> bytes:
        self.unknown.append(piece)
        return b""


def encode_corpus(
    documents: Path, tokenizer_path: Path, split: Split, header_path: Path, workers: int | None = None
) -> TokenStore:
    """Encode one split of `documents.parquet` into the token store at `header_path`.

    Row groups are encoded in parallel and written in order; at most two a worker are in memory.

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
        workers = 1  # reading takes longer than encoding, or starting the processes does
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
    """The cores that this process may use; Slurm gives a job fewer than the machine has."""
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
    """The encoder that a process keeps from one row group to the next; the hash tells a rewritten file."""
    return make_encoder(load_tokenizer(tokenizer_path))
