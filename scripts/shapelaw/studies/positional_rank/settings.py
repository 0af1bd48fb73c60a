"""The config's section of the study `positional_rank`."""

from __future__ import annotations

from pydantic import Field

from shapelaw.settings.fields import Count, Seeds
from shapelaw.settings.sections import Decoders


class PositionalRank(Decoders):
    """The study of what a low rank of the positional embedding costs (Wies et al. 2021, appendix C.4)."""

    depth: Count = Field(2, description="Depth of all networks.")
    width: Count = Field(64, description="Width of all networks.")
    positional_ranks: list[Count] = Field(
        [],
        description="Ranks of factored positional embeddings, beside plain token embeddings; at most `width` and "
        "`context_length`. That largest rank tells what factoring costs without a loss of rank.",
    )
    vocabulary_ranks: list[Count] = Field(
        [],
        description="Ranks of factored token embeddings, beside plain positional embeddings; at most `width` and "
        "`vocab_size`.",
    )
    seeds: Seeds = Field(1, description="Runs of every network, with seeds 0, 1, ...")
    repeated_positional_ranks: list[Count] = Field(
        [], description="Ranks of `positional_ranks` that run with `repeated_seeds` seeds."
    )
    repeated_vocabulary_ranks: list[Count] = Field(
        [], description="Ranks of `vocabulary_ranks` that run with `repeated_seeds` seeds."
    )
    repeated_seeds: Seeds = Field(
        3,
        description="Runs of each network that is repeated, for the noise, and of the one with plain embeddings.",
    )
