"""Slurm, by the commands that it documents: the states of jobs, what it refuses, its limits, and what jobs used.

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
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from shapelaw.jobs.plan import Ask
from shapelaw.jobs.resources import OUT_OF_MEMORY

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
_KILLED_FOR_MEMORY = re.compile(r"slurmstepd.*(exceeded (job )?memory limit|oom.kill)", re.I)
_MOST_PAUSE = 60.0
_JOBS_A_SECOND = 5.0  # squeue's answer grows with the queue: a second's pause for so many jobs
_ASK_SECONDS = 60
_FORMAT = "%i|%T|%Z|%S|%k"


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


def parse_queue(text: str) -> dict[str, Job]:
    """The jobs of squeue's answer, by number."""
    rows = [line.split("|", 4) for line in text.splitlines()]
    return {row[0]: Job(*row) for row in rows if len(row) == 5}


def my_jobs() -> dict[str, Job] | None:
    """All jobs of this user that Slurm remembers, also finished ones; None where squeue doesn't answer."""
    text = answer("squeue", "-h", "-r", "--states=all", f"--user={os.getuid()}", "-o", _FORMAT)
    return None if text is None else parse_queue(text)


def job_name(rule: str, wildcards: Iterable[str]) -> str:
    """What a job is called in messages: its rule and run, as in `train_large.wiki-V2000-...-s0-3f2a9c01`."""
    return ".".join((rule, *wildcards))


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
    return [
        job
        for job in jobs.values()
        if job.is_active
        and job.folder == folder
        and job.comment.startswith("rule_")
        and job.number not in mine
    ]


def find_orphan(left: Iterable[Job], comment: str, newest: float) -> str | None:
    """The number of the newest job with this comment; None without one.

    A task of an array has the comment of the first one, so nobody knows what it does.

    Args:
        left: jobs of earlier workflows.
        newest: when the newest input was written, in seconds since 1970; what began before took another one.
    """
    found = [
        int(job.number)
        for job in left
        # Slurm tells whole seconds
        if job.comment == comment and job.number.isdecimal() and _began(job) >= math.floor(newest)
    ]
    return str(max(found)) if found else None


def _began(job: Job) -> float:
    """When a running job began, in seconds since 1970; infinite for one that waits."""
    try:
        return math.inf if job.state == "PENDING" else datetime.fromisoformat(job.started).timestamp()
    except ValueError:
        return math.inf


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


def parse_accounts(text: str) -> dict[str, str]:
    """States by number, of sacct's answer; `CANCELLED by 1000` is CANCELLED."""
    rows = [line.split("|") for line in text.splitlines()]
    return {row[0]: row[1].split()[0] for row in rows if len(row) == 2 and row[1].strip()}


def forgotten(numbers: Collection[str]) -> Mapping[str, str]:
    """The states of jobs that squeue no longer has, from accounting; none where there is no accounting."""
    if not numbers:
        return {}
    text = answer("sacct", "-n", "-X", "-P", "-o", "JobID,State", "-j", ",".join(sorted(numbers)))
    return parse_accounts(text or "")


def states_of(numbers: Collection[str]) -> dict[str, str] | None:
    """The state of each job; None where Slurm doesn't answer.

    A job that neither squeue nor accounting knows is `GONE`.
    """
    jobs = my_jobs()
    if jobs is None:
        return None
    known = {number: jobs[number].state for number in numbers if number in jobs}
    lost = {number for number in numbers if number not in known}
    accounts = forgotten(lost)
    return known | {number: accounts.get(number, GONE) for number in lost}


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


def reason(state: str, said: str) -> str:
    """Why a job failed: its state, or OUT_OF_MEMORY where Slurm says so only in the job's log."""
    return OUT_OF_MEMORY if state == "FAILED" and _KILLED_FOR_MEMORY.search(said) else state


def said_in(log: str | Path | None) -> str:
    """What Slurm's log of a job says; empty where there is none, or none yet."""
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace") if log else ""
    except OSError:
        return ""


def nodes_of(number: str) -> list[str]:
    """The nodes of a job, as Slurm lists them, from accounting; none where there is no accounting."""
    text = answer("sacct", "-n", "-X", "-P", "-o", "NodeList", "-j", number) or ""
    return [line for line in text.splitlines() if line and " " not in line]  # not "None assigned"


def pause(active: int, least: float) -> float:
    """Seconds until states are asked for again: `least` for a small queue, a minute for 300 jobs or more."""
    return max(least, min(_MOST_PAUSE, active / _JOBS_A_SECOND))


def answer(*command: str) -> str | None:
    """What a command of Slurm prints; None where it fails or doesn't answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ASK_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


# of a limit on jobs in the queue, or of a controller that is busy, restarting or out of reach
_PASSES = re.compile(
    r"Submit\w*(Limit|Account|User)|temporar|try again|timed out|unable to contact|connect|communicat|socket|zero bytes"
    r"|not responding|queue is full|too many",
    re.I,
)
_SAID = re.compile(r"The error message was '(.*?)'\.\n", re.S)
_ERROR = re.compile(r"sbatch: error: (?:Batch job submission failed: )?(.+)")


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


class WaitingRoom:
    """The jobs that Slurm did not take for the moment; asked by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._full = ""  # why Slurm takes no more jobs now
        self._held: list[Any] = []
        self._asking: set[Any] = set()  # those that are submitted again
        self._told: set[str] = set()

    def holds_back(self, job: Any) -> bool:
        """Whether a job had better not be submitted now; it is kept then."""
        with self._lock:
            waits = bool(self._full) and job not in self._asking
            if waits:
                self._held.append(job)
            return waits

    def turned_away(self, job: Any, reason: str) -> bool:
        """Keep a job that was refused; return whether this reason is a new one."""
        with self._lock:
            self._full = reason
            self._asking.discard(job)
            self._held.append(job)
            is_new = reason not in self._told
            self._told.add(reason)
            return is_new

    def taken(self, job: Any) -> None:
        """Note that Slurm took a job: where it had refused it before, it has room again."""
        with self._lock:
            if job in self._asking:
                self._asking.remove(job)
                self._full = ""

    def asks_again(self, ended: int) -> list[Any]:
        """The jobs to submit again: as many as have ended, else one; all of them where there is room."""
        with self._lock:
            room = max(1, ended) if self._full else len(self._held)
            again, self._held = self._held[:room], self._held[room:]
            self._asking.update(again)
            return again


_UNQUOTED = frozenset("'\"$`\\%")  # the last one is of the names of logs, as in %j


def place_problems(places: Iterable[str]) -> list[str]:
    """A sentence for each path that the plugin's commands don't quote, or that Slurm reads as a pattern."""
    return [
        f"{place!r} has {' '.join(sorted(found))} in its name, which Snakemake's commands for Slurm don't quote; "
        "rename the folder, or work in another one (blanks and letters of any language are fine)."
        for place in dict.fromkeys(places)
        if (found := _UNQUOTED & set(place))
    ]


_FIELDS = ("MaxSubmitJobs", "GrpSubmitJobs"), ("MaxSubmitJobsPU", "MaxSubmitJobsPA", "GrpSubmitJobs")


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


_NAME = re.compile(r"[\w.-]+")  # anything else is an expression or a list, left to Slurm


@dataclass(frozen=True, order=True)
class Queue:
    """A partition and an account; empty where the cluster's default is taken."""

    partition: str = ""
    account: str = ""


def queues_of(default: Mapping[str, object], by_rule: Iterable[Mapping[str, object]]) -> set[Queue]:
    """The queues of all rules.

    Args:
        default: resources of every job, as they were written: `slurm_partition`, `slurm_account` and others.
        by_rule: resources of single rules, which win.
    """
    asked = [default, *({**default, **own} for own in by_rule)]
    return {Queue(_name(one.get("slurm_partition")), _name(one.get("slurm_account"))) for one in asked}


@dataclass(frozen=True)
class Request:
    """The jobs of a training rule, as Slurm is asked for them.

    Attributes:
        nodes: nodes of a job; more than one is refused here.
        options: of sbatch.
        said: the same in words.
    """

    rule: str
    nodes: int
    queue: Queue
    options: tuple[str, ...]
    said: str


def requests_of(
    asks: Iterable[Ask], default: Mapping[str, object], by_rule: Mapping[str, Mapping[str, object]]
) -> list[Request]:
    """What training asks for: the rules' own values, and those of `--set-resources`, which win.

    Args:
        default, by_rule: resources as they were written; an expression in place of a number is left to the jobs.
    """
    found = []
    for ask in asks:
        own = by_rule.get(ask.rule, {})
        gpus, model = _number(own, "gpu", ask.gpus), _name(own.get("gpu_model"))
        cpus = _number(own, "cpus_per_task", ask.cpus)
        memory = _number(own, "mem_mb", ask.resources.memory_mb)
        options = ["--nodes=1", "--ntasks=1", f"--cpus-per-task={cpus}", f"--mem={memory}"]
        options += [f"--gpus={model + ':' if model else ''}{gpus}"] if gpus else []
        options += [f"--constraint={own['constraint']}"] if "constraint" in own else []
        said = f"{cpus} CPU{'s' * (cpus > 1)}, {memory:,} MB"
        said += f", {gpus} {model + ' ' if model else ''}GPU{'s' * (gpus > 1)}" if gpus else ""
        (queue,) = queues_of({}, [{**default, **own}]) - {Queue()} or {Queue()}
        found.append(Request(ask.rule, _number(own, "nodes", 1), queue, tuple(options), said))
    return found


def impossible(requests: Iterable[Request]) -> list[str]:
    """A sentence for each request that no node of its partition can meet; other reasons are left to the jobs."""
    return [sentence for request in requests if (sentence := _impossible(request))]


def _impossible(request: Request) -> str:
    if request.nodes != 1:
        return (
            f"{request.rule} asks for {request.nodes} nodes (--set-resources), but a run trains on one node; leave "
            "nodes out, and set execution.gpus to train one run on several GPUs of a node."
        )
    done = _tried(request.queue, request.options)
    if done.returncode == 0 or "node configuration is not available" not in done.stderr:
        return ""
    where = f"partition {request.queue.partition}" if request.queue.partition else "Slurm's default partition"
    return (
        f"No node of {where} has what a job of {request.rule} asks for: {request.said}; a run trains on one node. "
        "Lower execution.gpus or execution.threads, take another partition (slurm_partition in slurm/config.yaml), or "
        f"say what it may ask for: --set-resources {request.rule}:mem_mb=...; `sinfo -o '%P %c %m %G'` lists what "
        "nodes have."
    )


def _number(resources: Mapping[str, object], name: str, otherwise: int) -> int:
    text = str(resources.get(name, otherwise)).strip("'\"")
    return int(text) if text.isdigit() else otherwise


def _name(value: object) -> str:
    text = str(value or "").strip("'\"")
    return text if _NAME.fullmatch(text) else ""


def refusals(queues: Iterable[Queue]) -> list[str]:
    """A sentence for each queue whose partition or account Slurm refuses; other reasons are left to the jobs."""
    if shutil.which("sbatch") is None:
        return [
            "There is no sbatch on this machine; start `snakemake --profile slurm` on a login node of the cluster."
        ]
    return [sentence for queue in sorted(queues) if (sentence := _refusal(queue))]


def _refusal(queue: Queue) -> str:
    done = _tried(queue, ["-n", "1"])
    lines = [
        line for line in done.stderr.splitlines() if re.search("invalid (partition|account)", line, re.I)
    ]
    if done.returncode == 0 or not lines:
        return ""
    asked = [f"partition {queue.partition}"] * bool(queue.partition)
    asked += [f"account {queue.account}"] * bool(queue.account)
    return (
        f"Slurm takes no job for {' and '.join(asked) or 'its default partition and account'} "
        f"({lines[0].removeprefix('sbatch: error: ')}); `sinfo -s` lists partitions, `sacctmgr show assoc user=$USER` "
        "accounts. Correct slurm_partition and slurm_account in slurm/config.yaml or on the command line."
    )


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
    rows: list[list[str]] = []
    numbers = sorted(names)
    for i in range(0, len(numbers), _JOBS_A_CALL):
        some = ",".join(numbers[i : i + _JOBS_A_CALL])
        text = answer("sacct", "-n", "-P", "-o", _EFFICIENCY, "-j", some)
        if text is None:
            return
        rows += [line.split("|") for line in text.splitlines()]
    for row in rows:
        row[1] = names.get(row[0], row[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([_EFFICIENCY.split(","), *rows])
