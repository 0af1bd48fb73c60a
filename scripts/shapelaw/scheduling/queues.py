"""The partitions and accounts that jobs ask for: asked of Slurm before the first submission.

Slurm refuses each job of an unknown partition by itself, and Snakemake tries each again: hundreds of lines.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
    options = ["-p", queue.partition] if queue.partition else []
    options += ["-A", queue.account] if queue.account else []
    command = ["sbatch", "--test-only", "-n", "1", "-t", "1", *options, "--wrap", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
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
