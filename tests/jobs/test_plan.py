"""What runs cost before they start, and what jobs read from the environment."""

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_runs import BEGINNING, DECODERS, LARGE, MEMORIZERS, RATE, a_memorization_run, a_run, workload_of
from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config
from shapelaw.campaign.submission import submission_of
from shapelaw.errors import UserError
from shapelaw.jobs import plan
from shapelaw.jobs.ledger import State
from shapelaw.jobs.resources import JobResources
from shapelaw.settings.sections import Execution, Settings
from shapelaw.specs.cost import LEAST_STEP_SECONDS, CostModel, duration, model_to_dict
from shapelaw.specs.kinds import AnyRun
from shapelaw.storage.pool import Counts

MODEL = CostModel(overhead=1.0, per_layer=0.0, per_number=0.0, per_flop=0.0, extra_seconds=800.0, factor=1.25)


def config_of(**execution: object) -> Settings:
    return load_config(shipped(execution=execution), SCALES)


def test_a_cost_by_hand() -> None:
    runs = [a_run(2, 64, steps=1000), a_run(4, 128, steps=500)]
    cost = plan.cost_of(runs, Execution(), RATE)
    large = runs[1].shape
    assert (cost.packs, cost.largest_total_params) == ([], large.total_params)
    assert cost.flops == 1000 * runs[0].shape.step_flops(64) + 500 * large.step_flops(64)
    assert cost.hours == pytest.approx(
        sum(run.steps * max(run.step_flops / RATE, LEAST_STEP_SECONDS) for run in runs) / 3600
    )
    numbers = 2 * 3 * sum(run.total_params for run in runs)  # weights and two moments, in two checkpoints
    assert cost.disk_bytes == 4 * numbers + 40 * sum(run.history_rows for run in runs)


def test_a_cost_model_tells_hours_and_its_error() -> None:
    runs = [a_run(2, 64, steps=1000, seed=seed) for seed in range(4)]
    said = plan.cost_line("depth_width", Counts(6, 2, 1), runs, Execution(cost_model="cost.json"), MODEL)
    assert said.startswith("depth_width: 6 runs: 2 in the pool, 1 begun, 3 to train; networks up to ")
    assert (
        plan.cost_line("depth_width", Counts(6, 6, 0), [], Execution(), MODEL)
        == "depth_width: 6 runs, all in the pool"
    )
    assert "about 2.0 hours of one device by cost.json (a run within a factor of 1.25, typically)" in said


@pytest.mark.parametrize("gpus", [0, 1])
def test_runs_of_packs_cost_what_their_packs_do(gpus: int) -> None:
    runs = [a_memorization_run(4, 550, seed) for seed in range(5)]
    execution = Execution(gpus=gpus, models_per_pack=2, flops_per_second=RATE)
    said = plan.cost_line("memorization_heads", Counts(5, 0, 0), runs, execution, MODEL)
    flops = sum(run.steps * run.step_flops for run in runs)
    assert f"{flops:.2e} FLOPs ({flops:.2e} in 3 packs)" in said
    assert ("1.3 ms per step of a pack" in said) == bool(gpus)
    if gpus:  # steps are so small that their launches decide
        assert f"about {duration(3 * 50_000 * 1.3e-3)} of one device" in said


def test_the_speed_is_the_rate_or_the_model_of_the_config(tmp_path: Path) -> None:
    assert plan.speed_of(config_of(flops_per_second=1e12), tmp_path) == 1e12
    path = tmp_path / "cost.json"
    path.write_text(json.dumps(model_to_dict(MODEL)))
    config = config_of(cost_model=str(path))
    assert plan.speed_of(config, tmp_path) == submission_of(config, REPOSITORY, tmp_path).speed == MODEL
    path.unlink()
    with pytest.raises(UserError, match="can't be read"):
        plan.speed_of(config, tmp_path)


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
    assert plan.job_environment(Path("/there"), config_of(), Path("1.json"))["SLURM_OPTIONS"] == options


def test_jobs_find_this_python_and_the_commands() -> None:
    submitted = Path("results/submitted/0123.json")
    one = plan.job_environment(Path("/there"), config_of(gpus=1, job_hours=2.0), submitted)
    assert one["PATH"].startswith(f"{Path(sys.executable).parent}:")
    assert (one["SCRIPTS"], one["WAIT_MINUTES"]) == ("/there/scripts", "120.0")
    assert one["SLURM_OPTIONS"].startswith(
        "--device cuda"
    )  # a GPU that was asked for is used, or training stops
    assert (one["SUBMITTED"], one["CONFIG_HASH"]) == (str(submitted), "0123")


def recorded(runs: Iterable[AnyRun]) -> State:
    return replace(BEGINNING, recorded=[run.key for run in runs])


def test_each_rule_that_trains_has_its_jobs() -> None:
    some = workload_of([*DECODERS, LARGE, *MEMORIZERS], job_minutes=0.25, models_per_pack=2)
    asks = {ask.rule: ask for ask in plan.asks_of(some)}
    assert {rule: (ask.runs, ask.jobs) for rule, ask in asks.items()} == {
        "train_small": (10, 5),
        "train_large": (1, 1),
    }
    assert asks["train_large"].files == 8
    assert asks["train_small"].files == 10 * 3 + 5 * 5
    half = workload_of([*DECODERS], recorded(DECODERS[:3]), job_minutes=0.25)
    assert sum(ask.runs for ask in plan.asks_of(half)) == 2
    ask = plan.Ask("train_large", 1, 1, 4, 2, JobResources(64_000, 90))
    assert plan.ask_line(ask) == (
        "train_large: 1 run in 1 job, each at most 90 minutes, 64,000 MB, 4 CPUs, 2 GPUs; about 8 files"
    )


@pytest.mark.parametrize(("threads", "gpus", "cpus"), [(1, 0, 1), (1, 4, 4), (8, 4, 8)])
def test_a_job_has_a_cpu_for_each_gpu(threads: int, gpus: int, cpus: int) -> None:
    (ask,) = plan.asks_of(workload_of([LARGE], threads=threads, gpus=gpus))
    assert (ask.cpus, ask.gpus) == (cpus, gpus)
    (packed,) = plan.asks_of(workload_of([*MEMORIZERS], threads=threads, gpus=gpus))
    assert (packed.cpus, packed.gpus) == (threads, min(gpus, 1))


def test_the_last_line_is_the_sum_of_what_is_left() -> None:
    runs = [*DECODERS, *MEMORIZERS]
    some = workload_of(runs, recorded(DECODERS[:1]))
    asks = plan.asks_of(some)
    line = plan.total_line(some, Counts(10, 1, 0), asks)
    costs = [plan.cost_of(runs, some.execution, RATE) for runs in (DECODERS[1:], MEMORIZERS)]
    disk = sum(cost.disk_bytes for cost in costs)
    jobs = sum(ask.jobs for ask in asks)
    assert line.startswith(f"Together 10 runs: 1 in the pool, 9 to train in {jobs} jobs (about ")
    assert f"at most {disk / 2**20:,.0f} MiB on disk in about {sum(ask.files for ask in asks)} files" in line
    hours = sum(cost.hours for cost in costs)
    assert f"(about {duration(3600 * hours)} of one device, " in line
    nothing = workload_of(runs, recorded(runs))
    assert plan.total_line(nothing, Counts(10, 10, 0), []) == "Together 10 runs, all in the pool"


def test_a_long_time_is_told_in_hours_too_and_a_large_disk_in_gib() -> None:
    runs = [a_run(2, 64, steps=10**5, seed=seed) for seed in range(400)]
    slow = plan.cost_of(runs, Execution(), 1.0).hours / 1000  # FLOP/s by which all take 1,000 hours
    line = plan.total_line(replace(workload_of([*runs]), speed=slow), Counts(400, 0, 0), [])
    assert "about 41.7 days (1,000 hours) of one device, at most " in line
    assert f"{plan.cost_of(runs, Execution(), slow).disk_bytes / 2**30:,.1f} GiB on disk" in line


@pytest.mark.parametrize(("here", "minutes"), [(True, 1), (False, 30)])
def test_a_thousand_runs_of_seconds_are_not_a_thousand_jobs(here: bool, minutes: int) -> None:
    """By default, jobs train for about a minute on this machine, and for half an hour elsewhere."""
    runs = [a_run(2, 8, seed=seed) for seed in range(1000)]
    (ask,) = plan.asks_of(replace(workload_of([*runs]), here=here))
    assert (ask.rule, ask.runs) == ("train_small", 1000)
    seconds = 1000 * 0.005  # no step is taken for shorter
    assert ask.jobs == pytest.approx(1000 * seconds / 60 / minutes, rel=0.3)
    assert ask.resources.minutes <= 10 + 2 * minutes


VERSION = """from typing import Optional
__version__ = '2.9.1{local}'
cuda: Optional[str] = {cuda}
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = {hip}
"""


@pytest.mark.parametrize(
    ("cuda", "hip", "expected"),
    [("None", "None", "2.9.1+x"), ("'12.8'", "None", None), ("None", "'6.4'", None)],
)
def test_a_build_is_for_cpus_when_it_has_neither_cuda_nor_hip(
    tmp_path: Path, cuda: str, hip: str, expected: str | None
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").touch()
    (tmp_path / "torch/version.py").write_text(VERSION.format(local="+x", cuda=cuda, hip=hip))
    assert plan.cpu_build(tmp_path) == expected


def test_it_agrees_with_this_pytorch(tmp_path: Path) -> None:
    for_gpus = torch.version.cuda or torch.version.hip
    assert plan.cpu_build() == (None if for_gpus else str(torch.__version__))
    assert (
        plan.cpu_build(tmp_path) is None
    )  # no PyTorch at all: a container or an environment of the job has it


def test_gpus_are_refused_where_pytorch_can_use_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_gpu, without = (plan.Ask("train_large", 1, 1, 1, gpus, JobResources(1, 1)) for gpus in (1, 0))
    monkeypatch.setattr(plan, "cpu_build", lambda: "2.9.1+cpu")
    (sentence,) = plan.refused_build([without, with_gpu], {})
    assert sentence.startswith("execution.gpus asks for GPUs, but PyTorch 2.9.1+cpu in ")
    assert "make env TORCH=cuda" in sentence
    assert plan.refused_build([without], {}) == []
    assert plan.refused_build([with_gpu], {"SHAPELAW_DEVICE": "cpu"}) == []
    assert plan.tell_build() == 1  # what `make env TORCH=cuda` ends with
    assert "make env TORCH=cuda TORCH_INDEX=" in capsys.readouterr().err
    monkeypatch.setattr(plan, "cpu_build", lambda: None)
    assert plan.refused_build([with_gpu], {}) == []
    assert plan.tell_build() == 0
