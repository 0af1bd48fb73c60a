"""Slurm, by the commands that it documents: the states of jobs, and what it refuses.

What jobs ask for is checked before the first submission: Slurm refuses each job of an unknown partition by itself, and
the user reads it once for each of hundreds of jobs.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Literal

from shapelaw.jobs.plan import Ask

Ending = Literal["done", "failed", "active"]
FAILED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT"),
    }
)
WAITING = "PENDING"
GONE = "GONE"  # Slurm has forgotten the job
_ASK_SECONDS = 60.0
_START_SECONDS = 5.0  # for which a start waits for Slurm's first answer


def answer(*command: str, seconds: float = _ASK_SECONDS) -> str | None:
    """What a command of Slurm prints; None where it fails or doesn't answer within so many seconds."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@cache
def silence() -> str:
    """What to say where Slurm's controller doesn't answer within seconds; empty where it does. Asked once a start."""
    if answer("scontrol", "ping", seconds=_START_SECONDS) is not None:
        return ""
    return "Slurm doesn't answer (scontrol ping), so it was not asked whether it takes these jobs"


@dataclass(frozen=True)
class Job:
    """A job in the queue.

    Attributes:
        number: Slurm's.
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
            return math.inf if self.state == WAITING else datetime.fromisoformat(self.started).timestamp()
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
    """The comment that the plugin gives a job."""
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

    Args:
        left: jobs of earlier workflows.
        newest: when the newest input was written, in seconds since 1970; what began before took another one.
    """
    since = math.floor(newest)  # Slurm tells whole seconds
    same = [job for job in left if job.comment == comment and job.began >= since]
    return max(same, key=lambda job: int(job.number)).number if same else None


def left_over_sentence(left: Iterable[Job], wanted: Collection[str]) -> str:
    """What to do about jobs of an earlier workflow that none of this one takes over; empty without any.

    Args:
        wanted: comments of this workflow's jobs that take over the one that does the same.
    """
    others = [job.number for job in left if job.comment not in wanted]
    if not others:
        return ""
    what = "a job waits or runs" if len(others) == 1 else f"{len(others)} jobs wait or run"
    return (
        f"{what} in this folder since an earlier workflow; this one takes over only jobs that train. Wait for them, or "
        f"stop them first: scancel {' '.join(others)} (no run is trained twice: this workflow's job waits for theirs)"
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


def ending(state: str) -> Ending:
    """What a state means for the workflow; of a job that is `GONE` the files decide, which Snakemake looks for."""
    if state in ("COMPLETED", GONE):
        return "done"
    return "failed" if state in FAILED else "active"


def requeue_of(number: str) -> str:
    """How the attempt ended that Slurm started a job again after, as in `NODE_FAIL on n3`; empty without accounting."""
    text = answer("sacct", "-n", "-X", "-D", "-P", "-o", "State,NodeList", "-j", number) or ""
    ended = [" on ".join(line.split("|")) for line in text.splitlines() if line.partition("|")[0] in FAILED]
    return ended[-1] if ended else ""


_UNQUOTED = frozenset("'\"$`\\%")  # the last one is of the names of logs, as in %j


def place_problems(places: Iterable[str]) -> list[str]:
    """A sentence for each path that the plugin's commands don't quote, or that Slurm reads as a pattern."""
    return [
        f"{place!r} has {' '.join(sorted(found))} in its name, which Snakemake's commands for Slurm don't quote; "
        "rename the folder, or work in another one (blanks and letters of any language are fine)."
        for place in dict.fromkeys(places)
        if (found := _UNQUOTED & set(place))
    ]


_NAME = re.compile(r"[\w.-]+")  # anything else is an expression or a list, left to Slurm


@dataclass(frozen=True, order=True)
class Queue:
    """A partition and an account; empty where the cluster's default is taken."""

    partition: str = ""
    account: str = ""

    def __str__(self) -> str:
        return f"partition {self.partition}" if self.partition else "Slurm's default partition"


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
    said = _refused(queue, ["-n", "1"])
    lines = [one for one in said.splitlines() if re.search("invalid (partition|account)", one, re.I)]
    if not lines:
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
    """A sentence for each rule whose jobs no node of their partition can take, in service or not.

    Args:
        asks: what the rules ask for.
        default, by_rule: resources as they were written, which win; an expression in place of a number is left out.
    """
    return [
        f"No node of {need.queue} has what a job of {need.rule} asks for: {need}; a job runs on one node. "
        f"Lower {need.lower}, take another partition (slurm_partition in slurm/config.yaml), or say what it may ask "
        f"for: --set-resources {need.rule}:mem_mb=...; `sinfo -o '%P %c %m %G'` lists what nodes have."
        for need in _needs(asks, default, by_rule)
        if "node configuration is not available" in _refused(need.queue, need.options)
        and _states(need) <= _IN_SERVICE
    ]


def out_of_service(
    asks: Iterable[Ask], default: Mapping[str, object], by_rule: Mapping[str, Mapping[str, object]]
) -> list[str]:
    """What to say of each rule whose jobs must wait: all nodes that could take them are out of service.

    Args:
        asks, default, by_rule: as in `impossible`.
    """
    found = [(need, _states(need)) for need in _needs(asks, default, by_rule)]
    return [
        f"every node of {need.queue} that has what a job of {need.rule} asks for ({need}) is "
        f"{' or '.join(sorted(states))}; its jobs wait in the queue until one is back (`sinfo -R` and `scontrol show "
        "reservation` tell why)"
        for need, states in found
        if states and not states & _IN_SERVICE
    ]


_IN_SERVICE = frozenset({"idle", "mixed", "allocated", "completing", "planned"})
_SWITCHED = "~#!%+-"  # behind a state: the node is switched on for a job, has jobs that end, or waits for one
_GPUS = re.compile(r"(?:^|,)gpu(?::([^:,()]+))?:(\d+)(?=[(,]|$)")  # as in `gpu:a100:2(S:0-1),shard:8`


@dataclass(frozen=True)
class _Need:
    """What a job asks of its node; an empty model of GPU where any will do."""

    rule: str
    queue: Queue
    cpus: int
    memory_mb: int
    gpus: int
    model: str
    trains: bool

    def __str__(self) -> str:
        said = f"{self.cpus} CPU{'s' * (self.cpus > 1)}, {self.memory_mb:,} MB"
        model = f"{self.model} " if self.model else ""
        return said + (f", {self.gpus} {model}GPU{'s' * (self.gpus > 1)}" if self.gpus else "")

    @property
    def lower(self) -> str:
        """What makes it ask for less."""
        return "execution.gpus or execution.threads" if self.trains else "set-threads in slurm/config.yaml"

    @property
    def options(self) -> list[str]:
        """The same for sbatch."""
        found = ["--nodes=1", "--ntasks=1", f"--cpus-per-task={self.cpus}", f"--mem={self.memory_mb}"]
        return found + ([f"--gpus={self.model + ':' if self.model else ''}{self.gpus}"] if self.gpus else [])


def _needs(
    asks: Iterable[Ask], default: Mapping[str, object], by_rule: Mapping[str, Mapping[str, object]]
) -> list[_Need]:
    needs = []
    for ask in asks:
        own = by_rule.get(ask.rule, {})
        cpus, gpus = number_in(own, "cpus_per_task", ask.cpus), number_in(own, "gpu", ask.gpus)
        memory, model = number_in(own, "mem_mb", ask.resources.memory_mb), _name(own.get("gpu_model"))
        needs.append(_Need(ask.rule, queue_of({**default, **own}), cpus, memory, gpus, model, ask.runs > 0))
    return needs


def _states(need: _Need) -> set[str]:
    """The states of the nodes that have what a job needs."""
    states = set()
    for line in (answer("sinfo", "-h", "-N", "-o", "%P|%c|%m|%T|%G") or "").splitlines():
        partition, cpus, memory, state, gres = line.split("|")
        gpus = sum(int(count) for model, count in _GPUS.findall(gres) if need.model in ("", model))
        is_ours = need.queue.partition in (partition.rstrip("*"), "" if partition.endswith("*") else None)
        if is_ours and need.cpus <= int(cpus) and need.memory_mb <= int(memory) and need.gpus <= gpus:
            states.add(state.rstrip(_SWITCHED))
    return states


def number_in(resources: Mapping[str, object], name: str, otherwise: int) -> int:
    """A resource that was written as a whole number; `otherwise` where there is none."""
    text = str(resources.get(name, otherwise)).strip("'\"")
    return int(text) if text.isdigit() else otherwise


def _name(value: object) -> str:
    text = str(value or "").strip("'\"")
    return text if _NAME.fullmatch(text) else ""


def _refused(queue: Queue, options: Iterable[str]) -> str:
    """Why Slurm would not take a job of a minute, without a submission; empty where it would, or doesn't answer."""
    if silence():
        return ""
    where = ["-p", queue.partition] if queue.partition else []
    where += ["-A", queue.account] if queue.account else []
    command = ["sbatch", "--test-only", "-t", "1", *where, *options, "--wrap", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""
