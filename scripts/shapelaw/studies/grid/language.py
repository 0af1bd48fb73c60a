"""Blocks from a config's sections, and what is wrong with them, as sentences."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import yaml

from shapelaw.errors import UserError, did_you_mean
from shapelaw.settings.problems import ordinal, recipe_problems
from shapelaw.settings.sections import MOST_STEPS, Settings
from shapelaw.specs.kinds import LANGUAGE_PARAMS
from shapelaw.specs.runs import BUDGETS
from shapelaw.studies.grid.expansion import (
    DEFAULTS,
    Block,
    Defaults,
    Impossible,
    Network,
    expanded,
    lengths,
    number_of_runs,
)
from shapelaw.studies.grid.settings import ALL_AXES, RECIPE_AXES, BlockKeys

IMAGES = "fashion"  # the source whose letters are patches
MOST_RUNS = 100_000  # of a study: with more, Snakemake takes hours before the first job
FEW = 3  # combinations that are shown of those that make no network
SAME_SIZE = {*RECIPE_AXES, *BUDGETS, "base_width", "corpus"}  # fields that change no network's size
# what can be told in a table
_COMPARED = {*(column.name for column in LANGUAGE_PARAMS), *BUDGETS, "head_dim"}
_SHAPES = ("depth", "width", "block_params")


def placed(where: str, keys: BlockKeys | Sequence[BlockKeys]) -> list[tuple[str, BlockKeys]]:
    """The sections of the blocks of a grid at some place in the config, each with its own place."""
    if isinstance(keys, BlockKeys):
        return [(where, keys)]
    return [(f"{where}.{ordinal(place)}", one) for place, one in enumerate(keys)]


def block_of(where: str, keys: BlockKeys, root: Path | None = None) -> Block:
    """The block of a section of the grid language, its values in the order of the language.

    Args:
        where: the section's place in the config.
        keys: a section without problems.
        root: folder that a relative `grid_file` starts from; None leaves the file alone, and the block has no shapes.

    Raises:
        UserError: the grid file can't be used.
    """
    widths = keys.widths
    if keys.grid_file is not None:
        widths = {} if root is None else read_grid(where, root / keys.grid_file)
    axes = _named(keys.axes.values())
    values = _named({name: (value,) for name, value in keys.values().items()}) | axes
    return Block(
        where,
        {name: tuple(values[name]) for name in ALL_AXES if name in values},
        widths,
        seeds=keys.seeds,
        repeated=keys.repeated,
        repeated_seeds=keys.repeated_seeds,
        leave_out=[_named(one.values()) for one in keys.leave_out],
        skips_impossible=keys.impossible == "leave_out",
        axes=axes,
    )


def with_widths(keys: BlockKeys, widths: Mapping[int, Sequence[int]]) -> BlockKeys:
    """A section like another, with other shapes, none of them repeated."""
    given = keys.model_dump(exclude_unset=True, exclude={"widths", "grid_file", "repeated", "repeated_seeds"})
    axes = {name: values for name, values in given.pop("axes", {}).items() if name not in _SHAPES}
    fields = {name: value for name, value in given.items() if name not in _SHAPES}
    return type(keys).model_validate({"widths": widths, "axes": axes, **fields})


def as_yaml(keys: BlockKeys) -> str:
    """A section as it is written in a config, in one line: `{widths: {1: [24]}, heads: 2}`."""
    given = {name: value for name, value in keys.model_dump(exclude_unset=True).items() if value != {}}
    return yaml.safe_dump(given, default_flow_style=True, sort_keys=False, width=math.inf).strip()


def read_grid(where: str, path: Path) -> dict[int, list[int]]:
    """The widths of every depth of a CSV with columns depth and width; others are ignored.

    Raises:
        UserError: the file or a column is missing, or rows are no whole numbers; the message has all such rows.
    """
    said, widths, wrong = f"{where}.grid_file {path}", dict[int, list[int]](), list[str]()
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{said} can't be read ({error}).") from error
    if not rows or not {"depth", "width"} <= rows[0].keys():
        raise UserError(f"{said} must be a CSV with columns depth and width, and rows.")
    for number, row in enumerate(rows, start=2):
        try:
            widths.setdefault(int(row["depth"]), []).append(int(row["width"]))
        except (TypeError, ValueError):
            wrong.append(f"line {number}")
    if wrong:
        raise UserError(f"{said}: depth and width must be whole numbers ({', '.join(wrong)}).")
    return widths


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with a head's dimension under the name that tables have."""
    return {"attention_dim" if name == "head_dim" else name: value for name, value in values.items()}


def axes_of(blocks: Sequence[Block]) -> list[str]:
    """The columns by which the runs of some blocks differ, beside depth and width, in the order of the language.

    Fields that stand under `axes` count with one value too. A warm-up that no network has in two lengths goes with the
    size of a block, and is no column of its own.
    """
    several = {*varying(blocks)}
    if not any(_share_networks(*pair) for pair in combinations(blocks, 2)):
        several.discard("warmup_steps")
    several.update(*(block.axes for block in blocks))
    found = [name for name in ALL_AXES if name in several.difference(_SHAPES)]
    return list(dict.fromkeys("budget" if name in BUDGETS else name for name in found))


def varying(blocks: Sequence[Block]) -> list[str]:
    """The fields beside depth and width that take several values in some blocks together."""
    return [
        name
        for name in ALL_AXES
        if name not in _SHAPES and len({repr(one) for block in blocks for one in _values(block, name)}) > 1
    ]


def _values(block: Block, name: str) -> Sequence[Any]:
    return block.values.get(name, (DEFAULTS.get(name),))


def _share_networks(block: Block, other: Block) -> bool:
    """Whether two blocks differ in their warm-up and have a network in common but for it."""
    names = [name for name in ALL_AXES if name not in ("warmup_steps", *_SHAPES)]
    return (
        _values(block, "warmup_steps") != _values(other, "warmup_steps")
        and not {*block.shapes}.isdisjoint(other.shapes)
        and all(any(value in _values(other, name) for value in _values(block, name)) for name in names)
    )


def section_problems(where: str, keys: BlockKeys, config: Settings, root: Path) -> list[str]:
    """A sentence for each problem that a block's section shows before it is expanded.

    Args:
        where: its place in the config.
        config: has the corpora.
        root: folder that a relative `grid_file` starts from.
    """
    single, axes, corpora = keys.values(), keys.axes.values(), config.all_corpora
    found = [
        f"{where}.{name} and {where}.axes.{name} are both set; leave one of them out"
        for name in single
        if name in axes
    ]
    every: dict[str, Any] = {name: [value] for name, value in single.items()} | axes
    found += _shape_problems(where, keys, every, axes, root)
    for pair in (("head_dim", "attention_dim"), ("steps", *BUDGETS)):
        given = [_place(where, name, axes) for name in pair if name in every]
        if len(given) > 1:
            found.append(f"{' and '.join(given)} are both set, and one decides; leave one out")
    for name in every.get("corpus", ()):
        if name not in corpora:
            near = did_you_mean(name, list(corpora))
            found.append(
                f"{_place(where, 'corpus', axes)} has {name}, of which the config has no sources{near}; "
                f"give them: corpora: {{{name}: {{sources: [...]}}}} (there are {', '.join(corpora)})"
            )
    found += [
        f"{_place(where, name, axes)} has several values, and tables of runs have no column {name}; give it one value"
        for name, values in axes.items()
        if len(values) > 1 and name not in _COMPARED
    ]
    texts = [corpora[name] for name in every.get("corpus", [config.corpus.name]) if name in corpora]
    if True in every.get("patch_embedding", ()) and any(text.sources != [IMAGES] for text in texts):
        found.append(
            f"{_place(where, 'patch_embedding', axes)} is true, and the corpus is not images; set corpus.sources to "
            f"[{IMAGES}], and a name of its own (workflow/examples/images.yaml has both)"
        )
    found += _leave_out_problems(where, keys, every)
    return found


def _place(where: str, name: str, axes: Collection[str]) -> str:
    return f"{where}.axes.{name}" if name in axes else f"{where}.{name}"


def _shape_problems(
    where: str, keys: BlockKeys, every: Mapping[str, Any], axes: Collection[str], root: Path
) -> Iterator[str]:
    """Sentences on depth, width, widths, grid_file and block_params: one too many, or none; an unusable file."""
    table = "widths" if keys.grid_file is None else "grid_file"
    if keys.widths is not None or keys.grid_file is not None:
        others = [_place(where, name, axes) for name in _SHAPES if name in every]
        others += [f"{where}.widths"] if keys.widths is not None and table == "grid_file" else []
        for other in others:
            yield (
                f"{other} and {where}.{table} are both set, and {table} has the depths and their widths; leave one of "
                "them out"
            )
        try:
            block = block_of(where, keys, root)
        except UserError as error:
            yield str(error).removesuffix(".")
        else:
            yield from _table_problems(where, keys, block.depths)
        return
    if "width" in every and "block_params" in every:
        yield (
            f"{_place(where, 'width', axes)} and {_place(where, 'block_params', axes)} are both set, and the width "
            "follows from the parameters; leave one of them out"
        )
    missing = [] if "depth" in every else ["depth"]
    missing += [] if "width" in every or "block_params" in every else ["width (or block_params)"]
    if missing:
        yield (
            f"{where} has no {' and no '.join(missing)}; give axes: {{depth: [1, 2], width: [16, 32]}}, or "
            "widths: {1: [16, 32], 2: [12, 24]}"
        )
        return
    yield from _table_problems(where, keys, every["depth"])


def _table_problems(where: str, keys: BlockKeys, depths: Sequence[int]) -> Iterator[str]:
    """A sentence for each table by depth that misses one."""
    for name, table in keys.values().items():
        absent = [str(depth) for depth in depths if isinstance(table, Mapping) and depth not in table]
        if absent:
            yield f"{where}.{name} has no value for depth {', '.join(absent)}; give every depth one"


def _leave_out_problems(where: str, keys: BlockKeys, every: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each entry of leave_out that can match nothing."""
    known: dict[str, Collection[Any] | None] = {
        **{name: [value] for name, value in DEFAULTS.items()},
        **every,
    }
    if keys.widths is not None:
        known |= {
            "depth": list(keys.widths),
            "width": {width for row in keys.widths.values() for width in row},
        }
    if "block_params" in every:
        known["width"] = None  # not known yet
    if keys.grid_file is not None:
        known |= {"depth": None, "width": None}
    for place, one in enumerate(keys.leave_out):
        at, given = f"{where}.leave_out.{ordinal(place)}", one.values()
        if not given:
            yield f"{at} is empty and would leave out everything; name a field, such as {{depth: 2}}"
        for name, values in given.items():
            if name not in known:
                yield f"{at}.{name}: the grid does not set {name}; name one of {', '.join(known)}"
            elif (has := known[name]) is not None and not any(value in has for value in values):
                yield f"{at}.{name} is {values[0]}, which the grid does not have; it has {', '.join(map(str, has))}"


def size_problems(name: str, blocks: Sequence[Block]) -> list[str]:
    """A sentence where a grid has more runs than a workflow can have; nothing is expanded."""
    counts = [number_of_runs(block) for block in blocks]
    if sum(counts) <= MOST_RUNS:
        return []
    largest = max(zip(counts, blocks, strict=True), key=lambda pair: pair[0])[1]
    factors = [f"{field} {length}" for field, length in lengths(largest).items() if length > 1]
    factors += [f"seeds {largest.seeds}"] if largest.seeds > 1 else []
    return [
        f"{name} has {sum(counts):,} runs ({' x '.join(factors)}), and {MOST_RUNS:,} are the most; take shorter lists "
        "or fewer seeds"
    ]


ADVICE = "correct them, leave them out, or set impossible: leave_out"


def network_problems(config: Settings, name: str, blocks: Sequence[Block], defaults: Defaults) -> list[str]:
    """A sentence for each block with combinations that make no network, and for each recipe that can't be.

    Args:
        name: the grid's place in the config.
    """
    found, networks = list[str](), 0
    for block in blocks:
        every = list(expanded(block, defaults))
        made = [one for one in every if isinstance(one, Network)]
        networks += len(made)
        found += repeated_problems(block, made)
        if not block.skips_impossible:
            found += impossible_sentences(block, every, ADVICE)
        found += recipe_sentences(config, block, made)
    if not networks and not found:
        found.append(f"{name} has no network left; leave out less")
    return list(dict.fromkeys(found))


def left_out(block: Block, defaults: Defaults) -> Iterator[str]:
    """A sentence on combinations that make no network and are left out."""
    if block.skips_impossible:
        yield from impossible_sentences(block, list(expanded(block, defaults)), "they are left out")


def repeated_problems(block: Block, networks: Iterable[Network]) -> Iterator[str]:
    """A sentence where a block repeats shapes that it does not have; whose widths follow, that its networks don't."""
    shapes = {*block.shapes}
    if "block_params" in block.values:
        shapes = {(one.shape.depth, one.shape.width) for one in networks}
    repeated = ((depth, width) for depth, row in block.repeated.items() for width in sorted({*row}))
    if absent := [
        f"depth {depth} width {width}" for depth, width in repeated if (depth, width) not in shapes
    ]:
        yield (
            f"{block.where}.repeated names shapes that the grid does not have: {', '.join(absent)}; repeat shapes of "
            "the grid"
        )


def impossible_sentences(block: Block, every: Sequence[Network | Impossible], advice: str) -> Iterator[str]:
    """A sentence on a block's combinations that make no network: their number, and the first few by what varies."""
    wrong = [one for one in every if isinstance(one, Impossible)]
    if not wrong:
        return
    names = ["depth", "width", *varying([block])]
    first = [f"{named(one.settings, names)} ({'; '.join(one.reasons)})" for one in islice(wrong, FEW)]
    rest = [f"and {len(wrong) - FEW} more"] if len(wrong) > FEW else []
    yield (
        f"{block.where}: {len(wrong)} of {len(every)} combinations make no network: {', '.join([*first, *rest])}; "
        f"{advice}"
    )


def named(settings: Mapping[str, Any], names: Iterable[str]) -> str:
    """Some of a combination's values, as `depth 2, heads 4`."""
    return ", ".join(
        f"{name} {'null' if settings[name] is None else settings[name]}" for name in names if name in settings
    )


def recipe_sentences(config: Settings, block: Block, networks: Sequence[Network]) -> list[str]:
    """A sentence for each problem of a block's recipes."""
    budgets = [name for name in BUDGETS if name in block.values]

    def place(key: str) -> str:
        if key == "steps" and budgets:
            return f"the steps by {place(budgets[0])}"
        return _place(block.where, key, block.axes) if key in block.values else f"training.{key}"

    most = max((one.training.steps for one in networks), default=0)
    if budgets and most > MOST_STEPS:
        said = f"gives a network {most:.3g} steps, and {MOST_STEPS:,} are the most; give a smaller one"
        return [f"{place(name)} {said}" for name in budgets]
    if not budgets and not any(name in block.values for name in RECIPE_AXES):
        return []  # those of `training` alone are told once, of the section
    recipes = dict.fromkeys(one.training for one in networks)
    told = (one for recipe in recipes for one in recipe_problems(config, place, recipe))
    return list(dict.fromkeys(told))[:FEW]
