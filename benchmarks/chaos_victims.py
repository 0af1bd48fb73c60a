"""Who can be killed, and what a kill cost: read from the processes and from the files that they left."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

TRAINING, SNAKEMAKE, FOLLOWER = "training", "Snakemake", "follower"
KINDS = {
    "prepare_corpus.py": "corpus",
    "train_tokenizer.py": "corpus",
    "encode_corpus.py": "corpus",
    "train.py": TRAINING,
    "list_runs.py": "listing the runs",
    "import_runs.py": "import",
    "fit_transitions.py": "fit",
    "log_study.py": "logging the study",
    "follow_runs.py": FOLLOWER,
}
CHECKPOINTS = Path("results/checkpoints")


@dataclass(frozen=True)
class Victim:
    """A process of the workflow.

    Attributes:
        process: psutil's.
        kind: what it is.
        job: what it works at: a run's key, or the command's name.
        started: seconds since 1970.
    """

    process: Any
    kind: str
    job: str
    started: float


@dataclass
class Kill:
    """A signal that was sent, and what it cost.

    Attributes:
        at: seconds since 1970.
        kind, job: the victim's.
        signal: its name.
        phase: what the victim was at.
        seconds_lost: work that must be done again; of Snakemake, time without one at work; None: nothing is lost.
        steps_lost: of a training, between its last checkpoint and the kill, by the pace of its last checkpoints.
    """

    at: float
    kind: str
    job: str
    pid: int
    signal: str
    phase: str = "at work"
    seconds_lost: float | None = None
    steps_lost: float | None = None


def victims(folder: Path) -> list[Victim]:
    """The workflow's processes at work in a folder, orphans too."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()) != folder:
                continue
            kind, job = _kind_and_job(process.cmdline())
            if kind and process.status() != psutil.STATUS_ZOMBIE:
                found.append(Victim(process, kind, job, _started(process)))
        except psutil.Error:  # it has ended, or is another user's
            continue
    return found


def _started(process: Any) -> float:
    """When a process started, by the clock of the files; psutil's own answer is up to a second off."""
    since_boot = process.create_time() - psutil.boot_time()
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - float(since_boot))


def _kind_and_job(words: list[str]) -> tuple[str, str]:
    """What a command line is; ("", "") for one of no interest."""
    if words[1:3] == ["-m", "snakemake"] and "--unlock" not in words:
        return SNAKEMAKE, SNAKEMAKE
    name = Path(words[1]).name if len(words) > 1 else ""
    kind = KINDS.get(name, "")
    if kind == TRAINING and "--out" in words:
        return kind, Path(words[words.index("--out") + 1]).name
    return kind, name


def has_ended(victim: Victim) -> bool:
    """Whether a process is gone, or waits to be buried."""
    try:
        ended = not victim.process.is_running() or victim.process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    return bool(ended)


def settle(kill: Kill, victim: Victim, folder: Path, paces: dict[str, float]) -> None:
    """Write down what a kill cost, once the process is gone.

    Args:
        paces: steps a second by job, for a run without two checkpoints of this attempt; brought up to date.
    """
    if victim.kind == TRAINING:
        _settle_training(kill, victim, folder / CHECKPOINTS, paces)
    elif victim.kind not in (SNAKEMAKE, FOLLOWER):
        kill.seconds_lost = kill.at - victim.started


def _settle_training(kill: Kill, victim: Victim, checkpoints: Path, paces: dict[str, float]) -> None:
    kill.phase, kill.seconds_lost = "starting", kill.at - victim.started
    folder = _folder_of(kill.pid, checkpoints)
    if folder is None:
        if _holder_is_alive(checkpoints / kill.job / "lock"):
            kill.phase, kill.seconds_lost = "waiting for an orphan", 0.0
        return
    began = (folder / "lock").stat().st_mtime
    summary = folder / "summary.json"
    if summary.exists() and summary.stat().st_mtime > began:
        kill.phase, kill.seconds_lost, kill.steps_lost = "writing its record", 0.0, 0.0
        return
    saved = list(_checkpoints(folder))
    own = [(step, at) for step, at in saved if at > began]
    facts = sorted([*own, *_live(folder, kill.pid)], key=lambda each: each[1])
    if not facts:
        return
    kill.phase = "writing a checkpoint" if list(folder.glob(f".step-*.{kill.pid}.tmp")) else "training"
    if own:
        kill.seconds_lost = max(0.0, kill.at - max(at for _, at in own))
    if len(facts) > 1 and facts[-1][1] > facts[-2][1]:
        paces[kill.job] = (facts[-1][0] - facts[-2][0]) / (facts[-1][1] - facts[-2][1])
    if kill.job in paces:
        reached = facts[-1][0] + paces[kill.job] * max(0.0, kill.at - facts[-1][1])
        kill.steps_lost = max(0.0, reached - max((step for step, _ in saved), default=0))


def _folder_of(pid: int, checkpoints: Path) -> Path | None:
    """The run that a process held when it was killed."""
    held = [path for path in checkpoints.glob("*/lock") if _holder(path) == pid]
    return max(held, key=lambda path: path.stat().st_mtime).parent if held else None


def _holder(lock: Path) -> int | None:
    found = re.match(r"process (\d+) ", lock.read_text()) if lock.exists() else None
    return int(found[1]) if found else None


def _holder_is_alive(lock: Path) -> bool:
    holder = _holder(lock)
    return holder is not None and bool(psutil.pid_exists(holder))


def _checkpoints(folder: Path) -> Iterator[tuple[int, float]]:
    """Step and time of each."""
    for path in folder.glob("step-*.pt"):
        try:
            yield int(path.stem[5:]), path.stat().st_mtime
        except FileNotFoundError:  # the next attempt has dropped it
            continue


def _live(folder: Path, pid: int) -> Iterator[tuple[int, float]]:
    """Step and time of live.json, if this process wrote it."""
    path = folder / "live.json"
    if path.exists():
        live = json.loads(path.read_text())
        if live["pid"] == pid:
            yield int(live["step"]), path.stat().st_mtime
