"""Slurm's answers, as states of the workflow's jobs (tests/slurm asks a real one)."""

from pathlib import Path

import pytest

from shapelaw.cluster import states
from shapelaw.cluster.states import GONE, ending, parse_accounts, parse_queue, pause, reason, states_of

SQUEUE = """#!/bin/sh
echo '7|RUNNING|/work|train_large.s.k|shapelaw:1'
echo '8_2|PENDING|/wo|rk|train_in_turn.s|'
echo '9|OUT_OF_MEMORY|/work|a|shapelaw:2|more'
"""
SACCT = """#!/bin/sh
echo '5|CANCELLED by 1000'
echo '6|COMPLETED'
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A squeue and a sacct with fixed answers."""
    for name, text in (("squeue", SQUEUE), ("sacct", SACCT)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_the_queue_is_read_with_names_and_comments() -> None:
    jobs = parse_queue("7|RUNNING|/work|train.s.k|shapelaw:1\n8_2|COMPLETED|/work|a|b|c\nbroken|line\n")
    assert set(jobs) == {"7", "8_2"}
    assert (jobs["7"].name, jobs["7"].comment, jobs["7"].is_active) == ("train.s.k", "shapelaw:1", True)
    assert (jobs["8_2"].comment, jobs["8_2"].is_active) == ("b|c", False)


def test_a_cancelled_job_of_accounting_is_cancelled_whoever_did_it() -> None:
    assert parse_accounts("5|CANCELLED by 1000\n6|COMPLETED\n7|\n") == {"5": "CANCELLED", "6": "COMPLETED"}


@pytest.mark.usefixtures("slurm")
def test_what_squeue_has_forgotten_accounting_knows() -> None:
    known = {"7": "RUNNING", "9": "OUT_OF_MEMORY", "5": "CANCELLED", "6": "COMPLETED", "4": GONE}
    assert states_of(list(known)) == known


def test_the_nodes_of_a_job_are_those_of_accounting(slurm: Path) -> None:
    (slurm / "sacct").write_text("#!/bin/sh\necho 'n[1-2]'\n")
    assert states.nodes_of("5") == ["n[1-2]"]
    (slurm / "sacct").write_text("#!/bin/sh\necho 'None assigned'\n")
    assert states.nodes_of("5") == []
    (slurm / "sacct").unlink()
    assert states.nodes_of("5") == []


def test_without_an_answer_nothing_is_known(slurm: Path) -> None:
    (slurm / "squeue").write_text("#!/bin/sh\nexit 1\n")
    assert states_of(["7"]) is None
    (slurm / "squeue").unlink()
    assert states.my_jobs() is None


@pytest.mark.parametrize(
    ("state", "requeues", "seconds", "expected"),
    [
        ("COMPLETED", True, 0, "done"),
        (GONE, True, 0, "done"),  # its files decide
        ("RUNNING", True, 0, "active"),
        ("REQUEUED", True, 0, "active"),
        ("CANCELLED", True, 0, "failed"),
        ("TIMEOUT", True, 0, "failed"),
        ("PREEMPTED", True, 100, "active"),  # Slurm requeues it
        ("PREEMPTED", True, 200, "failed"),  # it doesn't: PreemptMode=CANCEL
        ("NODE_FAIL", False, 0, "failed"),
    ],
)
def test_what_a_state_means(state: str, requeues: bool, seconds: float, expected: str) -> None:
    assert ending(state, requeues, seconds) == expected


@pytest.mark.parametrize(
    ("state", "log", "expected"),
    [
        (
            "FAILED",
            "slurmstepd-n1: error: StepId=12.0 exceeded memory limit (3 > 1), being killed",
            "OUT_OF_MEMORY",
        ),
        ("FAILED", "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0.", "OUT_OF_MEMORY"),
        ("FAILED", "The loss exceeded memory limit of a person.", "FAILED"),
        ("CANCELLED", "slurmstepd-n1: error: Exceeded job memory limit", "CANCELLED"),
    ],
)
def test_memory_is_told_from_other_failures_by_slurms_own_line(state: str, log: str, expected: str) -> None:
    assert reason(state, f"Building DAG of jobs...\n{log}\n") == expected
    assert reason(state, "") == state


def test_a_small_queue_is_asked_often_and_a_large_one_once_a_minute() -> None:
    assert [pause(n, 10) for n in (0, 1, 50, 100, 300, 10_000)] == [10, 10, 10, 20, 60, 60]
    assert pause(1, 3) == 3
