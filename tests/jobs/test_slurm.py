"""Slurm's answers: states, and what it refuses (tests/slurm asks a real one)."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_executor_plugin_slurm.utils import get_job_wildcards

from shapelaw.jobs import slurm
from shapelaw.jobs.plan import Ask
from shapelaw.jobs.resources import JobResources

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
    monkeypatch.setenv("PATH", str(tmp_path))  # a Slurm that is installed here waits for its controller
    return tmp_path


@pytest.mark.usefixtures("commands_of_slurm")
def test_the_queue_is_read_and_what_it_has_forgotten_accounting_knows() -> None:
    jobs = slurm.my_jobs()
    assert jobs is not None
    assert set(jobs) == {"7", "8_2", "9"}
    assert jobs["7"] == slurm.Job(
        "7", "RUNNING", "/work", "2026-11-23T10:00:00", "rule_train_large_wildcards_k"
    )
    assert (jobs["9"].comment, jobs["9"].is_active, jobs["7"].is_active) == ("rule_a|more", False, True)
    known = {
        "7": "RUNNING",
        "9": "OUT_OF_MEMORY",
        "5": "CANCELLED",
        "6": "COMPLETED",
        "10": slurm.GONE,
        "4": slurm.GONE,
    }
    assert slurm.states_of(list(known)) == known


def test_without_an_answer_nothing_is_known(commands_of_slurm: Path) -> None:
    (commands_of_slurm / "sacct").write_text("#!/bin/sh\necho 'NODE_FAIL|n3'\necho 'PENDING|None assigned'\n")
    assert slurm.requeue_of("5") == "NODE_FAIL on n3"
    (commands_of_slurm / "sacct").unlink()
    assert slurm.requeue_of("5") == ""
    (commands_of_slurm / "squeue").write_text("#!/bin/sh\nexit 1\n")
    assert slurm.states_of(["7"]) is None
    (commands_of_slurm / "squeue").unlink()
    assert slurm.my_jobs() is None


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("COMPLETED", "done"),
        (slurm.GONE, "done"),  # its files decide
        ("RUNNING", "active"),
        ("REQUEUED", "active"),
        ("CANCELLED", "failed"),
        ("TIMEOUT", "failed"),
        ("PREEMPTED", "failed"),  # and not put back into the queue, where it would wait
        ("NODE_FAIL", "failed"),
    ],
)
def test_what_a_state_means(state: str, expected: str) -> None:
    assert slurm.ending(state) == expected


COMMENT = slurm.comment_of("train_large", ["k-s0"])


def queued(**changed: str) -> slurm.Job:
    fields = {"number": "5", "state": "RUNNING", "folder": "/work", "started": "2026-11-23T10:00:00"}
    return slurm.Job(**{**fields, "comment": COMMENT, **changed})


def test_the_comment_is_the_one_that_the_plugin_gives() -> None:
    for wildcards in (["wiki", "a/b"], ["k"], []):
        job = SimpleNamespace(wildcards=wildcards)
        behind = f"_wildcards_{get_job_wildcards(job)}" if wildcards else ""
        assert slurm.comment_of("encode", wildcards) == f"rule_encode{behind}"


def test_only_living_jobs_of_that_folder_are_left_over() -> None:
    def found(mine: Collection[str] = (), **changed: str) -> bool:
        job = queued(**changed)
        return slurm.left_over({job.number: job}, "/work", mine) == [job]

    assert found()
    assert found(state="PENDING")
    assert not found(comment="")  # somebody else's
    assert not any(found(state=state) for state in ("COMPLETED", "CANCELLED"))
    assert not found(folder="/other")
    assert not found({"5"})


def test_a_job_that_does_the_same_is_an_orphan_and_the_newest_is_taken() -> None:
    began = datetime.fromisoformat(queued().started).timestamp()
    assert slurm.find_orphan([queued()], COMMENT, began + 0.9) == "5"  # Slurm tells whole seconds
    assert slurm.find_orphan([queued(), queued(number="12")], COMMENT, 0.0) == "12"
    assert slurm.find_orphan([queued(comment="rule_train_large_wildcards_k-s1")], COMMENT, 0.0) is None
    # what began before its data was made anew is another one; what waits will read the new
    assert slurm.find_orphan([queued()], COMMENT, began + 60) is None
    for waits in (queued(state="PENDING", started="N/A"), queued(state="PENDING")):
        assert slurm.find_orphan([waits], COMMENT, began + 60) == "5"


ANSWER = """#!/bin/sh
case "$*" in
  *"-p nowhere"*) echo "sbatch: error: invalid partition specified: nowhere" >&2
                  echo "allocation failure: Invalid partition name specified" >&2; exit 1;;
  *"-A nobody"*) echo "allocation failure: Invalid account or account/partition combination specified" >&2; exit 1;;
  *"--gpus=8"*|*"--gpus=a100:"*) echo "allocation failure: Requested node configuration is not available" >&2; exit 1;;
  *"-p down"*) echo "allocation failure: Unable to contact slurm controller" >&2; exit 1;;
  *) echo "sbatch: Job 1 to start at 2026-11-23T00:00:00 using 1 processors on nodes vm" >&2;;
esac
"""


NODES = (
    "gpu*|16|64000|{}|gpu:a100:4(S:0-1)",
    "gpu*|128|500000|{}|(null)",
    "down|16|64000|idle|gpu:a100:2,gpu:h100:1",
)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """It answers as Slurm 22.05 does; the states of two nodes can be set."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    slurm.silence.cache_clear()

    def command(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def nodes(*states: str) -> None:
        command("sinfo", "\n".join(["#!/bin/sh", "cat <<END", *NODES]).format(*states) + "\nEND\n")

    command("sbatch", ANSWER)
    command("scontrol", "#!/bin/sh\n")
    nodes("idle", "mixed")
    return nodes


def test_names_that_the_plugin_does_not_quote_are_a_sentence_each() -> None:
    odd = ["/it's", '/a "b"', "/$HOME", "/a`b", "/a\\b", "/100%j"]
    assert [sentence.split(" has ")[0] for sentence in slurm.place_problems([*odd, odd[0]])] == list(
        map(repr, odd)
    )
    assert slurm.place_problems(["/a checkout, & ü; #1 *[z]~ (=) !"]) == []


def test_jobs_of_an_earlier_workflow_that_are_not_taken_over_are_named() -> None:
    jobs = [queued(), queued(number="6", comment="rule_encode"), queued(number="7", comment="rule_other")]
    assert slurm.left_over_sentence(jobs[:1], {COMMENT}) == ""
    sentence = slurm.left_over_sentence(jobs, {COMMENT})
    assert sentence.startswith("2 jobs wait or run in this folder since an earlier workflow; ")
    assert "stop them first: scancel 6 7 (no run is trained twice" in sentence


def test_a_queue_is_named_by_a_partition_and_an_account() -> None:
    assert slurm.queue_of({"slurm_partition": "'gpu'", "slurm_account": "lab", "mem_mb": 1}) == slurm.Queue(
        "gpu", "lab"
    )
    assert slurm.queue_of({"slurm_account": "one, two"}) == slurm.Queue()  # a list is left to Slurm


@pytest.mark.usefixtures("cluster")
def test_a_partition_or_account_that_is_refused_is_a_sentence() -> None:
    """What else goes wrong is left to the jobs: a controller that is busy for a moment must stop no workflow."""
    lab = {"slurm_account": "lab"}
    assert slurm.refusals({}, {"train": {"slurm_partition": "down"}}) == []
    by_rule = {
        "one": {"slurm_partition": "nowhere"},
        "other": {"slurm_account": "nobody"},
        "third": {"mem_mb": 1},
    }
    account, partition = slurm.refusals({"slurm_partition": "gpu", **lab}, by_rule)
    assert partition.startswith(
        "Slurm takes no job for partition nowhere and account lab (invalid partition specified: nowhere); "
    )
    assert "partition gpu and account nobody (allocation failure: Invalid account" in account


def test_a_machine_without_slurm_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (sentence,) = slurm.refusals({}, {})
    assert sentence.startswith("There is no sbatch on this machine; ")


def an_ask(gpus: int = 1) -> Ask:
    return Ask("train_large", 1, 1, max(1, gpus), gpus, JobResources(64_000, 90))


def test_more_than_any_node_has_is_a_sentence_and_nodes_that_will_be_back_are_waited_for(
    cluster: Callable[..., None],
) -> None:
    default = {"slurm_partition": "gpu", "slurm_account": "lab"}
    assert slurm.impossible([an_ask(gpus=0), an_ask(), an_ask(gpus=4)], default, {}) == []
    (sentence,) = slurm.impossible([an_ask(gpus=8)], default, {})
    assert sentence.startswith(
        "No node of partition gpu has what a job of train_large asks for: 8 CPUs, 64,000 MB, 8 GPUs; "
    )
    assert "; a job runs on one node. Lower execution.gpus or execution.threads, take" in sentence
    (of_texts,) = slurm.impossible([replace(an_ask(gpus=8), runs=0)], default, {})
    assert ". Lower set-threads in slurm/config.yaml, take another partition" in of_texts
    own = {"train_large": {"gpu_model": "v100", "slurm_partition": "down"}}
    assert slurm.impossible([an_ask()], default, own) == []  # left to the jobs
    assert slurm.impossible([an_ask(gpus=8)], {}, {})[0].startswith(
        "No node of Slurm's default partition has "
    )
    # Slurm refuses what no node that is in service has; whether one has it that will be back, its list tells
    for state in ("drained", "down*", "reserved", "maint", "idle*"):
        cluster(state, "idle")
        own = {"train_large": {"gpu_model": "a100", "mem_mb": "32000"}}
        assert slurm.impossible([an_ask(gpus=8)], default, own)
        assert not slurm.impossible([an_ask(gpus=3)], default, own)
        assert not slurm.out_of_service([an_ask(gpus=0), an_ask(gpus=8)], default, own)
        (sentence,) = slurm.out_of_service([an_ask(gpus=3)], default, own)
        assert sentence.startswith(
            "every node of partition gpu that has what a job of train_large asks for (3 CPUs, 32,000 MB, 3 a100 GPUs) "
            f"is {state}; its jobs wait in the queue"
        )
    for state in ("idle~", "mixed-", "allocated"):
        cluster(state, "idle")
        assert not slurm.out_of_service([an_ask(gpus=3)], default, {})


def test_a_controller_that_does_not_answer_is_asked_once_and_for_seconds(
    cluster: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "_START_SECONDS", 0.1)
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\nexec sleep 60\n")
    assert (
        slurm.refusals({"slurm_partition": "nowhere"}, {}) == slurm.impossible([an_ask(gpus=8)], {}, {}) == []
    )
    assert slurm.silence().startswith("Slurm doesn't answer (scontrol ping), so it was not asked")
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_what_the_user_sets_is_what_slurm_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(slurm, "_refused", lambda *command: asked.extend(command) or "")
    own = {"train_large": {"mem_mb": "9000", "cpus_per_task": 2, "gpu": "attempt"}}
    assert slurm.impossible([an_ask()], {"slurm_account": "lab"}, own) == []
    options = ["--nodes=1", "--ntasks=1", "--cpus-per-task=2", "--mem=9000", "--gpus=1"]
    assert asked == [slurm.Queue("", "lab"), options]
