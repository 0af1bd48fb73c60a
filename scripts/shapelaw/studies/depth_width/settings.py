"""The config's section of the study `depth_width`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shapelaw.settings.budgets import Rates
from shapelaw.settings.fields import Seeds, SizeAxisName, Widths
from shapelaw.settings.sections import Blocks, Decoders
from shapelaw.studies.grid.settings import Combinations


class DepthWidth(Combinations, Decoders, Blocks):
    """The study of which depth is best at which size (Levine et al. 2020)."""

    widths: Annotated[Widths, Field(min_length=1)] | None = Field(
        None, description="The grid as `depth: [widths]`; give either this or `grid_file`."
    )
    grid_file: str | None = Field(
        None, description="The grid as a CSV file with columns depth and width; give either this or `widths`."
    )
    seeds: Seeds = Field(1, description="Runs of every shape, with seeds 0, 1, ...")
    repeated: Widths = Field(
        {},
        description="Shapes of the grid, as `depth: [widths]`, that run with `repeated_seeds` seeds, for the noise.",
    )
    repeated_seeds: Seeds = Field(3, description="Runs of each shape of `repeated`.")
    rates: Rates = Field(Rates(), description="The learning rate of each width.")
    size_axis: SizeAxisName = "block"
