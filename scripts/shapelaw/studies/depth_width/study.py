"""Study 1: the transitions between depths, the line through them, and what it projects (Levine et al. 2020)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shapelaw.errors import UserError
from shapelaw.settings.budgets import base_problems, rate_problems
from shapelaw.settings.fields import HeadDim
from shapelaw.settings.problems import recipe_problems
from shapelaw.settings.sections import Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.specs.shape_sentences import depth_scaling_sentence
from shapelaw.studies.depth_width.information import by_information
from shapelaw.studies.depth_width.settings import DepthWidth
from shapelaw.studies.grid.expansion import Block, networks_of, reasons, runs_of_networks
from shapelaw.studies.grid.language import (
    axes_of,
    block_of,
    left_out,
    listed_problems,
)
from shapelaw.studies.grid.settings import BlockKeys, GridBlock
from shapelaw.studies.grid.study import (
    cell_warnings,
    defaults_of,
    pairing_warnings,
    sections_problems,
    width_lines,
)
from shapelaw.studies.shape_grids import absent_shapes
from shapelaw.studies.study import Key, Study

NAME = "depth_width"
ROOM = Path(__file__).parent
QUESTION = (
    "Should the next parameter go into depth or into width: from which width on does a deeper network win?"
)
COMMITTED = ROOM.parents[3] / "docs" / "results" / "laptop_depth_width.parquet"
TABLES = ("transitions", "fit", "projection", "forms", "comparison", "size_axes", "seed_noise", "best_depth")
FIGURES = {
    "loss_adjacent": "figures 1b and 2 of the depth-width paper, adjacent depths",
    "loss_doubled": "figure 2 of the depth-width paper, one depth against its double",
    "transition_width": "figure 3a of the depth-width paper",
    "transition_size": "figure 3b of the depth-width paper",
    "best_depth": "figure 3c of the depth-width paper",
    "extrapolation": "figure 4 of the depth-width paper",
}


def _section(config: Settings) -> DepthWidth:
    return config.section(NAME, DepthWidth)


def _keys(study: DepthWidth, widths: Mapping[int, Sequence[int]] | None = None) -> BlockKeys:
    """The section as a block of the grid language, with other widths where they are given."""
    given = {name: getattr(study, name) for name in study.model_fields_set & GridBlock.model_fields.keys()}
    given["base_width"] = study.rates.base_width
    if isinstance(study.heads, HeadDim):
        given |= {"heads": None, "head_dim": study.heads.dim}
    if widths is not None:
        given["widths"] = widths
    return GridBlock(**given)


def _block(config: Settings, root: Path) -> Block:
    """The grid.

    Raises:
        UserError: the grid file can't be used, or a repeated shape isn't in the grid.
    """
    study = _section(config)
    if study.grid_file is None:
        return block_of(NAME, _keys(study))
    widths = read_grid(root / study.grid_file, study)
    if absent := absent_shapes(widths, study.repeated):
        raise UserError(
            f"{NAME}.repeated names shapes that are not in the grid: {absent}; repeat shapes of the grid."
        )
    return block_of(NAME, _keys(study, widths))


def runs(config: Settings, root: Path) -> Iterator[Run]:
    """All runs of the grid, some shapes with more seeds.

    Raises:
        UserError: the grid file can't be used, or a repeated shape isn't in the grid.
    """
    study = _section(config)
    networks = [
        replace(one, training=study.rates.training(one.training, one.shape.width))
        for one in networks_of([_block(config, root)], defaults_of(config, study.recipe))
    ]
    yield from runs_of_networks(networks)


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
        problems += [f"line {number}: {problem}" for problem in _wrong(study, depth, width)]
        widths.setdefault(depth, []).append(width)
    if problems:
        raise UserError("\n".join([f"{NAME}.grid_file {path} has rows that are not shapes:", *problems]))
    return widths


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: two grids at once, or none; impossible shapes; axes that are not compared."""
    study = _section(config)
    axes, found = study.axes.values(), recipe_problems(config, NAME, study.recipe)
    if (study.widths is None and not axes) == (study.grid_file is None):
        found.append(f"{NAME} needs exactly one of widths (depth: [widths]) and grid_file (a CSV), or axes")
    wanted = {*axes.get("width", ()), *(width for row in (study.widths or {}).values() for width in row)}
    found += rate_problems(study.rates, wanted, f"{NAME}.rates")
    found += base_problems(study.rates.base_width, study.heads, f"{NAME}.rates.base_width")
    if study.widths is not None and not axes:
        defaults = defaults_of(config, {} if found else study.recipe)
        found += listed_problems([block_of(NAME, _keys(study))], defaults, least_depths=1)
    elif study.grid_file is not None and not axes and not found:
        scaling = config.training.spec(study.recipe).parametrization
        if sentence := depth_scaling_sentence(study.block, scaling):
            found.append(f"{NAME}: {sentence}")
    elif axes and not found:
        found += _axes_problems(config, study)
    return found


def _axes_problems(config: Settings, study: DepthWidth) -> list[str]:
    """The problems of a grid of axes."""
    if others := axes_of([block_of(NAME, _keys(study))], study.axes.values()):
        return [
            f"{NAME}.axes has {', '.join(others)}, and this study compares depth and width alone; put the grid under "
            "grids, with a name of its own"
        ]
    return sections_problems(config, NAME, [(NAME, _keys(study))], defaults_of(config, study.recipe))


def _wrong(study: DepthWidth, depth: int, width: int) -> list[str]:
    return reasons(block_of(NAME, _keys(study, {depth: [width]})))


def warnings(config: Settings, root: Path) -> list[str]:
    """A sentence for each result that the grid can't give: a transition, a line through them."""
    study, block = _section(config), _block(config, root)
    defaults = defaults_of(config, study.recipe)
    found = [*left_out(block, defaults), *pairing_warnings(block)]
    networks = networks_of([block], defaults)
    return found + cell_warnings(NAME, [block], networks, study.size_axis, listed=True, line=True)


def costs(config: Settings) -> list[str]:
    """Lines of `snakemake plan` on widths that follow from parameters."""
    study = _section(config)
    return width_lines(NAME, [block_of(NAME, _keys(study))]) if study.axes.values() else []


def options(config: Settings) -> list[str]:
    """The option for the size at which networks are compared."""
    return ["--size", _section(config).size_axis]


STUDIES = (
    Study(
        NAME,
        "Depth and width",
        "transitions and fits of depth_width",
        ROOM,
        TABLES,
        FIGURES,
        "shapelaw.studies.depth_width.results",
        question=QUESTION,
        verdict="results/depth_width.md",
        kind=LANGUAGE,
        sections={NAME: Key(DepthWidth, "The study of depth against width.")},
        runs=runs,
        problems=problems,
        warnings=warnings,
        options=options,
        costs=costs,
        informative_first=by_information,
    ),
    Study(
        "laptop_runs",
        "Depth and width, 46 laptop runs trained before",
        "analysing the committed runs of scale laptop",
        ROOM,
        TABLES,
        FIGURES,
        "shapelaw.studies.depth_width.results",
        question=QUESTION,
        verdict="results/depth_width.md",
        options=options,
        input=str(COMMITTED),
        made_elsewhere="46 runs of scale laptop, trained in three hours of two cores and committed; all with 4,000 "
        "steps at one learning rate: more steps or other rates move the crossing (docs/results/depth_width.md#more-steps-other-rates-another-block).",
        extra=True,
        tables_caption="laptop_runs",
    ),
)
