"""What Slurm refuses is told before anything is submitted (tests/slurm asks a real one); PyTorch's build is read."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from shapelaw.scheduling import asks
from shapelaw.scheduling.asks import (
    Queue,
    cpu_build,
    impossible,
    queues_of,
    refusals,
    refused_build,
    requests_of,
)
from shapelaw.scheduling.jobs import JobResources
from shapelaw.scheduling.plan import Ask

ANSWER = """#!/bin/sh
case "$*" in
  *"-p nowhere"*) echo "sbatch: error: invalid partition specified: nowhere" >&2
                  echo "allocation failure: Invalid partition name specified" >&2; exit 1;;
  *"-A nobody"*) echo "allocation failure: Invalid account or account/partition combination specified" >&2; exit 1;;
  *"--gpus=8"*|*"--gpus=h100:1"*) echo "allocation failure: Requested node configuration is not available" >&2; exit 1;;
  *"-p down"*) echo "allocation failure: Unable to contact slurm controller" >&2; exit 1;;
  *) echo "sbatch: Job 1 to start at 2026-11-23T00:00:00 using 1 processors on nodes vm" >&2;;
esac
"""


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers as Slurm 22.05 does."""
    (tmp_path / "sbatch").write_text(ANSWER)
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_the_queues_are_those_of_all_rules() -> None:
    default = {"slurm_partition": "'gpu'", "slurm_account": "lab", "mem_mb": 1000}
    by_rule = [{"slurm_partition": "long"}, {"mem_mb": 8000}, {"slurm_account": "one, two"}]
    assert queues_of(default, by_rule) == {Queue("gpu", "lab"), Queue("long", "lab"), Queue("gpu", "")}
    assert queues_of({}, []) == {Queue()}


@pytest.mark.usefixtures("sbatch")
def test_a_partition_or_account_that_is_refused_is_a_sentence() -> None:
    assert refusals([Queue(), Queue("gpu", "lab")]) == []
    account, partition = refusals([Queue("nowhere", "lab"), Queue("gpu", "nobody"), Queue("gpu")])
    assert partition.startswith(
        "Slurm takes no job for partition nowhere and account lab (invalid partition specified: nowhere); "
    )
    assert "partition gpu and account nobody (allocation failure: Invalid account" in account


@pytest.mark.usefixtures("sbatch")
def test_what_else_goes_wrong_is_left_to_the_jobs() -> None:
    """A controller that is busy for a moment must stop no workflow."""
    assert refusals([Queue("down")]) == []


def test_a_machine_without_slurm_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (sentence,) = refusals([Queue()])
    assert sentence.startswith("There is no sbatch on this machine; ")


def an_ask(rule: str = "train_large", gpus: int = 1) -> Ask:
    return Ask(rule, 1, 1, max(1, gpus), gpus, JobResources(64_000, 90))


@pytest.mark.usefixtures("sbatch")
def test_more_than_any_node_has_is_a_sentence() -> None:
    default = {"slurm_partition": "gpu", "slurm_account": "lab"}
    assert impossible(requests_of([an_ask(gpus=0), an_ask(), an_ask(gpus=4)], default, {})) == []
    (sentence,) = impossible(requests_of([an_ask(gpus=8)], default, {}))
    assert sentence.startswith(
        "No node of partition gpu has what a job of train_large asks for: 8 CPUs, 64,000 MB, 8 GPUs; "
    )
    own = {"train_large": {"gpu_model": "h100", "slurm_partition": "down"}}
    (request,) = requests_of([an_ask()], default, own)
    assert request.queue == Queue("down", "lab")
    assert "--gpus=h100:1" in request.options
    assert impossible([request]) != []
    assert impossible(requests_of([an_ask()], {"slurm_partition": "down"}, {})) == []  # left to the jobs


def test_a_run_on_several_nodes_is_refused_without_asking() -> None:
    (sentence,) = impossible(requests_of([an_ask()], {}, {"train_large": {"nodes": "2"}}))
    assert sentence.startswith(
        "train_large asks for 2 nodes (--set-resources), but a run trains on one node; "
    )


def test_what_the_user_sets_is_what_slurm_is_asked_for() -> None:
    own = {"train_large": {"mem_mb": "9000", "cpus_per_task": 2, "gpu": "attempt", "constraint": "a100"}}
    (request,) = requests_of([an_ask()], {}, own)
    assert request.options == (
        *("--nodes=1", "--ntasks=1", "--cpus-per-task=2", "--mem=9000", "--gpus=1", "--constraint=a100"),
    )


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
    (tmp_path / "torch/version.py").write_text(VERSION.format(local="+x", cuda=cuda, hip=hip))
    assert cpu_build(tmp_path) == expected


def test_it_agrees_with_this_pytorch(tmp_path: Path) -> None:
    for_gpus = torch.version.cuda or torch.version.hip
    assert cpu_build() == (None if for_gpus else str(torch.__version__))
    assert cpu_build(tmp_path) is None  # no PyTorch at all: a container or an environment of the job has it


def test_gpus_are_refused_where_pytorch_can_use_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpu, without = (Ask("train_large", 1, 1, 1, gpus, JobResources(1, 1)) for gpus in (1, 0))
    monkeypatch.setattr(asks, "cpu_build", lambda: "2.9.1+cpu")
    (sentence,) = refused_build([without, with_gpu], {})
    assert sentence.startswith("execution.gpus asks for GPUs, but PyTorch 2.9.1+cpu in ")
    assert "make env TORCH=cuda" in sentence
    assert refused_build([without], {}) == []
    assert refused_build([with_gpu], {"SHAPELAW_DEVICE": "cpu"}) == []
    monkeypatch.setattr(asks, "cpu_build", lambda: None)
    assert refused_build([with_gpu], {}) == []


def test_an_installation_for_gpus_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `make env TORCH=cuda` ends with."""
    monkeypatch.setattr(asks, "cpu_build", lambda: None)
    assert asks.main() == 0
    monkeypatch.setattr(asks, "cpu_build", lambda: "2.9.1+cpu")
    assert asks.main() == 1
    assert "make env TORCH=cuda TORCH_INDEX=" in capsys.readouterr().err
