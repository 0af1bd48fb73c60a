"""The config's section of the study `attention_degree`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shapelaw.settings.fields import Seeds, Widths
from shapelaw.settings.sections import Decoders


class AttentionDegree(Decoders):
    """The study of linear attention of each degree beside softmax, at equal parameters (block-degree note, eq. 2)."""

    widths: Widths = Field({}, description="Shapes of the decoders with softmax, as `depth: [widths]`.")
    degrees: Annotated[list[Annotated[int, Field(ge=2)] | None], Field(min_length=1)] = Field(
        [None, 2, 3, 4],
        description="Polynomial degrees of attention; null is softmax, and the others have as many weights as softmax.",
    )
    seeds: Seeds = Field(5, description="Runs of every shape and degree, with seeds 0, 1, ...")
