"""The runs of a results folder, from their records alone: which there are, their true status, how far a study is."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError
from shapelaw.specs.cost import duration
from shapelaw.specs.kinds import AnyRun
from shapelaw.storage import records
from shapelaw.storage.files import is_alive


@dataclass(frozen=True)
class Liveness:
    """The criteria by which a run that says RUNNING still runs.

    Attributes:
        silence: seconds without an update of live.json after which its run counts as dead.
        host: name of this machine, on which processes can be looked up.
    """

    silence: float = 600.0
    host: str = field(default_factory=socket.gethostname)


def find_records(results: Path) -> dict[str, Path]:
    """The folders of the records below `results` by key; a finished one (`is_finished`) wins over one under way.

    `runs/` is listed after `checkpoints/`, so a run that finishes meanwhile is seen at least once.
    """
    found: dict[str, Path] = {}
    for place, file in ((records.CHECKPOINTS, "live.json"), (records.RUNS, "summary.json")):
        found |= {path.parent.name: path.parent for path in (results / place).glob(f"*/{file}")}
    return dict(sorted(found.items()))


def is_finished(directory: Path) -> bool:
    """True for the folder of a finished record."""
    return directory.parent.name == records.RUNS


def true_status(record: records.Record, liveness: Liveness, now: datetime) -> tuple[str, str]:
    """The true status of a record, and the reason: a run that says RUNNING but whose process is gone is KILLED.

    Raises:
        UserError: live.json has no time of its last update.
    """
    if record.status != records.RUNNING:
        return record.status, str(record.live.get("message") or "")
    silent = (now - moment(record.live, "updated_at", record.directory)).total_seconds()
    pid = record.live.get("pid")  # where it is none, the process isn't known to be gone
    if record.live.get("host") == liveness.host and isinstance(pid, int) and not is_alive(pid):
        return records.KILLED, f"Its process ended without a message on {liveness.host}."
    if silent > liveness.silence:
        return records.KILLED, f"It has given no sign of life for over {liveness.silence / 60:g} minutes."
    return records.RUNNING, str(record.live.get("message") or "")


def moment(values: Mapping[str, Any], name: str, directory: Path) -> datetime:
    """The time `name` of a summary or live state, in UTC unless it says otherwise.

    Raises:
        UserError: the time is missing, or not ISO 8601.
    """
    try:
        time = datetime.fromisoformat(values[name])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"The record {directory} has no valid time {name} ({values.get(name)!r}); "
            f"write an ISO 8601 time there, or train the run again: rm -r {directory} && snakemake"
        ) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


@dataclass(frozen=True)
class StudyProgress:
    """The runs of a study by their state.

    Attributes:
        study: its name.
        total: number of runs.
        done: number of finished runs.
        running: of each run under way its key and step, and how long ago it wrote that, in words.
        stopped: keys of runs that a signal or a dead machine stopped; they resume.
        failed: sentence of each run that can't go on, by key.
        work_done: share of all operations that is done, 0 to 1.
        seconds_left: at the speed of the finished runs, as many at a time as run now; None where none has finished.
    """

    study: str
    total: int
    done: int
    running: tuple[str, ...]
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
    study: str, runs: Mapping[str, AnyRun], found: Mapping[str, Path], given_up: Mapping[str, str]
) -> StudyProgress:
    """The progress of a study.

    Args:
        runs: the runs that were asked for, by key.
        found: the folders of the records on disk, by key.
        given_up: the sentence of each run whose job was ended for good, by key.

    Raises:
        UserError: a record is damaged.
    """
    now, running, stopped, failed = datetime.now(UTC), [], [], dict[str, str]()
    done, seconds, flops_done, flops_begun = 0, 0.0, 0.0, 0.0
    for key, run in runs.items():
        directory = found.get(key)
        if directory is not None and is_finished(directory):
            done += 1
            flops_done += float(run.steps * run.step_flops)
            seconds += float(records.read_summary(directory).get("wall_seconds") or 0.0)
            continue
        status, reason = "", ""
        if directory is not None:
            record = records.read_record(directory)
            status, reason = true_status(record, Liveness(), now)
            step = int(record.live.get("step", 0))
            flops_begun += float(step * run.step_flops)
        if status == records.RUNNING:
            silent = (now - moment(record.live, "updated_at", record.directory)).total_seconds()
            running.append(f"{key} at step {step:,} of {run.steps:,}, {duration(max(0.0, silent))} ago")
        elif status == records.FAILED or key in given_up:
            failed[key] = reason if status == records.FAILED else given_up[key]
        elif directory is not None:
            stopped.append(key)
    flops = sum(float(run.steps * run.step_flops) for run in runs.values())
    left = None
    if seconds > 0:
        left = (flops - flops_done - flops_begun) / (flops_done / seconds) / max(1, len(running))
    share = (flops_done + flops_begun) / flops if flops else 0.0
    return StudyProgress(study, len(runs), done, tuple(running), tuple(stopped), failed, share, left)


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
    lines += [f"  running: {run}" for run in progress.running]
    if progress.stopped:
        more = f" and {len(progress.stopped) - 3} more" if len(progress.stopped) > 3 else ""
        lines.append(f"  stopped, and resumed by snakemake: {', '.join(progress.stopped[:3])}{more}")
    lines += [f"  failed: {sentence}" for sentence in dict.fromkeys(progress.failed.values())]
    return lines
