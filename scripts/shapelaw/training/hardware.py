"""The machine: its device, the processes that share a run, peak arithmetic and peak memory."""

from __future__ import annotations

import gc
import math
import os
import platform
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from shapelaw.errors import UserError
from shapelaw.specs.shapes import Shape
from shapelaw.training.launch import STORE_VARIABLE, keep_freed_memory

_COMPILED = "TORCHINDUCTOR_CACHE_DIR"
_COMPILED_CHOSEN = _COMPILED in os.environ  # by the user: PyTorch sets it too, as soon as it compiles
_CPU_TOKENS = 2048
_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")  # Linux: a 5 resets the peak
_TIMEOUT_SECONDS = 1800  # PyTorch's own for gloo


def choose_device(name: str, precision: str, processes: int = 1) -> torch.device:
    """The device of a `--device` option ("auto", "cpu", "cuda", "cuda:1").

    Args:
        processes: processes of the run on this machine, each with a GPU of its own.

    Raises:
        UserError: this machine lacks the device, or bfloat16 is asked for on a CPU.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"This machine has no device {name!r}; --device takes auto, cpu or cuda.") from error
    if device.type == "cuda":
        _check_cuda(processes)
    if device.type == "cpu" and precision == "bfloat16":
        raise UserError(
            "training.precision is bfloat16, which is several times slower than float32 on a CPU; "
            "set it to float32, or train on a GPU."
        )
    return device


def _check_cuda(processes: int) -> None:
    """Raise a UserError unless there is a GPU for each process."""
    if torch.version.cuda is None and torch.version.hip is None:
        raise UserError(
            f"The device is cuda, but PyTorch {torch.__version__} in {sys.prefix} is a build for CPUs; install the one "
            "for GPUs (make env TORCH=cuda), or set execution.gpus to 0 (--device cpu)."
        )
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found < processes:
        asked = "a GPU" if processes == 1 else f"{processes} GPUs"
        raise UserError(
            f"The device is cuda, but of {asked} PyTorch {torch.__version__} finds {found or 'none'} on "
            f"{platform.node()}; ask for {asked} (execution.gpus, or a GPU partition of Slurm), or set execution.gpus "
            "to 0 (--device cpu)."
        )


def peak_flops(device: torch.device, precision: str) -> float:
    """Operations per second of a large square matrix product here, the median of 5; utilisation is relative to it.

    Measured once per process: in a pack of small runs it would take longer than the runs.
    """
    return _peak_flops(device, precision, torch.get_num_threads())


@cache
def _peak_flops(device: torch.device, precision: str, _threads: int) -> float:
    n = 1024 if device.type == "cpu" else 8192
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    # random numbers: a GPU multiplies constants faster than any network's weights, on less power
    a = torch.randn(n, n, generator=torch.Generator().manual_seed(0)).to(device, dtype)
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        a @ a
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
    return 2 * n**3 / statistics.median(seconds[1:])


@contextmanager
def compiling_in(folder: Path, device: torch.device) -> Iterator[None]:
    """On a CPU, give torch.compile an empty cache folder, and delete it afterwards.

    The default folder is shared by all processes of a user. A process that is killed while it compiles leaves a
    truncated file there, and every later process with the same code would stop at it. A folder that the user has chosen
    (TORCHINDUCTOR_CACHE_DIR) is left alone.
    """
    if device.type != "cpu" or _COMPILED_CHOSEN:
        yield
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.environ[_COMPILED] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(_COMPILED, None)
        shutil.rmtree(folder, ignore_errors=True)


def start_afresh(device: torch.device) -> None:
    """Drop the remains of this process's earlier runs: compiled code, cached memory, and the memory peak.

    A run of a pack then starts as it would in a process of its own: torch.compile gives up on a function after eight
    shapes and says nothing, and cached memory would count against the next run's. On a CPU, memory freed from now on is
    kept until the next start (`keep_freed_memory`).
    """
    gc.collect()
    gc.freeze()  # mostly modules are left: collecting them again takes 0.15 s per run
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    else:
        keep_freed_memory()
        with suppress(OSError):  # not Linux, or not allowed: the peak is that of the whole process
            _CLEAR.write_text("5")


def peak_memory_bytes(device: torch.device) -> int:
    """Peak memory in bytes since `start_afresh`: the device's allocations on a GPU, the resident set on a CPU.

    Where the system can't reset a peak (not Linux), it is that of the whole process.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = _STATUS.read_text().splitlines() if _STATUS.exists() else []
    for line in status:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def device_name(device: torch.device) -> str:
    """The card's name, or "cpu"."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def machine(device: torch.device) -> dict[str, Any]:
    """What a record has of the machine: the device and its name, its peak of memory, threads, and versions."""
    found = {
        "threads": torch.get_num_threads(),
        "peak_memory_bytes": peak_memory_bytes(device),
        "device_type": device.type,
        "device": device_name(device),
        "torch_version": str(torch.__version__),
        "python_version": platform.python_version(),
    }
    cuda = torch.version.cuda or torch.version.hip
    return found | ({"cuda_version": cuda} if cuda else {})


def micro_batch_size(shape: Shape, batch_size: int, device: torch.device, precision: str) -> int:
    """Sequences that go through the network at once, so that their activations fit the device's free memory.

    The largest of batch_size, batch_size / 2, ... (rounded up) whose estimated activations take at most 60% of a
    GPU's free memory, or 4 GiB on a CPU. On a CPU it has at most 2,048 tokens too: larger activations don't fit in its
    caches.
    """
    on_gpu = device.type == "cuda"
    number_bytes = 2 if precision == "bfloat16" else 4
    limit = 0.6 * torch.cuda.mem_get_info(device)[0] if on_gpu else 4 * 2**30
    tokens = math.inf if on_gpu else _CPU_TOKENS
    size = batch_size
    while size > 1 and (
        shape.activation_bytes(size, number_bytes) > limit or size * shape.context_length > tokens
    ):
        size = -(-size // 2)
    return size


def processes_here() -> int:
    """Processes of this run on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", os.environ.get("WORLD_SIZE", "1")))


@dataclass(frozen=True)
class Ranks:
    """This process among its peers: rank of `world`, on `device`."""

    rank: int
    world: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Rank 0 writes the files."""
        return self.rank == 0

    def sum(self, value: float) -> float:
        """The sum of a number over all ranks."""
        if self.world == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return float(tensor)

    def max(self, value: int) -> int:
        """The largest of a number over all ranks."""
        if self.world == 1:
            return value
        tensor = torch.tensor(value, device=self.device)
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        return int(tensor)


@contextmanager
def join_ranks(name: str, wait_seconds: float) -> Iterator[Ranks]:
    """Join the process group of the environment (NCCL on GPUs, gloo on CPUs); without one, alone on the CPU.

    Args:
        name: of the device, as in `choose_device`; on GPUs each process takes the one of its local rank.
        wait_seconds: extra time that the others wait for the first rank, which waits for the run's lock.

    The processes meet at a file from `shapelaw.training.launch`, or at an address from `torchrun`.

    Raises:
        UserError: this machine lacks the device.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks(0, 1, torch.device("cpu"))
        return
    device = choose_device(name, "float32", processes_here())
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    timeout = timedelta(seconds=_TIMEOUT_SECONDS + wait_seconds)
    if path := os.environ.get(STORE_VARIABLE):
        store = dist.FileStore(path, world)  # type: ignore[attr-defined]
        dist.init_process_group(
            backend, store=store, rank=int(os.environ["RANK"]), world_size=world, timeout=timeout
        )
    else:
        dist.init_process_group(backend, timeout=timeout)
    try:
        yield Ranks(dist.get_rank(), world, device)
    finally:
        dist.destroy_process_group()
