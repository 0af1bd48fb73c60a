"""The workflow and the importer beside it, kept going by someone who starts again what somebody else kills."""

from __future__ import annotations

import ctypes
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
from project import Project

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
NOBODY = "nobody"
WEIGHTS = {SNAKEMAKE: 2.0, FOLLOWER: 1.0, NOBODY: 2.0}  # of a kind that is alive; any other has 6
STARTING = 0.5  # weight of a Snakemake that has not started a job yet
MOST = 4  # kills of one job while the grid stays as it is: else a slow fit would take them all
GENTLE = 0.2  # share of SIGTERM
TICK = 0.05  # seconds
FRUITLESS = 3  # calls of Snakemake in a row that fail though nothing is killed
PATIENCE = 1800.0  # seconds after the last kill
PR_SET_CHILD_SUBREAPER = 36  # of prctl: orphans become our children, and their CPU time is counted


@dataclass(frozen=True)
class Victim:
    """A process of the workflow.

    Attributes:
        process: psutil's.
        kind: what it is.
        job: what it works at: a run's key, or the command's name.
    """

    process: Any
    kind: str
    job: str


@dataclass(frozen=True)
class Kill:
    """A signal that was sent.

    Attributes:
        at: seconds since 1970.
        kind, job: the victim's.
        signal: its name.
    """

    at: float
    kind: str
    job: str
    signal: str


def victims(folder: Path) -> list[Victim]:
    """The workflow's processes at work in a folder, orphans too."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()) != folder:
                continue
            kind, job = _kind_and_job(process.cmdline())
            if kind and process.status() != psutil.STATUS_ZOMBIE:
                found.append(Victim(process, kind, job))
        except psutil.Error:  # it has ended, or is another user's
            continue
    return found


def _kind_and_job(words: list[str]) -> tuple[str, str]:
    """What a command line is; ("", "") for one of no interest."""
    if words[1:3] == ["-m", "snakemake"] and "--unlock" not in words:
        return SNAKEMAKE, SNAKEMAKE
    name = Path(words[1]).name if len(words) > 1 else ""
    kind = KINDS.get(name, "")
    if kind == TRAINING and "--out" in words:
        return kind, Path(words[words.index("--out") + 1]).name
    return kind, name


@dataclass(frozen=True)
class Plan:
    """How often something is killed.

    Attributes:
        kills: of all processes together.
        seed: of what is drawn.
        cores: of Snakemake.
        every: mean seconds between two kills.
        grids: at least so many; each has one seed more.
    """

    kills: int
    seed: int
    cores: int
    every: float
    grids: int = 1

    def without_kills(self, grids: int) -> Plan:
        """The same work, undisturbed."""
        return replace(self, kills=0, grids=grids)


@dataclass(frozen=True)
class Spent:
    """Time from the first start to the end of the last process, in seconds: of the clock, and of all CPUs."""

    wall: float
    cpu: float


class Disturbed:
    """The workflow in a folder, and who kills its processes.

    Attributes:
        kills: so far.
        grids: begun.
        calls: of Snakemake.
    """

    def __init__(self, project: Project, configure: Callable[[Project, int], None], plan: Plan) -> None:
        self.kills: list[Kill] = []
        self.grids, self.calls = 1, 0
        self._project, self._configure, self._plan = project, configure, plan
        self._draw = random.Random(plan.seed)
        self._hits: Counter[str] = Counter()
        self._fruitless = self._kills_before = 0

    def run(self) -> Spent:
        """Kill and start again until the kills are done and the workflow is.

        Raises:
            RuntimeError: the workflow fails though nothing is killed, or does not end.
        """
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        start, cpu = time.time(), _cpu_of_children()
        (self._project.folder / "results").mkdir(exist_ok=True)
        self._configure(self._project, self.grids)
        try:
            self._follower, self._snakemake = self._follow(), self._call()
            self._next = start + self._pause()
            while not self._is_over():
                self._tick()
                time.sleep(TICK)
            self._follower.terminate()
            self._wait_for_all()
        finally:
            for victim in victims(self._project.folder):
                victim.process.kill()
        return Spent(time.time() - start, _cpu_of_children() - cpu)

    def _tick(self) -> None:
        now = time.time()
        self._bury()
        if self._follower.poll() is not None:
            self._follower = self._follow()
        if len(self.kills) < self._plan.kills:
            if now >= self._next:
                self._strike(now)
        elif self.kills and now > self.kills[-1].at + PATIENCE:
            alive = ", ".join(sorted(victim.job for victim in victims(self._project.folder)))
            raise RuntimeError(
                f"{PATIENCE:g} seconds after the last kill the workflow has not ended: {alive}."
            )

    def _is_over(self) -> bool:
        """Start Snakemake again where it has ended; whether all is done."""
        code = self._snakemake.poll()
        if code is None:
            return False
        if code == 0:
            if len(self.kills) >= self._plan.kills and self.grids >= self._plan.grids:
                return True
            self.grids += 1
            self._hits.clear()
            self._configure(self._project, self.grids)
        else:
            disturbed = any(kill.kind != FOLLOWER for kill in self.kills[self._kills_before :])
            self._fruitless = 0 if disturbed else self._fruitless + 1
            if self._fruitless == FRUITLESS:
                raise RuntimeError(
                    f"Snakemake fails though nothing is killed:\n{self._log().read_text()[-3000:]}"
                )
            if code < 0 or "LockException" in self._log().read_text():
                self._project.snakemake("--unlock")
        self._snakemake = self._call()
        return False

    def _strike(self, now: float) -> None:
        """Send a signal to a process that is alive, each kind with its weight."""
        self._next = now + self._pause()
        alive: dict[str, list[Victim]] = {NOBODY: []}
        for victim in victims(self._project.folder):
            if victim.kind in WEIGHTS or self._hits[victim.job] < MOST:
                alive.setdefault(victim.kind, []).append(victim)
        weights = WEIGHTS if self._is_at_work() else {**WEIGHTS, SNAKEMAKE: STARTING}
        kinds = sorted(alive)
        kind = self._draw.choices(kinds, [weights.get(kind, 6.0) for kind in kinds])[0]
        if kind == NOBODY:
            return
        victim = self._draw.choice(alive[kind])
        number = signal.SIGTERM if self._draw.random() < GENTLE else signal.SIGKILL
        try:
            victim.process.send_signal(number)
        except psutil.NoSuchProcess:
            return
        self.kills.append(Kill(time.time(), kind, victim.job, number.name))
        self._hits[victim.job] += 1

    def _pause(self) -> float:
        return self._draw.expovariate(1 / self._plan.every)

    def _call(self) -> subprocess.Popen[bytes]:
        self.calls += 1
        self._kills_before = len(self.kills)
        options = ("--cores", str(self._plan.cores), "--keep-going", "--retries", "3")
        return self._start(self._log(), "-m", "snakemake", *options)

    def _follow(self) -> subprocess.Popen[bytes]:
        log = self._project.folder / "follower.log"
        return self._start(log, "scripts/follow_runs.py", "--results", "results", "--every", "1")

    def _start(self, log: Path, *words: str) -> subprocess.Popen[bytes]:
        with log.open("a") as file:
            return subprocess.Popen(
                [sys.executable, *words],
                cwd=self._project.folder,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def _log(self) -> Path:
        return self._project.folder / f"snakemake-{self.calls:03}.log"

    def _is_at_work(self) -> bool:
        text = self._log().read_text()
        return "\nJob " in text or "Nothing to be done" in text

    def _bury(self) -> None:
        """Wait for the orphans that have ended."""
        own = (self._snakemake.pid, self._follower.pid)
        for process in psutil.Process().children():
            if process.pid not in own and process.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(process.pid, 0)

    def _wait_for_all(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while left := victims(self._project.folder):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{', '.join(victim.job for victim in left)} does not end.")
            time.sleep(TICK)
        self._follower.wait()
        self._bury()


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
