"""The cost of attention that is wider than the network, H d_a > d, as in T5 (Wies et al. 2021, section 5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Literal

from pydantic import Field

from shapelaw.settings.fields import Count, Section, Seeds, Widths
from shapelaw.settings.problems import ordinal, recipe_problems
from shapelaw.settings.sections import Decoders, Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import MLP_RATIO, Shape, ShapeError, make_shape
from shapelaw.studies.shape_grids import repeated_problems, runs_with_seeds, shapes_of
from shapelaw.studies.study import OURS, Key, Study

NAME = "attention_ratio"
LARGEST_DENOMINATOR = 64  # of a ratio

FeedForward = Literal["attention", "width"]


class AttentionRatioGrid(Section):
    """Networks of one ratio."""

    ratio: float = Field(
        gt=0,
        description="H d_a / d, the width of all heads together over that of the network; 1 is the baseline. "
        "1.333 stands for 4 / 3.",
    )
    feed_forward: FeedForward = Field(
        "attention",
        description="What the feed-forward width is four times of: all heads together, H d_a, as in T5 and the paper "
        "(`attention`), or the network's width, d (`width`). At ratio 1 these are the same networks.",
    )
    heads: Count | None = Field(None, description="Heads of these networks; null is `heads` of the study.")
    widths: Widths = Field(description="Shapes as `depth: [widths]`.")
    repeated: Widths = Field(
        {}, description="Shapes, as `depth: [widths]`, that run with `repeated_seeds` seeds, for the noise."
    )


class AttentionRatio(Decoders):
    """The study of heads that are together wider than the network (Wies et al. 2021, section 5.3)."""

    heads: Count = Field(
        2,
        description="Attention heads, where a grid has no others; they must divide `ratio` times each width.",
    )
    grids: list[AttentionRatioGrid] = Field([], description="Grids, each of one ratio.")
    seeds: Seeds = Field(1, description="Runs of every network, with seeds 0, 1, ...")
    repeated_seeds: Seeds = Field(3, description="Runs of each network of `repeated`.")
    size_axis: Literal["block", "total", "flops"] = Field(
        "block",
        description="The size at which networks are compared: parameters of the blocks (`block`), all parameters "
        "(`total`) or FLOPs of a training step (`flops`); redundancies are given for all three.",
    )


def _section(config: Settings) -> AttentionRatio:
    return config.section(NAME, AttentionRatio)


def _shape(study: AttentionRatio, grid: AttentionRatioGrid, depth: int, width: int) -> Shape:
    """A network of a grid.

    Raises:
        ShapeError: the heads do not divide ratio times width, or the numbers are no shape.
    """
    heads = grid.heads or study.heads
    of_width = Fraction(grid.ratio).limit_denominator(LARGEST_DENOMINATOR) / heads  # d_a / d
    dim = of_width * width
    if dim.denominator > 1:
        step = of_width.denominator
        near = [str(one) for one in (width // step * step, (width // step + 1) * step) if one]
        raise ShapeError(
            [
                f"ratio {grid.ratio:g} at width {width} gives {heads} heads of {float(dim):g} numbers, which is not "
                f"whole; use width {' or '.join(near)}, or other heads"
            ]
        )
    attention_dim = int(dim)
    follows = grid.feed_forward == "attention" and heads * attention_dim != width
    return make_shape(
        depth, width, heads, study.vocab_size, study.context_length, attention_dim,
        gelu=study.gelu, ff_width=MLP_RATIO * heads * attention_dim if follows else None,
    )  # fmt: skip


def runs(config: Settings, _root: Path) -> Iterator[Run]:
    """All networks of all grids, each with its seeds.

    Raises:
        ShapeError: one of them is not a shape.
    """
    study = _section(config)
    shapes = (
        (_shape(study, grid, depth, width), seeds)
        for grid in study.grids
        for depth, width, seeds in shapes_of(grid.widths, grid.repeated, study.repeated_seeds, study.seeds)
    )
    return runs_with_seeds(config, study, shapes)


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: nothing to compare, impossible shapes, one shape twice."""
    study = _section(config)
    found = recipe_problems(config, NAME, study.recipe)
    if not study.grids:
        return [
            *found,
            f"{NAME}.grids is empty; give it grids, such as [{{ratio: 1, widths: {{2: [32, 64]}}}}]",
        ]
    baseline = {
        (depth, width)
        for grid in study.grids
        for depth, row in grid.widths.items()
        for width in row
        if grid.ratio == 1
    }
    if len(baseline) < 2:
        found.append(
            f"{NAME}.grids has {len(baseline)} networks of ratio 1; redundancy is measured against two or more"
        )
    if all(grid.ratio == 1 for grid in study.grids):
        found.append(f"{NAME}.grids has no ratio but 1, so there is nothing to compare")
    heads: dict[tuple[float, str, int, int], int] = {}
    for place, grid in enumerate(study.grids):
        found += _grid_problems(study, grid, f"{NAME}.grids.{ordinal(place)}", heads)
    return list(dict.fromkeys(found))


def _grid_problems(
    study: AttentionRatio,
    grid: AttentionRatioGrid,
    where: str,
    heads: dict[tuple[float, str, int, int], int],
) -> Iterator[str]:
    """The problems of a grid; `heads` has the number of heads of each network before it, and gets this grid's."""
    for depth, row in grid.widths.items():
        for width in row:
            try:
                shape = _shape(study, grid, depth, width)
            except ShapeError as error:
                yield from (f"{where}.widths.{depth}: {problem}" for problem in error.problems)
                continue
            kind = "attention" if shape.attention_ratio == 1 else grid.feed_forward
            other = heads.setdefault((grid.ratio, kind, depth, width), shape.heads)
            if other != shape.heads:
                yield (
                    f"{where}.widths.{depth} has width {width} with {shape.heads} heads, and a grid before it with "
                    f"{other}; a ratio must have each depth and width once"
                )
    yield from repeated_problems(grid.widths, grid.repeated, where)


def options(config: Settings) -> list[str]:
    """The option for the size at which networks are compared."""
    return ["--size", _section(config).size_axis]


STUDIES = (
    Study(
        NAME,
        "Attention wider than the network",
        "what attention wider than the network costs",
        Path(__file__).parent,
        ("losses", "best_depth", "redundancy", "monotony", "spread", "comparison"),
        {
            "losses": "figure 4 of the vocabulary paper",
            "depths": "figure 6 of the vocabulary paper",
            "redundancy": OURS,
        },
        "shapelaw.studies.attention_ratio.results",
        question="What does attention wider than the network cost?",
        verdict="results/ranks.md#attention-wider-than-the-network",
        kind=LANGUAGE,
        sections={NAME: Key(AttentionRatio, "The study of attention wider than the network.")},
        runs=runs,
        problems=problems,
        options=options,
    ),
)
