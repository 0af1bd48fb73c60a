"""The runs of a config as the jobs of a workflow: the job that trains a run, its inputs, parameters and resources."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, TypeVar

from shapelaw.errors import UserError
from shapelaw.jobs.packs import digits_of, jobs_in_turn, jobs_of_packs, keys_pattern, one_of
from shapelaw.jobs.resources import (
    LEVELS,
    JobResources,
    Level,
    job_resources,
    level_of,
    packed_resources,
)
from shapelaw.settings.sections import Corpus, Execution, Folder, Perplexity, parse_source
from shapelaw.specs.cost import Speed
from shapelaw.specs.kinds import AnyRun, PackedRun, is_packed
from shapelaw.specs.runs import Run
from shapelaw.specs.sizes import GPT2_VOCAB_SIZE

Named = TypeVar("Named")
CHECKPOINTS = Path("results/checkpoints")
MOST_MEASURED = 1000  # whose keys travel in one variable of the environment


@dataclass(frozen=True, eq=False)  # one workload is itself alone, so its results can be cached by it
class Workload:
    """All runs of a config by study and key, with the settings of their execution.

    Several studies can ask for the same run: it is trained once, by a job of the first of them.
    """

    runs: Mapping[str, Mapping[str, AnyRun]]
    execution: Execution
    speed: Speed

    @cached_property
    def pool(self) -> dict[str, AnyRun]:
        """Every run once, by key."""
        return {key: run for runs in self.runs.values() for key, run in runs.items()}

    @cached_property
    def trained(self) -> list[list[AnyRun]]:
        """The runs of each study that no study before it asks for."""
        left, found = dict(self.pool), []
        for runs in self.runs.values():
            found.append([left.pop(key) for key in runs if key in left])
        return found

    @cached_property
    def decoders(self) -> list[Run]:
        """The runs that are decoders."""
        return [run for run in self.pool.values() if isinstance(run, Run)]

    @cached_property
    def packed(self) -> list[PackedRun]:
        """The runs that are trained many as one computation."""
        return [run for run in self.pool.values() if is_packed(run)]

    @cached_property
    def vocab_sizes(self) -> set[int]:
        """The vocabulary sizes of all decoders."""
        return {run.shape.vocab_size for run in self.decoders}

    @cached_property
    def of_level(self) -> dict[Level, list[Run]]:
        """The decoders of each level."""
        levels: dict[Level, list[Run]] = {level: [] for level in LEVELS}
        for run in self.decoders:
            levels[level_of(run, self.speed)].append(run)
        return levels

    @property
    def runs_per_job(self) -> int | None:
        """Number of small decoders in a job; None where it is chosen by their times."""
        return 1 if self.execution.gpus > 1 else self.execution.runs_per_job

    @cached_property
    def jobs_in_turn(self) -> dict[str, list[Run]]:
        """The small decoders, by the name of the job that trains them; those of one job are of one study."""
        found: dict[str, list[Run]] = {}
        for runs in self.trained:
            found |= jobs_in_turn(
                [run for run in runs if isinstance(run, Run)], self.runs_per_job, self.speed
            )
        return found

    @cached_property
    def jobs_of_packs(self) -> dict[str, list[list[PackedRun]]]:
        """The packs that are one computation each, by the name of the job that trains them."""
        found: dict[str, list[list[PackedRun]]] = {}
        for runs in self.trained:
            found |= jobs_of_packs([run for run in runs if is_packed(run)], self.execution)
        return found

    @cached_property
    def _job_names(self) -> dict[str, str]:
        names = {run.key: name for name, job in self.jobs_in_turn.items() for run in job}
        return names | {
            run.key: name for name, job in self.jobs_of_packs.items() for pack in job for run in pack
        }

    @property
    def job_minutes(self) -> int:
        """The longest time that a job may take, in minutes."""
        return round(60 * self.execution.job_hours)

    @cached_property
    def _patterns(self) -> dict[str, str]:
        rules: list[Sequence[AnyRun]] = [*(self.of_level[level] for level in LEVELS), self.packed]
        ends = Counter(end for runs in rules for end in {digits_of(run.key) for run in runs})
        shared = {end for end, rules_with_it in ends.items() if rules_with_it > 1}
        small, medium, _, packed = (keys_pattern(runs, shared) for runs in rules)
        # large: also a wrong key, so that its sentence is printed
        large = rf"(?!(?:{small}|{medium}|{packed})(?:/|$))[^/]+"
        return {"small": small, "medium": medium, "large": large, "packed": packed}

    def keys(self, of: Level | Literal["packed"]) -> str:
        """A regular expression for the keys of a level's runs, or of the packed ones; of large ones, all others."""
        return self._patterns[of]

    @property
    def in_turn_names(self) -> str:
        """A regular expression for the names of jobs that train decoders in turn."""
        return one_of(self.jobs_in_turn)

    @property
    def pack_names(self) -> str:
        """A regular expression for the names of jobs that train packs; and a wrong name, for its sentence."""
        return rf"(?!{self.in_turn_names}(?:\.|$))[0-9a-f]+"

    def run(self, key: str) -> AnyRun:
        """The run of a record's path.

        Raises:
            UserError: the config has no such run.
        """
        return _named(self.pool, key, "run")

    def runs_in_turn(self, name: str) -> Sequence[Run]:
        """The decoders that a job trains, one after the other.

        Raises:
            UserError: the config has no such job.
        """
        return _named(self.jobs_in_turn, name, "job")

    def packs_together(self, name: str) -> Sequence[Sequence[PackedRun]]:
        """The packs, each one computation, that a job trains.

        Raises:
            UserError: the config has no such job.
        """
        if name not in self.jobs_of_packs:
            _named({**self.jobs_in_turn, **self.jobs_of_packs}, name, "job")
        return self.jobs_of_packs[name]

    def job_path(self, key: str) -> str:
        """The file that the job of a run writes, where a job trains several.

        Raises:
            UserError: the config has no such run.
        """
        return f"results/packs/{self._job_names[self.run(key).key]}.json"

    def checkpoint_folders(self, name: tuple[str, ...]) -> list[Path]:
        """The folders of the checkpoints of a job that trains, given its run or pack; else none."""
        one = name[0] if len(name) == 1 else ""
        if one in self.pool:
            return [CHECKPOINTS / one]
        if one in self.jobs_in_turn:
            return [CHECKPOINTS / run.key for run in self.jobs_in_turn[one]]
        runs = [run.key for pack in self.jobs_of_packs.get(one, []) for run in pack]
        return [CHECKPOINTS / key for key in runs] + _pack_folders(CHECKPOINTS, set(runs))

    def records(self, study: str) -> list[str]:
        """The records of all runs of a study; empty where the config doesn't have that study."""
        return [f"results/runs/{key}/summary.json" for key in self.runs.get(study, {})]

    def measured(self, perplexity: Perplexity) -> dict[str, Run]:
        """The decoders whose perplexity is measured, by key: their weights are kept.

        Raises:
            UserError: there are too many for the environment of a job.
        """
        found = {
            key: run
            for study in perplexity.of
            for key, run in self.runs.get(study, {}).items()
            if isinstance(run, Run)
        }
        if len(found) > MOST_MEASURED:
            raise UserError(
                f"perplexity.of has {len(found):,} decoders, and the weights of {MOST_MEASURED:,} are kept at most; "
                "name a grid with fewer."
            )
        return found

    @lru_cache(maxsize=64)  # noqa: B019 - there is one workload a process
    def level_resources(self, level: Level, attempt: int, in_a_row: int = 1) -> JobResources:
        """Resources that are enough for the largest run of a level."""
        return job_resources(
            self.of_level[level], self.speed, self.execution.gpus, self.job_minutes, attempt, in_a_row
        )

    def resources(self, key: str, attempt: int) -> JobResources:
        """Resources for the job of a run."""
        run = self.run(key)
        if not isinstance(run, Run):
            raise TypeError(f"{run.key} is trained in a pack")
        return self.level_resources(level_of(run, self.speed), attempt)

    def in_turn_resources(self, attempt: int) -> JobResources:
        """Resources that are enough for the longest job of small decoders."""
        return self.level_resources("small", attempt, self._most_in_turn)

    @cached_property
    def _most_in_turn(self) -> int:
        """Runs of the longest job of small decoders; asked for by every job."""
        return max(map(len, self.jobs_in_turn.values()), default=1)

    @lru_cache(maxsize=16)  # noqa: B019 - there is one workload a process
    def together_resources(self, attempt: int) -> JobResources:
        """Resources that are enough for the longest job of packs that are one computation each."""
        return packed_resources(self.jobs_of_packs.values(), self.execution, self.job_minutes, attempt)


def _pack_folders(folder: Path, keys: set[str]) -> list[Path]:
    """The folders of packs that have one of these runs as a member."""
    found = []
    for members in folder.glob("pack-*/members.json") if keys else ():
        try:
            mine = not keys.isdisjoint(json.loads(members.read_text()))
        except (OSError, ValueError):  # finished and deleted, or in the writing: the next look sees it
            continue
        if mine:
            found.append(members.parent)
    return found


def _named(found: Mapping[str, Named], name: str, what: str) -> Named:
    if name not in found:
        some = f", such as {next(iter(found))}." if found else "."
        raise UserError(f"The config has no {what} {name}; it has {len(found)} {what}s{some}")
    return found[name]


def stores_of(run: Run) -> dict[str, str | list[str]]:
    """The files of a run's training and test sets, at its vocabulary size: headers and tokens."""
    folder = f"results/corpora/{run.corpus}/V{run.shape.vocab_size}"
    return {
        "train_store": f"{folder}/train.json",
        "test_store": f"{folder}/test.json",
        "tokens": [f"{folder}/train.bin", f"{folder}/test.bin"],
    }


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
