"""The runs of a config as the jobs of a workflow: the job that trains a run, its inputs and what it asks for."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TypeVar

from shapelaw.errors import UserError
from shapelaw.jobs.ledger import Job, Ledger, State, assigned, done_path, job_content, specs_path
from shapelaw.jobs.resources import LEVELS, JobResources, Level, Task, formed_jobs, job_resources
from shapelaw.settings.sections import Corpus, Execution, Folder, Perplexity, parse_source
from shapelaw.specs.cost import Speed
from shapelaw.specs.kinds import AnyRun, is_packed
from shapelaw.specs.runs import Run
from shapelaw.specs.sizes import GPT2_VOCAB_SIZE
from shapelaw.storage.files import write_text
from shapelaw.storage.pool import packs_in

Named = TypeVar("Named")
RUNS = Path("results/runs")
CHECKPOINTS = Path("results/checkpoints")
JOB_MINUTES = {True: 1.0, False: 30.0}  # where none are set, by whether jobs run on this machine
MOST_MEASURED = 1000  # whose keys travel in one variable of the environment


@dataclass(frozen=True)
class JobAsk:
    """What a job asks for.

    Attributes:
        first: memory and time of its first attempt.
        cpus, gpus: processors, and GPUs.
        stores: the files of the training and test sets of its decoders.
    """

    first: JobResources
    cpus: int
    gpus: int
    stores: list[str]


def read_ask(name: str) -> JobAsk:
    """What a job asks for, from its file, as the job itself reads it.

    Raises:
        UserError: the file is missing or damaged.
    """
    path = specs_path(name)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}, the specs of the job {name}, can't be read ({error}); each start of snakemake writes it "
            "(without --no-hooks)."
        ) from error
    return JobAsk(JobResources(**found["first"]), found["cpus"], found["gpus"], found["stores"])


@dataclass(frozen=True, eq=False)  # one workload is itself alone, so its results can be cached by it
class Workload:
    """All runs of a config by study and key, and the jobs that hold them.

    Several studies can ask for the same run: it is trained once, by a job of the first of them.

    Attributes:
        runs: the runs of each study that trains, by key.
        execution: the settings of their execution.
        speed: of decoders.
        ledger: the jobs of earlier starts.
        state: the pool as this start finds it.
        alone: keys of runs that are targets by themselves.
        here: jobs run on this machine, in place of a queue.
    """

    runs: Mapping[str, Mapping[str, AnyRun]]
    execution: Execution
    speed: Speed
    ledger: Ledger
    state: State
    alone: Collection[str] = ()
    here: bool = True

    @cached_property
    def pool(self) -> dict[str, AnyRun]:
        """Every run once, by key."""
        return {key: run for runs in self.runs.values() for key, run in runs.items()}

    @cached_property
    def left(self) -> dict[str, list[AnyRun]]:
        """The runs of each study without a record that no study before it asks for."""
        recorded = self.state.recorded
        return {study: [run for run in of if run.key not in recorded] for study, of in self._first.items()}

    @cached_property
    def _first(self) -> dict[str, list[AnyRun]]:
        """The runs of each study that no study before it asks for."""
        rest = dict(self.pool)
        return {study: [rest.pop(key) for key in runs if key in rest] for study, runs in self.runs.items()}

    @cached_property
    def _assigned(self) -> tuple[Ledger, dict[str, str]]:
        minutes = self.execution.job_minutes or JOB_MINUTES[self.here]
        form = partial(formed_jobs, execution=self.execution, speed=self.speed, job_minutes=minutes)
        return assigned(self._first, self.ledger, self.state, form, self.alone)

    def ledger_with(self, submitted: Collection[str]) -> Ledger:
        """The jobs of all starts, of this one those of these names: what is not submitted is no promise."""
        return {
            name: job for name, job in self._assigned[0].items() if name in self.ledger or name in submitted
        }

    @cached_property
    def jobs(self) -> dict[str, Job]:
        """The jobs that hold the config's runs, by name."""
        ledger, holder = self._assigned
        return {name: ledger[name] for name in dict.fromkeys(holder.values())}

    @cached_property
    def to_do(self) -> dict[str, Job]:
        """Those of them that are not done."""
        return {name: job for name, job in self.jobs.items() if name not in self.state.done}

    def job(self, name: str) -> Job:
        """The job of a name.

        Raises:
            UserError: the config has no such job.
        """
        return _named(self.jobs, name, "job")

    def tasks(self, job: Job) -> list[Task] | None:
        """The tasks of a job; None where a run of it is asked for no longer."""
        if not all(key in self.pool for key in job.keys):
            return None
        return [tuple(self.pool[key] for key in task) for task in job.tasks]

    def run(self, key: str) -> AnyRun:
        """The run of a record's path.

        Raises:
            UserError: the config has no such run.
        """
        return _named(self.pool, key, "run")

    def done_path(self, key: str) -> str:
        """The file that the job of a run leaves.

        Raises:
            UserError: the config has no such run.
        """
        ledger, holder = self._assigned
        name = holder[self.run(key).key]
        return done_path(name, ledger[name])

    def done_paths(self, study: str) -> list[str]:
        """The files that the jobs of a study's runs leave; empty where the config doesn't have that study."""
        return list(dict.fromkeys(map(self.done_path, self.runs.get(study, {}))))

    def folders(self, name: tuple[str, ...]) -> list[Path]:
        """The folders in which a job that trains leaves checkpoints and records, by its wildcards; else none."""
        job = self.jobs.get(name[0]) if len(name) == 1 else None
        keys = [] if job is None else job.keys
        own = [folder / key for key in keys for folder in (CHECKPOINTS, RUNS)]
        packs = packs_in(CHECKPOINTS) if keys else ()
        return own + [folder for folder, members in packs if not members.keys().isdisjoint(keys)]

    @cached_property
    def resources(self) -> dict[Level, JobResources]:
        """What the first attempt at each job of a level asks for; all ask for the same, and so can share an array."""
        jobs: dict[Level, list[list[Task]]] = {}
        for job in self.to_do.values():
            if (tasks := self.tasks(job)) is not None:
                jobs.setdefault(job.level, []).append(tasks)
        return {
            level: job_resources(jobs[level], self.execution, self.speed) for level in LEVELS if level in jobs
        }

    @cache  # noqa: B019 - there is one workload a process
    def ask(self, name: str) -> JobAsk:
        """What a job asks for; Snakemake asks for each resource of it.

        Raises:
            UserError: the config has no such job.
        """
        job = self.job(name)
        tasks = self.tasks(job)
        if tasks is None:  # it was submitted by an earlier start, and still trains what that asked for
            return read_ask(name)
        level = self.resources.get(job.level) or job_resources([tasks], self.execution, self.speed)
        execution, packed = self.execution, all(is_packed(task[0]) for task in tasks)
        gpus = min(execution.gpus, 1) if packed else execution.gpus
        decoders = [run for task in tasks for run in task if isinstance(run, Run)]
        stores = dict.fromkeys(file for run in decoders for file in stores_of(run))
        return JobAsk(level, max(execution.threads, gpus), gpus, list(stores))

    def write_jobs(self, submitted: Collection[str]) -> None:
        """Write the files of the jobs of these names.

        Raises:
            WriteFailed: the disk is full, read-only or broken.
        """
        for name in submitted:
            if (tasks := self.tasks(self.job(name))) is not None:
                content = job_content(tasks, **asdict(self.ask(name)))
                write_text(specs_path(name), content)

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


def _named(found: Mapping[str, Named], name: str, what: str) -> Named:
    if name not in found:
        some = f", such as {next(iter(found))}." if found else "."
        raise UserError(f"The config has no {what} {name}; it has {len(found)} {what}s{some}")
    return found[name]


def stores_of(run: Run) -> list[str]:
    """The files of a run's training and test sets, at its vocabulary size: headers and tokens."""
    folder = f"results/corpora/{run.corpus}/V{run.shape.vocab_size}"
    return [f"{folder}/{split}.{ending}" for split in ("train", "test") for ending in ("json", "bin")]


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


def collected_from(decoders: Collection[Run], corpora: Mapping[str, Corpus]) -> dict[str, str]:
    """What the documents of each corpus of some decoders are collected from, as collected.txt beside them says.

    Raises:
        UserError: a folder of texts, or a file while it is listed, is gone.
    """
    sizes = {name: {run.shape.vocab_size for run in decoders if run.corpus == name} for name in corpora}
    options = {name: shlex.join(source_options(corpora[name], of)) for name, of in sizes.items() if of}
    return {name: f"{line} {texts_digest(corpora[name])}\n" for name, line in options.items()}


def replaced_corpora(collected: Mapping[str, str]) -> set[str]:
    """The corpora whose documents were collected from something else."""
    notes = {name: Path(f"results/corpora/{name}/collected.txt") for name in collected}
    return {name for name, note in notes.items() if note.exists() and note.read_text() != collected[name]}
