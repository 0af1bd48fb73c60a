"""The states of jobs, as squeue and sacct tell them, and how often they are asked."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

Ending = Literal["done", "failed", "active"]

FAILED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT"),
    }
)
REQUEUED = frozenset({"NODE_FAIL", "PREEMPTED"})  # Slurm puts such a job back into the queue by itself
GONE = "GONE"  # Slurm has forgotten the job
OUT_OF_MEMORY, TIMEOUT = "OUT_OF_MEMORY", "TIMEOUT"
REQUEUE_SECONDS = 180.0  # a job that is not back in the queue by then has failed
_KILLED_FOR_MEMORY = re.compile(r"slurmstepd.*(exceeded (job )?memory limit|oom.kill)", re.I)
_MOST_PAUSE = 60.0
_JOBS_A_SECOND = 5.0  # squeue's answer grows with the queue: a second's pause for so many jobs
_ASK_SECONDS = 60
_FORMAT = "%i|%T|%Z|%j|%k"


@dataclass(frozen=True)
class Job:
    """A job in the queue: its state, the folder that it was submitted from, its name and its comment."""

    number: str
    state: str
    folder: str
    name: str
    comment: str

    @property
    def is_active(self) -> bool:
        """True if it waits or runs."""
        return self.state != "COMPLETED" and self.state not in FAILED


def parse_queue(text: str) -> dict[str, Job]:
    """The jobs of squeue's answer, by number; a task of an array is `<number>_<task>`."""
    rows = [line.split("|", 4) for line in text.splitlines()]
    return {row[0]: Job(*row) for row in rows if len(row) == 5}


def my_jobs() -> dict[str, Job] | None:
    """All jobs of this user that Slurm remembers, also finished ones; None where squeue doesn't answer."""
    text = answer("squeue", "-h", "-r", "--states=all", f"--user={os.getuid()}", "-o", _FORMAT)
    return None if text is None else parse_queue(text)


def parse_accounts(text: str) -> dict[str, str]:
    """States by number, of sacct's answer; `CANCELLED by 1000` is CANCELLED."""
    rows = [line.split("|") for line in text.splitlines()]
    return {row[0]: row[1].split()[0] for row in rows if len(row) == 2 and row[1].strip()}


def forgotten(numbers: Collection[str]) -> Mapping[str, str]:
    """The states of jobs that squeue no longer has, from accounting; none where there is no accounting."""
    if not numbers:
        return {}
    text = answer("sacct", "-n", "-X", "-P", "-o", "JobID,State", "-j", ",".join(sorted(numbers)))
    return parse_accounts(text or "")


def states_of(numbers: Collection[str]) -> dict[str, str] | None:
    """The state of each job; None where Slurm doesn't answer.

    A job that neither squeue nor accounting knows is `GONE`.
    """
    jobs = my_jobs()
    if jobs is None:
        return None
    known = {number: jobs[number].state for number in numbers if number in jobs}
    lost = {number for number in numbers if number not in known}
    accounts = forgotten(lost)
    return known | {number: accounts.get(number, GONE) for number in lost}


def ending(state: str, requeues: bool, seconds: float) -> Ending:
    """What a state means for the workflow.

    Args:
        state: as Slurm writes it, or `GONE`: then the job's files decide, which Snakemake looks for after a success.
        requeues: jobs are submitted with --requeue.
        seconds: how long the job has been in this state.
    """
    if state in ("COMPLETED", GONE):
        return "done"
    if state not in FAILED or (requeues and state in REQUEUED and seconds < REQUEUE_SECONDS):
        return "active"
    return "failed"


def reason(state: str, said: str) -> str:
    """Why a job failed: its state, or OUT_OF_MEMORY where Slurm says so only in the job's log."""
    return OUT_OF_MEMORY if state == "FAILED" and _KILLED_FOR_MEMORY.search(said) else state


def nodes_of(number: str) -> list[str]:
    """The nodes of a job, as Slurm lists them, from accounting; none where there is no accounting."""
    text = answer("sacct", "-n", "-X", "-P", "-o", "NodeList", "-j", number) or ""
    return [line for line in text.splitlines() if line and " " not in line]  # not "None assigned"


def pause(active: int, least: float) -> float:
    """Seconds until states are asked for again: `least` for a small queue, a minute for 300 jobs or more."""
    return max(least, min(_MOST_PAUSE, active / _JOBS_A_SECOND))


def answer(*command: str) -> str | None:
    """What a command of Slurm prints; None where it fails or doesn't answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ASK_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
