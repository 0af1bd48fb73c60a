"""A grid of the config as a study: its question, its runs, what is wrong with it and what it can't give."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from shapelaw.errors import did_you_mean
from shapelaw.jobs.plan import cost_of, speed_of
from shapelaw.settings.sections import Settings
from shapelaw.specs.cost import duration
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run, phrase_of
from shapelaw.specs.shapes import Shape
from shapelaw.specs.sizes import LEAST_SIZES, SIZE_COLUMNS, SizeAxis
from shapelaw.studies.grid import expansion, language
from shapelaw.studies.grid.settings import BlockKeys
from shapelaw.studies.study import OTHER_FOLDERS, OURS, Study

CAPTIONS = Path(__file__).parent / "captions"
RESULTS = "shapelaw.studies.grid.results"
TABLES = (
    *("losses", "transitions", "size_axes", "gaps", "fit", "projection"),
    *("effects", "effects_by_setting", "effects_on_transitions", "effects_by_size"),
    *("best_shapes", "seed_noise"),
)
FIGURES = {"effects": OURS, "losses": OURS, "best_depth": OURS}
ANSWERING = ("effects", "best_shapes")
# with them rules, whose names a grid can't have
RESERVED = OTHER_FOLDERS | frozenset(
    (
        *("all", "plan", "findings", "advisor", "prepare_corpus", "train_tokenizer", "encode", "train_large"),
        *("train_medium", "train_small", "record", "list_runs"),
        *("import_runs", "log_study", "measure_separation_ranks", "measure_assumptions", "measure_relu"),
        "measure_perplexity",
    )
)
FEW = 3  # cells that are named
LEAST_TRANSITIONS = 3  # for a line and its error

Keys = BlockKeys | Sequence[BlockKeys]


def grids_of(config: Settings) -> Mapping[str, Keys]:
    """The grids of a config, by name."""
    found: Mapping[str, Keys] = config.section("grids", dict)
    return found


def grid_study(grid: Grid, axes: Sequence[str] = ()) -> Study:
    """The study of a grid.

    Args:
        axes: what it varies beside depth and width.
    """
    return Study(
        grid.name,
        "Grid",
        CAPTIONS,
        TABLES,
        FIGURES,
        RESULTS,
        question=question(axes),
        subtitle=grid.name,
        kind=LANGUAGE,
        answering=ANSWERING,
        **{name: getattr(grid, name) for name in ("runs", "problems", "warnings", "costs", "options")},
    )


def study_of(config: Settings, name: str) -> Study:
    """A grid of a config as a study."""
    return grid_study(Grid(name), Grid(name).axes(config))


def declared_study(
    grid: Grid,
    captions: Path,
    blocks: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    figures: Mapping[str, str] = FIGURES,
    **own: Any,
) -> Study:
    """A study that is a grid and a question, for the list of studies.

    Args:
        grid: by the study's name, under which a scale or a config sets other blocks in `grids`.
        captions: the folder of `tables.rst` and a text for each figure.
        blocks: its block or blocks where none does.
        figures: its figures, with where each was published; without `results` of its own it has those of a grid too.
        own: the other attributes of `Study`, the question among them.
    """
    if "results" in own:
        own = {"options": grid.sized, "answering": (), **own}
    else:
        figures = {**FIGURES, **figures}
    return replace(
        grid_study(grid), captions=captions, figures=figures, grid=blocks, **{"subtitle": "", **own}
    )


def question(axes: Sequence[str]) -> str:
    """What a grid asks, from what it varies beside depth and width."""
    words = [phrase_of(axis) for axis in axes]
    if not words:
        return "Which depth is best at which size?"
    listed = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    return f"Does the loss at equal size, or the size from which depth pays, depend on {listed}?"


Asks = Literal["transitions if deep", "transitions", "line", "nothing"]


@dataclass(frozen=True)
class Baseline:
    """The networks against which a study measures the others.

    Attributes:
        what: they are, after "networks".
        least: how many it needs.
        has: whether a shape is one of them.
    """

    what: str
    least: int
    has: Callable[[Shape], bool]


@dataclass(frozen=True)
class Grid:
    """A grid of the config.

    Attributes:
        name: under which it stands in `grids`; its study has the same.
        compared: the columns that its analysis compares, beside depth and width; None compares any.
        asks: what it asks of depths: transitions, of cells that have several or of every cell, and a line through them.
        baseline: what its analysis can't do without.
    """

    name: str
    compared: Sequence[str] | None = None
    asks: Asks = "transitions if deep"
    baseline: Baseline | None = None

    @property
    def place(self) -> str:
        """Its place in the config."""
        return f"grids.{self.name}"

    def sections(self, config: Settings) -> list[tuple[str, BlockKeys]]:
        """The sections of its blocks, each with its place."""
        return language.placed(self.place, grids_of(config)[self.name])

    def blocks(self, config: Settings, root: Path | None = None) -> list[expansion.Block]:
        """Its blocks, without problems; a relative `grid_file` starts from the folder given, and None leaves it alone.

        Raises:
            UserError: a grid file can't be used.
        """
        return [language.block_of(where, keys, root) for where, keys in self.sections(config)]

    def networks(self, config: Settings, root: Path) -> list[expansion.Network]:
        """Its networks, each once.

        Raises:
            UserError: a grid file can't be used.
        """
        return expansion.networks_of(self.blocks(config, root), defaults_of(config))

    def axes(self, config: Settings) -> list[str]:
        """What it varies beside depth and width."""
        return language.axes_of(self.blocks(config))

    def size_axis(self, config: Settings) -> str:
        """The size at which its networks are compared, whichever of its blocks says it."""
        sections = [keys for _, keys in self.sections(config)]
        said = next((keys for keys in sections if "size_axis" in keys.model_fields_set), sections[0])
        return str(said.size_axis)

    def runs(self, config: Settings, root: Path) -> Iterator[Run]:
        """All runs.

        Raises:
            UserError: a grid file can't be used.
        """
        yield from expansion.runs_of_networks(self.networks(config, root))

    def problems(self, config: Settings, root: Path) -> list[str]:
        """A sentence for each problem of its blocks, of keys first, then of what its study compares.

        Each is looked for where those before it are right.
        """
        sections = self.sections(config)
        found = [one for at, keys in sections for one in language.section_problems(at, keys, config, root)]
        sizes = dict.fromkeys(keys.size_axis for _, keys in sections if "size_axis" in keys.model_fields_set)
        if len(sizes) > 1:
            found.append(f"{self.place} has the size_axis {' and '.join(sizes)}; give all of its blocks one")
        if found:
            return found
        blocks = self.blocks(config, root)
        return (
            language.size_problems(self.place, blocks)
            or language.network_problems(config, self.place, blocks, defaults_of(config))
            or [*self._not_compared(config), *self._without_baseline(config, root)]
        )

    def _not_compared(self, config: Settings) -> Iterator[str]:
        others = [axis for axis in self.axes(config) if axis not in (self.compared or (axis,))]
        if others:
            yield (
                f"{self.place} varies {', '.join(others)}, and this study compares {', '.join(self.compared or ())}; "
                "give the grid a name of its own"
            )

    def _without_baseline(self, config: Settings, root: Path) -> Iterator[str]:
        if self.baseline is None:
            return
        has = [self.baseline.has(one.shape) for one in self.networks(config, root)]
        if sum(has) < self.baseline.least or all(has):
            yield (
                f"{self.place} has {sum(has)} networks {self.baseline.what} and {len(has) - sum(has)} others, which "
                f"are measured against them; give it at least {self.baseline.least} and one other"
            )

    def warnings(self, config: Settings, root: Path) -> list[str]:
        """A sentence on what is left out, on ranks, on transitions that can't be told."""
        blocks, defaults = self.blocks(config, root), defaults_of(config)
        networks = expansion.networks_of(blocks, defaults)
        found = [sentence for block in blocks for sentence in language.left_out(block, defaults)]
        found += rank_warnings(self.place, networks)
        if self.asks != "nothing":
            found += self._transition_warnings(config, blocks, networks)
        return found

    def _transition_warnings(
        self, config: Settings, blocks: Sequence[expansion.Block], networks: Sequence[expansion.Network]
    ) -> Iterator[str]:
        """A sentence for each transition that some cells can't give.

        Cells that differ in what changes no size are one here.
        """
        size = size_of(self.size_axis(config))
        names = [name for name in language.varying(blocks) if name not in language.SAME_SIZE]
        cells: dict[str, list[expansion.Network]] = {}
        for one in networks:
            values = {name: one.settings.get(name, expansion.DEFAULTS.get(name)) for name in names}
            cells.setdefault(language.named(values, names), []).append(one)
        repeated = {_noise_of(one) for one in networks if one.seeds > 1}
        said: dict[tuple[str, tuple[int, ...]], list[str]] = {}
        for label, cell in cells.items():
            rows = {depth: sorted(map(size, row)) for depth, row in expansion.shapes_by_depth(cell).items()}
            if len(rows) > 1 or self.asks != "transitions if deep":
                repeats = any(_noise_of(one) in repeated for one in cell)
                for warning in transition_warnings(self.place, rows, repeats, self.asks == "line").items():
                    said.setdefault(warning, []).append(label)
        for (sentence, depths), labels in said.items():
            lacking, more = [cells[label] for label in labels], ""
            if depths and any("block_params" in block.values for block in blocks):
                more = f": give block_params {LEAST_SIZES} or more sizes"
            elif added := depths and expansion.widths_to_add(lacking, depths, size):
                more = self._to_add(config, added, [*chain(*lacking)], {*networks})
            yield f"{sentence}{more}{_of_cells(labels, len(cells))}"

    def _to_add(
        self,
        config: Settings,
        widths: Mapping[int, Sequence[int]],
        lacking: Iterable[expansion.Network],
        known: Collection[expansion.Network],
    ) -> str:
        """The widths of two depths that some networks lack, the runs that they are, how long they take, and the blocks.

        Args:
            known: the grid's networks.
        """
        depths: dict[str, set[int]] = {}
        for one in lacking:
            depths.setdefault(one.where, set()).add(one.shape.depth)
        like = [
            language.with_widths(keys, added)
            for where, keys in self.sections(config)
            if (added := {depth: widths[depth] for depth in widths if depth in depths.get(where, ())})
        ]
        made = expansion.networks_of(
            [language.block_of(self.place, keys) for keys in like], defaults_of(config)
        )
        runs = [*expansion.runs_of_networks(one for one in made if one not in known)]
        time = duration(3600 * cost_of(runs, config.execution, speed_of(config, Path.cwd())).hours)
        named = "; ".join(
            f"depth {depth} width{'s' if len(row) > 1 else ''} {', '.join(map(str, row))}"
            for depth, row in widths.items()
        )
        more = "one more block" if len(like) == 1 else "more blocks"
        as_yaml = " and ".join(map(language.as_yaml, like))
        return f": add {named} ({len(runs)} runs, about {time}), as {more}: {as_yaml}"

    def costs(self, config: Settings) -> list[str]:
        """Lines of `snakemake plan`: the widths that follow from parameters, and how well they pair the depths."""
        found = []
        for block in self.blocks(config):
            if "block_params" not in block.values:
                continue
            pairs = expansion.all_pairings(block)
            widths = {
                depth: sorted({pair.widths[depth] for pair in pairs if depth in pair.widths})
                for depth in block.depths
            }
            listed = "; ".join(f"depth {depth}: {', '.join(map(str, row))}" for depth, row in widths.items())
            worst = max(pair.mismatch for pair in pairs)
            found.append(
                f"{self.name}: widths from block_params: {listed}; sizes of the depths differ by at most {worst:.1%}"
            )
        return found

    def sized(self, config: Settings) -> list[str]:
        """The option for the size at which networks are compared."""
        return ["--size", self.size_axis(config)]

    def options(self, config: Settings) -> list[str]:
        """The options of the analysis of any grid."""
        return [*self.sized(config), "--axes", *self.axes(config)]


def defaults_of(config: Settings) -> expansion.Defaults:
    """What a config says where a block doesn't."""
    return expansion.Defaults(config.corpus.name, config.training.spec())


def name_problems(names: Iterable[str], studies: Mapping[str, Study]) -> Iterator[str]:
    """A sentence for each name that a grid can't have; that of a study of a grid sets the study's."""
    for name in names:
        if name in studies and studies[name].grid is None:
            yield f"grids.{name} is named like a study that is no grid; give the grid another name"
        elif name in RESERVED:
            yield f"grids.{name} is named like a folder of results/ or a rule; give the grid another name"


def rank_warnings(where: str, networks: Iterable[expansion.Network]) -> list[str]:
    """A sentence for each rank that is above what it maps."""
    maps = (
        ("embedding_rank", "embedding_inputs", "inputs of the embedding"),
        ("positional_rank", "context_length", "positions of a window"),
    )
    shapes = dict.fromkeys(one.shape for one in networks)
    above: dict[tuple[str, int, str], dict[str, None]] = {}
    for shape in shapes:
        for name, of, what in maps:
            rank, most = getattr(shape, name), getattr(shape, of)
            if rank is not None and rank > most:
                above.setdefault((name, most, what), {})[f"{rank:,}"] = None
    return [
        f"{where}: {name} {', '.join(ranks)} is above the {most:,} {what}: the two factors bound nothing and have more "
        "parameters than one matrix"
        for (name, most, what), ranks in above.items()
    ]


def _noise_of(one: expansion.Network) -> tuple[object, ...]:
    """What networks share that have one noise: text and vocabulary; of patches also how many numbers of them."""
    shape = one.shape
    return one.corpus, shape.vocab_size, shape.patch_embedding and (shape.embedding_rank, True)


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


def size_of(axis: str) -> Callable[[Shape], float]:
    """The size of a shape on one of the axes of `size_axis`."""
    if axis == SizeAxis.FLOPS:
        return lambda shape: shape.step_flops(1)
    return attrgetter(SIZE_COLUMNS[SizeAxis(axis)])


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
        low, high = expansion.common_sizes(both)
        common = [sum(low <= size <= high for size in row) for row in both]
        good += min(common) >= LEAST_SIZES
        if min(common) < LEAST_SIZES:
            found[
                f"{where}: at the sizes that depths {shallow} and {deep} both cover, they have {common[0]} and "
                f"{common[1]} networks; a transition needs {LEAST_SIZES} of each"
            ] = shallow, deep
    if line and good < LEAST_TRANSITIONS:
        counted = "1 transition" if good == 1 else f"{good or 'no'} transitions"
        found[
            f"{where} can give {counted}; a line through them and a projection need "
            f"{LEAST_TRANSITIONS}, so {LEAST_TRANSITIONS + 1} depths"
        ] = ()
    return found
