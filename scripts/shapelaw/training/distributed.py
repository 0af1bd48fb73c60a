"""One run on several devices, started by `torchrun`: who we are, and the few things ranks tell each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist


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

    def share(self, value: object) -> object:
        """Rank 0's value, on every rank."""
        if self.world == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, device=self.device)
        return box[0]


@contextmanager
def join_ranks(device: torch.device) -> Iterator[Ranks]:
    """Join the process group of torchrun's environment (NCCL on GPUs, gloo on CPUs); alone without one."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks(0, 1, device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Ranks(dist.get_rank(), world, device)
    finally:
        dist.destroy_process_group()
