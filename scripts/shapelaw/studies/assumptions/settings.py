"""The config's section of the check of the memorization theorem's assumptions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shapelaw.settings.fields import Count, Examples, Section

AssumptionModel = Literal["vit", "bert", "decoder", "gpt2", "vit_base"]


class Assumptions(Section):
    """The memorization theorem's assumptions on real networks and data (Mahdavi et al. 2024, section 5.1)."""

    models: list[AssumptionModel] = Field(
        ["bert", "decoder"],
        min_length=1,
        description="Networks to check; weights come from wheels, those of gpt2 need a hub and are random without one.",
    )
    examples: Examples = Field(2000, description="Images or texts for each network.")
    images: str | None = Field(
        None, description="Folder of your own images; null takes photographs from wheels."
    )
    source: str = Field("wiki", description="Source of the text, one as in corpus.sources.")
    trials: Count = Field(5000, description="Random subsets that decide a verdict.")
    sensitivity_trials: Count = Field(
        500, description="Random subsets for a verdict at each other tolerance."
    )
    curve_trials: Count = Field(100, description="Random subsets for a point of the figure.")
