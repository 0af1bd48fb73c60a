"""The degree of the building block: product networks of degrees 1, 2, 3, ... at equal budgets (Navon 2021)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from shapelaw.errors import UserError
from shapelaw.settings.sections import Settings
from shapelaw.settings.sentences import ordinal
from shapelaw.specs.degrees import DIGITS, DegreeRun, ProductShape, check_degree_run, layers_of_budget
from shapelaw.specs.kinds import DEGREE
from shapelaw.studies.block_degree.settings import DegreeGrid
from shapelaw.studies.shape_grids import seed_warnings
from shapelaw.studies.study import OURS, Key, Study

NAME = "block_degree"


def grid_runs(grid: DegreeGrid) -> Iterator[DegreeRun]:
    """All runs of a grid.

    Raises:
        UserError: a degree doesn't divide the budget.
    """
    digits = grid.target == "digits"
    sizes = grid.width, *(DIGITS if digits else (grid.inputs, 1))
    networks = [ProductShape(layers_of_budget(degree, grid.matrices), *sizes) for degree in grid.degrees]
    networks += [ProductShape(tuple(pattern), *sizes) for pattern in grid.patterns]
    networks += [
        ProductShape(layers_of_budget(degree, grid.matrices), *sizes, True, share)
        for degree, share in itertools.product(grid.mixtures, grid.mixture_shares)
    ]
    for network, rank, rate, seed in itertools.product(
        networks, [0] if digits else grid.target_ranks, grid.learning_rates, range(grid.seeds)
    ):
        yield DegreeRun(
            network, grid.target, rank, grid.steps, seed, grid.batch_size, rate,
            evaluate_every=grid.evaluate_every,
        )  # fmt: skip


def runs(config: Settings, _root: Path) -> Iterator[DegreeRun]:
    """All runs of the study."""
    for grid in config.section_list(NAME, DegreeGrid):
        yield from grid_runs(grid)


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: no grids, impossible networks, or several budgets in one grid."""
    grids = config.section_list(NAME, DegreeGrid)
    if not grids:
        return [f"{NAME} is empty; give it a list of grids, such as [{{degrees: [2, 3], target_ranks: [8]}}]"]
    found = []
    for place, grid in enumerate(grids):
        where = f"{NAME}.{ordinal(place)}"
        budgets = {sum(pattern) for pattern in grid.patterns} - {grid.matrices}
        if budgets:
            found.append(
                f"{where}.patterns has networks of {', '.join(map(str, sorted(budgets)))} matrices, and "
                f"{where}.matrices is {grid.matrices}: networks of one grid have one budget"
            )
        try:
            for run in grid_runs(grid):
                check_degree_run(run)
        except UserError as error:
            found += [f"{where}: {sentence}" for sentence in str(error).splitlines()]
    return found


def warnings(config: Settings, _root: Path) -> list[str]:
    """A sentence where no two networks differ in their seed alone."""
    return seed_warnings(NAME, [grid.seeds for grid in config.section_list(NAME, DegreeGrid)])


STUDIES = (
    Study(
        NAME,
        "Degree of the building block",
        "comparing degrees of the building block",
        Path(__file__).parent,
        ("pooled", "losses", "differences", "speed", "mixtures", "rank_losses", "rank_correlation"),
        dict.fromkeys(("losses", "differences", "speed", "mixtures", "rank"), OURS),
        "shapelaw.studies.block_degree.results",
        question="Which polynomial degree of a layer learns best at equal parameters?",
        verdict="results/degrees.md",
        kind=DEGREE,
        sections={
            NAME: Key(
                list[DegreeGrid],
                "Grids of the study of which polynomial degree of a layer learns best at equal parameters.",
            )
        },
        runs=runs,
        problems=problems,
        warnings=warnings,
    ),
)
