"""What jobs ask for, checked before the first submission: partitions, accounts and nodes of Slurm, GPUs of PyTorch.

Slurm refuses each job of an unknown partition by itself, and Snakemake tries each again: hundreds of lines. PyTorch is
looked at without an import, which takes seconds, and the Snakefile is read by every job.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from shapelaw.scheduling.plan import Ask

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


_VERSION = re.compile(r"^__version__ = '([^']+)'", re.M)
_GPU = re.compile(r"^(?:cuda|hip|xpu)\b[^=\n]*= '[^']+'", re.M)


def cpu_build(site: Path | None = None) -> str | None:
    """The version of PyTorch where it is a build for CPUs alone; None for any other, and where there is none.

    Args:
        site: the folder with `torch/`; this Python's own by default.
    """
    spec = None if site is not None else find_spec("torch")
    folder = (
        site / "torch" if site is not None else Path(spec.origin).parent if spec and spec.origin else None
    )
    try:
        text = (folder / "version.py").read_text(encoding="utf-8") if folder else ""
    except OSError:
        return None
    version = _VERSION.search(text)
    return version[1] if version and not _GPU.search(text) else None


def refused_build(asks: Iterable[Ask], environment: Mapping[str, str]) -> list[str]:
    """A sentence where jobs ask for GPUs and this environment's PyTorch can't use any."""
    if not any(ask.gpus for ask in asks) or "SHAPELAW_DEVICE" in environment:
        return []
    version = cpu_build()
    if version is None:
        return []
    return [
        f"execution.gpus asks for GPUs, but PyTorch {version} in {sys.prefix} is a build for CPUs; install the "
        "one for GPUs (make env TORCH=cuda), or set execution.gpus to 0."
    ]


def main() -> int:
    """Tell whether PyTorch here can use a GPU, after an installation that was to be one for GPUs."""
    version = cpu_build()
    if version is None:
        print("PyTorch is a build for GPUs; the first job that gets one checks that it finds it.")
        return 0
    print(
        f"pip found PyTorch {version}, a build for CPUs; name an index that has the one for GPUs: "
        "make env TORCH=cuda TORCH_INDEX=https://...",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
