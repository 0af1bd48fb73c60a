"""What a group of jobs asks for, whose members run one after the other in one job of Slurm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_ADDED_UP = "runtime"


def in_turn(group: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The resources of a group: of each number the largest of its members', and the sum of their minutes.

    Snakemake adds up CPUs and memory and takes the longest time, as if the members ran side by side; the plugin starts
    them with `--jobs 1`.

    Args:
        group: the resources as Snakemake reckons them; what is no number is taken from here.
        members: the resources of each job.
    """
    asked = dict(group)
    for name, value in group.items():
        if isinstance(value, int):
            numbers = [one[name] for one in members if isinstance(one.get(name), int)]
            asked[name] = sum(numbers) if name == _ADDED_UP else max(numbers, default=value)
    return asked
