"""What is known of the pool's runs without reading them: which studies ask for them, and why they could not go on.

Light: the Snakefile reads it.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shapelaw.errors import UserError, say
from shapelaw.specs.kinds import AnyRun
from shapelaw.specs.runs import Run
from shapelaw.storage.files import write_text, written

RESULTS = "results"  # the folder with the pool
RUNS = "runs"  # the pool's folder in results/
PACK = "pack-"  # begins the name of a pack's folder, among those of checkpoints
MEMBERS = "members.json"  # in a pack's folder: the digests of its members by key
ASKED = "studies.json"  # in runs/: the keys that each study ever asked for
_ATTEMPT = re.compile(r"^== \d{4}-.* on .*$", re.MULTILINE)  # the line above each attempt of a training job
_TRACEBACK = "Traceback (most recent call last):"
# the name of its error, with the rule and its place, and then its text up to a blank line, a time, or what follows
_SNAKEMAKE_ERROR = re.compile(
    r"^\w+(?:Error|Exception)(?: in rule .*| in file .*|)(?:, line \d+)?:\n"
    r"((?:(?!\[|\s*$|Shutting down|\w+(?:Error|Exception)\b.*:$).*\n?)+)",
    re.M,
)
_COMMAND_FAILED = re.compile("Command '|Job failed|At least one job")
_PLACE = re.compile(
    r"File \"|\w+(Error|Exception)\b.*:$"
)  # a place in code, and an error's name within another's
_MOST_LINES = 12  # of one job; its log has the others


def read_keys(path: Path) -> list[str]:
    """The runs of a file with one key a line; blank lines don't count.

    Raises:
        UserError: the file can't be read or names no key.
    """
    try:
        keys = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The file of keys {path} can't be read ({error}).") from error
    if not keys:
        raise UserError(f"The file of keys {path} names no run; write one key a line.")
    return keys


def read_asked(results: Path) -> dict[str, list[str]]:
    """The keys of the runs that each study ever asked for, from `runs/studies.json`; empty where there is none.

    Raises:
        UserError: the file is damaged.
    """
    path = results / RUNS / ASKED
    try:
        return {str(study): list(keys) for study, keys in json.loads(path.read_text()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UserError(
            f"{path}, the studies of the runs, can't be read ({error}); the next start writes it anew: rm {path}"
        ) from error


def add_asked(results: Path, asked: Mapping[str, Iterable[str]]) -> None:
    """Note which studies ask for which runs, beside what was noted before.

    Raises:
        UserError: the file is damaged.
        WriteFailed: the disk is full, read-only or broken.
    """
    before = read_asked(results)
    now = {study: sorted({*before.get(study, ()), *keys}) for study, keys in asked.items()}
    if (after := before | now) != before:
        path = results / RUNS / ASKED
        write_text(path, json.dumps(after, indent=1) + "\n")


def experiment_of(study: str, results: str) -> str:
    """The name of a study in MLflow: with its results folder, where that is another one over the one pool.

    Args:
        results: the config's folder for tables and figures.
    """
    return study if results == RESULTS else f"{study} ({results})"


def studies_by_key(asked: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """The studies that ask for each run."""
    found: dict[str, list[str]] = {}
    for study, keys in asked.items():
        for key in keys:
            found.setdefault(key, []).append(study)
    return found


@dataclass(frozen=True)
class Counts:
    """The runs that are asked for, by what the pool has of them.

    Attributes:
        runs: all of them.
        recorded: those with a record.
        begun: those that have begun and have none yet.
    """

    runs: int
    recorded: int
    begun: int

    @property
    def to_train(self) -> int:
        """Those that have not begun."""
        return self.runs - self.recorded - self.begun

    @property
    def words(self) -> str:
        """`216 runs: 108 in the pool, 12 begun, 96 to train`."""
        all_runs = f"{self.runs:,} run{'' if self.runs == 1 else 's'}"
        if self.to_train == self.runs:
            return f"{all_runs} to train"
        if self.recorded == self.runs:
            return f"{all_runs}, all in the pool"
        parts = {"in the pool": self.recorded, "begun": self.begun, "to train": self.to_train}
        return f"{all_runs}: " + ", ".join(f"{number:,} {what}" for what, number in parts.items() if number)


def recorded_of(results: Path, keys: Collection[str]) -> set[str]:
    """The keys of the runs that have a record."""
    return _with_file("summary.json", results / RUNS, keys)


def begun_of(results: Path, keys: Collection[str]) -> set[str]:
    """The keys of the runs that have begun, as their checkpoint folders say."""
    return _with_file("live.json", results / "checkpoints", keys)


def _with_file(name: str, folder: Path, keys: Collection[str]) -> set[str]:
    """Those of the keys whose folders in this one have a file: it is listed once, in place of a look for each key."""
    try:
        there = set(os.listdir(folder)).intersection(keys)
    except FileNotFoundError:
        return set()
    return {key for key in there if (folder / key / name).exists()}


def counts_of(results: Path, runs: Mapping[str, AnyRun], replaced: Collection[str]) -> Counts:
    """What the pool has of some runs by key, without records of another text (`outdated_of`)."""
    recorded = recorded_of(results, runs)
    recorded -= outdated_of(results, [runs[key] for key in recorded], replaced)
    return Counts(len(runs), len(recorded), len(begun_of(results, runs) - recorded))


def outdated_of(results: Path, runs: Iterable[AnyRun], replaced: Collection[str] = ()) -> set[str]:
    """The keys of the decoders with a record of another text than their corpus has now.

    A record is read only where it is older than the text, and once.

    Args:
        replaced: names of corpora whose text will be another one.
    """
    found, texts = set(), dict[tuple[str, int], tuple[float, str | None]]()
    for run in runs:
        if not isinstance(run, Run):
            continue
        name, vocab_size = text = run.corpus, run.shape.vocab_size
        if text not in texts:
            texts[text] = (math.inf, None) if name in replaced else _text_of(results, name, vocab_size)
        (since, identity), summary = texts[text], results / RUNS / run.key / "summary.json"
        then = written(summary)
        if 0 < then <= since and not (identity and _stated(summary, then, "identity").endswith(identity)):
            found.add(run.key)
    return found


def _text_of(results: Path, corpus: str, vocab_size: int) -> tuple[float, str | None]:
    """Since when a text is there, and how the identity of a run on it ends; None while it isn't encoded."""
    folder = results / "corpora" / corpus
    headers = [folder / f"V{vocab_size}" / f"{split}.json" for split in ("train", "test")]
    documents, *stores = times = [written(path) for path in (folder / "documents.parquet", *headers)]
    if min(stores) < documents:
        return documents, None
    marks = (_stated(path, time, "sha256")[:16] for path, time in zip(headers, stores, strict=True))
    return max(times), f"-{'-'.join(marks)}"


@cache
def _stated(path: Path, time: float, name: str) -> str:
    """A value of a JSON file that was written at some time; empty where it has none."""
    try:
        return str(json.loads(path.read_bytes())[name])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def packs_in(checkpoints: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """The folders of unfinished packs, with the digests of their members by key."""
    for path in sorted(checkpoints.glob(f"{PACK}*/{MEMBERS}")):
        try:
            yield path.parent, json.loads(path.read_text())
        except FileNotFoundError:  # the pack has ended since
            continue
        except (OSError, ValueError) as error:
            say(f"{path} can't be read ({error}); its models are not looked for")


@dataclass(frozen=True)
class FailedJob:
    """A job that failed.

    Attributes:
        name: name of its rule, with what it was about.
        log: its log; None where it has none.
        reason: what Slurm or Snakemake said of it, a sentence; empty where neither said anything.
    """

    name: str
    log: Path | None
    reason: str = ""


def failures(checkpoints: Path, keys: Collection[str]) -> Iterator[str]:
    """A sentence for every run that could not go on, from its live record.

    Args:
        checkpoints: folder of `<key>/live.json`; other jobs may write and delete files there meanwhile.
        keys: of the runs that are asked for; other runs are ignored.
    """
    for path in sorted(checkpoints.glob("*/live.json")):
        try:
            live = json.loads(path.read_text())
        except FileNotFoundError:  # the run has finished since
            continue
        except ValueError as error:
            yield f"{path} can't be read ({error}); start the run again to see why it ended."
            continue
        if live.get("status") == "FAILED" and path.parent.name in keys:
            yield live["message"]


def told_again(jobs: Iterable[FailedJob], told: Collection[str] = ()) -> list[str]:
    """What failed jobs said last, a text for each reason; jobs that say the same share one.

    Args:
        told: sentences that are told anyway; a job that says nothing else is left out.
    """
    by_reason: dict[str, list[FailedJob]] = {}
    for job in jobs:
        words = "\n".join(filter(None, (job.reason, last_words(job.log))))
        if not words:
            where = f"its log {job.log} is empty" if job.log and job.log.exists() else "it left no log"
            words = f"It ended without a word ({where}): it was killed, or ran out of memory or time."
        if not any(sentence and sentence in words for sentence in told):
            by_reason.setdefault(words, []).append(job)
    found = []
    for words, (job, *others) in by_reason.items():
        more = f" and {len(others)} more {'jobs' if len(others) > 1 else 'job'}" if others else ""
        found.append(f"{job.name}{more} failed{f' ({job.log})' if job.log else ''}:\n{words}")
    return found


def last_words(log: Path | None) -> str:
    """The sentence at the end of a log, from its last attempt; of a traceback, its last line.

    Empty where there is no log or nothing in it.
    """
    try:
        text = log.read_text(encoding="utf-8", errors="replace") if log else ""
    except OSError:
        return ""
    lines = [line.rstrip() for line in _ATTEMPT.split(text)[-1].splitlines() if line.strip()]
    if _TRACEBACK in lines:
        return f"{lines[-1]} (an error of shapelaw or of what it uses; the log has all of it)"
    return "\n".join(lines[-_MOST_LINES:])


def snakemake_reason(said: str) -> str:
    """Snakemake's own reason why a job failed, from what it printed: of clocks that differ, or files that are missing.

    Empty where it tells only that a command failed, whose log says why.
    """
    for found in reversed(list(_SNAKEMAKE_ERROR.finditer(said))):
        lines = [line.strip() for line in found[1].splitlines()]
        if not any(map(_COMMAND_FAILED.match, lines)):
            return " ".join(line for line in lines if not _PLACE.match(line))
    return ""


class SnakemakeErrors(logging.Handler):
    """What Snakemake says of errors of its own while it runs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self._said.append(record.getMessage())

    def reason_of(self, outputs: Collection[str]) -> str:
        """The latest reason that names one of these files; empty without one."""
        named = [text for text in self._said if any(str(output) in text for output in outputs)]
        return next(filter(None, map(snakemake_reason, reversed(named))), "")
