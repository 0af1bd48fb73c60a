"""Encode one split of a documents.parquet into a token store: NAME.bin, the ids, and NAME.json, their header.

Each document is followed by the end-of-text id. Exit codes: 0 done, 2 wrong input.
"""

from __future__ import annotations

from pathlib import Path

from shapelaw.corpora.documents import SPLITS
from shapelaw.corpora.encoding import encode_corpus
from shapelaw.errors import command_line, end_with, refuse_below_one, say


def main() -> None:
    """Parse the command line and encode."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--documents", type=Path, required=True, help="documents.parquet of the corpus")
    add("--tokenizer", type=Path, required=True, help="the tokenizer.json to encode with")
    add("--split", choices=SPLITS, required=True, help="the documents to encode")
    add(
        "--out",
        type=Path,
        required=True,
        metavar="NAME.json",
        help="the header; NAME.bin is written beside it",
    )
    add("--workers", type=int, help="processes (default: one for each core that the command may use)")
    arguments = parser.parse_args()
    refuse_below_one(arguments, "workers")
    store = encode_corpus(
        arguments.documents, arguments.tokenizer, arguments.split, arguments.out, arguments.workers
    )
    say(
        f"Wrote {store.path}: {len(store.tokens):,} tokens of a vocabulary of {store.vocab_size:,}, "
        f"{store.documents:,} documents, {store.text_bytes:,} bytes of text."
    )


if __name__ == "__main__":
    end_with(main)
