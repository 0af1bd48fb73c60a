"""One run on several devices, started by `launch.py` or `torchrun`: the rank of a process, and sums over ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from shapelaw.training.launch import STORE_VARIABLE

_TIMEOUT_SECONDS = 1800  # PyTorch's own for gloo


def is_first() -> bool:
    """True if this process is rank 0, or alone."""
    return os.environ.get("RANK", "0") == "0"


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
def join_ranks(device: torch.device, wait_seconds: float) -> Iterator[Ranks]:
    """Join the process group of the environment (NCCL on GPUs, gloo on CPUs); alone without one.

    Args:
        device: device of this process, or "cuda" for the one of its local rank.
        wait_seconds: extra time that the others wait for the first rank, which waits for the run's lock.

    The processes meet at a file from `shapelaw.training.launch`, or at an address from `torchrun`.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks(0, 1, device)
        return
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
