"""Training runs in the test's own process, or as one to be disturbed when it has come far enough, and one step."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from job_server import WarmProcess, warm_python
from small import SCRIPTS, small_run
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from shapelaw.corpora.token_store import TokenStore
from shapelaw.models.decoder import Decoder
from shapelaw.specs.kinds import DIVERGED, AnyRun, kind_of
from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.training.driver import Stopped, driving
from shapelaw.training.trainer import Runtime, Trainer

Stores = tuple[TokenStore, TokenStore]
CPU = Runtime("cpu", threads=1)
RUN = small_run(dropout=0.1)  # that of drivers and disks


def train(run: Run, stores: Stores, folder: Path, runtime: Runtime = CPU) -> records.Record:
    """The finished record, in a folder of results."""
    with driving(folder, lambda _: stores, runtime) as driver:
        driver.train([run])
    return records.read_record(record_of(folder, run))


def record_of(folder: Path, run: AnyRun) -> Path:
    return folder / records.RUNS / run.key


def checkpoints_of(folder: Path, run: AnyRun) -> Path:
    return folder / records.CHECKPOINTS / run.key


def lacking(record: records.Record) -> set[str]:
    """The metrics of its kind that a record's summary hasn't; a run that diverged has one more."""
    names = {column.name for column in kind_of(record.run).metrics} - {DIVERGED.name}
    return names - {name.removeprefix("final_") for name in record.summary}


def history_bytes(folder: Path) -> bytes:
    """The history of the one run that has a record."""
    (path,) = folder.glob("runs/*/history.parquet")
    return path.read_bytes()


@contextmanager
def after_step(step: int, then: Callable[[], object]) -> Iterator[None]:
    """Let something happen after a step; 0 is every step."""
    one_step = Trainer.step

    def disturbed(trainer: Trainer) -> None:
        one_step(trainer)
        if step in (0, trainer.progress.step):
            then()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "step", disturbed)
        yield


def stop(run: Run, stores: Stores, folder: Path, step: int, runtime: Runtime = CPU) -> Stopped:
    """Train until a signal comes after a step; how it ended."""
    with after_step(step, lambda: signal.raise_signal(signal.SIGTERM)), pytest.raises(Stopped) as stopped:
        train(run, stores, folder, runtime)
    return stopped.value


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


def losses_and_gradients(forward: torch.nn.Module, model: Decoder, ids: torch.Tensor) -> list[torch.Tensor]:
    """The loss and every gradient of two micro-batches."""
    model.zero_grad()
    losses = [forward(part[:, :-1], part[:, 1:]) for part in ids.split(2)]
    torch.stack(losses).sum().backward()
    return [*losses, *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def counted_flops(model: Decoder, ids: torch.Tensor) -> int:
    """PyTorch's count of a forward pass; it knows the plain attention kernel, not the CPU's fused one."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        model.logits(ids)
    return int(counter.get_total_flops())
