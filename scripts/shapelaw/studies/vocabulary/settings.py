"""The config's section of the study `vocabulary`."""

from __future__ import annotations

from pydantic import Field

from shapelaw.settings.fields import Count, Section, Seeds, SizeAxisName, Steps, Vocabulary, Widths
from shapelaw.settings.sections import DecoderStudy


class VocabularyGrid(Section):
    """Networks of one vocabulary."""

    vocab_size: Vocabulary = Field(
        description="Size of the vocabulary; 257 is bytes, a larger one is byte-level BPE of that size."
    )
    embedding_rank: Count | None = Field(
        None, description="Rank r of factored token embeddings; null is full rank."
    )
    patch_embedding: bool = Field(
        False,
        description="The tokens are patches of images (source `fashion`), and their embedding is a linear map of a "
        "patch's 4 numbers; `embedding_rank` is then the rank of that map.",
    )
    widths: Widths = Field(
        description="Shapes as `depth: [widths]`; a shallower and a deeper depth at least."
    )
    repeated: Widths = Field(
        {}, description="Shapes, as `depth: [widths]`, that run with `repeated_seeds` seeds, for the noise."
    )
    steps: Steps | None = Field(
        None,
        description="Optimizer steps, where not those of `training`: a vocabulary of fewer bytes a token sees as much "
        "text with more of them.",
    )


class VocabularyStudy(DecoderStudy):
    """The study of what the vocabulary does to the depth that is best (Wies et al. 2021, section 5.2)."""

    grids: list[VocabularyGrid] = Field(
        [], description="Grids, each of one vocabulary size, rank and embedding."
    )
    seeds: Seeds = Field(1, description="Runs of every shape, with seeds 0, 1, ...")
    repeated_seeds: Seeds = Field(3, description="Runs of each shape of `repeated`.")
    size_axis: SizeAxisName = "block"
