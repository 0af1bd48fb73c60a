"""The degree of the building block: product networks of degrees 1, 2, 3, ... at equal budgets (Navon 2021)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from shapelaw.errors import UserError
from shapelaw.settings.problems import ordinal
from shapelaw.settings.sections import Count, Even, Examples, Section, Seeds, Settings, Sizes, Steps
from shapelaw.specs.degrees import (
    BLOCK,
    DIGITS,
    HALF,
    MIXER_MATRICES,
    Activation,
    DegreeRun,
    Normalization,
    ProductShape,
    Target,
    layers_of_budget,
)
from shapelaw.specs.kinds import DEGREE
from shapelaw.studies.study import OURS, Key, Study, seed_warnings

NAME = "block_degree"


class DegreeGrid(Section):
    """Networks of equal budgets on a task: all combinations of networks, target ranks, learning rates and seeds."""

    target: Target = Field(
        "separable",
        description="Task: a sum of products of functions of the two input halves, its sign, or images of digits.",
    )
    target_ranks: Sizes = Field([1, 4, 16, 64], description="Products R in a separable target.")
    matrices: Count = Field(12, description="Square matrices in all layers, the budget of every network.")
    degrees: list[Count] = Field(
        [1, 2, 3, 4], description="Degrees that each make a network of equal layers."
    )
    patterns: list[Sizes] = Field([], description="Networks, each as the list of its layers' degrees.")
    mixtures: list[Annotated[int, Field(ge=2)]] = Field(
        [], description="Numbers k that each make a network whose layers learn a degree between k - 1 and k."
    )
    mixture_shares: Annotated[list[Annotated[float, Field(gt=0, lt=1)]], Field(min_length=1)] = Field(
        [HALF], description="Shares that mixtures begin with: layers of degree k - 1 + share."
    )
    mixers: list[Count] = Field(
        [],
        description="Numbers of tokens that each make an MLP-Mixer of degree 2, of three matrices a layer: the inputs "
        "are cut into tokens, which width^2 / tokens units mix.",
    )
    activation: Activation = Field("none", description="After each layer's normalized product (equation 6).")
    residual: bool = Field(True, description="Whether a layer's input is added to it.")
    normalization: Normalization = Field(
        "example", description="Of each example's vector, or batch normalization without parameters."
    )
    heads: Count = Field(1, description="Products that a layer adds up, each of its own matrices.")
    width: Count = Field(32, description="Width of the layers.")
    inputs: Even = Field(16, description="Inputs of a separable target, half of them on either side.")
    learning_rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)] = Field(
        [3e-3, 1e-2, 3e-2, 1e-1],
        description="Adam's peak learning rates, the same for every network; each gets its best one.",
    )
    seeds: Seeds = Field(4, description="Runs of every combination, with seeds 0, 1, ...")
    steps: Steps = Field(
        3000, description="Optimizer steps of a run; the most where until_converged is true."
    )
    until_converged: bool = Field(
        False,
        description="Train at the peak rate until half of the steps gain less than 5%, then let it fall to zero.",
    )
    batch_size: Examples = Field(256, description="Examples of a step.")
    evaluate_every: Steps = Field(100, description="Steps between two held-out losses.")


def grid_runs(grid: DegreeGrid) -> Iterator[DegreeRun]:
    """All runs of a grid.

    Raises:
        UserError: a degree, or a Mixer's layer, doesn't divide the budget, or tokens don't divide the inputs.
    """
    digits = grid.target == "digits"
    inputs, outputs = DIGITS if digits else (grid.inputs, 2 if grid.target == "signs" else 1)
    common = {"inputs": inputs, "outputs": outputs, **grid.model_dump(include={"width", *BLOCK})}

    def network(degrees: Sequence[int], **more: Any) -> ProductShape:
        return ProductShape(tuple(degrees), **common, **more)

    def equal(degree: int) -> tuple[int, ...]:
        return layers_of_budget(degree, grid.matrices, grid.heads)

    networks = [network(equal(degree)) for degree in grid.degrees]
    networks += [network(pattern) for pattern in grid.patterns]
    networks += [
        network(equal(degree), mixture=True, initial_share=share)
        for degree, share in itertools.product(grid.mixtures, grid.mixture_shares)
    ]
    if grid.mixers and (grid.matrices % MIXER_MATRICES or grid.heads > 1):
        raise UserError(
            f"Mixers have one head and {MIXER_MATRICES} matrices a layer: give heads: 1, and matrices: 6 or 12."
        )
    networks += [
        network((2,) * (grid.matrices // MIXER_MATRICES), mixer_tokens=tokens) for tokens in grid.mixers
    ]
    for one, rank, rate, seed in itertools.product(
        networks, [0] if digits else grid.target_ranks, grid.learning_rates, range(grid.seeds)
    ):
        yield DegreeRun(
            one, grid.target, rank, grid.steps, seed, grid.batch_size, rate,
            evaluate_every=grid.evaluate_every, until_converged=grid.until_converged,
        )  # fmt: skip


def runs(config: Settings, _root: Path) -> Iterator[DegreeRun]:
    """All runs of the study."""
    for grid in config.section(NAME, list):
        yield from grid_runs(grid)


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: no grids, impossible networks, or several budgets in one grid."""
    grids: list[DegreeGrid] = config.section(NAME, list)
    if not grids:
        return [f"{NAME} is empty; give it a list of grids, such as [{{degrees: [2, 3], target_ranks: [8]}}]"]
    found = []
    for place, grid in enumerate(grids):
        where = f"{NAME}.{ordinal(place)}"
        budgets = {grid.heads * sum(pattern) for pattern in grid.patterns} - {grid.matrices}
        if budgets:
            found.append(
                f"{where}.patterns has networks of {', '.join(map(str, sorted(budgets)))} matrices, and "
                f"{where}.matrices is {grid.matrices}: networks of one grid have one budget"
            )
        try:
            list(grid_runs(grid))
        except UserError as error:
            found.append(f"{where}: {str(error).removesuffix('.')}")
    return found


def warnings(config: Settings, _root: Path) -> list[str]:
    """A sentence where no two networks differ in their seed alone."""
    return seed_warnings(NAME, [grid.seeds for grid in config.section(NAME, list)])


STUDIES = (
    Study(
        NAME,
        "Degree of the building block",
        Path(__file__).parent / "captions",
        ("pooled", "losses", "differences", "speed", "mixtures", "rank_losses", "rank_correlation"),
        dict.fromkeys(("differences", "speed", "mixtures", "rank"), OURS),
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
