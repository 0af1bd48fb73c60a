"""What Slurm refuses: which refusals pass by themselves, and the limit on a user's jobs in the queue."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from shapelaw.cluster.states import answer, my_jobs

# of a limit on jobs in the queue, or of a controller that is busy, restarting or out of reach
_PASSES = re.compile(
    r"Submit\w*(Limit|Account|User)|temporar|try again|timed out|unable to contact|connect|communicat|socket|zero bytes"
    r"|not responding|queue is full|too many",
    re.I,
)
_UNQUOTED = frozenset("'\"$`\\%")  # the last one is of the names of logs, as in %j
_SAID = re.compile(r"The error message was '(.*?)'\.\n", re.S)
_ERROR = re.compile(r"sbatch: error: (?:Batch job submission failed: )?(.+)")
_FIELDS = ("MaxSubmitJobs", "GrpSubmitJobs"), ("MaxSubmitJobsPU", "MaxSubmitJobsPA", "GrpSubmitJobs")


@dataclass(frozen=True)
class Refusal:
    """A refusal of a submission.

    Attributes:
        reason: what sbatch said, a clause.
        passes: the same job may well be taken later.
    """

    reason: str
    passes: bool


def refusal_of(message: str) -> Refusal:
    """The refusal in the plugin's message on a submission that failed."""
    found = _SAID.search(message)
    text = found[1] if found else message
    lines = list(dict.fromkeys(line.strip().rstrip(".") for line in _ERROR.findall(text)))
    reason = "; ".join(lines) or " ".join(text.split())
    return Refusal(reason, _PASSES.search(reason) is not None)


@dataclass(frozen=True, order=True)
class Limit:
    """A limit on jobs that wait or run at once.

    Attributes:
        jobs: the most jobs.
        name: Slurm's name of it, with what has it.
    """

    jobs: int
    name: str


def place_problems(places: Iterable[str]) -> list[str]:
    """A sentence for each path that the plugin's commands don't quote, or that Slurm reads as a pattern."""
    return [
        f"{place!r} has {' '.join(sorted(found))} in its name, which Snakemake's commands for Slurm don't quote; "
        "rename the folder, or work in another one (blanks and letters of any language are fine)."
        for place in dict.fromkeys(places)
        if (found := _UNQUOTED & set(place))
    ]


def lowest_limit(account: str, partition: str, qos: str) -> Limit | None:
    """The lowest limit on this user's jobs in the queue; None where there is none, or it can't be read.

    Args:
        account, partition, qos: those of the jobs; empty where the cluster's defaults are taken.
    """
    config = _values(answer("scontrol", "show", "config"), " = ")
    enforced = config.get("AccountingStorageEnforce", "").split(",")
    limits = (
        [Limit(int(config["MaxJobCount"]), "MaxJobCount")] if config.get("MaxJobCount", "").isdigit() else []
    )
    if {"limits", "safe", "qos", "all"} & set(enforced):
        limits += _accounted(config.get("ClusterName", ""), account, partition, qos)
    return min(limits, default=None)


def _accounted(cluster: str, account: str, partition: str, qos: str) -> Iterable[Limit]:
    """The limits of accounting: of the user in an account, of the account, and of the qualities of service."""
    user = pwd.getpwuid(os.getuid()).pw_name
    if not account:
        account = (answer("sacctmgr", "-nP", "show", "user", user, "format=DefaultAccount") or "").strip()
    where = ["where", f"cluster={cluster}", f"account={account}"]
    ours = _rows("assoc", [*where, f"user={user}"], (*_FIELDS[0], "DefaultQOS"))
    accounts = _rows("assoc", [*where, "user="], _FIELDS[0])
    told = _values(
        (answer("scontrol", "-o", "show", "partition", *filter(None, [partition])) or "").replace(" ", "\n")
    )
    default = next((row["DefaultQOS"] for row in ours if row["DefaultQOS"]), "normal")
    names = {qos or default, told.get("QoS", "N/A")} - {"N/A"}
    qualities = _rows("qos", ["where", f"name={','.join(sorted(names))}"], ("Name", *_FIELDS[1]))
    yield from _limits(ours, f"of user {user} in account {account}")
    yield from _limits(accounts, f"of account {account}")
    for row in qualities:
        yield from _limits([row], f"of QOS {row['Name']}")


def _rows(entity: str, where: Iterable[str], fields: tuple[str, ...]) -> list[dict[str, str]]:
    text = answer("sacctmgr", "-nP", "show", entity, *where, f"format={','.join(fields)}") or ""
    return [dict(zip(fields, line.split("|"), strict=True)) for line in text.splitlines()]


def _limits(rows: Iterable[Mapping[str, str]], of: str) -> Iterable[Limit]:
    return (
        Limit(int(row[field]), f"{field} {of}")
        for row in rows
        for field in chain(*_FIELDS)
        if row.get(field, "").isdigit()
    )


def _values(text: str | None, between: str = "=") -> dict[str, str]:
    """Names and values of scontrol's answer, a line each."""
    pairs = (line.partition(between) for line in (text or "").splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def limit_sentence(limit: Limit | None, jobs: int, most: int, folder: str) -> str:
    """What to say where a workflow would have more jobs in the queue than Slurm takes; empty where it has room.

    Args:
        jobs: jobs of the workflow.
        most: `--jobs` of the workflow.
        folder: the folder that it is started in, whose jobs in the queue are its own.
    """
    if limit is None:
        return ""
    others = [job for job in (my_jobs() or {}).values() if job.is_active and job.folder != folder]
    room = max(1, limit.jobs - len(others))
    if min(jobs, most) <= room:
        return ""
    own = f", of which {len(others):,} are taken by other jobs of yours" if others else ""
    return (
        f"Slurm takes at most {limit.jobs:,} jobs at once ({limit.name}){own}, and this workflow would submit "
        f"{min(jobs, most):,}: jobs beyond that wait here and are submitted as others end; --jobs {room} keeps within "
        "it"
    )
