"""Train a byte-level BPE tokenizer on the train split of a documents.parquet.

A vocabulary of 257 is the 256 bytes and the end-of-text token. For 50,257 GPT-2's own tokenizer is taken where its
files are at hand, in --gpt2-files or in the local Hugging Face cache; otherwise that size is trained.
Exit codes: 0 done, 2 wrong input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shapelaw.corpora.documents import count_row_groups, read_texts
from shapelaw.corpora.tokenizer import (
    GPT2_VOCAB_SIZE,
    cached_gpt2_folder,
    gpt2_tokenizer,
    save_tokenizer,
    train_tokenizer,
)
from shapelaw.errors import exit_code


def main() -> None:
    """Parse the command line and write the tokenizer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=Path, required=True, help="documents.parquet of the corpus")
    parser.add_argument("--vocab-size", type=int, required=True, help="number of token ids, at least 257")
    parser.add_argument("--out", type=Path, required=True, help="the tokenizer.json to write")
    parser.add_argument(
        "--gpt2-files", type=Path, help="folder with GPT-2's tokenizer.json, or vocab.json and merges.txt"
    )
    arguments = parser.parse_args()
    gpt2_files = None
    if arguments.vocab_size == GPT2_VOCAB_SIZE:
        gpt2_files = arguments.gpt2_files or cached_gpt2_folder()
    count_row_groups(arguments.documents)  # open it even where no text is needed: a wrong file is an error
    if gpt2_files is not None:
        tokenizer = gpt2_tokenizer(gpt2_files)
    else:
        tokenizer = train_tokenizer(read_texts(arguments.documents, "train"), arguments.vocab_size)
    save_tokenizer(tokenizer, arguments.out)
    origin = "trained" if gpt2_files is None else f"GPT-2's own, from {gpt2_files}"
    print(f"Wrote {arguments.out}: {arguments.vocab_size:,} ids, {origin}.", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(exit_code(main))
