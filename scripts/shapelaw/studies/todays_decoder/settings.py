"""The config's section of the study `todays_decoder`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shapelaw.settings.budgets import BudgetKeys
from shapelaw.settings.fields import Count, Section, Seeds, SizeAxisName, Steps, Widths
from shapelaw.settings.sections import Decoders
from shapelaw.specs.shapes import Block


class TodaysDecoderGrid(Section):
    """Networks of one budget, each of every block at every learning rate."""

    budget: BudgetKeys = Field(description="How long the networks are trained.")
    widths: Widths = Field(description="Shapes as `depth: [widths]`; two depths at least.")
    repeated: Widths = Field(
        {}, description="Shapes, as `depth: [widths]`, that run with `repeated_seeds` seeds, for the noise."
    )
    observed_steps: list[Steps] = Field(
        [],
        description="Steps whose test losses count as budgets of their own, multiples of `training.evaluate_every`; "
        "they need `schedule: constant` or `redecayed` in the recipe.",
    )


class TodaysDecoderStudy(Decoders):
    """The study of whether transitions survive today's block, the best rate of each shape, and other budgets."""

    blocks: Annotated[list[Block], Field(min_length=1)] = Field(
        ["gpt2", "llama"], description="Blocks to compare."
    )
    kv_heads: Count | None = Field(
        None, description="Heads of keys and values of Llama's block; null is as many as heads."
    )
    tied: bool = Field(False, description="The classifier is the token embedding, not a matrix of its own.")
    learning_rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)] = Field(
        [1.6e-3],
        description="Peak learning rates of every shape, in place of that of `training`; of several, each shape also "
        "has its best, picked on other seeds.",
    )
    base_widths: Annotated[list[Count | None], Field(min_length=1)] = Field(
        [None],
        description="Widths from which rates, initialisation and logits are scaled, as in muP; null is no scaling.",
    )
    grids: list[TodaysDecoderGrid] = Field([], description="Grids, each of one budget.")
    seeds: Seeds = Field(1, description="Runs of every shape, with seeds 0, 1, ...")
    repeated_seeds: Seeds = Field(2, description="Runs of each shape of `repeated`.")
    size_axis: SizeAxisName = "block"
