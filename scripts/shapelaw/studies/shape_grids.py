"""Grids of shapes as `depth: [widths]`, some of them repeated: what the studies of decoders share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from shapelaw.specs.shapes import Shape
from shapelaw.specs.sizes import LEAST_SIZES, SAME_SIZE

LEAST_TRANSITIONS = 3  # for a line and its error
Widths = Mapping[int, Sequence[int]]


def seed_warnings(name: str, seeds: Iterable[int]) -> list[str]:
    """A sentence where some networks of a study of degrees have one seed."""
    if min(seeds, default=2) > 1:
        return []
    return [
        f"{name} has one seed of each network, so no difference between degrees has an error; give seeds: 2 or more"
    ]


def absent_shapes(widths: Widths, repeated: Widths) -> str:
    """The shapes to repeat that a grid does not have, as `depth 1 width 64, ...`; empty where it has all."""
    return ", ".join(
        f"depth {depth} width {width}"
        for depth, row in repeated.items()
        for width in sorted(set(row) - set(widths.get(depth, [])))
    )


def repeated_problems(widths: Widths, repeated: Widths, where: str) -> list[str]:
    """A sentence where a grid, whose place in the config is `where`, repeats shapes that it does not have."""
    absent = absent_shapes(widths, repeated)
    if not absent:
        return []
    return [f"{where}.repeated names shapes that the grid does not have: {absent}; repeat shapes of the grid"]


def size_of(axis: str) -> Callable[[Shape], float]:
    """The size of a shape on one of the axes of `size_axis`."""
    sizes: dict[str, Callable[[Shape], float]] = {
        "block": lambda shape: shape.block_params,
        "total": lambda shape: shape.total_params,
        "flops": lambda shape: shape.step_flops(1),
    }
    return sizes[axis]


def common_sizes(rows: Sequence[Iterable[float]]) -> tuple[float, float]:
    """The least and the largest of the sizes (logarithms) that some depths both cover."""
    return max(map(min, rows)) - SAME_SIZE, min(map(max, rows)) + SAME_SIZE


def transition_warnings(
    where: str, sizes: Mapping[int, Sequence[float]], repeats: bool, line: bool
) -> dict[str, tuple[int, ...]]:
    """A sentence for each result about transitions that a grid can't give, with the depths that need more networks.

    Args:
        where: place of the grid in the config.
        sizes: the sizes of each depth's networks.
        repeats: True where some network has two seeds.
        line: True where the study draws a line through its transitions.
    """
    depths = sorted(sizes)
    if len(depths) < 2:
        return {f"{where} has one depth, so no transition: one needs a shallower and a deeper network": ()}
    found: dict[str, tuple[int, ...]] = {}
    if not repeats:
        found[
            f"{where}: every network has one seed, and without seed noise no transition is told; put each depth's "
            "smallest and largest width into repeated, and leave repeated_seeds at 2 or more"
        ] = ()
    good = 0
    for shallow, deep in pairwise(depths):
        both = [{math.log(size) for size in sizes[depth]} for depth in (shallow, deep)]
        low, high = common_sizes(both)
        common = [sum(low <= size <= high for size in row) for row in both]
        good += min(common) >= LEAST_SIZES
        if min(common) < LEAST_SIZES:
            found[
                f"{where}: at the sizes that depths {shallow} and {deep} both cover, they have {common[0]} and "
                f"{common[1]} networks; a transition needs {LEAST_SIZES} of each"
            ] = shallow, deep
    if line and good < LEAST_TRANSITIONS:
        found[
            f"{where} can give {_counted(good)}; a line through them and a projection need "
            f"{LEAST_TRANSITIONS}, so {LEAST_TRANSITIONS + 1} depths"
        ] = ()
    return found


def _counted(transitions: int) -> str:
    return "1 transition" if transitions == 1 else f"{transitions or 'no'} transitions"
