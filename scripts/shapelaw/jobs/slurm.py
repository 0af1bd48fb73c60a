"""Slurm, by the commands that it documents: the states of jobs, its limits, what it refuses, and what jobs used.

What jobs ask for is checked before the first submission: Slurm refuses each job of an unknown partition by itself, and
Snakemake tries each again, hundreds of lines.
"""

from __future__ import annotations

import csv
import math
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Literal

from shapelaw.jobs.plan import Ask

Ending = Literal["done", "failed", "active"]
FAILED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT"),
    }
)
REQUEUED = frozenset({"NODE_FAIL", "PREEMPTED"})  # Slurm puts such a job back into the queue by itself
GONE = "GONE"  # Slurm has forgotten the job
REQUEUE_SECONDS = 180.0  # a job that is not back in the queue by then has failed
_ASK_SECONDS = 60


def answer(*command: str) -> str | None:
    """What a command of Slurm prints; None where it fails or doesn't answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ASK_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@dataclass(frozen=True)
class Job:
    """A job in the queue.

    Attributes:
        number: Slurm's; of an array's task `<number>_<task>`.
        state: as Slurm writes it.
        folder: the folder that it was submitted from.
        started: when it began, or will, in local time; `N/A` where that is not known.
        comment: what the plugin says of it, by which people and the next workflow know it.
    """

    number: str
    state: str
    folder: str
    started: str
    comment: str

    @property
    def is_active(self) -> bool:
        """True if it waits or runs."""
        return self.state != "COMPLETED" and self.state not in FAILED

    @property
    def began(self) -> float:
        """When it began, in seconds since 1970; infinite for one that waits."""
        try:
            return math.inf if self.state == "PENDING" else datetime.fromisoformat(self.started).timestamp()
        except ValueError:
            return math.inf


def my_jobs() -> dict[str, Job] | None:
    """All jobs of this user that Slurm remembers, also finished ones, by number; None where squeue doesn't answer."""
    user = f"--user={os.getuid()}"
    text = answer("squeue", "-h", "-r", "--states=all", user, "-o", "%i|%T|%Z|%S|%k")
    if text is None:
        return None
    rows = [line.split("|", 4) for line in text.splitlines()]
    return {row[0]: Job(*row) for row in rows if len(row) == 5}


def comment_of(rule: str, wildcards: Iterable[str]) -> str:
    """The comment that the plugin gives a job; those of an array have that of the first, and groups no wildcards."""
    values = "_".join(wildcards).replace("/", "_")
    return f"rule_{rule}_wildcards_{values}" if values else f"rule_{rule}"


def left_over(jobs: Mapping[str, Job], folder: str, mine: Collection[str]) -> list[Job]:
    """The jobs that an earlier workflow submitted from this folder, and that still wait or run.

    Args:
        jobs: the queue.
        mine: numbers of the jobs that this workflow submitted or took over.
    """
    ours = [job for job in jobs.values() if job.folder == folder and job.comment.startswith("rule_")]
    return [job for job in ours if job.is_active and job.number not in mine]


def find_orphan(left: Iterable[Job], comment: str, newest: float) -> str | None:
    """The number of the newest job with this comment; None without one.

    A task of an array has the comment of the first one, so nobody knows what it does.

    Args:
        left: jobs of earlier workflows.
        newest: when the newest input was written, in seconds since 1970; what began before took another one.
    """
    since = math.floor(newest)  # Slurm tells whole seconds
    same = [job for job in left if job.comment == comment and job.number.isdecimal() and job.began >= since]
    return max(same, key=lambda job: int(job.number)).number if same else None


def left_over_sentence(left: Iterable[Job], wanted: Collection[str]) -> str:
    """What to do about jobs of an earlier workflow that none of this one takes over; empty without any.

    Args:
        wanted: comments of this workflow's jobs that take over the one that does the same.
    """
    others = [job.number for job in left if job.comment not in wanted or not job.number.isdecimal()]
    if not others:
        return ""
    numbers = " ".join(dict.fromkeys(number.partition("_")[0] for number in others))
    what = "a job waits or runs" if len(others) == 1 else f"{len(others)} jobs wait or run"
    return (
        f"{what} in this folder since an earlier workflow; this one takes over only jobs that train, and no tasks of "
        f"an array. Wait for them, or stop them first: scancel {numbers} (no run is trained twice: this workflow's job "
        "waits for theirs)"
    )


def states_of(numbers: Collection[str]) -> dict[str, str] | None:
    """The state of each job; None where Slurm doesn't answer.

    What squeue has forgotten accounting may know (`CANCELLED by 1000` is CANCELLED); what neither knows is `GONE`.
    """
    jobs = my_jobs()
    if jobs is None:
        return None
    known = {number: jobs[number].state for number in numbers if number in jobs}
    if lost := sorted(set(numbers) - known.keys()):
        known |= dict.fromkeys(lost, GONE)
        text = answer("sacct", "-n", "-X", "-P", "-o", "JobID,State", "-j", ",".join(lost)) or ""
        rows = [line.split("|") for line in text.splitlines()]
        known |= {row[0]: row[1].split()[0] for row in rows if len(row) == 2 and row[1].strip()}
    return known


def ending(state: str, requeues: bool, seconds: float) -> Ending:
    """What a state means for the workflow.

    Args:
        state: as Slurm writes it, or `GONE`: then the job's files decide, which Snakemake looks for after a success.
        requeues: jobs are submitted with --requeue.
        seconds: how long the job has been in this state.
    """
    if state in ("COMPLETED", GONE):
        return "done"
    if state not in FAILED or (requeues and state in REQUEUED and seconds < REQUEUE_SECONDS):
        return "active"
    return "failed"


def nodes_of(number: str) -> list[str]:
    """The nodes of a job, as Slurm lists them, from accounting; none where there is no accounting."""
    text = answer("sacct", "-n", "-X", "-P", "-o", "NodeList", "-j", number) or ""
    return [line for line in text.splitlines() if line and " " not in line]  # not "None assigned"


_UNQUOTED = frozenset("'\"$`\\%")  # the last one is of the names of logs, as in %j


def place_problems(places: Iterable[str]) -> list[str]:
    """A sentence for each path that the plugin's commands don't quote, or that Slurm reads as a pattern."""
    return [
        f"{place!r} has {' '.join(sorted(found))} in its name, which Snakemake's commands for Slurm don't quote; "
        "rename the folder, or work in another one (blanks and letters of any language are fine)."
        for place in dict.fromkeys(places)
        if (found := _UNQUOTED & set(place))
    ]


_OF_USER = ("MaxSubmitJobs", "GrpSubmitJobs")
_OF_QUALITY = ("MaxSubmitJobsPU", "MaxSubmitJobsPA", "GrpSubmitJobs")


@dataclass(frozen=True, order=True)
class Limit:
    """A limit on jobs that wait or run at once.

    Attributes:
        jobs: the most jobs.
        name: Slurm's name of it, with what has it.
    """

    jobs: int
    name: str


def lowest_limit(account: str, partition: str, qos: str) -> Limit | None:
    """The lowest limit on this user's jobs in the queue; None where there is none, or it can't be read.

    Args:
        account, partition, qos: those of the jobs; empty where the cluster's defaults are taken.
    """
    config = _values(answer("scontrol", "show", "config"))
    limits = list(_limits([config], ["MaxJobCount"], ""))
    if {"limits", "safe", "qos", "all"} & {*config.get("AccountingStorageEnforce", "").split(",")}:
        limits += _accounted(config.get("ClusterName", ""), account, partition, qos)
    return min(limits, default=None)


def _accounted(cluster: str, account: str, partition: str, qos: str) -> Iterator[Limit]:
    """The limits of accounting: of the user in an account, of the account, and of the qualities of service."""
    user = pwd.getpwuid(os.getuid()).pw_name
    if not account:
        account = (answer("sacctmgr", "-nP", "show", "user", user, "format=DefaultAccount") or "").strip()
    where = ["where", f"cluster={cluster}", f"account={account}"]
    ours = _rows("assoc", [*where, f"user={user}"], (*_OF_USER, "DefaultQOS"))
    yield from _limits(ours, _OF_USER, f" of user {user} in account {account}")
    yield from _limits(_rows("assoc", [*where, "user="], _OF_USER), _OF_USER, f" of account {account}")
    told = answer("scontrol", "-o", "show", "partition", *filter(None, [partition])) or ""
    default = next((row["DefaultQOS"] for row in ours if row["DefaultQOS"]), "normal")
    names = {qos or default, _values(told.replace(" ", "\n")).get("QoS", "N/A")} - {"N/A"}
    for row in _rows("qos", ["where", f"name={','.join(sorted(names))}"], ("Name", *_OF_QUALITY)):
        yield from _limits([row], _OF_QUALITY, f" of QOS {row['Name']}")


def _rows(entity: str, where: Iterable[str], fields: tuple[str, ...]) -> list[dict[str, str]]:
    text = answer("sacctmgr", "-nP", "show", entity, *where, f"format={','.join(fields)}") or ""
    return [dict(zip(fields, line.split("|"), strict=True)) for line in text.splitlines()]


def _limits(rows: Iterable[Mapping[str, str]], fields: Iterable[str], of: str) -> Iterator[Limit]:
    for row in rows:
        for field in fields:
            if row.get(field, "").isdigit():
                yield Limit(int(row[field]), field + of)


def _values(text: str | None) -> dict[str, str]:
    """Names and values of scontrol's answer, a line each."""
    pairs = (line.partition("=") for line in (text or "").splitlines())
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


_NAME = re.compile(r"[\w.-]+")  # anything else is an expression or a list, left to Slurm


@dataclass(frozen=True, order=True)
class Queue:
    """A partition and an account; empty where the cluster's default is taken."""

    partition: str = ""
    account: str = ""


def queue_of(resources: Mapping[str, object]) -> Queue:
    """The queue that resources ask for, as they were written: `slurm_partition`, `slurm_account` and others."""
    return Queue(_name(resources.get("slurm_partition")), _name(resources.get("slurm_account")))


def refusals(default: Mapping[str, object], by_rule: Mapping[str, Mapping[str, object]]) -> list[str]:
    """A sentence for each queue whose partition or account Slurm refuses; other reasons are left to the jobs.

    Args:
        default: resources of every job, as they were written.
        by_rule: resources of single rules, which win.
    """
    if shutil.which("sbatch") is None:
        return [
            "There is no sbatch on this machine; start `snakemake --profile slurm` on a login node of the cluster."
        ]
    queues = {queue_of({**default, **own}) for own in ({}, *by_rule.values())}
    return [sentence for queue in sorted(queues) if (sentence := _refusal(queue))]


def _refusal(queue: Queue) -> str:
    done = _tried(queue, ["-n", "1"])
    lines = [one for one in done.stderr.splitlines() if re.search("invalid (partition|account)", one, re.I)]
    if done.returncode == 0 or not lines:
        return ""
    asked = [f"{what} {name}" for what, name in vars(queue).items() if name]
    return (
        f"Slurm takes no job for {' and '.join(asked) or 'its default partition and account'} "
        f"({lines[0].removeprefix('sbatch: error: ')}); `sinfo -s` lists partitions, `sacctmgr show assoc user=$USER` "
        "accounts. Correct slurm_partition and slurm_account in slurm/config.yaml or on the command line."
    )


def impossible(
    asks: Iterable[Ask], default: Mapping[str, object], by_rule: Mapping[str, Mapping[str, object]]
) -> list[str]:
    """A sentence for each training rule whose jobs no node of their partition can take; other reasons are left to them.

    Args:
        asks: what the rules ask for.
        default, by_rule: resources as they were written, which win; an expression in place of a number is left out.
    """
    told = [_impossible(ask, by_rule.get(ask.rule, {}), default) for ask in asks]
    return [sentence for sentence in told if sentence]


def _impossible(ask: Ask, own: Mapping[str, object], default: Mapping[str, object]) -> str:
    if (nodes := _number(own, "nodes", 1)) != 1:
        return (
            f"{ask.rule} asks for {nodes} nodes (--set-resources), but a run trains on one node; leave "
            "nodes out, and set execution.gpus to train one run on several GPUs of a node."
        )
    gpus, model = _number(own, "gpu", ask.gpus), _name(own.get("gpu_model"))
    cpus = _number(own, "cpus_per_task", ask.cpus)
    memory = _number(own, "mem_mb", ask.resources.memory_mb)
    options = ["--nodes=1", "--ntasks=1", f"--cpus-per-task={cpus}", f"--mem={memory}"]
    options += [f"--gpus={model + ':' if model else ''}{gpus}"] if gpus else []
    options += [f"--constraint={own['constraint']}"] if "constraint" in own else []
    queue = queue_of({**default, **own})
    done = _tried(queue, options)
    if done.returncode == 0 or "node configuration is not available" not in done.stderr:
        return ""
    said = f"{cpus} CPU{'s' * (cpus > 1)}, {memory:,} MB"
    said += f", {gpus} {model + ' ' if model else ''}GPU{'s' * (gpus > 1)}" if gpus else ""
    where = f"partition {queue.partition}" if queue.partition else "Slurm's default partition"
    return (
        f"No node of {where} has what a job of {ask.rule} asks for: {said}; a run trains on one node. "
        "Lower execution.gpus or execution.threads, take another partition (slurm_partition in slurm/config.yaml), or "
        f"say what it may ask for: --set-resources {ask.rule}:mem_mb=...; `sinfo -o '%P %c %m %G'` lists what "
        "nodes have."
    )


def _number(resources: Mapping[str, object], name: str, otherwise: int) -> int:
    text = str(resources.get(name, otherwise)).strip("'\"")
    return int(text) if text.isdigit() else otherwise


def _name(value: object) -> str:
    text = str(value or "").strip("'\"")
    return text if _NAME.fullmatch(text) else ""


def _tried(queue: Queue, options: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Slurm's answer to a minute of this, without a submission."""
    where = ["-p", queue.partition] if queue.partition else []
    where += ["-A", queue.account] if queue.account else []
    command = ["sbatch", "--test-only", "-t", "1", *where, *options, "--wrap", "true"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


_EFFICIENCY = "JobID,JobName,State,Elapsed,Timelimit,NCPUS,TotalCPU,MaxRSS,ReqMem,AllocTRES"
_JOBS_A_CALL = 1000


def write_efficiency(names: Mapping[str, str], path: Path) -> None:
    """What accounting knows of jobs and their steps, as a table; no file where there is no accounting.

    Args:
        names: of the jobs by number, in place of Slurm's, which the plugin makes one for all.
    """
    numbers = sorted(names)
    calls = [",".join(numbers[i : i + _JOBS_A_CALL]) for i in range(0, len(numbers), _JOBS_A_CALL)]
    texts = [answer("sacct", "-n", "-P", "-o", _EFFICIENCY, "-j", some) for some in calls]
    if None in texts:
        return
    rows = [line.split("|") for line in chain.from_iterable(text.splitlines() for text in texts if text)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        named = ([row[0], names.get(row[0], row[1]), *row[2:]] for row in rows)
        csv.writer(file).writerows([_EFFICIENCY.split(","), *named])
