"""Write the runs of a config as jobs, to train where there is no Snakemake: a bare machine with a GPU.

  python scripts/write_specs.py --scale gpu --study STUDY --out jobs [--hours 0.4 --cost-model cost.json]

Each file is for `python scripts/train.py --job FILE`. Language models: DIR/<study>.json, further seeds last. With
--hours, only as many as fit into so many hours (one device, by the config's rate or cost model). Memorizers and product
networks: DIR/<study>-<number>.json, a pack each.

A table of what was written goes to standard output. Exit codes: 0 done, 2 unusable input.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path

from shapelaw.campaign.config import load_config, runs_of, studies_of
from shapelaw.errors import UserError, command_line, end_with, refuse_below_one
from shapelaw.jobs.ledger import job_content
from shapelaw.jobs.plan import speed_of
from shapelaw.jobs.resources import in_packs, pack_seconds
from shapelaw.settings.loading import layered
from shapelaw.settings.sections import Settings
from shapelaw.specs.cost import Speed, run_seconds
from shapelaw.specs.kinds import AnyRun, is_packed
from shapelaw.specs.runs import Run
from shapelaw.storage.files import write_text

ROOT = Path(__file__).resolve().parent.parent


def write_language(
    study: str, runs: Iterable[AnyRun], speed: Speed, hours: float, split: int, out: Path
) -> None:
    """Write `split` jobs of a study, and print a line for each run.

    Raises:
        UserError: no run is short enough.
        WriteFailed: a file can't be written.
    """
    chosen: list[Run] = []
    spent = 0.0
    for run in sorted((run for run in runs if isinstance(run, Run)), key=attrgetter("seed")):
        seconds = run_seconds(run, speed)
        if spent + seconds > 3600 * hours:
            continue
        spent += seconds
        print(f"{spent / 3600:8.3f} h  {seconds:8.1f} s  {run.step_flops * run.steps:.2e} FLOPs  {run.key}")
        chosen.append(run)
    if not chosen:
        raise UserError(f"No run of {study} takes at most {60 * hours:.3g} minutes; give more --hours.")
    for part in range(split):
        name = study if split == 1 else f"{study}-{part + 1}"
        _write(out / f"{name}.json", [[run] for run in chosen[part::split]])


def _write(path: Path, tasks: Sequence[Sequence[AnyRun]]) -> None:
    write_text(path, job_content(tasks))
    print(f"{path}: {sum(map(len, tasks))} runs")


def main() -> None:
    """Parse the command line and write."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--config", type=Path, default=ROOT / "config.yaml", metavar="FILE", help="(default: config.yaml)")
    add("--scale", help="scale to take instead of the config's")
    add("--study", action="append", help="a study to train, in place of the config's; may be repeated")
    add(
        "--hours",
        type=float,
        default=math.inf,
        help="hours of one device, for language models (default: all runs)",
    )
    add(
        "--split", type=int, default=1, metavar="N", help="files of each study of language models (default 1)"
    )
    add("--cost-model", metavar="FILE", help="cost model to take instead of the config's")
    add("--out", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    config = _config(arguments.config, arguments.scale, arguments.study, arguments.cost_model)
    known = studies_of(config)
    studies = [study for study in config.studies if known[study].kind is not None]
    refuse_below_one(arguments, "split")
    if not arguments.hours > 0:
        raise UserError(f"--hours is {arguments.hours:g}; it must be above zero.")
    if not studies:
        raise UserError(
            f"{', '.join(config.studies) or 'No study'} trains nothing, so there are no specs to write."
        )
    speed = speed_of(config, Path.cwd())
    for study in studies:
        runs = list(runs_of(config, study, ROOT).values())
        packed = [run for run in runs if is_packed(run)]
        if not packed:
            write_language(study, runs, speed, arguments.hours, arguments.split, arguments.out)
            continue
        packs = in_packs(packed, config.execution.models_per_pack, config.execution.padding)
        for number, pack in enumerate(packs, 1):
            print(f"{pack_seconds(pack, config.execution):8.1f} s, if none stops early: ", end="")
            _write(arguments.out / f"{study}-{number}.json", [pack])


def _config(path: Path, scale: str | None, studies: Sequence[str] | None, cost_model: str | None) -> Settings:
    """The config with the options of the command line on top.

    Raises:
        UserError: the config can't be read, or has problems.
    """
    execution = None if cost_model is None else {"cost_model": cost_model}
    given = {"scale": scale, "studies": studies, "execution": execution}
    values = layered([path], {name: value for name, value in given.items() if value is not None})
    return load_config(values, ROOT / "workflow" / "scales", Path.cwd())


if __name__ == "__main__":
    end_with(main)
