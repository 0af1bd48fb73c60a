"""The config's section of the study `undertraining`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shapelaw.settings.fields import Section, Seeds, SizeAxisName, Steps, Widths
from shapelaw.settings.sections import Blocks, Decoders


class UndertrainingGrid(Section):
    """Networks of one number of steps, each at every learning rate."""

    steps: Steps = Field(description="Optimizer steps, in place of those of `training`.")
    learning_rates: list[Annotated[float, Field(gt=0)]] = Field(
        min_length=1, description="Peak learning rates, in place of that of `training`."
    )
    widths: Widths = Field(description="Shapes as `depth: [widths]`; two depths at least.")
    repeated: Widths = Field(
        {}, description="Shapes, as `depth: [widths]`, that run with `repeated_seeds` seeds, for the noise."
    )


class UndertrainingStudy(Decoders, Blocks):
    """The study of whether a transition depends on the learning rate and on the number of steps."""

    grids: list[UndertrainingGrid] = Field([], description="Grids, each of one number of steps.")
    repeated_seeds: Seeds = Field(2, description="Runs of each shape of `repeated`.")
    size_axis: SizeAxisName = "block"
