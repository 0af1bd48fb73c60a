"""Kill the workflow's processes at random while it runs, then compare what it ends with to an undisturbed run.

    python benchmarks/chaos.py --kills 200 [--folder DIR]

The real workflow in a copy of the project, on Python's help texts, with the importer following as under `make ui`.
SIGKILL (one time in five SIGTERM) goes to a process that is alive: a training, the import, the fit, Snakemake itself,
... Snakemake is started again as a user would, after `--unlock` where it was killed; what its killed predecessor left
running goes on meanwhile. Each time the grid is done before the kills are, it grows by one seed. At the end every
file of the results, every record and every run in MLflow must equal those of a second copy that nothing disturbed.

Prints a Markdown table; kills.json in the folder has every kill. Exit code 1 if anything differs. Linux only.
What is drawn is the same each time, the machine's timing is not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
from machine import machine, markdown

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from project import CONFIG, GRID, ColdProject, Project
from same_results import TRACKING, Difference, differences

from shapelaw.errors import command_line

TRAINING, SNAKEMAKE, FOLLOWER = "training", "Snakemake", "follower"
KINDS = {
    "prepare_corpus.py": "corpus",
    "train_tokenizer.py": "corpus",
    "encode_corpus.py": "corpus",
    "train.py": TRAINING,
    "import_runs.py": "import",
    "analyse.py": "analysis",
    "log_study.py": "logging the study",
    "write_findings.py": "findings",
    "follow_runs.py": FOLLOWER,
}
# what is whose work, below the results; the others' is in MLflow
AREAS = {"corpus": {"corpora"}, "analysis": {"depth_width"}, TRAINING: {"runs", "checkpoints", "jobs"}}
NOBODY = "nobody"
WEIGHTS = {SNAKEMAKE: 2.0, FOLLOWER: 1.0, NOBODY: 2.0}  # of a kind that is alive; any other has 6
STARTING = 0.5  # weight of a Snakemake that has not started a job yet
MOST = 4  # kills of one job while the grid stays as it is: else a slow fit would take them all
GENTLE = 0.2  # share of SIGTERM
TICK = 0.05  # seconds
FRUITLESS = 3  # calls of Snakemake in a row that fail though nothing is killed
PATIENCE = 1800.0  # seconds after the last kill
CORES = 2  # of Snakemake


@dataclass(frozen=True)
class Victim:
    """A process of the workflow.

    Attributes:
        process: psutil's.
        kind: what it is.
        job: what it works at: the name of its output, or the command's.
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
    """What a command line is; a kind of "" for one of no interest."""
    if words[1:3] == ["-m", "snakemake"] and "--unlock" not in words:
        return SNAKEMAKE, SNAKEMAKE
    name = Path(words[1]).name if len(words) > 1 else ""
    job = words[words.index("--out") + 1] if "--out" in words[:-1] else name
    return KINDS.get(name, ""), Path(job).name


class Disturbed:
    """The workflow in a folder, and who kills its processes.

    Attributes:
        kills: so far.
        grids: begun; each has one seed more.
        calls: of Snakemake.
    """

    def __init__(self, project: Project, options: argparse.Namespace) -> None:
        self.kills: list[Kill] = []
        self.grids, self.calls = 1, 0
        self.project, self._options = project, options
        self._draw = random.Random(0)
        self._hits: Counter[str] = Counter()
        self._fruitless = self._kills_before = 0

    def run(self, kills: int, grids: int = 1) -> None:
        """Kill and start again until so many kills and grids are done, and the workflow is.

        Raises:
            RuntimeError: the workflow fails though nothing is killed, or does not end.
        """
        self._most, self._least_grids = kills, grids
        (self.project.folder / "results").mkdir(exist_ok=True)
        self._configure()
        try:
            self._follower, self._snakemake = self._follow(), self._call()
            self._next = time.time() + self._pause()
            while not self._is_over():
                self._tick()
                time.sleep(TICK)
            self._follower.terminate()
            self._wait_for_all()
        finally:
            for victim in victims(self.project.folder):
                victim.process.kill()

    def _configure(self) -> None:
        """Write a config with a seed for each grid that was begun, and one more for one shape."""
        options, seeds = self._options, self.grids
        often = {"log_every": 50, "evaluate_every": 1000, "warmup_steps": options.steps // 10}
        grid = {"widths": {1: options.widths, 2: options.widths}, "repeated": {1: options.widths[:1]}}
        self.project.configure(
            training={**CONFIG["training"], "steps": options.steps, **often},
            grids={"depth_width": {**GRID, **grid, "seeds": seeds, "repeated_seeds": seeds + 1}},
            execution={"checkpoint_minutes": 0.01, "job_minutes": 1e-4},
        )

    def _tick(self) -> None:
        now = time.time()
        if self._follower.poll() is not None:
            self._follower = self._follow()
        if len(self.kills) < self._most:
            if now >= self._next:
                self._strike(now)
        elif self.kills and now > self.kills[-1].at + PATIENCE:
            self._give_up()

    def _give_up(self) -> None:
        alive = ", ".join(sorted(victim.job for victim in victims(self.project.folder)))
        raise RuntimeError(f"After {PATIENCE:g} seconds without a kill these have not ended: {alive}.")

    def _is_over(self) -> bool:
        """Start Snakemake again where it has ended; whether all is done."""
        code = self._snakemake.poll()
        if code is None:
            return False
        if code == 0:
            if len(self.kills) >= self._most and self.grids >= self._least_grids:
                return True
            self.grids += 1
            self._hits.clear()
            self._configure()
        else:
            disturbed = any(kill.kind != FOLLOWER for kill in self.kills[self._kills_before :])
            self._fruitless = 0 if disturbed else self._fruitless + 1
            said = self._log().read_text()
            if self._fruitless == FRUITLESS:
                raise RuntimeError(f"Snakemake fails though nothing is killed:\n{said[-3000:]}")
            if code < 0 or "LockException" in said:
                self.project.snakemake("--unlock")
        self._snakemake = self._call()
        return False

    def _strike(self, now: float) -> None:
        """Send a signal to a process that is alive, each kind with its weight."""
        self._next = now + self._pause()
        alive: dict[str, list[Victim]] = {NOBODY: []}
        for victim in victims(self.project.folder):
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
        return self._draw.expovariate(1 / self._options.every)

    def _call(self) -> subprocess.Popen[bytes]:
        self.calls += 1
        self._kills_before = len(self.kills)
        options = ("--cores", str(CORES), "--keep-going", "--retries", "3")
        return self._start(self._log(), "-m", "snakemake", *options)

    def _follow(self) -> subprocess.Popen[bytes]:
        log = self.project.folder / "follower.log"
        return self._start(log, "scripts/follow_runs.py", "--results", "results", "--every", "1")

    def _start(self, log: Path, *words: str) -> subprocess.Popen[bytes]:
        with log.open("a") as file:
            return subprocess.Popen(
                [sys.executable, *words],
                cwd=self.project.folder,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def _log(self) -> Path:
        return self.project.folder / f"snakemake-{self.calls:03}.log"

    def _is_at_work(self) -> bool:
        text = self._log().read_text()
        return "\nJob " in text or "Nothing to be done" in text

    def _wait_for_all(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while victims(self.project.folder):
            if time.monotonic() > deadline:
                self._give_up()
            time.sleep(TICK)
        self._follower.wait()


def survived(kill: Kill, found: Sequence[Difference]) -> bool:
    """Whether nothing that the victim had to do with differs at the end."""
    areas = AREAS.get(kill.kind, {TRACKING})
    return not any(kill.kind == SNAKEMAKE or difference.area in areas for difference in found)


def report(storm: Disturbed, found: Sequence[Difference], options: argparse.Namespace) -> str:
    """A table by victim, and what differs."""
    rows = []
    for kind, count in Counter(kill.kind for kill in storm.kills).most_common():
        mine = [kill for kill in storm.kills if kill.kind == kind]
        gentle = sum(kill.signal == "SIGTERM" for kill in mine)
        alive = sum(survived(kill, found) for kill in mine)
        rows.append({"victim": kind, "kills": count, "of these SIGTERM": gentle, "survived": alive})
    runs = len(list(storm.project.folder.glob("results/runs/*/summary.json")))
    lines = [
        markdown(rows),
        "",
        f"{sum(survived(kill, found) for kill in storm.kills)} of {len(storm.kills)} kills survived: "
        f"{runs} runs of {options.steps} steps on {CORES} cores, in {storm.grids} grids, each with one seed more, "
        f"and {storm.calls} calls of Snakemake; one kill in {options.every:g} s.",
    ]
    if found:
        lines += ["", f"{len(found)} differences from the undisturbed run:"]
        lines += [f"- {difference}" for difference in found]
    else:
        lines += ["Every file of the results and every run in MLflow equals the undisturbed run's."]
    return "\n".join(lines)


def oddities(project: Project) -> list[Difference]:
    """What the results don't show: jobs that would run again, and tracebacks in the logs of our commands."""
    again = [Difference("workflow", rule, "would run again") for rule in project.planned()]
    logs = [*project.folder.glob("results/logs/**/*.log"), project.folder / "follower.log"]
    return again + [
        Difference("logs", str(log.relative_to(project.folder)), "has a traceback")
        for log in logs
        if "Traceback" in log.read_text()
    ]


def chaos(folder: Path, options: argparse.Namespace) -> tuple[Disturbed, list[Difference]]:
    """Disturb one copy of the project in `folder`, leave another one alone, compare.

    Raises:
        RuntimeError: one of them can't go on.
    """
    copies = []
    for name in ("storm", "calm"):
        (folder / name).mkdir()
        copies.append(Disturbed(ColdProject(folder / name, options.begun), options))
    storm, calm = copies
    try:
        storm.run(options.kills)
    finally:
        (folder / "kills.json").write_text(json.dumps([asdict(kill) for kill in storm.kills], indent=1))
    calm.run(0, storm.grids)
    found = differences(folder / "calm/results", folder / "storm/results")
    return storm, found + oddities(storm.project)


def main() -> int:
    """Parse the command line, disturb, compare, print."""
    parser = command_line(__doc__)
    parser.add_argument("--kills", type=int, default=200, help="(default 200)")
    parser.add_argument("--folder", type=Path, help="an empty one, which is kept (default: a temporary one)")
    parser.add_argument("--begun", type=Path, help="a project's folder, whose results both copies begin with")
    parser.add_argument("--every", type=float, default=4.0, help="mean seconds between two kills (default 4)")
    parser.add_argument("--steps", type=int, default=3000, help="of every run (default 3000)")
    parser.add_argument(
        "--widths",
        type=int,
        nargs="+",
        default=[8, 12, 16, 24],
        help="of depths 1 and 2 (default 8 12 16 24)",
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends all that was started
    os.environ.pop("MLFLOW_TRACKING_URI", None)  # both stores are in the folder
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder.resolve() if options.folder else Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            parser.error(f"--folder {folder} is not empty; give an empty folder or a new one.")
        storm, found = chaos(folder, options)
        print(f"{machine()}\n\n{report(storm, found, options)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
