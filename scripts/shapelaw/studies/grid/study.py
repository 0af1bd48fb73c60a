"""A grid of the config as a study: its question, its runs, what is wrong with it and what it can't give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shapelaw.settings.fields import HeadDim
from shapelaw.settings.problems import did_you_mean, ordinal, recipe_problems
from shapelaw.settings.sections import Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import EQUAL_SHARE, Shape
from shapelaw.specs.sizes import LEAST_SIZES
from shapelaw.studies.grid import language
from shapelaw.studies.grid.expansion import (
    Block,
    Defaults,
    Network,
    all_pairings,
    networks_of,
    runs_of_networks,
    shapes_by_depth,
    widths_to_add,
)
from shapelaw.studies.grid.settings import BlockKeys, GridBlock, OneOrMore, OwnAxes, Repeats
from shapelaw.studies.shape_grids import depth_problems, size_of, transition_warnings
from shapelaw.studies.study import OTHER_FOLDERS, OURS, Key, Study

ROOM = Path(__file__).parent
RESULTS = "shapelaw.studies.grid.results"
TABLES = (
    *("losses", "transitions", "size_axes", "gaps", "fit", "projection", "effects", "effects_by_size"),
    *("best_shapes", "surface_costs", "seed_noise"),
)
FIGURES = {"losses": OURS, "effects": OURS, "best_depth": OURS}
RESERVED = OTHER_FOLDERS | frozenset(  # with them rules, whose names a grid can't have
    (
        *("all", "plan", "findings", "advisor", "prepare_corpus", "train_tokenizer", "encode", "train_large"),
        *("train_medium", "train_small", "record", "list_runs"),
        *("import_runs", "log_study", "measure_separation_ranks", "measure_assumptions", "measure_relu"),
        "measure_perplexity",
    )
)
FEW = 3  # cells that are named

Keys = BlockKeys | Sequence[BlockKeys]


def grids_of(config: Settings) -> Mapping[str, Keys]:
    """The grids of a config, by name."""
    found: Mapping[str, Keys] = config.section("grids", dict)
    return found


def grid_study(name: str, axes: Sequence[str] = (), **own: Any) -> Study:
    """The study of a grid.

    Args:
        name: the grid's name.
        axes: what it varies beside depth and width.
        own: the other attributes of `Study`.
    """
    return Study(
        name,
        "Grid",
        f"losses, transitions and effects of {name}",
        ROOM,
        TABLES,
        FIGURES,
        RESULTS,
        question=question(axes),
        subtitle=name,
        kind=LANGUAGE,
        **own,
    )


def study_of(config: Settings, name: str) -> Study:
    """A grid of a config as a study."""
    grid = Grid(f"grids.{name}")
    return grid_study(name, grid.axes(config), **grid.attributes)


def declared_study(
    name: str,
    room: Path,
    grid: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    figures: Mapping[str, str] = FIGURES,
    **own: Any,
) -> Study:
    """A study that is a grid and a question, for the list of studies.

    Args:
        name: its name, and that of its section, by which a scale or a config sets another grid.
        room: its folder; captions/ in it has `tables.rst` and a text for each figure.
        grid: its block or blocks, as they would stand under `grids`.
        figures: where each figure that others published was published.
        own: the other attributes of `Study`, the question among them.
    """
    made = grid_study(name, **Grid(name).attributes)
    section = Key(OneOrMore, f"The grid of the study {name}.", grid)
    return replace(made, room=room, figures={**FIGURES, **figures}, sections={name: section}, **own)


def question(axes: Sequence[str]) -> str:
    """What a grid asks, from what it varies beside depth and width."""
    words = [axis.replace("_", " ") for axis in axes]
    if not words:
        return "Which depth is best at which size?"
    listed = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    return f"What do {listed} change: the loss at equal size, and the size at which depth pays?"


def defaults_of(config: Settings, recipe: Mapping[str, Any] | None = None, name: str = "") -> Defaults:
    """What a config says where a block doesn't; the recipe of a study of some name stands above the config's."""
    places = {key: f"{name}.recipe.{key}" for key in recipe or {}}
    return Defaults(config.corpus.name, config.training.spec(recipe), places)


def sections_problems(
    config: Settings, where: str, sections: Sequence[tuple[str, BlockKeys]], defaults: Defaults, root: Path
) -> list[str]:
    """A sentence for each problem of a grid's blocks, of keys first; the others are found where these are right."""
    corpora = config.all_corpora
    found = [one for at, keys in sections for one in language.section_problems(at, keys, corpora, root)]
    sizes = dict.fromkeys(keys.size_axis for _, keys in sections if "size_axis" in keys.model_fields_set)
    if len(sizes) > 1:
        found.append(f"{where} has the size_axis {' and '.join(sizes)}; give all of its blocks one")
    if found:
        return found
    blocks = [language.block_of(at, keys, root) for at, keys in sections]
    return language.size_problems(where, blocks) or language.network_problems(config, where, blocks, defaults)


def own_keys(section: Repeats, *, but: Sequence[str] = (), **more: Any) -> BlockKeys:
    """A study's section as a block of the grid language: those of its keys that a block has, but for some, and more."""
    names = (section.model_fields_set & GridBlock.model_fields.keys()) | Repeats.model_fields.keys()
    given = {name: getattr(section, name) for name in names.difference(but)}
    if isinstance(heads := given.get("heads"), HeadDim):
        given |= {"heads": None, "head_dim": heads.dim}
    return GridBlock(**{**given, **more})


@dataclass(frozen=True)
class Grid:
    """The grid at a place of the config: `grids.mine`, or a study's own section of the grid language."""

    place: str

    @property
    def name(self) -> str:
        """The grid's name, which is its study's."""
        return self.place.removeprefix("grids.")

    @property
    def attributes(self) -> dict[str, Any]:
        """What a `Study` takes from it."""
        names = ("runs", "problems", "warnings", "costs", "options")
        return {name: getattr(self, name) for name in names}

    def sections(self, config: Settings) -> list[tuple[str, BlockKeys]]:
        """The sections of its blocks, each with its place."""
        name = self.name
        found: Any = config.section(name, object) if name == self.place else grids_of(config)[name]
        return language.placed(self.place, found)

    def blocks(self, config: Settings, root: Path | None = None) -> list[Block]:
        """Its blocks, without problems; a relative `grid_file` starts from the folder given, and None leaves it alone.

        Raises:
            UserError: a grid file can't be used.
        """
        return [language.block_of(where, keys, root) for where, keys in self.sections(config)]

    def defaults(self, config: Settings) -> Defaults:
        """What its blocks leave out."""
        return defaults_of(config)

    def axes(self, config: Settings) -> list[str]:
        """What it varies beside depth and width."""
        listed = {axis for _, keys in self.sections(config) for axis in keys.axes.values()}
        return language.axes_of(self.blocks(config), listed)

    def size_axis(self, config: Settings) -> str:
        """The size at which its networks are compared, whichever of its blocks says it."""
        sections = [keys for _, keys in self.sections(config)]
        said = next((keys for keys in sections if "size_axis" in keys.model_fields_set), sections[0])
        return str(said.size_axis)

    def runs(self, config: Settings, root: Path) -> Iterator[Run]:
        """All runs."""
        yield from runs_of_networks(networks_of(self.blocks(config, root), self.defaults(config)))

    def problems(self, config: Settings, root: Path) -> list[str]:
        """A sentence for each problem (`sections_problems`)."""
        return sections_problems(config, self.place, self.sections(config), self.defaults(config), root)

    def warnings(self, config: Settings, root: Path) -> list[str]:
        """A sentence for each result that it can't give (`block_warnings`)."""
        return block_warnings(
            self.place, self.blocks(config, root), self.defaults(config), self.size_axis(config)
        )

    def costs(self, config: Settings) -> list[str]:
        """Lines of `snakemake plan` (`width_lines`)."""
        return width_lines(self.name, self.blocks(config))

    def options(self, config: Settings) -> list[str]:
        """The options of the analysis."""
        return ["--size", self.size_axis(config), "--axes", *self.axes(config)]


@dataclass(frozen=True)
class OwnGrids(Grid):
    """The grids of a study whose section lists them with keys of its own, or gives `axes` in their place.

    Attributes:
        place: of its section, the study's name.
        listed: each grid that a section lists, in the grid language, with the number of its place in the list.
        example: of such a grid.
        repeats: whether some network has two seeds that give the noise of the grid at a place of the list.
        compared: the columns that the study compares, beside depth and width.
        instead: keys of the section that axes replace.
        decided: keys of `training` that the study decides itself, and why.
        paths: where the fields of a block stand in a listed grid (`Block.paths`).
    """

    listed: Callable[[Any], Iterable[tuple[int, BlockKeys]]]
    example: str
    repeats: Callable[[Any, int], bool]
    compared: Sequence[str]
    instead: Sequence[str] = ("grids",)
    decided: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)

    def at(self, place: int) -> str:
        """The path of a listed grid."""
        return f"{self.name}.grids.{ordinal(place)}"

    def _section(self, config: Settings) -> Any:
        return config.section(self.name, OwnAxes)

    def sections(self, config: Settings) -> list[tuple[str, BlockKeys]]:
        """The sections of the blocks in the grid language, each with its place; several of one grid share it."""
        section = self._section(config)
        if section.axes.values():
            return [(self.name, own_keys(section))]
        return [(self.at(place), keys) for place, keys in self.listed(section)]

    def blocks(self, config: Settings, _root: Path | None = None) -> list[Block]:
        """The blocks, without problems."""
        if self._section(config).axes.values():
            return super().blocks(config)
        return [language.block_of(where, keys, paths=self.paths) for where, keys in self.sections(config)]

    def defaults(self, config: Settings) -> Defaults:
        """What the blocks leave out."""
        return defaults_of(config, self._section(config).recipe, self.name)

    def size_axis(self, config: Settings) -> str:
        """The size at which networks are compared."""
        return str(self._section(config).size_axis)

    def options(self, config: Settings) -> list[str]:
        """The option for the size at which networks are compared."""
        return ["--size", self.size_axis(config)]

    def problems(self, config: Settings, root: Path) -> list[str]:
        """A sentence for each problem: of the recipe, of axes, or of the listed grids; networks need a right recipe."""
        section = self._section(config)
        found = recipe_problems(config, self.name, section.recipe, self.decided)
        if section.axes.values():
            return found + self._axes_problems(config, section) or super().problems(config, root)
        found += self._list_problems(section)
        few = list[str]()
        for where, keys in dict(self.sections(config)).items():
            found += language.section_problems(where, keys, config.all_corpora, root)
            few += depth_problems(keys.widths or {}, where)
        if not found:
            blocks, defaults = self.blocks(config), self.defaults(config)
            found = language.network_problems(config, self.name, blocks, defaults, "correct them")
        return few + found

    def _list_problems(self, section: Any) -> Iterator[str]:
        """A sentence where there are no grids, and for each key that goes with axes."""
        if not section.grids:
            yield f"{self.name}.grids is empty; give it a list of grids, such as [{self.example}]"
        for key in ("repeated", "leave_out", "impossible"):
            if key in section.model_fields_set:
                yield f"{self.name}.{key} goes with axes, and there are none; each grid of the list says its own"

    def _axes_problems(self, config: Settings, section: Any) -> list[str]:
        """A sentence for each key beside axes that they replace, and for axes that are not compared."""
        found = [
            f"{self.name}.{key} and {self.name}.axes are both set; put its values into axes"
            for key in self.instead
            if key in section.model_fields_set
        ]
        others = [] if found else [axis for axis in self.axes(config) if axis not in self.compared]
        if others:
            found.append(
                f"{self.name}.axes has {', '.join(others)}, and this study compares {', '.join(self.compared)}; put "
                "the grid under grids, with a name of its own"
            )
        return found

    def warnings(self, config: Settings, root: Path) -> list[str]:
        """A sentence for each transition that a grid can't give."""
        section = self._section(config)
        if section.axes.values():
            return super().warnings(config, root)
        found, defaults = [], self.defaults(config)
        for place in range(len(section.grids)):
            where = self.at(place)
            own = [block for block in self.blocks(config) if block.where == where]
            repeats, networks = self.repeats(section, place), networks_of(own, defaults)
            found += cell_warnings(where, own, networks, section.size_axis, repeats=repeats, listed=True)
        return found


def repeats_anywhere(section: Any, place: int) -> bool:
    """`OwnGrids.repeats` where the noise is pooled over all grids: told once, of the first."""
    repeated = section.repeated_seeds > 1 and any(any(grid.repeated.values()) for grid in section.grids)
    return section.seeds > 1 or repeated or place > 0


def name_problems(names: Iterable[str], studies: Iterable[str]) -> Iterator[str]:
    """A sentence for each name that a grid can't have."""
    taken = list(studies)
    for name in names:
        if name in taken:
            yield (
                f"grids.{name} is named like a study; give the grid another name, or set the study's own grid: "
                f"{name}: {{axes: ...}}"
            )
        elif name in RESERVED:
            yield f"grids.{name} is named like a folder of results/ or a rule; give the grid another name"


def block_warnings(
    where: str, blocks: Sequence[Block], defaults: Defaults, axis: str, **shapes: bool
) -> list[str]:
    """A sentence on what is left out, on depths of other sizes than asked for, on transitions that can't be told.

    Args:
        shapes: `listed` and `line`, as `cell_warnings` takes them.
    """
    found = list[str]()
    for block in blocks:
        found += [*language.left_out(block, defaults), *pairing_warnings(block)]
    found += rank_warnings(where, networks_of(blocks, defaults))
    return found + cell_warnings(where, blocks, networks_of(blocks, defaults), axis, **shapes)


def rank_warnings(where: str, networks: Iterable[Network]) -> list[str]:
    """A sentence for each rank that is above what it maps."""
    maps = (
        ("embedding_rank", "embedding_inputs", "inputs of the embedding"),
        ("positional_rank", "context_length", "positions of a window"),
    )
    return list(
        dict.fromkeys(
            f"{where}: {name} {rank:,} is above the {most:,} {what}: the two factors bound nothing and have more "
            "parameters than one matrix"
            for one in networks
            for name, of, what in maps
            if (rank := getattr(one.shape, name)) and rank > (most := getattr(one.shape, of))
        )
    )


def pairing_warnings(block: Block) -> Iterator[str]:
    """A sentence where depths are not paired to 2% at some sizes in parameters: those that differ most, each once."""
    if "block_params" not in block.values:
        return
    names = [name for name in language.shown_names([block]) if name not in language.OUTSIDE_BLOCKS]
    poor: dict[str, dict[str, None]] = {}
    every = sorted(all_pairings(block), key=lambda one: -one[1].mismatch)
    for settings, pair in every:
        if pair.mismatch > EQUAL_SHARE:
            widths = ", ".join(f"depth {depth} width {width}" for depth, width in pair.widths.items())
            told = f"near {pair.block_params:,.0f} by {pair.mismatch:.1%}, {widths}"
            poor.setdefault(told, {})[language.named(settings, names)] = None
    if poor:
        cells = len({language.named(settings, names) for settings, _ in every})
        shown = [told + _of_cells(list(labels), cells) for told, labels in poor.items()][:FEW]
        more = f"; and at {len(poor) - FEW} more" if len(poor) > FEW else ""
        yield (
            f"{block.where}: no widths bring the depths within {EQUAL_SHARE:.0%} of each other at some block_params; "
            f"they differ {'; '.join(shown)}{more}"
        )


def width_lines(name: str, blocks: Iterable[Block]) -> list[str]:
    """Lines of `snakemake plan`: the widths that follow from parameters, and how well they pair the depths."""
    found = []
    for block in blocks:
        if "block_params" not in block.values:
            continue
        pairs = [pair for _, pair in all_pairings(block)]
        widths = {
            depth: sorted({pair.widths[depth] for pair in pairs if depth in pair.widths})
            for depth in block.depths
        }
        listed = "; ".join(f"depth {depth}: {', '.join(map(str, row))}" for depth, row in widths.items())
        worst = max(pair.mismatch for pair in pairs)
        found.append(
            f"{name}: widths from block_params: {listed}; sizes of the depths differ by at most {worst:.1%}"
        )
    return found


def cell_warnings(
    where: str,
    blocks: Sequence[Block],
    networks: Sequence[Network],
    axis: str,
    *,
    repeats: bool | None = None,
    listed: bool = False,
    line: bool = False,
) -> list[str]:
    """A sentence for each transition that some cells can't give.

    Cells that differ in what changes no size are one here.

    Args:
        where: place of the grid in the config.
        axis: the size at which networks are compared, as in `size_axis`.
        repeats: True where some network has two seeds, False where none has; None looks at these networks.
        listed: the shapes stand in `widths`, of which a single depth is told too.
        line: True where the study draws a line through its transitions.
    """
    size, names = size_of(axis), language.shape_names(blocks)
    cells: dict[str, list[Network]] = {}
    for one in networks:
        label = language.named({name: one.settings.get(name) for name in names}, names)
        cells.setdefault(label, []).append(one)
    if repeats is None:
        repeats = any(one.seeds > 1 for one in networks)
    said: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for label, cell in cells.items():
        rows = {depth: sorted(map(size, row)) for depth, row in shapes_by_depth(cell).items()}
        if len(rows) > 1 or listed:
            told = transition_warnings(where, rows, repeats, line, ".widths" if listed else "")
            for warning in told.items():
                said.setdefault(warning, []).append(label)
    paired = any("block_params" in block.values for block in blocks)

    def to_add(labels: Sequence[str], depths: Sequence[int]) -> str:
        if not depths:
            return ""
        if paired:
            return f": give block_params {LEAST_SIZES} or more sizes"
        return _to_add([cells[label] for label in labels], depths, size)

    return [
        sentence + to_add(labels, depths) + _of_cells(labels, len(cells))
        for (sentence, depths), labels in said.items()
    ]


def _to_add(cells: Sequence[Sequence[Network]], depths: Sequence[int], size: Callable[[Shape], float]) -> str:
    """The clause that names the widths which some cells lack for a transition; empty where there are none."""
    added = widths_to_add(cells, depths, size)
    named = [
        f"depth {depth} width{'s' if len(row) > 1 else ''} {', '.join(map(str, row))}"
        for depth, row in added.items()
    ]
    return f": add {'; '.join(named)}" if named else ""


def _of_cells(labels: Sequence[str], of: int) -> str:
    """Which cells a sentence is about, where it is not all of them."""
    if len(labels) == of:
        return ""
    if len(labels) <= FEW:
        return f" ({'; '.join(labels)})"
    return f" ({len(labels)} of {of} cells: {'; '.join(labels[:FEW])} and {len(labels) - FEW} more)"


def unknown_study(name: str, place: str, known: Sequence[str]) -> str:
    """A sentence on a study that is neither on the list nor a grid."""
    quoted = [f"'{one}'" for one in known]
    return f"{place} is {name!r}: it must be {', '.join(quoted[:-1])} or {quoted[-1]}{did_you_mean(name, list(known))}"
