"""Text to token ids, exactly as the `tokenizers` library gives them, at a multiple of its speed.

With 257 ids a token is a byte, and one table lookup encodes a batch.

With more ids a batch is cut into pre-tokens (`pre_tokens`), and each distinct one is looked up in a cache of ids.
Pre-tokens that the cache lacks are merged all at once (`merges`); the rare long ones go to the library.
"""

from __future__ import annotations

import hashlib
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
import pyarrow as pa
from numpy.typing import NDArray
from tokenizers import Tokenizer

from shapelaw.corpora.documents import Split, count_row_groups, read_row_group
from shapelaw.corpora.merges import Merges
from shapelaw.corpora.pre_tokens import END, PreTokenizer, mark_ends
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
