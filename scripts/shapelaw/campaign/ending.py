"""How a workflow ends: what was trained, the questions with their answers, and the command that opens the page.

Light: the Snakefile reads it.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapelaw.specs.kinds import AnyRun, in_words, kind_of
from shapelaw.studies.study import Study

SHOWN = 3  # questions, so that all stays within eight lines where nothing failed
OPEN = "open" if sys.platform == "darwin" else "xdg-open"
Runs = Mapping[str, Mapping[str, AnyRun]]


@dataclass(frozen=True)
class _Told:
    """A question with its answer, and notes on the runs that it rests on."""

    study: Study
    sentence: str
    decided: bool
    notes: Sequence[str]
    failed: str


def heading_of(study: Study, runs: Collection[AnyRun]) -> str:
    """A study's heading with what it is about: `Depth and width (wiki, Llama's block, 1,000 steps, 25 runs)`.

    Args:
        runs: its runs; none where it trains nothing, whose heading says itself what it is about.
    """
    if not runs:
        return study.heading
    return f"{study.heading} ({in_words(runs)}, {len(runs)} run{'s' if len(runs) > 1 else ''})"


def ending(
    studies: Sequence[Study], runs: Runs, page: str, minutes: float | None = None, new: int | None = None
) -> list[str]:
    """The last lines of a workflow: what was trained, three questions with answers, which parts failed, where to look.

    One question of each title comes before a second one, decided ones first, and those of runs trained elsewhere last:
    their answers are not about what was trained here.

    Args:
        studies: those whose results there are, in the order of the config.
        runs: the runs of each study that trains, by key.
        page: the file that shows all of it.
        minutes: CPU-minutes that it took on this machine; None where others did the work.
        new: number of the runs that had no record before; None says nothing of it.
    """
    known = sorted(filter(None, map(_told, studies)), key=lambda one: not one.decided)
    first = {one.study.title: one for one in reversed(known)}
    told = sorted(
        known,
        key=lambda one: (bool(one.study.made_elsewhere), one is not first[one.study.title], not one.decided),
    )
    lines = [_trained(runs, new)]
    for one in told[:SHOWN]:
        whose = (
            f"{one.study.subtitle[:1].upper()}{one.study.subtitle[1:]}: " if one.study.made_elsewhere else ""
        )
        lines += [one.study.question, f"  {whose}{'' if one.decided else 'Undecided: '}{one.sentence}"]
        lines += [f"  {note}" for note in one.notes]
    lines += [f"In {one.study.folder} {one.failed}" for one in told if one.failed]
    more = f" (questions left: {len(told) - SHOWN})" if len(told) > SHOWN else ""
    took = "" if minutes is None else f" It took {minutes:.1f} CPU-minutes."
    return [*lines, f"Look: {OPEN} {page}{more}; the runs: make ui.{took}"]


def _trained(runs: Runs, new: int | None) -> str:
    """`25 decoders (wiki, Llama's block, 1,000 steps) and 60 memorizers (...)`, a run that two studies share once."""
    pool = {key: run for of in runs.values() for key, run in of.items()}
    by_kind: dict[str, list[AnyRun]] = {}
    for run in pool.values():
        by_kind.setdefault(kind_of(run).plural, []).append(run)
    said = [f"{len(of)} {plural} ({in_words(of)})" for plural, of in by_kind.items()]
    if not said:
        return "Nothing was trained."
    now = "" if new in (None, len(pool)) else f"; {new:,} of them now" if new else "; none of them now"
    return f"Trained: {' and '.join(said)}{now}."


def _told(study: Study) -> _Told | None:
    """The answer of a study's fit.json; None of one that an older version analysed, or that has none."""
    found = read_json(Path(study.folder) / "fit.json") or {}
    answer = found.get("answer")
    if answer is None:
        return None
    return _Told(study, answer["sentence"], answer["decided"], found.get("notes", []), _failed(found))


def _failed(fit: Mapping[str, Any]) -> str:
    """The parts that failed, by the first one's name and reason; empty where none did."""
    parts = fit.get("failed")
    if not parts:
        return ""
    more = f", and {len(parts) - 1} more that fit.json names" if len(parts) > 1 else ""
    return f"a part failed: {parts[0]['part']} ({parts[0]['reason'].rstrip('.')}){more}."


def cpu_minutes() -> float:
    """CPU time (user and system) of this process and of all that it waited for, in minutes."""
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) / 60


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where the file is missing or has none, as `logged` of an older version."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
