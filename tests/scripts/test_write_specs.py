"""A grid as jobs: the runs of the config, further seeds last, cut to the hours there are."""

import json
from pathlib import Path
from typing import Any, TypeVar

import yaml
from commands import script

from shapelaw.specs.cost import run_seconds
from shapelaw.specs.kinds import spec_from_dict
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.specs.runs import Run

Kind = TypeVar("Kind", Run, MemorizationRun)
GRID = {
    "scale": "gpu",
    "studies": ["depth_width", "memorization_head_dim"],
    "grids": {"depth_width": {"widths": {2: [64, 176, 352], 4: [64, 128, 256]}, "repeated": {2: [176]}}},
}


def written(folder: Path, *options: str, code: int = 0) -> tuple[list[list[Run]], str]:
    """The runs of each file, by name, and what was said."""
    files, said = files_written(folder, *options, code=code)
    return [[run_of(spec, Run) for (spec,) in tasks] for tasks in files], said


def run_of(spec: dict[str, Any], kind: type[Kind]) -> Kind:
    run = spec_from_dict(spec)
    assert isinstance(run, kind)
    return run


def files_written(folder: Path, *options: str, code: int = 0) -> tuple[list[list[Any]], str]:
    """What each file has, by name, and what was said."""
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(GRID))
    done = script("write_specs", "--config", folder / "config.yaml", *options, "--out", folder / "specs")
    assert done.returncode == code, done.stderr
    files = sorted((folder / "specs").glob("*.json"))
    return [json.loads(path.read_text())["tasks"] for path in files], done.stdout + done.stderr


def test_further_seeds_come_last(tmp_path: Path) -> None:
    (runs,), _ = written(tmp_path, "--study", "depth_width")
    assert len({run.key for run in runs}) == len(runs) == 8
    assert [run.seed for run in runs] == [0] * 6 + [1, 2]
    assert {run.shape.width for run in runs[6:]} == {176}


def test_hours_cut_the_grid_and_parts_share_it(tmp_path: Path) -> None:
    (whole,), _ = written(tmp_path, "--study", "depth_width")
    flops = [run.steps * run.step_flops for run in whole]
    hours = 1.01 * sum(run_seconds(run, 1e14) for run in whole[:3]) / 3600  # at the scale's rate
    (few,), said = written(tmp_path, "--study", "depth_width", "--hours", str(hours))
    assert whole[:3] == few[:3]
    assert sum(run.steps * run.step_flops for run in few) <= 1.01 * sum(flops[:3])
    assert f"{len(few)} runs" in said
    (tmp_path / "specs" / "depth_width.json").unlink()
    parts, _ = written(tmp_path, "--study", "depth_width", "--split", "3")
    assert [run for part in zip(*parts, strict=False) for run in part] == whole[:6]
    assert sum(map(len, parts)) == len(whole)


def test_memorizers_are_written_by_packs(tmp_path: Path) -> None:
    """A pack a file; the scale fills them up to one shape."""
    files, said = files_written(tmp_path, "--study", "memorization_head_dim")
    packs = [[run_of(spec, MemorizationRun) for spec in pack] for jobs in files for pack in jobs]
    assert sum(map(len, packs)) == 36  # 12 dimensions, 3 numbers of examples
    assert len(files) == len(packs) < 12
    assert all(len({run.family for run in pack}) == 1 for pack in packs)
    assert said.count("if none stops early") == len(packs)


def test_a_wrong_config_is_told(tmp_path: Path) -> None:
    assert "did you mean gpu" in written(tmp_path, "--scale", "gpus", code=2)[1]
    assert "none.json can't be read" in written(tmp_path, "--cost-model", "none.json", code=2)[1]
