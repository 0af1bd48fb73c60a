"""The config's section of the study `block_degree`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shapelaw.settings.fields import Count, Examples, Section, Seeds, Sizes, Steps
from shapelaw.specs.degrees import HALF, Target


class DegreeGrid(Section):
    """Networks of equal budgets on a task: all combinations of networks, target ranks, learning rates and seeds."""

    target: Target = Field(
        "separable",
        description="Task: a sum of products of functions of the two input halves, or images of digits.",
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
    width: Count = Field(32, description="Width of the layers.")
    inputs: Count = Field(16, description="Inputs of a separable target, half of them on either side.")
    learning_rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)] = Field(
        [3e-3, 1e-2, 3e-2, 1e-1],
        description="Adam's peak learning rates, the same for every network; each gets its best one.",
    )
    seeds: Seeds = Field(4, description="Runs of every combination, with seeds 0, 1, ...")
    steps: Steps = Field(3000, description="Optimizer steps of a run.")
    batch_size: Examples = Field(256, description="Examples of a step.")
    evaluate_every: Steps = Field(100, description="Steps between two held-out losses.")
