"""The token store: one flat file of token ids, opened by memory map, beside a JSON header.

`<name>.bin` holds the ids of one split, little-endian uint16 or uint32, each document followed by the end-of-text
id. `<name>.json` is their header. It is written last: where it exists, the store is whole.
This module imports numpy and the standard library only, so that a bare GPU image can read a corpus.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapelaw.errors import UserError
from shapelaw.storage.files import replacing, write_text

SCHEMA_VERSION = 1
_DTYPES: dict[str, np.dtype[Any]] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}
_FIELDS: dict[str, type] = {
    "vocab_size": int,
    "dtype": str,
    "tokens": int,
    "text_bytes": int,
    "documents": int,
    "sha256": str,
    "tokenizer_sha256": str,
    "end_of_text": int,
    "token_bytes": list,
}
_QUICK_BYTES = 2**28  # hashed in a fifth of a second


@dataclass(frozen=True)
class TokenStore:
    """One split of a corpus as token ids.

    Attributes:
        path: the header's path.
        tokens: the ids, [T] of uint16 or uint32; a read-only view of the memory map.
        vocab_size: number of token ids V.
        text_bytes: UTF-8 bytes of the text that `tokens` stands for.
        documents: number of documents; as many end-of-text ids are in `tokens`.
        sha256: sha256 of the `.bin` file, in hexadecimal.
        token_bytes: bytes of text that each id stands for, [V] int64; 0 for end-of-text.
    """

    path: Path
    tokens: NDArray[Any]
    vocab_size: int
    text_bytes: int
    documents: int
    sha256: str
    token_bytes: NDArray[np.int64]


@dataclass(frozen=True)
class EncodedBatch:
    """Some consecutive documents of a split as ids [T], each document followed by the end-of-text id."""

    tokens: NDArray[Any]
    text_bytes: int
    documents: int


def token_dtype(vocab_size: int) -> np.dtype[Any]:
    """The store's type for ids below `vocab_size`: little-endian uint16 where they fit, else uint32."""
    return _DTYPES["uint16" if vocab_size <= 1 << 16 else "uint32"]


def write_token_store(
    header_path: Path,
    batches: Iterable[EncodedBatch],
    *,
    end_of_text: int,
    token_bytes: NDArray[np.int64],
    tokenizer_sha256: str,
) -> TokenStore:
    """Stream the batches, in order, into the store at `header_path`, and open it.

    Raises:
        UserError: `header_path` does not end in .json, or the batches hold no document.
    """
    if header_path.suffix != ".json":
        raise UserError(f"{header_path} can't be the header of a token store; its name must end in .json.")
    dtype = token_dtype(len(token_bytes))
    digest = hashlib.sha256()
    tokens = text_bytes = documents = 0
    with replacing(header_path.with_suffix(".bin")) as temporary:
        with temporary.open("wb") as file:
            for batch in batches:
                content = np.ascontiguousarray(batch.tokens, dtype=dtype).data
                file.write(content)
                digest.update(content)
                tokens += len(batch.tokens)
                text_bytes += batch.text_bytes
                documents += batch.documents
        if not documents:
            raise UserError(
                f"There is no document to encode into {header_path}; "
                "prepare the corpus with more documents or another test fraction."
            )
        header_path.unlink(missing_ok=True)  # the header of a store that is being replaced
    header = {
        "schema_version": SCHEMA_VERSION,
        "vocab_size": len(token_bytes),
        "dtype": dtype.name,
        "tokens": tokens,
        "text_bytes": text_bytes,
        "documents": documents,
        "sha256": digest.hexdigest(),
        "tokenizer_sha256": tokenizer_sha256,
        "end_of_text": end_of_text,
        "token_bytes": token_bytes.tolist(),
    }
    write_text(header_path, json.dumps(header) + "\n")
    return open_token_store(header_path)


def open_token_store(header_path: Path, *, verify: bool | None = None) -> TokenStore:
    """Open a store by its header; the ids stay on the disk until they are used.

    Args:
        verify: read the whole `.bin` file and compare its sha256 with the header's; None does so where that takes a
            second at most, or where the file was written after its header, which is written last.

    Raises:
        UserError: a file is missing, isn't a token store, has another schema version, is longer or shorter than
            its header says, or has other content.
    """
    header = read_header(header_path)
    dtype = _DTYPES[header["dtype"]]
    data_path = header_path.with_suffix(".bin")
    expected = header["tokens"] * dtype.itemsize
    if not data_path.is_file():
        raise UserError(f"{data_path}, the tokens of {header_path}, is missing; {_again(header_path)}")
    size = data_path.stat().st_size
    if size != expected:
        state = "truncated" if size < expected else "longer than its header says"
        raise UserError(
            f"{data_path} is {state}: it has {size:,} bytes, and {header['tokens']:,} tokens of "
            f"{dtype.itemsize} bytes are {expected:,}; {_again(header_path)}"
        )
    if verify is None:
        verify = size <= _QUICK_BYTES or data_path.stat().st_mtime_ns > header_path.stat().st_mtime_ns
    if verify:
        with data_path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != header["sha256"]:
            raise UserError(
                f"{data_path} is damaged: its sha256 is {found}, and {header_path} says {header['sha256']}; "
                f"{_again(header_path)}"
            )
    return TokenStore(
        header_path,
        np.asarray(np.memmap(data_path, dtype=dtype, mode="r")),
        token_bytes=np.asarray(header["token_bytes"], dtype=np.int64),
        **{name: header[name] for name in ("vocab_size", "text_bytes", "documents", "sha256")},
    )


def windows(store: TokenStore, context_length: int) -> NDArray[Any]:
    """Every window of a store: a strided view [T - context_length, context_length + 1] that copies nothing.

    Row s holds tokens s .. s + context_length: the inputs are its first `context_length` tokens and the targets
    its last.

    Raises:
        UserError: the store is shorter than one window.
    """
    if len(store.tokens) <= context_length:
        raise UserError(
            f"The token store {store.path} has {len(store.tokens):,} tokens, fewer than one window of "
            f"{context_length:,} + 1; use a larger corpus or a smaller context_length."
        )
    tokens = store.tokens
    shape = (len(tokens) - context_length, context_length + 1)
    # numpy's sliding_window_view does this in Python, which takes as long as copying a batch
    return np.ndarray(shape, tokens.dtype, buffer=tokens, strides=2 * tokens.strides)


def gather_windows(
    store: TokenStore, starts: NDArray[np.integer[Any]], context_length: int
) -> NDArray[np.int64]:
    """The windows that begin at `starts` [B], copied: int64 [B, context_length + 1].

    Raises:
        UserError: the store is shorter than one window.
    """
    batch: NDArray[np.int64] = windows(store, context_length)[starts].astype(np.int64)
    return batch


def evaluation_starts(store: TokenStore, context_length: int, sequences: int) -> NDArray[np.int64]:
    """Starts [sequences] of windows of context_length + 1 tokens that don't overlap.

    They are spread evenly over the whole stream, so stores of the same text with different vocabularies are
    tested at the same places in it.

    Raises:
        UserError: the store has fewer such windows.
    """
    available = len(store.tokens) // (context_length + 1)
    if not 1 <= sequences <= available:
        raise UserError(
            f"The token store {store.path} has {len(store.tokens):,} tokens, which make {available:,} windows of "
            f"{context_length:,} + 1 that don't overlap, and test_sequences is {sequences:,}; "
            "set test_sequences between 1 and that number, or raise the corpus's test_fraction."
        )
    return np.arange(sequences, dtype=np.int64) * len(store.tokens) // sequences


def window_bytes(store: TokenStore, targets: NDArray[np.integer[Any]]) -> int:
    """UTF-8 bytes of text that the ids `targets` (of any shape) stand for: the divisor of bits per byte."""
    return int(store.token_bytes[targets].sum())


def read_header(path: Path) -> dict[str, Any]:
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"There is no token store {path}; make it: snakemake {path}") from error
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} can't be read as the header of a token store ({error}); {_again(path)}"
        ) from error
    if not isinstance(header, dict) or "schema_version" not in header:
        raise UserError(
            f"{path} is not the header of a token store: it has no schema_version; {_again(path)}"
        )
    if header["schema_version"] != SCHEMA_VERSION:
        raise UserError(
            f"{path} is a token store of schema version {header['schema_version']}, and this code reads version "
            f"{SCHEMA_VERSION}; {_again(path)}"
        )
    wrong = [name for name, kind in _FIELDS.items() if type(header.get(name)) is not kind]
    if not wrong:
        wrong += ["dtype"] if header["dtype"] not in _DTYPES else []
        wrong += ["tokens"] if header["tokens"] < 1 else []
        wrong += ["token_bytes"] if len(header["token_bytes"]) != header["vocab_size"] else []
    if wrong:
        raise UserError(
            f"{path}: missing or wrong in the header of a token store: {', '.join(wrong)}; {_again(path)}"
        )
    return header


def _again(header_path: Path) -> str:
    """The command that encodes a split again, without a full stop, so that it can be copied."""
    return f"encode the corpus again: rm {shlex.quote(str(header_path))} && snakemake"
