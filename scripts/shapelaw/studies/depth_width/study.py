"""Study 1: the transitions between depths, the line through them, and what it projects (Levine et al. 2020)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from shapelaw.errors import UserError
from shapelaw.settings.budgets import base_problems, rate_problems, scaled
from shapelaw.settings.problems import recipe_problems
from shapelaw.settings.sections import Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import make_shape, shape_problems
from shapelaw.studies.depth_width.information import by_information
from shapelaw.studies.depth_width.settings import DepthWidth
from shapelaw.studies.shape_grids import (
    absent_shapes,
    repeated_problems,
    shapes_of,
    size_of,
    transition_warnings,
)
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


def runs(config: Settings, root: Path) -> Iterator[Run]:
    """All runs of the grid, some shapes with more seeds.

    Raises:
        UserError: the grid file can't be used, or a repeated shape isn't in the grid.
    """
    study = _section(config)
    training = config.training.spec(study.recipe)
    if study.grid_file is not None:
        widths = read_grid(root / study.grid_file, study)
    else:
        widths = {depth: list(ws) for depth, ws in (study.widths or {}).items()}
    if absent := absent_shapes(widths, study.repeated):
        raise UserError(
            f"{NAME}.repeated names shapes that are not in the grid: {absent}; repeat shapes of the grid."
        )
    for depth, width, seeds in shapes_of(widths, study.repeated, study.repeated_seeds, study.seeds):
        sizes = depth, width, study.heads, study.vocab_size, study.context_length
        shape = make_shape(*sizes, gelu=study.gelu, **study.block_options)
        shape = scaled(shape, study.rates.base_width, study.heads)
        recipe = study.rates.training(training, width)
        for seed in range(seeds):
            yield Run(config.corpus.name, shape, recipe, seed)


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
    """A sentence for each problem: widths and a grid file at once, or neither; impossible shapes."""
    study = _section(config)
    found = recipe_problems(config, NAME, study.recipe)
    if (study.widths is None) == (study.grid_file is None):
        found.append(f"{NAME} needs exactly one of widths (depth: [widths]) and grid_file (a CSV)")
    wanted = {width for row in (study.widths or {}).values() for width in row}
    found += rate_problems(study.rates, wanted, f"{NAME}.rates")
    found += base_problems(study.rates.base_width, study.heads, f"{NAME}.rates.base_width")
    if study.widths is not None:
        found += repeated_problems(study.widths, study.repeated, NAME)
    for name, table in (("widths", study.widths or {}), ("repeated", study.repeated)):
        for depth, widths in table.items():
            for width in widths:
                found += [f"{NAME}.{name}.{depth}: {problem}" for problem in _wrong(study, depth, width)]
    return found


def _wrong(study: DepthWidth, depth: int, width: int) -> list[str]:
    sizes = depth, width, study.heads, study.vocab_size, study.context_length
    return shape_problems(*sizes, gelu=study.gelu, **study.block_options)


def warnings(config: Settings, root: Path) -> list[str]:
    """A sentence for each result that the grid can't give: a transition, a line through them."""
    study, sizes = _section(config), dict[int, list[float]]()
    every = list(runs(config, root))
    for run in every:
        sizes.setdefault(run.shape.depth, []).append(size_of(study.size_axis)(run.shape))
    return transition_warnings(NAME, sizes, any(run.seed for run in every), line=True)


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
        "steps at one learning rate: more steps or other rates move the crossing (docs/results/undertraining.md).",
        extra=True,
        tables_caption="laptop_runs",
    ),
)
