"""Study 1: the transitions between depths, the line through them, and what it projects (Levine et al. 2020)."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from shapelaw.errors import UserError
from shapelaw.settings.fields import Rates, Widths, base_problems, rate_problems
from shapelaw.settings.problems import recipe_problems
from shapelaw.settings.sections import Blocks, Decoders, Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import depth_scaling_sentence
from shapelaw.studies.grid.expansion import Block, Defaults, reasons
from shapelaw.studies.grid.language import block_of
from shapelaw.studies.grid.settings import BlockKeys, Combinations, Repeats
from shapelaw.studies.grid.study import Grid, block_warnings, defaults_of, own_keys, sections_problems
from shapelaw.studies.shape_grids import absent_shapes
from shapelaw.studies.study import Key, Study, published_json

NAME = "depth_width"
LATER_SEED = 0.7  # in log size: how much less a further seed tells than a first run at the same distance
ROOM = Path(__file__).parent
QUESTION = (
    "Should the next parameter go into depth or into width: from which width on does a deeper network win?"
)
COMMITTED = ROOM.parents[3] / "docs" / "results" / "h200_llama.csv"
TABLES = ("transitions", "fit", "projection", "forms", "comparison", "size_axes", "seed_noise", "best_depth")
FIGURES = {
    "loss_adjacent": "figures 1b and 2 of the depth-width paper, adjacent depths",
    "loss_doubled": "figure 2 of the depth-width paper, one depth against its double",
    "transition_width": "figure 3a of the depth-width paper",
    "transition_size": "figure 3b of the depth-width paper",
    "best_depth": "figure 3c of the depth-width paper",
    "extrapolation": "figure 4 of the depth-width paper",
}


class DepthWidth(Repeats, Combinations, Decoders, Blocks):
    """The study of which depth is best at which size (Levine et al. 2020)."""

    widths: Annotated[Widths, Field(min_length=1)] | None = Field(
        None, description="The grid as `depth: [widths]`; give either this or `grid_file`."
    )
    grid_file: str | None = Field(
        None, description="The grid as a CSV file with columns depth and width; give either this or `widths`."
    )
    rates: Rates = Field(Rates(), description="The learning rate of each width.")


def _keys(study: DepthWidth, **more: Any) -> BlockKeys:
    """The section as a block of the grid language, with other widths where they are given."""
    if study.rates.base_width is not None:
        more["base_width"] = study.rates.base_width
    return own_keys(study, but=["grid_file"], **more)


def read_grid(path: Path, study: DepthWidth) -> dict[int, list[int]]:
    """The widths of every depth of a CSV with columns depth and width (others are ignored), for a study's decoders.

    Raises:
        UserError: the file or a column is missing, or rows are not shapes; the message has all rows' problems.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{NAME}.grid_file {path} can't be read ({error}).") from error
    if not rows or not {"depth", "width"} <= rows[0].keys():
        raise UserError(f"{NAME}.grid_file {path} must be a CSV with columns depth and width, and rows.")
    widths: dict[int, list[int]] = {}
    problems = []
    for number, row in enumerate(rows, start=2):
        try:
            depth, width = int(row["depth"]), int(row["width"])
        except (TypeError, ValueError):
            problems.append(f"line {number}: depth and width must be whole numbers")
            continue
        shape = block_of(NAME, _keys(study, widths={depth: [width]}))
        problems += [f"line {number}: {problem}" for problem in reasons(shape)]
        widths.setdefault(depth, []).append(width)
    if problems:
        raise UserError("\n".join([f"{NAME}.grid_file {path} has rows that are not shapes:", *problems]))
    return widths


def by_information(runs: Iterable[Run]) -> list[Run]:
    """The runs, first those that decide where one depth overtakes the next.

    A run's distance is |log P - log P_t| with P = 12 L d^2 and P_t the expected size at the transition from its depth
    to the next deeper of the grid, or to its depth from the one before: the nearer one.
    """
    chosen, line = list(runs), published_json("levine2020_fit")
    depths = sorted({run.shape.depth for run in chosen})
    sizes = {depth: math.log(12 * depth) + 2 * (line["a"] + line["b"] * depth) for depth in depths}

    def distance(run: Run) -> float:
        place, shape = depths.index(run.shape.depth), run.shape
        shallower = [depth for depth in depths[max(0, place - 1) : place + 1] if depth != depths[-1]]
        size = math.log(12 * shape.depth * shape.width**2)
        return min((abs(size - sizes[depth]) for depth in shallower), default=0.0) + LATER_SEED * run.seed

    return sorted(chosen, key=distance)


@dataclass(frozen=True)
class DepthWidthGrid(Grid):
    """The study's grid, whose shapes may be in a file, with a learning rate for each width."""

    def _section(self, config: Settings) -> DepthWidth:
        return config.section(NAME, DepthWidth)

    def sections(self, config: Settings) -> list[tuple[str, BlockKeys]]:
        """The section itself as a block."""
        return [(NAME, _keys(self._section(config)))]

    def blocks(self, config: Settings, root: Path | None = None) -> list[Block]:
        """The block, with the shapes of the file where there is one and a folder to find it in.

        Raises:
            UserError: the grid file can't be used, or a repeated shape isn't in the grid.
        """
        study = self._section(config)
        if study.grid_file is None or root is None:
            return super().blocks(config)
        widths = read_grid(root / study.grid_file, study)
        if absent := absent_shapes(widths, study.repeated):
            raise UserError(
                f"{NAME}.repeated names shapes that are not in the grid: {absent}; repeat shapes of the grid."
            )
        return [block_of(NAME, _keys(study, widths=widths))]

    def defaults(self, config: Settings) -> Defaults:
        """With the study's own recipe."""
        return defaults_of(config, self._section(config).recipe, NAME)

    def runs(self, config: Settings, root: Path) -> Iterator[Run]:
        """All runs, some shapes with more seeds.

        Raises:
            UserError: the grid file can't be used, or a repeated shape isn't in the grid.
        """
        rates = self._section(config).rates
        for run in super().runs(config, root):
            yield replace(run, training=rates.training(run.training, run.shape.width))

    def problems(self, config: Settings, root: Path) -> list[str]:
        """A sentence for each problem: two grids at once, or none; impossible networks."""
        study = self._section(config)
        axes, found = study.axes.values(), recipe_problems(config, NAME, study.recipe)
        if (study.widths is None and not axes) == (study.grid_file is None):
            found.append(
                f"{NAME} needs exactly one of widths (depth: [widths]) and grid_file (a CSV), or axes"
            )
        wanted = {*axes.get("width", ()), *(width for row in (study.widths or {}).values() for width in row)}
        found += rate_problems(study.rates, wanted, f"{NAME}.rates")
        found += base_problems(study.rates.base_width, study.heads, f"{NAME}.rates.base_width")
        if study.grid_file is None or axes:
            if study.rates.by_width is not None and "learning_rate" in axes:
                found.append(
                    f"{NAME}.rates.by_width and {NAME}.axes.learning_rate are both set; leave one of them out"
                )
            if study.widths is not None or axes:
                defaults = defaults_of(config, {} if found else study.recipe, NAME)
                found += sections_problems(config, NAME, self.sections(config), defaults, root)
        elif not found:
            scaling = config.training.spec(study.recipe).parametrization
            if sentence := depth_scaling_sentence(study.block, scaling):
                found.append(f"{NAME}: {sentence}")
        return found

    def warnings(self, config: Settings, root: Path) -> list[str]:
        """A sentence for each result that the grid can't give: a transition, a line through them."""
        where = NAME, self.blocks(config, root), self.defaults(config), self.size_axis(config)
        return block_warnings(*where, listed=True, line=True)

    def sized(self, config: Settings) -> list[str]:
        """The option for the size at which networks are compared."""
        return ["--size", self.size_axis(config)]

    def options(self, config: Settings) -> list[str]:
        """The same, and what the grid varies beside depth and width."""
        listed = self._section(config).axes.values() and self.axes(config)
        return super().options(config) if listed else self.sized(config)


GRID = DepthWidthGrid(NAME)
BOTH: dict[str, Any] = {  # what the runs of a config and the committed ones share
    "title": "Depth and width",
    "room": ROOM,
    "tables": TABLES,
    "figures": FIGURES,
    "results": "shapelaw.studies.depth_width.results",
    "question": QUESTION,
    "verdict": "results/depth_width.md",
}
STUDIES = (
    Study(
        NAME,
        message="transitions and fits of depth_width",
        kind=LANGUAGE,
        sections={NAME: Key(DepthWidth, "The study of depth against width.")},
        informative_first=by_information,
        **GRID.attributes | BOTH,
    ),
    Study(
        "committed_runs",
        message="analysing the committed runs of Llama's block",
        options=GRID.sized,
        input=str(COMMITTED),
        made_elsewhere="115 decoders of Llama's block, trained in 18 minutes of one H200 and committed; all with 3,000 "
        "steps of 128 windows at one learning rate: other steps or another block move the crossings "
        "(docs/results/depth_width.md#more-steps-other-rates-another-block).",
        subtitle="runs trained before (seven packaged texts, Llama's block, 3,000 steps, 115 runs)",
        extra=True,
        tables_caption="committed_runs",
        **BOTH,
    ),
)
