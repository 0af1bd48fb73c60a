"""The attempts at a job: what each achieved, and so whether it counts and what the next one asks for."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shapelaw.cluster.states import OUT_OF_MEMORY, TIMEOUT
from shapelaw.storage.files import COPY

Name = tuple[str, ...]  # the wildcards of a job


@dataclass(frozen=True)
class Attempt:
    """An attempt that ended.

    Attributes:
        advanced: it wrote a checkpoint or finished a run of its pack.
        for_good: it said that another attempt would end the same.
        step: steps in the last checkpoint or note, of all; None where there is none.
    """

    advanced: bool
    for_good: bool
    step: tuple[int, int] | None


def together(ended: Sequence[Attempt]) -> Attempt:
    """The attempt at a group of jobs: it advanced where one of them did."""
    return Attempt(
        any(one.advanced for one in ended),
        all(one.for_good for one in ended),
        ended[0].step if len(ended) == 1 else None,
    )


@dataclass
class Attempts:
    """The attempts at the jobs of this workflow.

    Attributes:
        folders: the folders in which a job's checkpoints lie, by its wildcards.
        watched: the reasons why jobs end are known; otherwise each attempt asks for more.
        told: why a job failed for good, where more is known than what its log says; by its rule and wildcards.
    """

    folders: Callable[[Name], Sequence[Path]]
    watched: bool = False
    told: dict[Name, str] = field(default_factory=dict)
    _begun: dict[Name, float] = field(default_factory=dict)
    _reasons: dict[Name, Counter[str]] = field(default_factory=dict)

    def begin(self, name: Name) -> None:
        """Note that an attempt is submitted."""
        self._begun[name] = time.time()

    def end(self, name: Name, reason: str) -> Attempt:
        """Note why an attempt ended, and return what it achieved."""
        self._reasons.setdefault(name, Counter())[reason] += 1
        folders = self.folders(name)
        return Attempt(
            _newest(folders) > self._begun.get(name, time.time()), _for_good(folders), _step(folders)
        )

    def memory(self, name: Iterable[str], attempt: int) -> int:
        """The attempt whose memory the next one asks for: only running out of memory raises it."""
        return self._asks(name, OUT_OF_MEMORY, attempt)

    def minutes(self, name: Iterable[str], attempt: int) -> int:
        """The attempt whose time the next one asks for: only reaching the time limit raises it."""
        return self._asks(name, TIMEOUT, attempt)

    def _asks(self, name: Iterable[str], reason: str, attempt: int) -> int:
        if not self.watched:
            return attempt
        return 1 + self._reasons.get(tuple(name), Counter())[reason]


def _newest(folders: Iterable[Path]) -> float:
    """When the newest checkpoint or finished record was written."""
    paths = [path for folder in folders for pattern in ("step-*.pt", COPY) for path in folder.glob(pattern)]
    return max((_written(path) for path in paths), default=0.0)


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # an older checkpoint, deleted since
        return 0.0


def _notes(folders: Iterable[Path]) -> list[dict[str, object]]:
    notes = []
    for folder in folders:
        try:
            notes.append(json.loads((folder / "live.json").read_text()))
        except (OSError, ValueError):  # finished, not begun, or cut short: a note for people
            continue
    return notes


def _for_good(folders: Sequence[Path]) -> bool:
    """True if no run of the job can go on."""
    notes = _notes(folders)
    return bool(notes) and all(note.get("for_good") for note in notes)


def _step(folders: Sequence[Path]) -> tuple[int, int] | None:
    """The newest step of the last checkpoint, and the steps of its run; of a job with one run."""
    notes = _notes(folders)
    if len(folders) != 1 or not notes:
        return None
    steps = [int(path.stem[5:]) for path in folders[0].glob("step-*.pt") if path.stem[5:].isdigit()]
    return max(steps, default=0), int(str(notes[0]["steps"]))


_ADDED_UP = "runtime"


def in_turn(group: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The resources of a group: of each number the largest of its members', and the sum of their minutes.

    Snakemake adds up CPUs and memory and takes the longest time, as if the members ran side by side; the plugin starts
    them with `--jobs 1`.

    Args:
        group: the resources as Snakemake reckons them; what is no number is taken from here.
        members: the resources of each job.
    """
    asked = dict(group)
    for name, value in group.items():
        if isinstance(value, int):
            numbers = [one[name] for one in members if isinstance(one.get(name), int)]
            asked[name] = sum(numbers) if name == _ADDED_UP else max(numbers, default=value)
    return asked
