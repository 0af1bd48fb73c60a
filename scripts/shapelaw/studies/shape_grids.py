"""Grids of shapes as `depth: [widths]`, some of them repeated: what the studies of decoders share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Widths = Mapping[int, Sequence[int]]


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
