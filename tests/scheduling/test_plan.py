"""What runs cost before they start, and what jobs read from the environment."""

import json
import sys
from pathlib import Path

import pytest
from made_runs import RATE, a_memorization_run, a_run
from shipped import SCALES, shipped

from shapelaw.errors import UserError
from shapelaw.scheduling.cost import CostModel, model_to_dict
from shapelaw.scheduling.plan import cost_line, cost_of, job_environment, speed_of
from shapelaw.settings.sections import Execution, Settings
from shapelaw.studies.config import load_config

MODEL = CostModel(overhead=1.0, per_layer=0.0, per_number=0.0, per_flop=0.0, extra_seconds=800.0, factor=1.25)


def config_of(**execution: object) -> Settings:
    return load_config(shipped(execution=execution), SCALES)


def test_a_cost_by_hand() -> None:
    runs = [a_run(2, 64, steps=1000), a_run(4, 128, steps=500)]
    cost = cost_of(runs, RATE)
    large = runs[1].shape
    assert (cost.runs, cost.largest_total_params) == (2, large.total_params)
    assert cost.flops == 1000 * runs[0].shape.step_flops(64) + 500 * large.step_flops(64)
    assert cost.hours == pytest.approx(cost.flops / RATE / 3600)
    numbers = 2 * 3 * sum(run.total_params for run in runs)  # weights and two moments, in two checkpoints
    assert cost.disk_bytes == 4 * numbers + 40 * sum(run.history_rows for run in runs)


def test_a_cost_model_tells_hours_and_its_error() -> None:
    runs = [a_run(2, 64, steps=1000, seed=seed) for seed in range(4)]
    said = cost_line("depth_width", runs, Execution(cost_model="cost.json"), MODEL)
    assert said.startswith("depth_width: 4 runs, networks up to ")
    assert "about 2 hours of one device by cost.json (a run within a factor of 1.25, typically)" in said


@pytest.mark.parametrize("gpus", [0, 1])
def test_runs_of_packs_cost_what_their_packs_do(gpus: int) -> None:
    runs = [a_memorization_run(4, 550, seed) for seed in range(5)]
    execution = Execution(gpus=gpus, models_per_pack=2, flops_per_second=RATE)
    said = cost_line("memorization_heads", runs, execution, MODEL)
    flops = sum(run.steps * run.step_flops for run in runs)
    assert f"{flops:.2e} FLOPs ({flops:.2e} in 3 packs)" in said
    assert ("1.3 ms a step of a pack" in said) == bool(gpus)
    if gpus:  # steps are so small that their launches decide
        assert f"{3 * 50_000 * 1.3e-3 / 3600:.3g} hours" in said


def test_the_speed_is_the_rate_or_the_model_of_the_config(tmp_path: Path) -> None:
    assert speed_of(config_of(flops_per_second=1e12), tmp_path) == 1e12
    path = tmp_path / "cost.json"
    path.write_text(json.dumps(model_to_dict(MODEL)))
    config = config_of(cost_model=str(path))
    assert speed_of(config, tmp_path) == MODEL
    path.unlink()
    with pytest.raises(UserError, match="can't be read"):
        speed_of(config, tmp_path)


@pytest.mark.parametrize(
    ("slurm", "options"),
    [
        ({}, ""),
        ({"SLURM_JOB_ID": "16"}, "--tag slurm_job=16 --linger-seconds 120"),
        (
            {"SLURM_JOB_ID": "19", "SLURM_ARRAY_JOB_ID": "16", "SLURM_ARRAY_TASK_ID": "3"},
            "--tag slurm_job=16_3 --linger-seconds 120",
        ),
    ],
)
def test_training_in_a_slurm_job_is_tagged_and_lingers(
    monkeypatch: pytest.MonkeyPatch, slurm: dict[str, str], options: str
) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    assert job_environment(Path("/there"), config_of(), Path("1.json"))["SLURM_OPTIONS"] == options


def test_jobs_find_this_python_the_commands_and_a_launcher_of_several_gpus() -> None:
    submitted = Path("results/submitted/0123.json")
    one, four = (
        job_environment(Path("/there"), config_of(gpus=gpus, job_hours=2.0), submitted) for gpus in (1, 4)
    )
    assert one["PATH"].startswith(f"{Path(sys.executable).parent}:")
    assert (one["SCRIPTS"], one["PROCESSES"], one["WAIT_MINUTES"]) == ("/there/scripts", "", "120.0")
    assert four["PROCESSES"] == "4"
    assert one["SLURM_OPTIONS"].startswith(
        "--device cuda"
    )  # a GPU that was asked for is used, or training stops
    assert (one["SUBMITTED"], one["CONFIG_HASH"]) == (str(submitted), "0123")
