"""Kill the workflow's processes at random while it runs, then compare what it ends with to an undisturbed run.

    python benchmarks/chaos.py --kills 200 [--seed 0] [--folder DIR] [--cores 2]

The real workflow in a copy of the project, on Python's help texts, with the importer following as under `make ui`.
SIGKILL (one time in five SIGTERM) goes to a process that is alive: a training, the import, the fit, Snakemake itself,
... Snakemake is started again as a user would, after `--unlock` where it was killed; what its killed predecessor left
running goes on meanwhile. Each time the grid is done before the kills are, it grows by one seed. At the end every
file of the results, every record and every run in MLflow must equal those of a second copy that nothing disturbed.

Prints a Markdown table; kills.json in the folder has every kill. Exit code 1 if anything differs. Linux only.
The seed fixes what is drawn, not the machine's timing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from machine import machine

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from chaos_workflow import SNAKEMAKE, TRAINING, Disturbed, Kill, Plan, Spent
from project import CONFIG, GRID, ColdProject, Project
from same_results import TRACKING, Difference, differences

HEAD = ("victim", "kills", "of these SIGTERM", "survived")
AREAS = {"corpus": "corpora", "fit": "depth_width"}  # what is whose work; the others' is in MLflow


@dataclass(frozen=True)
class Work:
    """What is trained.

    Attributes:
        steps: of every run.
        widths: of depths 1 and 2.
    """

    steps: int
    widths: list[int]

    def configure(self, project: Project, seeds: int) -> None:
        """Write a config with that many seeds, and one more for one shape."""
        often = {"log_every": 50, "evaluate_every": 1000, "warmup_steps": self.steps // 10}
        grid = {"widths": {1: self.widths, 2: self.widths}, "repeated": {1: self.widths[:1]}}
        project.configure(
            training={**CONFIG["training"], "steps": self.steps, **often},
            grids={"depth_width": {**GRID, **grid, "seeds": seeds, "repeated_seeds": seeds + 1}},
            execution={"checkpoint_minutes": 0.01, "job_minutes": 1e-4},
        )


@dataclass(frozen=True)
class Outcome:
    """A storm and what it ended with.

    Attributes:
        kills: in order.
        found: how the results differ from undisturbed ones.
        setting: a clause about the work that was disturbed.
        spent: with the kills.
        undisturbed: by the same work without.
    """

    kills: Sequence[Kill]
    found: Sequence[Difference]
    setting: str
    spent: Spent
    undisturbed: Spent


def survived(kill: Kill, found: Sequence[Difference]) -> bool:
    """Whether nothing that the victim had to do with differs at the end."""
    if kill.kind == SNAKEMAKE:
        return not found
    if kill.kind == TRAINING:
        return not any(kill.job in difference.name for difference in found)
    return not any(difference.area == AREAS.get(kill.kind, TRACKING) for difference in found)


def report(outcome: Outcome) -> str:
    """The figures, a table by victim, and what differs."""
    kills, found = outcome.kills, outcome.found
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for kind, _ in Counter(kill.kind for kill in kills).most_common():
        lines.append(_row(kind, [kill for kill in kills if kill.kind == kind], found))
    one, other = outcome.spent, outcome.undisturbed
    wall, cpu = ((a - b) / max(1, len(kills)) for a, b in ((one.wall, other.wall), (one.cpu, other.cpu)))
    lines += [
        "",
        f"{sum(survived(kill, found) for kill in kills)} of {len(kills)} kills survived: {outcome.setting}.",
        f"With the kills {one.wall:.0f} s ({one.cpu:.0f} CPU seconds), undisturbed {other.wall:.0f} s "
        f"({other.cpu:.0f}): {wall:.1f} s ({cpu:.1f} CPU seconds) lost a kill.",
    ]
    if found:
        lines += ["", f"{len(found)} differences from the undisturbed run:"]
        lines += [f"- {difference}" for difference in found]
    else:
        lines += ["Every file of the results and every run in MLflow equals the undisturbed run's."]
    return "\n".join(lines)


def _row(kind: str, kills: Sequence[Kill], found: Sequence[Difference]) -> str:
    gentle = sum(kill.signal == "SIGTERM" for kill in kills)
    cells = kind, len(kills), gentle, sum(survived(kill, found) for kill in kills)
    return f"| {' | '.join(map(str, cells))} |"


def chaos(folder: Path, work: Work, plan: Plan, begun: Path | None = None) -> Outcome:
    """Disturb one copy of the project in `folder`, leave another one alone, compare.

    Args:
        begun: a project's folder, whose results both copies begin with.

    Raises:
        RuntimeError: one of them can't go on.
    """
    projects = []
    for name in ("storm", "calm"):
        (folder / name).mkdir()
        projects.append(ColdProject(folder / name, begun))
    storm = Disturbed(projects[0], work.configure, plan)
    try:
        spent = storm.run()
    finally:
        (folder / "kills.json").write_text(json.dumps([asdict(kill) for kill in storm.kills], indent=1))
    calm = Disturbed(projects[1], work.configure, plan.without_kills(storm.grids))
    undisturbed = calm.run()
    results = [project.folder / "results" for project in projects]
    found = differences(results[1], results[0]) + oddities(projects[0])
    runs = len(list(results[0].glob("runs/*/summary.json")))
    setting = (
        f"{runs} runs of {work.steps} steps on {plan.cores} cores, in {storm.grids} grids, each with one seed more, "
        f"and {storm.calls} calls of Snakemake; kills drawn with seed {plan.seed}, one in {plan.every:g} s"
    )
    return Outcome(storm.kills, found, setting, spent, undisturbed)


def oddities(project: Project) -> list[Difference]:
    """What the results don't show: jobs that would run again, and tracebacks in the logs of our commands."""
    again = [Difference("workflow", rule, "would run again") for rule in project.planned()]
    logs = [*project.folder.glob("results/logs/**/*.log"), project.folder / "follower.log"]
    return again + [
        Difference("logs", str(log.relative_to(project.folder)), "has a traceback")
        for log in logs
        if "Traceback" in log.read_text()
    ]


def main() -> int:
    """Parse the command line, disturb, compare, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200, help="(default 200)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default 0)")
    parser.add_argument("--folder", type=Path, help="an empty one, which is kept (default: a temporary one)")
    parser.add_argument("--begun", type=Path, help="a project's folder, whose results both copies begin with")
    parser.add_argument("--cores", type=int, default=2, help="of Snakemake (default 2)")
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
    work = Work(options.steps, options.widths)
    plan = Plan(options.kills, options.seed, options.cores, options.every)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder.resolve() if options.folder else Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            parser.error(f"--folder {folder} is not empty; give an empty folder or a new one.")
        outcome = chaos(folder, work, plan, options.begun)
    print(f"{machine()}\n\n{report(outcome)}")
    return 1 if outcome.found else 0


if __name__ == "__main__":
    sys.exit(main())
