"""The parameters of the jobs that collect a corpus, make its tokenizers and measure perplexity on it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from shapelaw.errors import UserError
from shapelaw.settings.sections import Corpus, Perplexity
from shapelaw.settings.source_lines import Folder, parse_source

GPT2_VOCAB_SIZE = 50257


def all_sources(corpus: Corpus, vocab_sizes: Collection[int]) -> list[str]:
    """The sources of a corpus; `wiki` alone gets `gensim` where a vocabulary of GPT-2's size is trained on it.

    Its leads can't fill that one.
    """
    sources = list(corpus.sources)
    trains = corpus.trains_50257 and GPT2_VOCAB_SIZE in vocab_sizes
    return [*sources, "gensim"] if trains and sources == ["wiki"] else sources


def gpt2_options(corpus: Corpus, vocab_size: int) -> list[str]:
    """The options of scripts/train_tokenizer.py that say whether a vocabulary is GPT-2's own."""
    if corpus.gpt2_files is not None:
        return ["--gpt2-files", corpus.gpt2_files]
    return ["--gpt2"] if vocab_size == GPT2_VOCAB_SIZE and not corpus.trains_50257 else []


def tokenizer_path(corpus: str, vocab_size: int) -> str:
    """The file of a tokenizer, from the folder that the workflow runs in."""
    return f"results/corpora/{corpus}/V{vocab_size}/tokenizer.json"


def source_options(corpus: Corpus, vocab_sizes: Collection[int]) -> list[str]:
    """The corpus section as options of scripts/prepare_corpus.py, with enough text for the vocabulary sizes."""
    options = [option for source in all_sources(corpus, vocab_sizes) for option in ("--source", source)]
    options += ["--test-fraction", str(corpus.test_fraction)]
    if corpus.limit_bytes is not None:
        options += ["--limit-bytes", str(corpus.limit_bytes)]
    return options


def perplexity_options(perplexity: Perplexity, corpus: Corpus) -> list[str]:
    """The options of scripts/perplexity.py that a config has."""
    found = ["--most", str(perplexity.documents)]
    if perplexity.source is not None:
        found += ["--of-source", perplexity.source]
    return found + ([] if corpus.gpt2_files is None else ["--gpt2-files", corpus.gpt2_files])


def measured_paths(perplexity: Perplexity, keys: Collection[str]) -> list[str]:
    """The files with the perplexity of these runs.

    Raises:
        UserError: there are none.
    """
    if keys:
        return [f"results/perplexity/{key}.json" for key in keys]
    if not perplexity.of:
        raise UserError(
            "No perplexity is asked for; name a study or grid of decoders, which keep their weights then: "
            "--config perplexity='{of: [STUDY]}'"
        )
    names = ", ".join(perplexity.of)
    raise UserError(
        f"perplexity.of has {names}, and studies has none of them; add one: --config studies='[{perplexity.of[0]}]'"
    )


def texts_digest(corpus: Corpus) -> str:
    """A hash of the names, sizes and times of the files in the corpus's folders; changed files make another corpus.

    Raises:
        UserError: a folder, or a file while it is listed, is gone.
    """
    sources = map(parse_source, corpus.sources)
    try:
        listing = []
        for folder in [source.path for source in sources if isinstance(source, Folder)]:
            folder.stat()
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            listing += [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    except FileNotFoundError as error:
        raise UserError(
            f"{error.filename}, a text of the corpus, went away; put it back, or correct corpus.sources."
        ) from error
    return hashlib.sha256(repr(listing).encode()).hexdigest()
