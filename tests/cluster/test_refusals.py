"""What Slurm's refusals mean, and its limits as its commands print them (tests/slurm has the whole)."""

import os
import pwd
from collections.abc import Sequence

import pytest

from shapelaw.cluster import refusals
from shapelaw.cluster.refusals import Limit, Refusal, limit_sentence, lowest_limit, refusal_of
from shapelaw.cluster.states import Job

LIMITS = (
    *(
        "QOSMaxSubmitJobPerUserLimit",
        "AssocMaxSubmitJobLimit",
        "AssocGrpSubmitJobsLimit",
        "QOSGrpSubmitJobsLimit",
    ),
    "QOSMaxSubmitJobPerAccount",
)
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


BUSY = ("Unable to contact slurm controller (connect failure)", "Socket timed out on send/recv operation")


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        *(([f"{name}", f"Batch job submission failed: {POLICY}"], True) for name in LIMITS),
        *(([f"Batch job submission failed: {reason}"], True) for reason in BUSY),
        (["Slurm temporarily unable to accept job, sleeping and retrying"], True),
        (["QOSMaxCpuPerUserLimit", f"Batch job submission failed: {POLICY}"], False),
        (["Batch job submission failed: Invalid account or account/partition combination specified"], False),
        (
            ["Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)"],
            False,
        ),
        (
            [
                "invalid partition specified: x",
                "Batch job submission failed: Invalid partition name specified",
            ],
            False,
        ),
    ],
)
def test_a_limit_on_jobs_and_a_busy_controller_pass_and_a_wrong_job_does_not(
    said: list[str], passes: bool
) -> None:
    lines = "\n".join(f"sbatch: error: {line}" for line in said)
    message = f"SLURM sbatch failed. The error message was '{lines}'.\n    sbatch call:\n        sbatch --submit x\n"
    expected = "; ".join(line.removeprefix("Batch job submission failed: ") for line in said)
    assert refusal_of(message) == Refusal(expected, passes)


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
    monkeypatch.setattr(refusals, "answer", commands({**ASSOC, **changed}))
    assert lowest_limit("", "", "") == limit


def test_it_is_said_where_the_workflow_has_more_jobs_than_the_limit_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def queued(*folders: str) -> dict[str, Job]:
        return {str(n): Job(str(n), "PENDING", folder, "", "") for n, folder in enumerate(folders)}

    def said(jobs: int, most: int, *folders: Sequence[str]) -> str:
        monkeypatch.setattr(refusals, "my_jobs", lambda: queued(*folders))
        return limit_sentence(Limit(10, "MaxSubmitJobs of user me"), jobs, most, "/here")

    assert said(10, 500) == said(100, 10) == said(100, 10, "/here", "/here") == ""
    assert said(11, 500).startswith(
        "Slurm takes at most 10 jobs at once (MaxSubmitJobs of user me), and this workflow"
    )
    assert said(11, 500).endswith("--jobs 10 keeps within it")
    assert said(9, 500, "/there", "/there").endswith("--jobs 8 keeps within it")
    assert said(9, 500, *["/there"] * 30).endswith("--jobs 1 keeps within it")
    assert limit_sentence(None, 100, 100, "/here") == ""
