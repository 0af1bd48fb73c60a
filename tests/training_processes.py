"""A training run as a process of its own, to be disturbed when it has come far enough."""

import json
import subprocess
import time
from pathlib import Path

from job_server import WarmProcess, warm_python
from small import SCRIPTS

from shapelaw.corpora.token_store import TokenStore
from shapelaw.specs.kinds import AnyRun

Stores = tuple[TokenStore, TokenStore]


def command(run: AnyRun, stores: Stores, folder: Path, *options: str) -> list[str]:
    return job_command([[run]], stores, folder, *options)


def job_command(tasks: list[list[AnyRun]], stores: Stores, folder: Path, *options: str) -> list[str]:
    """Of a job whose file is in the folder of its results."""
    folder.mkdir(parents=True, exist_ok=True)
    job = {"tasks": [[run.to_dict() for run in task] for task in tasks]}
    (folder / "job.json").write_text(json.dumps(job))
    return [
        *(str(SCRIPTS / "train.py"), "--job", str(folder / "job.json"), "--results", str(folder)),
        *("--corpora", str(stores[0].path.parents[2]), "--device", "cpu", "--threads", "1", *options),
    ]


def start_warm(arguments: list[str]) -> WarmProcess:
    """Without Python's and PyTorch's start; its process id is not the training's."""
    return WarmProcess([warm_python(), *arguments], stderr=subprocess.PIPE, text=True)


def newest_step(folder: Path) -> int:
    """Of the checkpoints there are; 0 without one."""
    return max((int(p.stem[5:]) for p in folder.glob("checkpoints/*/step-*.pt")), default=0)


def wait_for_step(process: subprocess.Popen[str], folder: Path, after: int = 0) -> None:
    """Wait until the process has written a checkpoint of a later step than `after`."""
    while newest_step(folder) <= after:
        assert process.poll() is None, "the run ended before it could be disturbed"
        time.sleep(0.01)
