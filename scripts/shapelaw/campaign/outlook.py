"""What the runs of a config will not give: what can't end well is refused, what gives less than asked for is told.

Both before anything is trained. What a study needs for its own results, its `Study.warnings` says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapelaw.campaign.config import Runs, studies_of
from shapelaw.errors import UserError
from shapelaw.jobs.workload import all_sources, tokenizer_path
from shapelaw.settings.sections import (
    ONE_DOCUMENT,
    PACKAGED_MB,
    TEXT_DOCUMENT_BYTES,
    Corpus,
    Folder,
    Packaged,
    Settings,
    files_below,
    not_read,
    parse_source,
)
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import BYTE_VOCABULARY
from shapelaw.specs.sizes import GPT2_VOCAB_SIZE
from shapelaw.storage.pool import read_keys

_TOKEN_BYTES = 105  # of text for each token of a vocabulary, about: 4.9 MB of wiki fill 46,810
_LEAST_TOKEN_BYTES = 20  # with less there are too few pairs of bytes that occur twice


def hopeless(config: Settings, runs: Runs, root: Path) -> list[str]:
    """A sentence for each text that is too short for its splits, vocabularies or tests."""
    found = list[str]()
    for text in _texts(config, runs, root):
        if text.size <= TEXT_DOCUMENT_BYTES and _is_one(text.corpus, root):
            found.append(f"{text.place}.sources: {ONE_DOCUMENT}")
        found += [*_vocabulary(text, _LEAST_TOKEN_BYTES), *_tests(text, text.size)]
    return found


def warnings(
    config: Settings, runs: Runs, root: Path, project: Path, cores: int | None, own: Mapping[str, Any]
) -> list[str]:
    """A sentence for what gives less than it seems to, or is probably a slip.

    Args:
        config: a checked config.
        runs: its runs, by study and key.
        root: folder that the config's relative paths start from, but for a `grid_file`.
        project: folder that a relative `grid_file` starts from.
        cores: cores of this machine that jobs may use; None where they run elsewhere.
        own: what the user set, without the scale's values.
    """
    studies = studies_of(config)
    found = [sentence for name in config.studies for sentence in studies[name].warnings(config, project)]
    found += [
        f"grids.{name} is not in studies, so nothing of it is trained; add it there"
        for name in own.get("grids", {})
        if name not in config.studies
    ]
    if any(isinstance(run, Run) for of in runs.values() for run in of.values()):
        found += _constant(runs)
        found += _overruled(config, runs, own.get("training", {}))
        for text in _texts(config, runs, root):
            found += [*_vocabulary(text, _TOKEN_BYTES), *_tests(text, text.size * text.corpus.test_fraction)]
        found += [one for corpus in config.all_corpora.values() for one in _not_read(corpus, root)]
    found += replaced_tables(config, runs, root)
    if cores is not None and config.execution.threads > cores:
        found.append(
            f"execution.threads is {config.execution.threads}, and there are {cores} cores: jobs get {cores} threads"
        )
    return found


def replaced_tables(config: Settings, runs: Runs, root: Path) -> Iterator[str]:
    """A sentence where a start replaces tables of other runs altogether, as those of another corpus or scale.

    Args:
        root: folder that the workflow runs in.
    """
    replaced = {}
    for name, of in runs.items():
        try:
            before = read_keys(root / config.results / name / "keys.txt")
        except UserError:  # none yet, or of no use
            continue
        if not of.keys() & set(before):
            replaced[name] = before[0]
    if replaced:
        study, key = next(iter(replaced.items()))
        more = f" and of {len(replaced) - 1} more studies" if len(replaced) > 1 else ""
        yield (
            f"the tables of {study}{more} in {config.results} are of other runs, such as {key}, and are replaced; to "
            f"keep them, give these a folder of their own: --config results={config.results}-2"
        )


def replaced_records(config: Settings, outdated: Collection[Run]) -> Iterator[str]:
    """A sentence for each corpus of which runs have a record of another text.

    Args:
        outdated: those runs.
    """
    for name, number in Counter(run.corpus for run in outdated).items():
        key = "corpus.name" if name == config.corpus.name else "name in corpora"
        runs = f"{number:,} run{'' if number == 1 else 's'}"
        yield (
            f"the sources of corpus {name}, or their files, have changed since {runs} trained on it: unless the text "
            "is the same, training starts again and replaces the records; to keep them, give the corpus another "
            f"{key}"
        )


def _constant(runs: Runs) -> Iterator[str]:
    """A sentence for each study with losses of a rate that has not fallen, which no cosine's losses compare with."""
    for study, of in runs.items():
        if any(run.training.schedule == "constant" for run in of.values() if isinstance(run, Run)):
            yield (
                f"{study} trains at a constant learning rate: without its fall all losses are too high, by an amount "
                "that need not be the same for every shape; schedule: cosine lets it fall, redecayed before every test"
            )


def _overruled(config: Settings, runs: Runs, own: Collection[str]) -> Iterator[str]:
    """A sentence for each key of `training` that the user set and no run of a study has."""
    asked = config.training.spec()
    for study, of in runs.items():
        trainings = [run.training for run in of.values() if isinstance(run, Run)]
        for key in own:
            theirs = {getattr(training, key) for training in trainings}
            if theirs and getattr(asked, key) not in theirs:
                yield (
                    f"training.{key} is {getattr(asked, key)}, and the runs of {study} have "
                    f"{', '.join(sorted(map(str, theirs)))}: what the grid {study} says itself wins"
                )


def missing_tokenizers(
    config: Settings, runs: Runs, root: Path, is_made: Callable[[str], bool]
) -> Iterator[str]:
    """A sentence for each corpus whose vocabulary of 50,257 is GPT-2's and whose files of it are missing or wrong.

    Args:
        root: folder that the workflow runs in.
        is_made: says of a tokenizer's file whether it is still to be made.
    """
    asked: dict[str, str] = {}
    for study, of in runs.items():
        for run in of.values():
            if isinstance(run, Run) and run.shape.vocab_size == GPT2_VOCAB_SIZE:
                asked.setdefault(run.corpus, study)
    for name, study in asked.items():
        corpus = config.all_corpora[name]
        if not corpus.trains_50257 and is_made(tokenizer_path(name, GPT2_VOCAB_SIZE)):
            yield from _gpt2_problem(_place(config, name), study, corpus, root)


def _place(config: Settings, name: str) -> str:
    """The section of the config that has a corpus."""
    return "corpus" if name == config.corpus.name else f"corpora.{name}"


def _gpt2_problem(where: str, study: str, corpus: Corpus, root: Path) -> Iterator[str]:
    # imported where it is asked for: the Snakefile reads this module at each start
    from shapelaw.corpora.tokenizer import DOWNLOADS, FETCH, gpt2_folder, gpt2_tokenizer

    given = corpus.gpt2_files
    folder = gpt2_folder(root / DOWNLOADS) if given is None else root / given
    if folder is None:
        yield (
            f"{study} has a vocabulary of 50,257, which is GPT-2's own, and its files are not here; fetch them: "
            f"{FETCH}, or name a folder with its vocab.json and merges.txt: {where}: {{gpt2_files: FOLDER}}, or "
            f"train one of that size on your text: {where}: {{tokenizer_50257: trained}}"
        )
        return
    try:
        gpt2_tokenizer(folder)
    except UserError as error:
        yield str(error).removesuffix(".")


@dataclass(frozen=True)
class _Text:
    """A corpus whose size is known: its section of the config, its runs, and the bytes of its text."""

    place: str
    corpus: Corpus
    runs: Sequence[Run]
    size: float


def _texts(config: Settings, runs: Runs, root: Path) -> Iterator[_Text]:
    by_corpus: dict[str, list[Run]] = {}
    for run in (run for of in runs.values() for run in of.values() if isinstance(run, Run)):
        by_corpus.setdefault(run.corpus, []).append(run)
    for name, ones in by_corpus.items():
        corpus = config.all_corpora[name]
        sources = all_sources(corpus, {run.shape.vocab_size for run in ones})
        size = _text_bytes(corpus.model_copy(update={"sources": sources}), root)
        if size is not None:
            yield _Text(_place(config, name), corpus, ones, size)


def _vocabulary(text: _Text, token_bytes: int) -> Iterator[str]:
    """A sentence where a text has fewer bytes for each token of its largest vocabulary; that of bytes takes none."""
    given = set() if text.corpus.trains_50257 else {GPT2_VOCAB_SIZE}
    largest = max({run.shape.vocab_size for run in text.runs} - given, default=BYTE_VOCABULARY)
    if largest > BYTE_VOCABULARY and text.size < token_bytes * largest:
        most = int(text.size / _TOKEN_BYTES)
        less = f"{most:,} or less" if most > BYTE_VOCABULARY else f"{BYTE_VOCABULARY}, which is bytes"
        yield (
            f"vocab_size {largest:,} wants more text than {text.place}.sources have ({_size(text.size)}): a vocabulary "
            f"takes about {_TOKEN_BYTES} bytes for each token; take one of {less}, or more text"
        )


def _tests(text: _Text, size: float) -> Iterator[str]:
    """A sentence where a text has fewer bytes to test on than one of its runs tests tokens.

    Args:
        size: of the text to test on.
    """
    windows, tokens = max(
        ((run.training.test_sequences, run.shape.context_length + 1) for run in text.runs), key=math.prod
    )
    if size < windows * tokens:
        share = text.corpus.test_fraction
        yield (
            f"test_sequences {windows:,} of context_length {tokens - 1:,} want more text than {text.place}.sources "
            f"have ({_size(text.size)}, of which {share:.0%} is for tests): they take at least "
            f"{_size(windows * tokens / share)}; take fewer, a shorter context, or more text"
        )


def _is_one(corpus: Corpus, root: Path) -> bool:
    """Whether all sources together are one document: a .txt file that is not cut."""
    sources = [parse_source(line) for line in corpus.sources]
    folders = [one for one in sources if isinstance(one, Folder)]
    files = [path for one in folders for path, kind in files_below(root / one.path) if not kind]
    return folders == sources and [path.suffix.lower() for path in files] == [".txt"]


def _size(text: float) -> str:
    """A number of bytes in its unit."""
    for unit, size in (("MB", 1e6), ("KB", 1e3)):
        if text >= size:
            return f"{text / size:,.1f} {unit}"
    return f"{text:,.0f} bytes"


def _not_read(corpus: Corpus, root: Path) -> Iterator[str]:
    """A sentence for each folder of text with files of other kinds."""
    for source in map(parse_source, corpus.sources):
        if isinstance(source, Folder):
            others = Counter(kind for _, kind in files_below(root / source.path) if kind)
            if others:
                yield not_read(source.path, others)


def _text_bytes(corpus: Corpus, root: Path) -> float | None:
    """Bytes of text, before documents are dropped; None where a data set's or a .parquet file's is not known."""
    total = 0.0
    for line in corpus.sources:
        source = parse_source(line)
        if isinstance(source, Packaged):
            total += 1e6 * PACKAGED_MB[source.name]
        elif isinstance(source, Folder):
            files = [path for path, kind in files_below(root / source.path) if not kind]
            if any(path.suffix.lower() == ".parquet" for path in files):
                return None
            total += sum(path.stat().st_size for path in files)
        else:
            return None
    return total if corpus.limit_bytes is None else min(total, corpus.limit_bytes)
