"""The config's section of the study `attention_ratio`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shapelaw.settings.fields import Count, Section, Seeds, Widths
from shapelaw.settings.sections import Decoders

FeedForward = Literal["attention", "width"]


class AttentionRatioGrid(Section):
    """Networks of one ratio."""

    ratio: float = Field(
        gt=0,
        description="H d_a / d, the width of all heads together over that of the network; 1 is the baseline. "
        "1.333 stands for 4 / 3.",
    )
    feed_forward: FeedForward = Field(
        "attention",
        description="What the feed-forward width is four times of: all heads together, H d_a, as in T5 and the paper "
        "(`attention`), or the network's width, d (`width`). At ratio 1 these are the same networks.",
    )
    heads: Count | None = Field(None, description="Heads of these networks; null is `heads` of the study.")
    widths: Widths = Field(description="Shapes as `depth: [widths]`.")
    repeated: Widths = Field(
        {}, description="Shapes, as `depth: [widths]`, that run with `repeated_seeds` seeds, for the noise."
    )


class AttentionRatio(Decoders):
    """The study of heads that are together wider than the network (Wies et al. 2021, section 5.3)."""

    heads: Count = Field(
        2,
        description="Attention heads, where a grid has no others; they must divide `ratio` times each width.",
    )
    grids: list[AttentionRatioGrid] = Field([], description="Grids, each of one ratio.")
    seeds: Seeds = Field(1, description="Runs of every network, with seeds 0, 1, ...")
    repeated_seeds: Seeds = Field(3, description="Runs of each network of `repeated`.")
    size_axis: Literal["block", "total", "flops"] = Field(
        "block",
        description="The size at which networks are compared: parameters of the blocks (`block`), all parameters "
        "(`total`) or FLOPs of a training step (`flops`); redundancies are given for all three.",
    )
