"""The config's sections of the study `separation_rank`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shapelaw.settings.fields import Count, Seconds, Section, Sizes, TokenCounts


class RankGrid(Section):
    """Networks of linearized attention whose separation rank is measured: all combinations of the lists."""

    depth: Sizes = Field(description="Layers L.")
    width: Sizes = Field(description="Widths d.")
    tokens: TokenCounts = Field(description="Sequence lengths N, even numbers.")
    heads: Sizes = Field([1], description="Attention heads H.")
    attention_dim: Annotated[list[Count | None], Field(min_length=1)] = Field(
        [None], description="Dimension d_a of a head; null is width / heads."
    )
    embedding_rank: Annotated[list[Count | None], Field(min_length=1)] = Field(
        [None], description="Rank r of the embedding; null is the width."
    )
    positional_rank: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = Field(
        [0], description="Rank r_e of the positional embedding; 0 leaves positions out."
    )
    residual: Annotated[list[bool], Field(min_length=1)] = Field(
        [False], description="Layers with residual connections, or without."
    )
    seconds: Seconds = Field(
        10.0, description="Time of one core for each network; a rank that takes longer gets bounds."
    )


class BlockGrid(Section):
    """Networks of blocks of degree k at equal budgets: all combinations of the lists."""

    blocks: Literal["product", "attention"] = Field(
        description="Blocks are element-wise products of k maps of all inputs, or are like linearized attention."
    )
    width: Sizes = Field(description="Widths d.")
    budget: Sizes = Field(
        description="Matrices of width x width in a network; a block has k, or k + 1 with W_O of attention."
    )
    degrees: Sizes = Field([1, 2, 3, 4, 5, 6], description="Degrees k of a block.")
    tokens: TokenCounts = Field([2], description="Sequence lengths N, even numbers; of attention only.")
    heads: Sizes = Field(
        [1], description="Attention heads H of blocks of degree 3 and more; of attention only."
    )
    seconds: Seconds = Field(
        10.0, description="Time of one core for each network; a rank that takes longer gets bounds."
    )


RANK_GRIDS = "Grids of linearized attention whose separation ranks are measured."
BUDGET_GRIDS = "Grids of networks whose blocks all have one degree, at equal budgets."
FRACTION_GRIDS = "Grids of networks that mix blocks of these degrees, in every order."


class RankGrids(Section):
    """The study `separation_rank`: exact ranks of linearized attention, and of blocks of other degrees."""

    separation_rank: list[RankGrid] = Field([], description=RANK_GRIDS)
    degree_budget: list[BlockGrid] = Field([], description=BUDGET_GRIDS)
    fractional_degree: list[BlockGrid] = Field([], description=FRACTION_GRIDS)
