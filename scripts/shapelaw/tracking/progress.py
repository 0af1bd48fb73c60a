"""The progress of a study's runs, from records alone: done, running, stopped, failed, waiting, and the time left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError
from shapelaw.specs.kinds import AnyRun
from shapelaw.storage.copies import content
from shapelaw.storage.records import FAILED, RUNNING, read_record
from shapelaw.tracking.disk import Liveness, RecordFolder, moment, true_status


@dataclass(frozen=True)
class RunningRun:
    """A run under way: its step, and the seconds since it last wrote one."""

    key: str
    step: int
    steps: int
    silent_seconds: float


@dataclass(frozen=True)
class StudyProgress:
    """The runs of a study by their state.

    Attributes:
        study: its name.
        total: number of runs.
        done: number of finished runs.
        running: runs under way.
        stopped: keys of runs that a signal or a dead machine stopped; they resume.
        failed: sentence of each run that can't go on, by key.
        work_done: share of all operations that is done, 0 to 1.
        seconds_left: at the speed of the finished runs, as many at a time as run now; None where none has finished.
    """

    study: str
    total: int
    done: int
    running: tuple[RunningRun, ...]
    stopped: tuple[str, ...]
    failed: Mapping[str, str]
    work_done: float
    seconds_left: float | None

    @property
    def waiting(self) -> int:
        """Number of runs that have not begun."""
        begun = self.done + len(self.running) + len(self.stopped) + len(self.failed)
        return self.total - begun


def progress_of(
    study: str,
    runs: Mapping[str, AnyRun],
    found: Mapping[str, RecordFolder],
    liveness: Liveness,
    now: datetime | None = None,
) -> StudyProgress:
    """The progress of a study.

    Args:
        runs: the runs that were asked for, by key.
        found: the records on disk, by key.
        liveness: criteria by which a run that says RUNNING still runs.
        now: the time, UTC.

    Raises:
        UserError: a record is damaged.
    """
    now = now or datetime.now(UTC)
    running, stopped, failed = [], [], {}
    done, seconds, flops_done, flops_finished, flops = 0, 0.0, 0.0, 0.0, 0.0
    for key, run in runs.items():
        work = float(run.steps * run.step_flops)
        flops += work
        one = found.get(key)
        if one is None:
            continue
        if one.finished:
            done += 1
            flops_done += work
            flops_finished += work
            seconds += float(_summary(one.directory).get("wall_seconds") or 0.0)
            continue
        record = read_record(one.directory)
        status, reason = true_status(record, liveness, now)
        step = int(record.live.get("step", 0))
        flops_done += float(step * run.step_flops)
        if status == RUNNING:
            silent = (now - moment(record.live, "updated_at", one.directory)).total_seconds()
            running.append(RunningRun(key, step, run.steps, max(0.0, silent)))
        elif status == FAILED:
            failed[key] = reason
        else:
            stopped.append(key)
    left = None
    if seconds > 0:
        left = (flops - flops_done) / (flops_finished / seconds) / max(1, len(running))
    share = flops_done / flops if flops else 0.0
    return StudyProgress(study, len(runs), done, tuple(running), tuple(stopped), failed, share, left)


def _summary(directory: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(content(directory, "summary.json")))
    except (OSError, ValueError) as error:
        raise UserError(
            f"The record {directory} is damaged: summary.json can't be read ({error}); write it again: rm -r "
            f"{directory} && snakemake"
        ) from error


def lines_of(progress: StudyProgress) -> list[str]:
    """The progress in words: a line of counts, one for each running run, and one for each failure."""
    states = [
        f"{progress.done} of {progress.total} runs done",
        f"{len(progress.running)} running",
        f"{len(progress.stopped)} stopped",
        f"{len(progress.failed)} failed",
        f"{progress.waiting} waiting",
    ]
    line = f"{progress.study}: {', '.join(states)}; {progress.work_done:.0%} of the work"
    if progress.seconds_left and progress.done < progress.total:
        line += f", about {duration(progress.seconds_left)} left, {max(1, len(progress.running))} at a time"
    lines = [line + "."]
    lines += [
        f"  running: {run.key} at step {run.step:,} of {run.steps:,}, {duration(run.silent_seconds)} ago"
        for run in progress.running
    ]
    if progress.stopped:
        lines.append(
            f"  stopped, and resumed by snakemake: {', '.join(progress.stopped[:3])}{_more(progress.stopped)}"
        )
    lines += [f"  failed: {sentence}" for sentence in progress.failed.values()]
    return lines


def _more(keys: tuple[str, ...]) -> str:
    return f" and {len(keys) - 3} more" if len(keys) > 3 else ""


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `5.2 h`, `3.1 days`."""
    for unit, name, form in ((86400, "days", ".1f"), (3600, "h", ".1f"), (60, "min", ".0f")):
        if seconds >= unit * (2 if unit == 86400 else 1):
            return f"{seconds / unit:{form}} {name}"
    return f"{seconds:.0f} s"
