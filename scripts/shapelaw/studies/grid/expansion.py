"""From blocks of axes to runs: every combination of their values, paired widths, and what makes no network.

Light: the Snakefile expands all grids at every start.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any

from shapelaw.specs.making import HeadDim, ShapeError, make_shape, with_attention_degree
from shapelaw.specs.runs import BUDGETS, Budget, Run, Training, recipe_sentence
from shapelaw.specs.shapes import EQUAL_SHARE, MLP_RATIO, SHAPE_AXES, Shape
from shapelaw.specs.sizes import LEAST_SIZES, SAME_SIZE
from shapelaw.studies.grid.settings import (
    AFTER,
    BEFORE,
    EQUAL_PARAMS,
    OF_ATTENTION,
    OF_TOKENS,
    RECIPE_AXES,
    Ratio,
)

Widths = Mapping[int, Sequence[int]]  # `depth: widths`
Settings = Mapping[str, Any]  # a value for each name
DEFAULTS = {"vocab_size": 2000, "context_length": 128}
HEADS = 2  # where neither heads nor their dimension are given
LARGEST_DENOMINATOR = 64  # of a ratio
_OF_HEADS = ("attention_dim", "attention_degree")  # with their number, what a head's dimension follows from
_OPTIONS = tuple(  # of `make_shape`
    name for name, axis in SHAPE_AXES.items() if axis.default is not ... and not name.startswith("base_")
)
REACH = 0.15  # in log size: how far a network may be from the size asked for, where that pairs depths to 2%
MOST_NEAR = 24  # networks on each side of the size that are looked at


@dataclass(frozen=True)
class Block:
    """All combinations of the values of some fields.

    Attributes:
        where: its place in the config.
        values: of each field that is given, those that it takes, in the order of `ALL_AXES`; what depends on the
            depth is a table. An attention_dim is never called head_dim here.
        widths: the shapes as `depth: widths`; None where depth and width, or block_params, are among the values.
        seeds: runs of every network.
        repeated: the shapes with `repeated_seeds` runs.
        leave_out: combinations that are not wanted.
        skips_impossible: what makes no network is left out.
        axes: the fields that stand under `axes` inside the place, also with one value.
    """

    where: str
    values: Mapping[str, Sequence[Any]]
    widths: Widths | None = None
    seeds: int = 1
    repeated: Widths = field(default_factory=dict)
    repeated_seeds: int = 3
    leave_out: Sequence[Mapping[str, Sequence[Any]]] = ()
    skips_impossible: bool = False
    axes: Collection[str] = ()

    @property
    def depths(self) -> list[int]:
        """All depths."""
        return list(self.widths if self.widths is not None else self.values["depth"])

    @property
    def shapes(self) -> list[tuple[int, Any]]:
        """All depths with their widths, or with the parameters of the blocks that stand for them."""
        if self.widths is not None:
            return _listed(self.widths)
        return list(product(self.depths, self.values.get("width") or self.values["block_params"]))


@dataclass(frozen=True)
class Defaults:
    """What a block takes where it says nothing."""

    corpus: str
    training: Training


@dataclass(frozen=True)
class Network:
    """What is trained, with its number of seeds; `settings` are the values that it comes from, `where` its block."""

    corpus: str
    shape: Shape
    training: Training
    budget: Budget | None
    seeds: int = field(compare=False)
    settings: Settings = field(compare=False, default_factory=dict)
    where: str = field(compare=False, default="")


@dataclass(frozen=True)
class Impossible:
    """A combination that makes no network, and why, a clause for each reason."""

    settings: Settings
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Paired:
    """The widths that a size in parameters gave to the depths, and the share by which their sizes differ."""

    widths: Mapping[int, int]
    mismatch: float


def expanded(block: Block, defaults: Defaults) -> Iterator[Network | Impossible]:
    """Every combination of a block's values that is wanted, the last field changing fastest."""
    for settings in _combinations(block, BEFORE):
        for shape in _shapes(block, settings):
            for rest in _combinations(block, AFTER):
                combination = {**settings, **shape, **rest}
                if not any(_matches(combination, unwanted) for unwanted in block.leave_out):
                    yield _network(block, combination, defaults)


def _combinations(block: Block, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Every combination of a block's values of some fields, as far as it has them."""
    given = [name for name in names if name in block.values]
    for values in product(*(block.values[name] for name in given)):
        yield dict(zip(given, values, strict=True))


def networks_of(blocks: Iterable[Block], defaults: Defaults) -> list[Network]:
    """The networks of the union of some blocks, one of several blocks once, with the most seeds that one asks for."""
    found: dict[Network, Network] = {}
    for block in blocks:
        for one in expanded(block, defaults):
            if isinstance(one, Network):
                before = found.get(one)
                if before is None or before.seeds < one.seeds:
                    found[one] = one
    return list(found.values())


def shapes_by_depth(networks: Iterable[Network]) -> dict[int, set[Shape]]:
    """The shapes of some networks, by depth."""
    found: dict[int, set[Shape]] = {}
    for one in networks:
        found.setdefault(one.shape.depth, set()).add(one.shape)
    return found


def widths_to_add(
    cells: Sequence[Sequence[Network]], depths: Sequence[int], size: Callable[[Shape], float]
) -> dict[int, list[int]]:
    """The widths that two depths lack for a transition: far from those that they have, at sizes that both cover.

    Args:
        cells: networks that differ in depth and width; the widths are possible in each cell, at the sizes of the first.
        depths: two depths of theirs.

    Returns:
        Those of each depth that lacks some; none where there are too few possible ones.
    """
    settings, shapes = cells[0][0].settings, shapes_by_depth(cells[0])
    unit = math.lcm(*(_unit(cell[0].settings) for cell in cells))
    low, high = common_sizes([[math.log(size(one)) for one in shapes[depth]] for depth in depths])
    found = {}
    for depth in depths:

        def log_size(width: int, depth: int = depth) -> float:
            made = _shape({**settings, "depth": depth, "width": width})
            return math.log(size(made)) if isinstance(made, Shape) else math.inf

        own = sorted({one.width for one in shapes[depth]})
        multiples = range(-(-own[0] // unit) * unit, own[-1] + 1, unit)
        start = bisect_left(multiples, low, key=log_size)
        free = set(multiples[start : bisect_right(multiples, high, key=log_size)]) - set(own)
        added = list[int]()
        for _ in range(sum(low <= log_size(width) <= high for width in own), LEAST_SIZES):
            if not free:
                return {}
            taken = [math.log(width) for width in (*own, *added)]
            added.append(
                max(sorted(free), key=lambda width: min(abs(math.log(width) - one) for one in taken))
            )
            free.remove(added[-1])
        if added:
            found[depth] = sorted(added)
    return found


def runs_of_networks(networks: Iterable[Network]) -> Iterator[Run]:
    """Every network with every seed."""
    for one in networks:
        for seed in range(one.seeds):
            yield Run(one.corpus, one.shape, one.training, seed, one.budget)


def lengths(block: Block) -> dict[str, int]:
    """How many values each field has, and how many shapes `widths` has; their product is the number of combinations."""
    found = {name: len(values) for name, values in block.values.items()}
    return found if block.widths is None else {"widths": len(block.shapes), **found}


def number_of_runs(block: Block) -> int:
    """The runs of a block, before any combination is left out; nothing is expanded."""
    networks, shapes, repeated = math.prod(lengths(block).values()), block.shapes, _listed(block.repeated)
    if "block_params" in block.values:  # the widths are not known yet
        repeated = [(depth, width) for depth, width in repeated if depth in block.depths]
    else:
        repeated = [one for one in repeated if one in shapes]
    further = max(block.repeated_seeds - block.seeds, 0) * len(repeated)
    return networks * block.seeds + networks // len(shapes) * further


def _listed(widths: Widths) -> list[tuple[int, int]]:
    return [(depth, width) for depth, row in widths.items() for width in dict.fromkeys(row)]


def _shapes(block: Block, settings: Settings) -> Iterator[dict[str, Any]]:
    """The depths and widths of a block, with its other values."""
    shapes = block.shapes
    if "block_params" in block.values:
        pairs = pairings(block, settings)
        least = _unit(settings)  # where no width makes a network, so that it is told why
        shapes = _listed({depth: [one.widths.get(depth, least) for one in pairs] for depth in block.depths})
    yield from ({"depth": depth, "width": width} for depth, width in shapes)


def pairings(block: Block, settings: Settings) -> list[Paired]:
    """The widths that follow from `block_params`, for one combination of the values that stand before the depth."""
    depths = tuple(block.values["depth"])
    return [_paired(frozenset(settings.items()), depths, size) for size in block.values["block_params"]]


def all_pairings(block: Block) -> list[Paired]:
    """All of a block."""
    return [pair for settings in _combinations(block, BEFORE) for pair in pairings(block, settings)]


@lru_cache(maxsize=4096)
def _paired(settings: frozenset[tuple[str, Any]], depths: tuple[int, ...], size: float) -> Paired:
    """The widths of one size.

    Of each depth the networks near the size are candidates. Around each of them every depth's nearest one is taken;
    of these choices the one nearest to the size wins among those whose depths differ by at most 2%, and where there
    are none, the one whose depths differ least.
    """
    near = {depth: _near(dict(settings), depth, size) for depth in depths}
    near = {depth: row for depth, row in near.items() if row}
    if not near:
        return Paired({}, 0.0)

    def around(centre: float) -> dict[int, float]:
        return {depth: min(row, key=lambda one: abs(one - centre)) for depth, row in near.items()}

    def rank(choice: Mapping[int, float]) -> tuple[float, float, float]:
        spread = max(choice.values()) - min(choice.values())
        off = max(abs(one - math.log(size)) for one in choice.values())
        return max(round(spread, 9), math.log1p(EQUAL_SHARE)), off, spread  # equal ones differ by rounding

    best = min(map(around, sorted({one for row in near.values() for one in row})), key=rank)
    return Paired({depth: near[depth][one] for depth, one in best.items()}, math.expm1(rank(best)[-1]))


def _near(settings: Settings, depth: int, size: float) -> dict[float, int]:
    """The widths of a depth by the logarithm of their size: those within `REACH`, and the nearest on each side."""
    unit = _unit(settings)

    def log_size(units: int) -> float | None:
        made = _shape({**settings, "depth": depth, "width": units * unit})
        return math.log(made.block_params) if isinstance(made, Shape) else None

    wanted, low, high = math.log(size), 0, 1
    while (found := log_size(high)) is not None and found < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        found = log_size(middle)
        low, high = (middle, high) if found is not None and found < wanted else (low, middle)
    row: dict[float, int] = {}
    for start, step in ((low, -1), (high, 1)):
        for units in range(start, start + step * MOST_NEAR, step):
            found = log_size(units) if units > 0 else None
            if found is None or (units != start and abs(found - wanted) > REACH):
                break
            row[found] = units * unit
    return row


def _unit(settings: Settings) -> int:
    """The number whose multiples are possible widths."""
    heads, dim = settings.get("heads"), settings.get("attention_dim")
    if isinstance(dim, int):
        return dim if heads is None else 1
    even = 2 if settings.get("block") == "llama" else 1
    return even * _of_width(dim.ratio if isinstance(dim, Ratio) else 1, heads or HEADS).denominator


def _matches(combination: Settings, unwanted: Mapping[str, Sequence[Any]]) -> bool:
    return all(combination.get(name, DEFAULTS.get(name)) in values for name, values in unwanted.items())


def _network(block: Block, settings: Settings, defaults: Defaults) -> Network | Impossible:
    shape = _shape(settings)
    if not isinstance(shape, Shape):
        return Impossible(settings, tuple(shape))
    recipe = {name: _of_depth(settings[name], shape.depth) for name in RECIPE_AXES if name in settings}
    kind = next((name for name in BUDGETS if name in settings), None)
    budget = None
    if kind is not None:
        budget = Budget(kind, settings[kind])  # type: ignore[arg-type]
        batch_size = recipe.get("batch_size", defaults.training.batch_size)
        recipe["steps"] = budget.steps(shape, batch_size)
    training = _changed(defaults.training, tuple(recipe.items()))
    if sentence := recipe_sentence(shape, training):
        return Impossible(settings, (sentence,))
    repeated = shape.width in block.repeated.get(shape.depth, [])
    seeds = max(block.seeds, block.repeated_seeds if repeated else 1)
    return Network(
        settings.get("corpus", defaults.corpus), shape, training, budget, seeds, settings, block.where
    )


def _of_depth(value: Any, depth: int) -> Any:
    return value[depth] if isinstance(value, Mapping) else value


@lru_cache(maxsize=4096)
def _changed(training: Training, changes: tuple[tuple[str, Any], ...]) -> Training:
    return replace(training, **dict(changes))


def _shape(settings: Settings) -> Shape | list[str]:
    """The shape of a combination, or why there is none."""
    base_width = settings.get("base_width")
    try:
        shape = _unscaled(settings)
    except ShapeError as error:
        return error.problems
    if base_width is None:
        return shape
    of_heads = {name: settings[name] for name in ("heads", *_OF_HEADS) if name in settings}
    try:
        base = _unscaled({**of_heads, "depth": 1, "width": base_width})
    except ShapeError as error:
        return [problem.replace("width", "base_width", 1) for problem in error.problems]
    fixed = isinstance(settings.get("attention_dim"), int)
    return replace(shape, base_width=base_width, base_attention_dim=None if fixed else base.attention_dim)


def _unscaled(settings: Settings) -> Shape:
    """The shape of a combination, whatever its base width.

    Raises:
        ShapeError: it makes none; the error has a sentence for every problem.
    """
    options = {name: settings[name] for name in _OPTIONS if name in settings}
    if options.get("positional_rank") == OF_TOKENS:
        options["positional_rank"] = options.get("embedding_rank")
    follows = options.get("ff_width") == OF_ATTENTION
    if follows:
        del options["ff_width"]
    sizes = {**DEFAULTS, **settings}
    dim, heads = settings.get("attention_dim"), settings.get("heads")
    of: int | HeadDim = HeadDim(dim) if isinstance(dim, int) and heads is None else heads or HEADS
    size = sizes["depth"], sizes["width"], of, sizes["vocab_size"], sizes["context_length"]
    make = partial(make_shape, *size, redundant_rank=True)
    if isinstance(dim, Ratio):
        dim = _dim_of_ratio(dim.ratio, heads or HEADS, sizes["width"])
    elif dim == EQUAL_PARAMS:
        degree = options.get("attention_degree")
        dim = with_attention_degree(make(**{**options, "attention_degree": None}), degree).attention_dim
    shape = make(None if isinstance(of, HeadDim) else dim, **options)
    hidden = MLP_RATIO * shape.attention_width
    return replace(shape, ff_width=hidden) if follows and hidden != shape.hidden_width else shape


def _of_width(ratio: float, heads: int) -> Fraction:
    """The dimension of a head over the width, d_a / d, where all heads together are a ratio of it."""
    return Fraction(ratio).limit_denominator(LARGEST_DENOMINATOR) / heads


def _dim_of_ratio(ratio: float, heads: int, width: int) -> int:
    """The dimension of a head by its rule.

    Raises:
        ShapeError: it is no whole number.
    """
    of_width = _of_width(ratio, heads)
    dim, step = of_width * width, of_width.denominator
    if dim.denominator == 1:
        return int(dim)
    near = [str(one) for one in (width // step * step, (width // step + 1) * step) if one]
    raise ShapeError(
        f"width {width} at ratio {ratio:g} gives {heads} heads of {float(dim):g} numbers, which is not whole; use "
        f"width {' or '.join(near)}, or other heads"
    )


def common_sizes(rows: Sequence[Iterable[float]]) -> tuple[float, float]:
    """The least and the largest of the sizes (logarithms) that some depths both cover."""
    return max(map(min, rows)) - SAME_SIZE, min(map(max, rows)) + SAME_SIZE
