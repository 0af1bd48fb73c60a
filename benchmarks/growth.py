"""How the parts of a workflow that don't train grow with the number of runs: CPU seconds, peak memory, growth.

    PYTHONPATH=scripts:tests:tests/tracking python benchmarks/growth.py [--runs 1000 10000] [--only PART ...]
    ... python benchmarks/growth.py --only dry_run train --profile slurm

The runs are of 100 shapes and many seeds, with finished records that nothing trained; their losses follow a law, with a
seed's noise. Each part is the command that users type, in a folder of its own. The analysis is of a grid whose cells
have 500 runs, so that cells grow and not seeds. `growth` is the CPU time over that at the number of runs before.

`train` trains a step of each run instead: with `--profile slurm` on a Slurm, such as that of
`bash tests/slurm/slurm-node.sh up; eval "$(bash tests/slurm/slurm-node.sh env)"`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from machine import machine
from made_records import write_finished
from project import CONFIG, GRID, ColdProject
from small import PYTHON, REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import command_line
from shapelaw.specs.runs import Run

SHAPES, SEEDS, VALUES = 100, 5, 6  # of an analysed cell's seeds; of each of its axes' values
STUDY = "depth_width"
TABLE = f"results/{STUDY}/runs.parquet"
AXES = ("heads", "embedding_rank", "positional_rank")
NOISE = 0.005  # nats
SNAKEMAKE = ("-m", "snakemake")
FIT = ("--draws", "200")
PARTS: dict[str, tuple[str, ...]] = {
    "plan": (*SNAKEMAKE, "plan"),
    "dry_run": (*SNAKEMAKE, TABLE, "-n", "--quiet", "rules"),
    "train": (*SNAKEMAKE, TABLE),
    "import": ("scripts/import_runs.py", "--results", "results", "--study", STUDY, "--out", TABLE),
    "import_again": ("scripts/import_runs.py", "--results", "results", "--study", STUDY, "--out", TABLE),
    "start": (*SNAKEMAKE, TABLE),
    "empty_start": (*SNAKEMAKE, TABLE),
    "fit": ("-m", "shapelaw.advice.commands.fit_surface", "runs.parquet", "--out", "fit", *FIT),
    "transitions": ("scripts/fit_transitions.py", "--runs", "runs.parquet", "--out", "transitions", *FIT),
    "analysis": (
        "scripts/analyse.py",
        "grown",
        "--axes",
        *AXES,
        "--input",
        "cells.parquet",
        "--out",
        "cells",
        *FIT,
    ),
}
UNTRAINED = ("plan", "dry_run", "train")  # parts that come before the records
RECORDED = {"import", "import_again", "start", "empty_start"}


class GrownProject(ColdProject):
    """A project whose one study has that many runs."""

    def __init__(self, folder: Path, runs: int) -> None:
        widths = list(range(4, 4 + SHAPES, 2))
        brief = {"steps": 1, "warmup_steps": 0, "log_every": 1, "evaluate_every": 1, "test_sequences": 8}
        grid = {"widths": {1: widths, 2: widths}, "repeated": {}, "seeds": runs // SHAPES}
        super().__init__(
            folder,
            training={**CONFIG["training"], **brief},
            grids={"depth_width": {**GRID, **grid}},
            execution={"job_minutes": 1.0},
        )
        shutil.copytree(REPOSITORY / "slurm", folder / "slurm")

    def write_runs(self, records: bool) -> None:
        """The tables of runs, and a finished record of each where they are asked for.

        In the second table every 5 seeds are a cell of their own, by the digits of its number.
        """
        rng, rows = np.random.default_rng(0), []
        config = load_config(self.values, self.folder / "workflow/scales", self.folder)
        for run in runs_of(config, STUDY, self.folder).values():
            assert isinstance(run, Run)
            depth, width, size = run.shape.depth, run.shape.width, run.shape.block_params
            loss = 2.0 + 8.0 * (depth * width**2) ** -0.15 + 0.05 * depth / width**0.5
            loss += NOISE * rng.standard_normal()
            numbers = {"test_loss": loss, "bits_per_byte": loss / 2, "block_params": size}
            rows.append({"depth": depth, "width": width, "seed": run.seed, **numbers})
            if records:
                curve = [(1.0, loss, 3e-3, 1.0, loss)]
                write_finished(self.folder / "results", run, curve, **numbers, steps=1, tokens_trained=64)
        table = pd.DataFrame(rows)
        table.to_parquet(self.folder / "runs.parquet")
        cell = table["seed"] // SEEDS
        axes = {name: cell // VALUES**place % VALUES + 1 for place, name in enumerate(AXES)}
        table.assign(seed=table["seed"] % SEEDS, **axes).to_parquet(self.folder / "cells.parquet")

    def measured(self, part: str, extra: Sequence[str] = ()) -> tuple[float, float, float]:
        """Seconds and CPU seconds of a part with its processes (not Slurm's jobs), and the largest one's peak MB."""
        start = time.perf_counter()
        with (self.folder / f"{part}.txt").open("w") as log:
            command = [PYTHON, *PARTS[part], *extra]
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(
                f"{' '.join(command)} fails; {log.name} ends in:\n{Path(log.name).read_text()[-3000:]}"
            )
        return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def grown(folder: Path, runs: int, parts: Sequence[str], snakemake: Sequence[str]) -> list[dict[str, object]]:
    """A row for each part at a number of runs."""
    project, rows = GrownProject(folder, runs), []
    if "start" in parts:  # texts and their tokens are older than the records
        project.snakemake("--until", "encode", "--quiet", "all")
    for part in parts:
        if part == next((one for one in parts if one not in UNTRAINED), None):
            project.write_runs(records=bool(RECORDED.intersection(parts)) and "train" not in parts)
        own = snakemake if PARTS[part][:2] == SNAKEMAKE and part != "plan" else ()
        wall, seconds, memory = project.measured(part, own)
        row = {"part": part, "runs": runs, "seconds": round(wall, 1), "cpu_seconds": round(seconds, 1)}
        rows.append({**row, "peak_mb": round(memory)})
        print(f"{part} of {runs:,} runs: {seconds:.1f} CPU seconds, {memory:.0f} MB", flush=True)
    return rows


def main() -> None:
    """Measure, print the table and write it."""
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=[1000, 10000], help="multiples of 1,000")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=[part for part in PARTS if part != "train"]
    )
    parser.add_argument("--out", type=Path, help="CSV file")
    arguments, snakemake = parser.parse_known_args()
    parts = [part for part in PARTS if part in arguments.only]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for runs in sorted(arguments.runs):
            folder = Path(temporary) / str(runs)
            folder.mkdir()
            rows += grown(folder, runs, parts, snakemake)
    table = pd.DataFrame(rows)
    table["growth"] = (table["cpu_seconds"] / table.groupby("part")["cpu_seconds"].shift()).round(1)
    if arguments.out is not None:
        table.to_csv(arguments.out, index=False)
    print(f"{machine()}\n\n{table.to_markdown(index=False)}")


if __name__ == "__main__":
    main()
