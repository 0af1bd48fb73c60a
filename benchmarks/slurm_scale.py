"""How the workflow scales on a real Slurm: thousands of runs that train one step, planned, submitted, tracked.

    PYTHONPATH=scripts:tests python benchmarks/slurm_scale.py [--runs 10000] [--runs-per-job 100]

Needs a Slurm, such as that of `bash tests/slurm/slurm-node.sh up; eval "$(bash tests/slurm/slurm-node.sh env)"`. Each
run is a real one (one step of a tiny decoder, its record, its place in MLflow); what is measured is everything around
it. Prints the time of each part and the overhead a run.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from machine import machine
from project import CONFIG, ColdProject, Project
from small import PYTHON, REPOSITORY

SHAPES = 100


def configured(folder: Path, runs: int, runs_per_job: int) -> Project:
    """A project whose grid has that many runs: 100 shapes, many seeds."""
    project = ColdProject(folder)
    shutil.copytree(REPOSITORY / "slurm", folder / "slurm")
    widths = list(range(4, 4 + SHAPES, 2))
    project.configure(
        training={
            **CONFIG["training"],
            "steps": 1,
            "warmup_steps": 0,
            "log_every": 1,
            "evaluate_every": 1,
            "test_sequences": 8,
        },
        depth_width={
            **CONFIG["depth_width"],
            "widths": {1: widths, 2: widths},
            "repeated": {},
            "seeds": runs // SHAPES,
        },
        execution={"runs_per_job": runs_per_job, "flops_per_second": 1e9},
    )
    return project


def timed(project: Project, *arguments: str) -> tuple[float, str]:
    """Seconds that Snakemake takes, and what it says."""
    start = time.perf_counter()
    done = subprocess.run(
        [PYTHON, "-m", "snakemake", *arguments],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr[-5000:])
    return time.perf_counter() - start, done.stderr


def main() -> None:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10000, help="a multiple of 100")
    parser.add_argument("--runs-per-job", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="kept (default: a temporary one)")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    project = configured(folder, arguments.runs, arguments.runs_per_job)
    slurm = [
        *("--profile", "slurm", "--slurm-init-seconds-before-status-checks", "5"),
        *("--default-resources", "mem_mb=1000", "runtime=30", "--set-resources", "train_in_turn:mem_mb=1500"),
    ]
    plan, _ = timed(project, "-n", "--quiet", "rules")
    packs = -(-arguments.runs // arguments.runs_per_job)
    train, _ = timed(project, *slurm, "--until", "train_in_turn")
    records, _ = timed(project, *slurm, "--until", "train_small")
    track, _ = timed(project, "results/depth_width/runs.parquet", *slurm)
    (project.folder / "results/depth_width/runs.parquet").unlink()
    again, _ = timed(project, "results/depth_width/runs.parquet", *slurm)
    finished = len(list(folder.glob("results/runs/*/summary.json")))
    print(f"{machine()}\n")
    print(f"{arguments.runs:,} runs in {packs} jobs; {finished:,} records\n")
    print("| part | s | ms a run |\n|---|---|---|")
    rows = {
        "dry run": plan,
        "packs through Slurm": train,
        "taking the records": records,
        "import into MLflow, runs.parquet": track,
        "runs.parquet again from MLflow": again,
    }
    for name, seconds in {**rows, "all but the last": sum(rows.values()) - again}.items():
        print(f"| {name} | {seconds:.0f} | {1000 * seconds / arguments.runs:.1f} |")


if __name__ == "__main__":
    main()
