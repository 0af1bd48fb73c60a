"""The config's section of the study `embedding_rank`."""

from __future__ import annotations

from pydantic import Field

from shapelaw.settings.fields import Count, Seeds
from shapelaw.settings.sections import Decoders


class EmbeddingRank(Decoders):
    """The study of what a low rank of the embedding costs (Wies et al. 2021, section 5.1)."""

    depth: Count = Field(2, description="Depth of all networks.")
    width: Count = Field(64, description="Width of the networks whose embeddings are factored.")
    ranks: list[Count] = Field(
        [], description="Ranks of their token and positional embeddings; above the width they are redundant."
    )
    full_position_ranks: list[Count] = Field(
        [], description="Ranks of token embeddings that are trained with positions of full rank too."
    )
    baseline_widths: list[Count] = Field(
        [], description="Widths of the networks with embeddings of full rank."
    )
    seeds: Seeds = Field(1, description="Runs of every network, with seeds 0, 1, ...")
    repeated_ranks: list[Count] = Field([], description="Ranks that run with `repeated_seeds` seeds.")
    repeated_widths: list[Count] = Field(
        [], description="Widths of the baseline that run with `repeated_seeds` seeds."
    )
    repeated_seeds: Seeds = Field(3, description="Runs of each network that is repeated, for the noise.")
