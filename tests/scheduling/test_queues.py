"""Partitions and accounts that Slurm refuses are told before anything is submitted (tests/slurm asks a real one)."""

from pathlib import Path

import pytest

from shapelaw.scheduling.jobs import JobResources
from shapelaw.scheduling.plan import Ask
from shapelaw.scheduling.queues import Queue, impossible, queues_of, refusals, requests_of

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
