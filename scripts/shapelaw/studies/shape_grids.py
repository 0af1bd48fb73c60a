"""Grids of shapes as `depth: [widths]`, some of them repeated: what the studies of decoders share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from shapelaw.settings.sections import Decoders, Settings
from shapelaw.specs.runs import Run, Training
from shapelaw.specs.shapes import INPUTS, Shape
from shapelaw.specs.sizes import LEAST_SIZES, SAME_SIZE

LEAST_TRANSITIONS = 3  # for a line and its error
Widths = Mapping[int, Sequence[int]]


class Repeating(Protocol):
    """A section of the config with seeds of all networks, and of those that are repeated."""

    @property
    def seeds(self) -> int:
        """Seeds of every network."""

    @property
    def repeated_seeds(self) -> int:
        """Seeds of a network that is repeated."""


def shapes_of(
    widths: Widths, repeated: Widths, repeated_seeds: int, seeds: int = 1
) -> Iterator[tuple[int, int, int]]:
    """Depth, width and number of seeds of every shape, a shape that is listed twice once.

    Args:
        widths: the grid.
        repeated: the shapes that run with `repeated_seeds` seeds, if those are more than `seeds`.
        seeds: seeds of every shape.
    """
    for depth, row in widths.items():
        for width in dict.fromkeys(row):
            yield depth, width, max(seeds, repeated_seeds if width in repeated.get(depth, []) else 1)


def runs_with_seeds(
    config: Settings, study: Decoders, shapes: Iterable[tuple[Shape, int]], training: Training | None = None
) -> Iterator[Run]:
    """A run for each seed of every shape, given with its number of seeds.

    Args:
        study: the study's section of the config.
        training: the recipe; None for the config's with what the study changes in it.
    """
    training = training or config.training.spec(study.recipe)
    for shape, seeds in shapes:
        for seed in range(seeds):
            yield Run(config.corpus.name, shape, training, seed)


def repeated_seeds(study: Repeating, repeats: bool) -> int:
    """The seeds of a network: those of all, or where it is repeated `repeated_seeds`, if these are more."""
    return max(study.seeds, study.repeated_seeds if repeats else 1)


def absent_problems(
    where: str, repeated: Iterable[int], grid: Iterable[int], name: str = "the grid"
) -> list[str]:
    """A sentence where values are repeated that the grid, by its `name`, does not have."""
    absent = sorted(set(repeated) - set(grid))
    return [f"{where} has {', '.join(map(str, absent))}, which {name} does not have"] if absent else []


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


def depth_problems(widths: Widths, where: str) -> list[str]:
    """A sentence where a grid has too few depths for a transition."""
    if len(widths) > 1:
        return []
    count = "1 depth" if len(widths) == 1 else f"{len(widths)} depths"
    return [f"{where}.widths has {count}; a transition needs a shallower and a deeper one"]


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
    where: str, sizes: Mapping[int, Sequence[float]], repeats: bool, line: bool, key: str = ".widths"
) -> dict[str, tuple[int, ...]]:
    """A sentence for each result about transitions that a grid can't give, with the depths that need more networks.

    Args:
        where: place of the grid in the config.
        sizes: the sizes of each depth's networks.
        repeats: True where some network has two seeds.
        line: True where the study draws a line through its transitions.
        key: what has the shapes there.
    """
    depths = sorted(sizes)
    if len(depths) < 2:
        return {
            f"{where}{key} has one depth, so no transition: one needs a shallower and a deeper network": ()
        }
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
                f"{where}{key}: at the sizes that depths {shallow} and {deep} both cover, they have {common[0]} and "
                f"{common[1]} networks; a transition needs {LEAST_SIZES} of each"
            ] = shallow, deep
    if line and good < LEAST_TRANSITIONS:
        found[
            f"{where}{key} can give {_counted(good)}; a line through them and a projection need "
            f"{LEAST_TRANSITIONS}, so {LEAST_TRANSITIONS + 1} depths"
        ] = ()
    return found


def _counted(transitions: int) -> str:
    return "1 transition" if transitions == 1 else f"{transitions or 'no'} transitions"


def rank_warnings(
    where: str, ranks: Iterable[int], vocab_size: int, patch_embedding: bool = False
) -> Iterator[str]:
    """A sentence for each rank of the token embedding that is above the numbers that it maps."""
    most, what = (INPUTS, "inputs of a patch embedding") if patch_embedding else (vocab_size, "tokens")
    for rank in ranks:
        if rank > most:
            yield (
                f"{where}: a rank of {rank:,} is above the {most:,} {what}: the two factors bound nothing and have "
                "more parameters than one matrix"
            )
