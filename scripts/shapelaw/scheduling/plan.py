"""From a config to the runs of each study. Light: the Snakefile imports it at every start."""

from __future__ import annotations

import csv
import hashlib
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shapelaw.errors import UserError
from shapelaw.scheduling.cost import CostModel, Speed, read_cost_model, run_seconds
from shapelaw.scheduling.jobs import packed_speed, packed_step_seconds
from shapelaw.scheduling.packs import in_packs, pack_flops, pack_seconds
from shapelaw.settings.grid_runs import degree_runs, memorization_runs, training_of
from shapelaw.settings.sections import MEMORIZATION_STUDIES, Config, Execution
from shapelaw.specs.kinds import AnyRun, is_packed
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import make_shape, shape_problems, with_attention_degree

_LINGER_SECONDS = 120  # longer than the grace that clusters give a preempted job


def runs_of(config: Config, study: str, root: Path) -> dict[str, AnyRun]:
    """The runs of a study by key.

    Args:
        config: checked.
        study: its name.
        root: folder that a relative `grid_file` is relative to.

    Raises:
        UserError: a grid file can't be used, or two runs have one name.
    """
    found: dict[str, AnyRun] = {}
    for run in _all_runs(config, study, root):
        if found.setdefault(run.key, run) != run:
            raise UserError(
                f"{study} has two runs of the name {run.key} that are not trained alike (its grids differ in what "
                "a name does not say, such as batch_size); leave one of them out."
            )
    return found


def _all_runs(config: Config, study: str, root: Path) -> Iterable[AnyRun]:
    if study == "depth_width":
        return _depth_width(config, root)
    if study == "attention_degree":
        return _attention_degree(config)
    if study == "block_degree":
        return (run for grid in config.block_degree for run in degree_runs(grid))
    name = next(known for known in MEMORIZATION_STUDIES if known == study)
    return (run for grid in getattr(config, study) for run in memorization_runs(config, name, grid))


def job_environment(root: Path, config: Config) -> dict[str, str]:
    """What the rules' shell commands read from the environment: things whose change must train nothing again.

    PATH has this Python first, SCRIPTS is the folder of the commands, LAUNCH starts one process a GPU.
    """
    gpus = config.execution.gpus
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SCRIPTS": str(root / "scripts"),
        "LAUNCH": f"{root / 'scripts' / 'launch.py'} --processes {gpus}" if gpus > 1 else "",
        "CONFIG_HASH": hashlib.sha256(config.model_dump_json().encode()).hexdigest()[:16],
        "CHECKPOINT_MINUTES": str(config.execution.checkpoint_minutes),
        # a job whose workflow was killed goes on: the next workflow's job waits for it and takes its result
        "SLURM_OPTIONS": _slurm_options(os.environ),
        "WAIT_MINUTES": str(60 * config.execution.job_hours),
    }


def _slurm_options(environment: Mapping[str, str]) -> str:
    """What training gets inside a Slurm job: its id as squeue shows it (16, or 16_3 in an array), and patience."""
    if "SLURM_ARRAY_JOB_ID" in environment:
        job = f"{environment['SLURM_ARRAY_JOB_ID']}_{environment['SLURM_ARRAY_TASK_ID']}"
    elif "SLURM_JOB_ID" in environment:
        job = environment["SLURM_JOB_ID"]
    else:
        return ""
    return f"--tag slurm_job={job} --linger-seconds {_LINGER_SECONDS}"


@dataclass(frozen=True)
class Cost:
    """What a study costs before it runs.

    Attributes:
        runs: number of training runs.
        largest_params: parameters of the largest network.
        flops: operations of all training steps (evaluations and start-up not counted).
        hours: of one device that sustains the config's `execution.flops_per_second`, or by its cost model.
        disk_bytes: most that checkpoints (two a run: weights and two moments in float32) and records can take.
    """

    runs: int
    largest_params: int
    flops: float
    hours: float
    disk_bytes: int


def speed_of(config: Config, root: Path) -> Speed:
    """How fast language models are trained: the cost model of the config, or its rate.

    Raises:
        UserError: the file is no cost model.
    """
    path = config.execution.cost_model
    return config.execution.flops_per_second if path is None else read_cost_model(root / path)


def cost_of(runs: Collection[AnyRun], speed: Speed) -> Cost:
    """The cost of some runs, from their shapes alone."""
    return Cost(
        len(runs),
        max(run.params for run in runs),
        float(sum(run.steps * run.step_flops for run in runs)),
        sum(run_seconds(run, speed) for run in runs) / 3600,
        sum(2 * 3 * 4 * run.params + 40 * run.history_rows for run in runs),
    )


def cost_line(study: str, runs: Sequence[AnyRun], execution: Execution, speed: Speed) -> str:
    """What a study costs, for `snakemake plan`; `speed` is that of language models."""
    packed = [run for run in runs if is_packed(run)]
    rate = packed_speed(execution.flops_per_second, execution.gpus) if packed else speed
    cost = cost_of(runs, rate)
    flops, hours = f"{cost.flops:.2e} FLOPs", cost.hours
    if isinstance(rate, CostModel):
        by = f"by {execution.cost_model} (a run within a factor of {rate.factor:.2f}, typically)"
    else:
        by = f"at {rate:.1e} FLOP/s"
        if packed:
            packs = in_packs(packed, execution.models_per_pack, execution.padding)
            least = packed_step_seconds(execution.gpus)
            flops += f" ({sum(map(pack_flops, packs)):.2e} in {len(packs)} packs)"
            hours = sum(pack_seconds(pack, rate, least) for pack in packs) / 3600
            by += f" or {1000 * least:g} ms a step of a pack" if least else ""
    return (
        f"{study}: {cost.runs} runs, networks up to {cost.largest_params:,} parameters, {flops}, about "
        f"{hours:.3g} hours of one device {by}, at most {cost.disk_bytes / 2**20:,.0f} MiB on disk"
    )


def _depth_width(config: Config, root: Path) -> list[Run]:
    study, training = config.depth_width, training_of(config)
    if study.grid_file is not None:
        widths = read_grid(root / study.grid_file, study.heads, study.vocab_size, study.context_length)
    else:
        widths = {depth: list(ws) for depth, ws in (study.widths or {}).items()}
    absent = [
        (depth, w) for depth, row in study.repeated.items() for w in row if w not in widths.get(depth, [])
    ]
    if absent:
        shapes = ", ".join(f"depth {depth} width {width}" for depth, width in absent)
        raise UserError(
            f"depth_width.repeated names shapes that the grid has not: {shapes}; repeat shapes of the grid."
        )
    runs = []
    for depth, row in widths.items():
        for width in dict.fromkeys(row):
            shape = make_shape(
                depth, width, study.heads, study.vocab_size, study.context_length, gelu=study.gelu
            )
            repeated = width in study.repeated.get(depth, [])
            seeds = max(study.seeds, study.repeated_seeds if repeated else 1)
            runs += [Run("depth_width", config.corpus.name, shape, training, seed) for seed in range(seeds)]
    return runs


def _attention_degree(config: Config) -> list[Run]:
    study = config.attention_degree
    # linear attention has no weights to drop, and softmax would
    training = replace(training_of(config), dropout=0.0)
    runs = []
    for depth, row in study.widths.items():
        for width in dict.fromkeys(row):
            softmax = make_shape(
                depth, width, study.heads, study.vocab_size, study.context_length, gelu=study.gelu
            )
            shapes = [with_attention_degree(softmax, degree) for degree in dict.fromkeys(study.degrees)]
            runs += [
                Run("attention_degree", config.corpus.name, shape, training, seed)
                for shape in shapes
                for seed in range(study.seeds)
            ]
    return runs


def read_grid(path: Path, heads: int, vocab_size: int, context_length: int) -> dict[int, list[int]]:
    """The widths of every depth of a CSV with columns depth and width (others are ignored).

    Raises:
        UserError: no such file, a column is missing, or a row is not a shape; all rows' problems at once.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"depth_width.grid_file {path} can't be read ({error}).") from error
    if not rows or not {"depth", "width"} <= rows[0].keys():
        raise UserError(f"depth_width.grid_file {path} must be a CSV with columns depth and width, and rows.")
    widths: dict[int, list[int]] = {}
    problems = []
    for number, row in enumerate(rows, start=2):
        try:
            depth, width = int(row["depth"]), int(row["width"])
        except (TypeError, ValueError):
            problems.append(f"line {number}: depth and width must be whole numbers")
            continue
        problems += [
            f"line {number}: {problem}"
            for problem in shape_problems(depth, width, heads, vocab_size, context_length)
        ]
        widths.setdefault(depth, []).append(width)
    if problems:
        raise UserError("\n".join([f"depth_width.grid_file {path} has rows that are no shape:", *problems]))
    return widths
