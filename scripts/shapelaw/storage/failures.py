"""The reasons why runs and jobs could not go on, for the end of a workflow."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

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
    return [f"{_heading(alike)}\n{words}" for words, alike in by_reason.items()]


def _heading(alike: list[FailedJob]) -> str:
    job, others = alike[0], len(alike) - 1
    more = "" if not others else f" and {others} more {'jobs' if others > 1 else 'job'}"
    return f"{job.name}{more} failed" + (f" ({job.log}):" if job.log else ":")


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
        """Keep a message that has a reason."""
        text = record.getMessage()
        if snakemake_reason(text):
            self._said.append(text)

    def reason_of(self, outputs: Collection[str]) -> str:
        """The latest reason that names one of these files; empty without one."""
        named = [text for text in self._said if any(str(output) in text for output in outputs)]
        return snakemake_reason(named[-1]) if named else ""


def drop_empty(logs: Path) -> int:
    """Delete the logs that say nothing, which Snakemake makes for every job; return their number.

    Args:
        logs: folder of logs that no job writes to any more.
    """
    empty = [path for path in logs.rglob("*.log") if not path.is_symlink() and path.stat().st_size == 0]
    for path in empty:
        path.unlink()
    return len(empty)
