"""The names and marks of jobs: what they are for people, and what they are for the next workflow."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from shapelaw.cluster.states import Job

_MARK = "shapelaw:"  # begins the comment of every job
_TASKS = "array:"  # and then of an array: behind it the marks of its tasks, in their order
_UNUSUAL = re.compile(r"[^\w.+-]")


@dataclass(frozen=True)
class Orphan:
    """A job of an earlier workflow that still waits or runs.

    Attributes:
        number: the job's.
        same: it does what the new job would do, to the last parameter.
    """

    number: str
    same: bool


def job_name(rule: str, wildcards: Iterable[object]) -> str:
    """A job's name in the queue: its rule and run, as in `train_large.wiki-V2000-...-s0-3f2a9c01`."""
    return ".".join(_UNUSUAL.sub("_", str(word)) for word in (rule, *wildcards))


def mark_of(parameters: Iterable[object]) -> str:
    """A job's comment, from the parameters of its rule: jobs with one name and one comment do the same."""
    text = "\n".join(str(one) for one in parameters)
    return _MARK + hashlib.sha256(text.encode()).hexdigest()[:16]


def mark_of_tasks(marks: Iterable[str]) -> str:
    """The comment of an array, from the marks of its tasks 1, 2, ..."""
    return f"{_MARK}{_TASKS}{','.join(mark.removeprefix(_MARK) for mark in marks)}"


def mark_in(job: Job) -> str:
    """The mark of a job in the queue; of an array's task, its own; empty where that can't be told."""
    _, is_array, marks = job.comment.partition(_MARK + _TASKS)
    if not is_array:
        return job.comment
    listed, task = marks.split(","), job.number.rpartition("_")[2]
    return f"{_MARK}{listed[int(task) - 1]}" if task.isdecimal() and 0 < int(task) <= len(listed) else ""


def find_orphan(
    jobs: Mapping[str, Job], name: str, mark: str, folder: str, mine: Collection[str]
) -> Orphan | None:
    """The active job of this name that an earlier workflow submitted from this folder; None without one.

    Of several, that with this mark, else the newest. A task of an array has the array's name: there the mark decides.
    """
    found = [
        job
        for job in jobs.values()
        if job.is_active
        and job.folder == folder
        and job.comment.startswith(_MARK)
        and (job.name == name or (job.comment.startswith(_MARK + _TASKS) and mark_in(job) == mark))
        and job.number not in mine
    ]
    if not found:
        return None
    chosen = max(found, key=lambda job: (mark_in(job) == mark, int(job.number.partition("_")[0])))
    return Orphan(chosen.number, mark_in(chosen) == mark)
