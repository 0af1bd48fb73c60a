"""Exact separation ranks beside the theorems. Nothing is trained, so there are no runs and no corpus."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from shapelaw.settings.problems import ordinal
from shapelaw.settings.sections import Count, EvenCounts, Seconds, Section, Settings, Sizes
from shapelaw.specs.cost import duration
from shapelaw.specs.runs import digest_of, without_later
from shapelaw.studies.study import Key, Study

NAME = "separation_rank"
MOST_NETWORKS = 10_000  # of a grid
_LONGEST_BUDGET = 1000  # for the count of sequences, which is far beyond any bound there
# raise it when a change of the code changes what is measured
MEASUREMENT_VERSION = 1


OptionalSizes = Annotated[list[Count | None], Field(min_length=1)]
TIME = "Time of one core for each network; a rank that takes longer gets bounds."


class RankGrid(Section):
    """Networks of linearized attention whose separation rank is measured: all combinations of the lists."""

    depth: Sizes = Field(description="Layers L.")
    width: Sizes = Field(description="Widths d.")
    tokens: EvenCounts = Field(description="Sequence lengths N, even numbers.")
    heads: Sizes = Field([1], description="Attention heads H.")
    attention_dim: OptionalSizes = Field(
        [None], description="Dimension d_a of a head; null is width / heads."
    )
    embedding_rank: OptionalSizes = Field([None], description="Rank r of the embedding; null is the width.")
    positional_rank: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = Field(
        [0], description="Rank r_e of the positional embedding; 0 leaves positions out."
    )
    vocab_size: OptionalSizes = Field(
        [None],
        description="Vocabulary size V; null lets a token be any vector, an infinite vocabulary.",
        exclude_if=lambda sizes: sizes == [None],  # a grid of before is no other one
    )
    residual: Annotated[list[bool], Field(min_length=1)] = Field(
        [False], description="Layers with residual connections, or without."
    )
    seconds: Seconds = Field(10.0, description=TIME)


class BlockGrid(Section):
    """Networks of blocks of degree k at equal budgets: all combinations of the lists."""

    blocks: Literal["product", "attention", "mixer"] = Field(
        description="Blocks are element-wise products of k maps of all inputs, are like linearized attention, or are "
        "an MLP-Mixer's of degree 2."
    )
    width: Sizes = Field(description="Widths d.")
    budget: Sizes = Field(
        description="Matrices of width x width in a network; a block has k, or k + 1 with W_O of attention; a Mixer's "
        "3, two of them in an MLP over the tokens of width^2 / tokens units."
    )
    degrees: Sizes = Field([1, 2, 3, 4, 5, 6], description="Degrees k of a block.")
    tokens: EvenCounts = Field([2], description="Sequence lengths N, even numbers; not of products.")
    heads: Sizes = Field(
        [1], description="Attention heads H of blocks of degree 3 and more; of attention only."
    )
    seconds: Seconds = Field(10.0, description=TIME)


class RankGrids(Section):
    """The study `separation_rank`: exact ranks of linearized attention, and of blocks of other degrees."""

    separation_rank: list[RankGrid] = Field(
        [], description="Grids of linearized attention whose separation ranks are measured."
    )
    degree_budget: list[BlockGrid] = Field(
        [], description="Grids of networks whose blocks all have one degree, at equal budgets."
    )
    fractional_degree: list[BlockGrid] = Field(
        [], description="Grids of networks that mix blocks of these degrees, in every order."
    )


@dataclass(frozen=True)
class AttentionSizes:
    """Sizes of linearized attention; see shapelaw.theory.linear_attention."""

    depth: int
    width: int
    tokens: int
    heads: int
    attention_dim: int | None
    embedding_rank: int | None
    positional_rank: int
    residual: bool
    vocab_size: int | None = None

    @property
    def most_rank(self) -> int:
        """The largest rank of the embedding, min(d, V)."""
        return min(self.width, self.vocab_size or self.width)


@dataclass(frozen=True)
class DegreeSizes:
    """Sizes of a product network (its input has `width` numbers), of attention of any degree, or of a Mixer."""

    blocks: str
    degrees: tuple[int, ...]
    width: int
    tokens: int
    heads: int

    @property
    def used(self) -> int:
        """The matrices that it has."""
        return sum(matrices(self.blocks, degree) for degree in self.degrees)


NetworkSizes = AttentionSizes | DegreeSizes


@dataclass(frozen=True)
class Asked:
    """A network, the table that shows it, its budget (matrices of d x d; None without), and its time limit."""

    table: str
    sizes: NetworkSizes
    budget: int | None
    seconds: float


def rank_grids(config: Settings) -> RankGrids:
    """The grids of a config."""
    return RankGrids(**{name: config.section(name, list) for name in RankGrids.model_fields})


def digest(sizes: NetworkSizes) -> str:
    """The name of a measurement, the same as long as the network and the meaning of a measurement are."""
    values = without_later(sizes, ("vocab_size",))
    return digest_of({"kind": type(sizes).__name__, "version": MEASUREMENT_VERSION, **values})


def matrices(blocks: str, degree: int) -> int:
    """Matrices of d x d in a block: k maps, and W_O of attention, or a Mixer's map of channels."""
    return degree + (0 if blocks == "product" else 1)


def asked_of(grids: RankGrids) -> list[Asked]:
    """All networks of a config, each once for each table and budget."""
    found = [
        Asked("ranks", sizes, None, grid.seconds)
        for grid in grids.separation_rank
        for sizes in attention_sizes(grid)
    ]
    for name, _, blocks in _block_grids(grids):
        networks = equal_degrees if name == "degree_budget" else mixed_degrees
        found += [Asked(name, *one, blocks.seconds) for one in networks(blocks)]
    first: dict[tuple[str, NetworkSizes, int | None], Asked] = {}
    for one in found:
        first.setdefault((one.table, one.sizes, one.budget), one)
    return list(first.values())


def _block_grids(grids: RankGrids) -> Iterator[tuple[str, int, BlockGrid]]:
    """The grids of blocks of each section, with their place in it."""
    yield from (("degree_budget", place, grid) for place, grid in enumerate(grids.degree_budget))
    yield from (("fractional_degree", place, grid) for place, grid in enumerate(grids.fractional_degree))


def attention_sizes(grid: RankGrid) -> list[AttentionSizes]:
    """All combinations of a grid, with null for values that equal the default, so that a network is measured once."""
    found = []
    for combination in itertools.product(*(getattr(grid, size.name) for size in fields(AttentionSizes))):
        one = AttentionSizes(*combination)
        if one.attention_dim and one.attention_dim * one.heads == one.width:
            one = replace(one, attention_dim=None)
        if one.embedding_rank == one.most_rank:
            one = replace(one, embedding_rank=None)
        found.append(one)
    return found


def equal_degrees(grid: BlockGrid) -> Iterator[tuple[DegreeSizes, int]]:
    """For each budget and degree, the network of as many blocks as the budget has room for, with the budget."""
    for width, tokens, heads, budget, degree in itertools.product(
        grid.width, grid.tokens, grid.heads, grid.budget, grid.degrees
    ):
        depth = budget // matrices(grid.blocks, degree)
        if depth:
            yield DegreeSizes(grid.blocks, (degree,) * depth, width, tokens, heads), budget


def mixed_degrees(grid: BlockGrid) -> Iterator[tuple[DegreeSizes, int]]:
    """For each budget, all sequences of the degrees that leave no room for a further block, with the budget."""
    costs = {degree: matrices(grid.blocks, degree) for degree in grid.degrees}
    for width, tokens, heads, budget in itertools.product(grid.width, grid.tokens, grid.heads, grid.budget):
        for degrees in _full(budget, costs):
            if degrees:
                yield DegreeSizes(grid.blocks, degrees, width, tokens, heads), budget


def _full(budget: int, costs: dict[int, int]) -> Iterator[tuple[int, ...]]:
    fitting = [degree for degree, cost in costs.items() if cost <= budget]
    if not fitting:
        yield ()
    for degree in fitting:
        for rest in _full(budget - costs[degree], costs):
            yield (degree, *rest)


def rank_problems(grids: RankGrids) -> list[str]:
    """A sentence for each impossible size of the grids, and for each empty section."""
    too_many = list(_too_many(grids))
    if too_many:
        return too_many
    problems = []
    for name, example in _EXAMPLES.items():
        if not getattr(grids, name):
            problems.append(f"{name} is empty; give it a list of grids, such as [{{{example}}}]")
    for place, grid in enumerate(grids.separation_rank):
        wrong = itertools.chain.from_iterable(map(_attention_problems, attention_sizes(grid)))
        problems += [f"separation_rank.{ordinal(place)}: {problem}" for problem in wrong]
    for name, place, blocks in _block_grids(grids):
        problems += [f"{name}.{ordinal(place)}: {problem}" for problem in _degree_problems(blocks)]
    return list(dict.fromkeys(problems))


def _too_many(grids: RankGrids) -> Iterator[str]:
    """A sentence for each grid with more networks than can be listed, counted without listing them."""
    for place, grid in enumerate(grids.separation_rank):
        lists = [value for value in grid.model_dump().values() if isinstance(value, list)]
        yield from _count_problems("separation_rank", place, math.prod(map(len, lists)))
    for name, place, blocks in _block_grids(grids):
        costs = [matrices(blocks.blocks, degree) for degree in blocks.degrees]
        sequences = sum(
            count_sequences(budget, costs) if name == "fractional_degree" else len(costs)
            for budget in blocks.budget
        )
        sizes = math.prod(map(len, (blocks.width, blocks.tokens, blocks.heads)))
        yield from _count_problems(name, place, sizes * sequences)


def _count_problems(name: str, place: int, count: int) -> Iterator[str]:
    if count > MOST_NETWORKS:
        yield (
            f"{name}.{ordinal(place)} has {size_text(count)} networks; at most {MOST_NETWORKS:,} can be measured: take "
            "shorter lists or smaller budgets"
        )


def size_text(count: int) -> str:
    """A count, as a power of ten where it is long."""
    return f"{count:,}" if count < 10**12 else f"over 10^{len(str(count)) - 1}"


def count_sequences(budget: int, costs: Sequence[int]) -> int:
    """The number of sequences of blocks that leave no room for a further one; as `_full` lists them."""
    # by the budget: below the least cost there is one, the empty one
    ways = [1] * min(min(costs), budget + 1)
    for room in range(len(ways), min(budget, _LONGEST_BUDGET) + 1):
        ways.append(sum(ways[room - cost] for cost in costs if cost <= room))
    return ways[-1]


_EXAMPLES = {
    "separation_rank": "depth: [1, 2], width: [2, 3], tokens: [6]",
    "degree_budget": "blocks: product, width: [2], budget: [6]",
    "fractional_degree": "blocks: product, width: [2], budget: [5]",
}


def _attention_problems(sizes: AttentionSizes) -> Iterator[str]:
    d = sizes.width
    if sizes.attention_dim is None and d % sizes.heads:
        yield (
            f"width {d} is not divisible by {sizes.heads} heads; give another number of heads, or attention_dim"
        )
    if sizes.embedding_rank is not None and sizes.embedding_rank > sizes.most_rank:
        least = f"the width {d}" if sizes.most_rank == d else f"the vocabulary size {sizes.vocab_size}"
        yield f"embedding_rank is {sizes.embedding_rank}, above {least}; it can be at most that"
    if sizes.positional_rank > min(d, sizes.tokens):
        yield (
            f"positional_rank is {sizes.positional_rank}, above {min(d, sizes.tokens)}, the smaller of width and "
            "tokens; it can be at most that"
        )


def _degree_problems(grid: BlockGrid) -> Iterator[str]:
    product = grid.blocks == "product"
    if product and (list(grid.tokens) != [2] or list(grid.heads) != [1]):
        yield "tokens and heads are for attention; a product network reads all its inputs at once: leave them out"
    for width, heads in itertools.product(grid.width, grid.heads):
        if product and width % 2:
            yield f"width {width} is odd; half of the input of a product network is A, so take an even one"
        if width % heads:
            yield f"width {width} is not divisible by {heads} heads; give another number of heads"
    for width, tokens in itertools.product(grid.width, grid.tokens):
        if grid.blocks == "mixer" and width**2 % tokens:
            yield (
                f"{tokens} tokens don't divide {width**2}, the square of width {width}, so no MLP over them has the "
                "numbers of two matrices"
            )
    if grid.blocks == "mixer" and (list(grid.degrees) != [2] or list(grid.heads) != [1]):
        yield "a Mixer's blocks have degree 2 and no heads: give degrees: [2], and leave out heads"
    least = min(matrices(grid.blocks, degree) for degree in grid.degrees)
    for budget in grid.budget:
        if budget < least:
            yield f"budget {budget} has no room for a block, which takes at least {least} matrices"


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: empty sections, impossible networks."""
    return rank_problems(rank_grids(config))


def measuring_seconds(config: Settings) -> float:
    """Seconds of one core where every network takes all of its time."""
    return sum(one.seconds for one in asked_of(rank_grids(config)))


def measuring_minutes(config: Settings, attempt: int) -> int:
    """Minutes of a job that measures all networks, with its start; ranks of an earlier attempt are kept."""
    return round((300 + measuring_seconds(config)) * attempt / 60)


def costs(config: Settings) -> list[str]:
    """A line with the number of ranks and the most time that they take."""
    asked = asked_of(rank_grids(config))
    return [
        f"{NAME}: {len(asked)} separation ranks, nothing trained, at most"
        f" {duration(measuring_seconds(config))} of one core"
    ]


STUDIES = (
    Study(
        NAME,
        "Separation rank",
        Path(__file__).parent / "captions",
        ("ranks", "bounds", "theorems", "residual", "degree_budget", "degree_ranking", "fractional_degree"),
        {
            "rank_depth": "theorems 1 and 2 of the depth-width paper",
            "rank_width": "theorem 1 of the depth-width paper",
            "rank_embedding": "theorems 1 and 2 of the vocabulary paper",
            "rank_residual": "theorems 5 and 6 of the depth-width paper",
            "degree": "section 1.2 of the note on building blocks",
        },
        "shapelaw.studies.separation_rank.results",
        question="Do exact separation ranks keep the papers' bounds?",
        answering=("theorems",),
        verdict="results/theory.md",
        sections={
            name: Key(field.annotation, field.description or "")
            for name, field in RankGrids.model_fields.items()
        },
        problems=problems,
        input=f"results/{NAME}/measured.json",
        costs=costs,
    ),
)
