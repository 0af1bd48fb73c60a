"""Which job trains which run: the pool remembers it, so that a later start asks for the same jobs, and new runs alone
make new ones.

`results/jobs/ledger.json` lists the jobs of all starts, `results/jobs/<job>.json` has a job's specs and what it asks
for, and `results/jobs/<level>/<job>.done` stands where all its runs have records. A start writes the first two; a dry
run writes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path

from shapelaw.errors import UserError
from shapelaw.jobs.resources import AGAIN, LEVELS, Level, Task
from shapelaw.specs.kinds import AnyRun
from shapelaw.storage.files import write_text, written

FOLDER = Path("results/jobs")
LEDGER = "ledger.json"
Former = Callable[[Iterable[AnyRun]], list[tuple[Level, list[Task]]]]
_ENDED = "== "  # begins the line of a job's log that says how Slurm ended it
KEPT = "kept"  # in the name of a job that takes records which came from elsewhere


@dataclass(frozen=True)
class Job:
    """A job: the keys of its runs, by task."""

    level: Level
    tasks: tuple[tuple[str, ...], ...]

    @property
    def keys(self) -> list[str]:
        """The keys of all its runs."""
        return [key for task in self.tasks for key in task]


Ledger = dict[str, Job]


def done_path(name: str, job: Job) -> str:
    """The file that stands where all runs of a job have records."""
    return f"{FOLDER}/{job.level}/{name}.done"


def specs_path(name: str) -> Path:
    """The file with a job's specs and what it asks for."""
    return FOLDER / f"{name}.json"


def read_ledger(folder: Path = FOLDER) -> Ledger:
    """The jobs of all starts; none before the first.

    Raises:
        UserError: the file is damaged.
    """
    path = folder / LEDGER
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {name: Job(level, tuple(map(tuple, tasks))) for name, (level, tasks) in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}, which says which job trains which run, can't be read ({error}). Without it the records are "
            f"looked at again, and nothing is trained twice: rm {path}"
        ) from error


def write_ledger(ledger: Ledger, folder: Path = FOLDER) -> None:
    """Write the ledger where it differs from what is there, and delete the specs of jobs that it no longer has.

    Raises:
        WriteFailed: the disk is full, read-only or broken.
    """
    before = read_ledger(folder)
    if ledger == before:
        return
    content = {name: (job.level, job.tasks) for name, job in ledger.items()}
    write_text(folder / LEDGER, json.dumps(content) + "\n")
    for name in before.keys() - ledger.keys():
        (folder / f"{name}.json").unlink(missing_ok=True)


def finished_jobs(folder: Path = FOLDER) -> set[str]:
    """The names of the jobs that are done."""
    return {path.stem for level in LEVELS for path in (folder / level).glob("*.done")}


def note_ending(logs: Sequence[str], ending: str) -> None:
    """Add to the log of a job how Slurm ended it, which the job itself can't write there."""
    for log in map(Path, logs):
        with suppress(OSError):  # the terminal has it too
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("a", encoding="utf-8") as attempts:
                print(f"{_ENDED}{ending}", file=attempts)


def given_up(results: Path, since: float) -> dict[str, str]:
    """The runs whose job Slurm ended for good, by key, with the line of its log.

    Args:
        since: seconds since the epoch, before which a start gave up what a later one has tried again.

    Raises:
        UserError: the ledger is damaged.
    """
    found: dict[str, str] = {}
    done = finished_jobs(results / FOLDER.name)
    for name, job in read_ledger(results / FOLDER.name).items():
        log = results / "logs/train" / f"{name}.log"
        if name in done or written(log) < since:
            continue
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
        if last and last[0].startswith(_ENDED) and AGAIN not in last[0]:
            found |= dict.fromkeys(job.keys, f"{name}: {last[0].removeprefix(_ENDED)} ({log})")
    return found


@dataclass(frozen=True)
class State:
    """The pool as a start finds it.

    Attributes:
        recorded: keys of the runs that have a record.
        done: names of the jobs that are done.
        is_queued: whether a job waits or runs in a queue.
        is_begun: whether a run has begun and has no record yet.
    """

    recorded: Collection[str]
    done: Collection[str]
    is_queued: Callable[[str, Job], bool]
    is_begun: Callable[[str], bool]


def assigned(
    runs: Mapping[str, Sequence[AnyRun]],
    ledger: Ledger,
    state: State,
    form: Former,
    alone: Collection[str] = (),
) -> tuple[Ledger, dict[str, str]]:
    """The jobs with those of new runs, and the job of each run that is asked for.

    A job that is done keeps the runs that have records; one whose record is gone gets into a new job. A job that is not
    done stays as it is while all its runs are asked for, or while it is under way. Otherwise it is given up, and what
    is still asked for gets into new jobs. Records that no job names become jobs that only look at them.

    Args:
        runs: the runs that are asked for, by the study that asks first.
        ledger: the jobs of earlier starts.
        form: makes jobs of the runs of a study.
        alone: keys of runs that get a job each, since they are targets by themselves.
    """
    asked = {run.key for of in runs.values() for run in of}
    apart = {key for key in alone if key in asked and key not in state.recorded}
    holder: dict[str, str] = {}
    for name, job in ledger.items():
        if name in state.done:
            holder |= {key: name for key in job.keys if key in state.recorded}
    kept: Ledger = {}
    for name, job in ledger.items():
        if name not in state.done:
            if not _stays(name, job, asked, apart, state):
                continue
            for key in job.keys:
                holder.setdefault(key, name)
        kept[name] = job
    names = _Names(kept)
    for study, of in runs.items():
        free = [run for run in of if run.key not in holder]
        found = [run for run in free if run.key in state.recorded]
        jobs = [(names.new(study, [(run,)]), *form([run])[0]) for run in free if run.key in apart]
        if found:
            looked_at: list[Task] = [(run,) for run in found]
            jobs.append((names.new(f"{study}-{KEPT}", looked_at), "small", looked_at))
        left = [run for run in free if run.key not in apart and run.key not in state.recorded]
        jobs += [(names.new(study, tasks), level, tasks) for level, tasks in form(left)]
        for name, level, tasks in jobs:
            kept[name] = Job(level, tuple(tuple(run.key for run in task) for task in tasks))
            holder |= {run.key: name for task in tasks for run in task}
    return kept, {key: name for key, name in holder.items() if key in asked}


def _stays(name: str, job: Job, asked: Collection[str], apart: Collection[str], state: State) -> bool:
    """Whether a job that is not done is left as it is."""
    if any(key in apart for key in job.keys):
        return len(job.keys) == 1 or state.is_queued(name, job)
    if all(key in asked for key in job.keys):
        return True
    return any(map(state.is_begun, job.keys)) or state.is_queued(name, job)


class _Names:
    """Names of new jobs: study, what the keys of its runs begin with alike, a number, eight digits of the keys."""

    def __init__(self, ledger: Ledger) -> None:
        self._taken = set(ledger)
        numbers = (name.split("-")[-2:-1] for name in ledger)
        self._numbers = count(1 + max((int(one) for (one,) in numbers if one.isdigit()), default=0))

    def new(self, study: str, tasks: Sequence[Task]) -> str:
        """The name of a job with these tasks."""
        keys = [run.key for task in tasks for run in task]
        # without the corpus and the digits
        parts = zip(*(key.split("-")[1:-1] for key in keys), strict=False)
        alike = [same[0] for same in takewhile(lambda same: len(set(same)) == 1, parts)]
        digits = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:8]
        return "-".join([study, *alike, f"{next(self._numbers):03d}", digits])


def job_content(tasks: Iterable[Sequence[AnyRun]], **asks: object) -> str:
    """The content of a job's file: its specs, which scripts/train.py reads, and what it asks for."""
    specs = [[run.to_dict() for run in task] for task in tasks]
    return json.dumps({**asks, "tasks": specs}, allow_nan=False) + "\n"
