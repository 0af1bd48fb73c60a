"""Slurm's answers: states, limits, requests (tests/slurm asks a real one)."""

import os
import pwd
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_executor_plugin_slurm.utils import get_job_wildcards

from shapelaw.jobs import slurm
from shapelaw.jobs.plan import Ask
from shapelaw.jobs.resources import JobResources
from shapelaw.jobs.slurm import (
    GONE,
    Job,
    Limit,
    Queue,
    comment_of,
    ending,
    find_orphan,
    impossible,
    left_over,
    limit_sentence,
    lowest_limit,
    queue_of,
    refusals,
    states_of,
    write_efficiency,
)

SQUEUE = """#!/bin/sh
echo '7|RUNNING|/work|2026-11-23T10:00:00|rule_train_large_wildcards_k'
echo '8_2|PENDING|/wo|rk|N/A|'
echo '9|OUT_OF_MEMORY|/work|N/A|rule_a|more'
echo 'broken|line'
"""
SACCT = """#!/bin/sh
echo '5|CANCELLED by 1000'
echo '6|COMPLETED'
echo '10|'
"""


@pytest.fixture
def commands_of_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A squeue and a sacct with fixed answers."""
    for name, text in (("squeue", SQUEUE), ("sacct", SACCT)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


@pytest.mark.usefixtures("commands_of_slurm")
def test_the_queue_is_read_and_what_it_has_forgotten_accounting_knows() -> None:
    jobs = slurm.my_jobs()
    assert jobs is not None
    assert set(jobs) == {"7", "8_2", "9"}
    assert jobs["7"] == Job("7", "RUNNING", "/work", "2026-11-23T10:00:00", "rule_train_large_wildcards_k")
    assert (jobs["9"].comment, jobs["9"].is_active, jobs["7"].is_active) == ("rule_a|more", False, True)
    known = {"7": "RUNNING", "9": "OUT_OF_MEMORY", "5": "CANCELLED", "6": "COMPLETED", "10": GONE, "4": GONE}
    assert states_of(list(known)) == known


def test_without_an_answer_nothing_is_known(commands_of_slurm: Path) -> None:
    (commands_of_slurm / "sacct").write_text("#!/bin/sh\necho 'n[1-2]'\necho 'None assigned'\n")
    assert slurm.nodes_of("5") == ["n[1-2]"]
    (commands_of_slurm / "sacct").unlink()
    assert slurm.nodes_of("5") == []
    (commands_of_slurm / "squeue").write_text("#!/bin/sh\nexit 1\n")
    assert states_of(["7"]) is None
    (commands_of_slurm / "squeue").unlink()
    assert slurm.my_jobs() is None


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


COMMENT = comment_of("train_large", ["k-s0"])


def queued(**changed: str) -> Job:
    fields = {"number": "5", "state": "RUNNING", "folder": "/work", "started": "2026-11-23T10:00:00"}
    return Job(**{**fields, "comment": COMMENT, **changed})


def test_the_comment_is_the_one_that_the_plugin_gives() -> None:
    for wildcards in (["wiki", "a/b"], ["k"], []):
        job = SimpleNamespace(wildcards=wildcards)
        behind = f"_wildcards_{get_job_wildcards(job)}" if wildcards else ""
        assert comment_of("encode", wildcards) == f"rule_encode{behind}"


def test_only_living_jobs_of_that_folder_are_left_over() -> None:
    def found(mine: Collection[str] = (), **changed: str) -> bool:
        job = queued(**changed)
        return left_over({job.number: job}, "/work", mine) == [job]

    assert found()
    assert found(state="PENDING")
    assert not found(comment="")  # somebody else's
    assert not any(found(state=state) for state in ("COMPLETED", "CANCELLED"))
    assert not found(folder="/other")
    assert not found({"5"})


def test_a_job_that_does_the_same_is_an_orphan_and_the_newest_is_taken() -> None:
    began = datetime.fromisoformat(queued().started).timestamp()
    assert find_orphan([queued()], COMMENT, began + 0.9) == "5"  # Slurm tells whole seconds
    assert find_orphan([queued(), queued(number="12")], COMMENT, 0.0) == "12"
    assert find_orphan([queued(comment="rule_train_large_wildcards_k-s1")], COMMENT, 0.0) is None
    # the first task has the comment of its array, and the comment says nothing of the others
    assert find_orphan([queued(number="9_1")], COMMENT, 0.0) is None
    # what began before its data was made anew is another one; what waits will read the new
    assert find_orphan([queued()], COMMENT, began + 60) is None
    for waits in (queued(state="PENDING", started="N/A"), queued(state="PENDING")):
        assert find_orphan([waits], COMMENT, began + 60) == "5"


def test_what_jobs_used_is_a_table_with_their_names_where_there_is_accounting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "sacct").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "sacct").chmod(0o755)
    write_efficiency({"7": "train.k"}, tmp_path / "logs/none.csv")
    assert not (tmp_path / "logs").exists()
    (tmp_path / "sacct").write_text(
        "#!/bin/sh\necho '7|a-uuid|COMPLETED|00:01:00|00:10:00|1|00:50|9K|1G|cpu=1,mem=1G'\n"
        "echo '7.0|python|COMPLETED|00:01:00||1|00:50|9K||cpu=1,mem=1G'\n"
    )
    write_efficiency({"7": "train.k"}, tmp_path / "logs/some.csv")
    header, job, step = (tmp_path / "logs/some.csv").read_text().splitlines()
    assert header.startswith("JobID,JobName,State,Elapsed")
    assert job == '7,train.k,COMPLETED,00:01:00,00:10:00,1,00:50,9K,1G,"cpu=1,mem=1G"'
    assert step.startswith("7.0,python,")


def commands(answers: dict[str, str]) -> object:
    """Slurm's answers, by what a command has."""

    def answer(*command: str) -> str | None:
        return next((text for words, text in answers.items() if set(words.split()) <= {*command}), None)

    return answer


ME = pwd.getpwuid(os.getuid()).pw_name
CONFIG = "AccountingStorageEnforce = associations,limits,qos\nClusterName   = lab\nMaxJobCount    = 9000\n"
ASSOC = {
    "scontrol config": CONFIG,
    f"sacctmgr user {ME} format=DefaultAccount": "mine\n",
    f"sacctmgr assoc account=mine user={ME}": "40||long\n",
    "sacctmgr assoc account=mine user=": "|300\n",
    "scontrol partition": "PartitionName=gpu AllowGroups=ALL QoS=part Nodes=a\n",
    "sacctmgr qos name=long,part": "long|20||\npart|||15\n",
}


@pytest.mark.parametrize(
    ("changed", "limit"),
    [
        ({}, Limit(15, "GrpSubmitJobs of QOS part")),
        (
            {"sacctmgr qos name=long,part": "long|20|12|\npart|||15\n"},
            Limit(12, "MaxSubmitJobsPA of QOS long"),
        ),
        ({"sacctmgr qos name=long,part": ""}, Limit(40, f"MaxSubmitJobs of user {ME} in account mine")),
        ({"scontrol config": CONFIG.replace("associations,limits,qos", "none")}, Limit(9000, "MaxJobCount")),
        ({"scontrol config": ""}, None),
    ],
)
def test_the_lowest_limit_is_found(
    changed: dict[str, str], limit: Limit | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "answer", commands({**ASSOC, **changed}))
    assert lowest_limit("", "", "") == limit


def test_it_is_said_where_the_workflow_has_more_jobs_than_the_limit_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def said(jobs: int, most: int, *folders: str) -> str:
        waiting = {str(n): Job(str(n), "PENDING", folder, "", "") for n, folder in enumerate(folders)}
        monkeypatch.setattr(slurm, "my_jobs", lambda: waiting)
        return limit_sentence(Limit(10, "MaxSubmitJobs of user me"), jobs, most, "/here")

    assert said(10, 500) == said(100, 10) == said(100, 10, "/here", "/here") == ""
    assert said(11, 500).endswith("--jobs 10 keeps within it")
    assert said(9, 500, "/there", "/there").endswith("--jobs 8 keeps within it")
    assert said(9, 500, *["/there"] * 30).endswith("--jobs 1 keeps within it")
    assert limit_sentence(None, 100, 100, "/here") == ""


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


def test_a_queue_is_named_by_a_partition_and_an_account() -> None:
    assert queue_of({"slurm_partition": "'gpu'", "slurm_account": "lab", "mem_mb": 1}) == Queue("gpu", "lab")
    assert queue_of({"slurm_account": "one, two"}) == Queue()  # a list is left to Slurm


@pytest.mark.usefixtures("sbatch")
def test_a_partition_or_account_that_is_refused_is_a_sentence() -> None:
    """What else goes wrong is left to the jobs: a controller that is busy for a moment must stop no workflow."""
    lab = {"slurm_account": "lab"}
    assert refusals({}, {"train": {"slurm_partition": "down"}}) == []
    by_rule = {
        "one": {"slurm_partition": "nowhere"},
        "other": {"slurm_account": "nobody"},
        "third": {"mem_mb": 1},
    }
    account, partition = refusals({"slurm_partition": "gpu", **lab}, by_rule)
    assert partition.startswith(
        "Slurm takes no job for partition nowhere and account lab (invalid partition specified: nowhere); "
    )
    assert "partition gpu and account nobody (allocation failure: Invalid account" in account


def test_a_machine_without_slurm_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (sentence,) = refusals({}, {})
    assert sentence.startswith("There is no sbatch on this machine; ")


def an_ask(rule: str = "train_large", gpus: int = 1) -> Ask:
    return Ask(rule, 1, 1, max(1, gpus), gpus, JobResources(64_000, 90))


@pytest.mark.usefixtures("sbatch")
def test_more_than_any_node_has_is_a_sentence() -> None:
    default = {"slurm_partition": "gpu", "slurm_account": "lab"}
    assert impossible([an_ask(gpus=0), an_ask(), an_ask(gpus=4)], default, {}) == []
    (sentence,) = impossible([an_ask(gpus=8)], default, {})
    assert sentence.startswith(
        "No node of partition gpu has what a job of train_large asks for: 8 CPUs, 64,000 MB, 8 GPUs; "
    )
    own = {"train_large": {"gpu_model": "h100", "slurm_partition": "down"}}
    (sentence,) = impossible([an_ask()], default, own)
    assert sentence.startswith("No node of partition down has ")
    assert impossible([an_ask()], {"slurm_partition": "down"}, {}) == []  # left to the jobs
    (sentence,) = impossible([an_ask()], {}, {"train_large": {"nodes": "2"}})
    assert sentence.startswith(
        "train_large asks for 2 nodes (--set-resources), but a run trains on one node; "
    )


def test_what_the_user_sets_is_what_slurm_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def tried(queue: Queue, options: list[str]) -> object:
        asked.extend((queue, options))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(slurm, "_tried", tried)
    own = {"train_large": {"mem_mb": "9000", "cpus_per_task": 2, "gpu": "attempt", "constraint": "a100"}}
    assert impossible([an_ask()], {"slurm_account": "lab"}, own) == []
    options = ["--nodes=1", "--ntasks=1", "--cpus-per-task=2", "--mem=9000", "--gpus=1", "--constraint=a100"]
    assert asked == [Queue("", "lab"), options]
