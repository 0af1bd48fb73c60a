"""The config's sections of the memorization studies."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shapelaw.settings.fields import Count, ExampleCounts, Examples, Section, Seeds, Sizes, Steps, TokenCounts
from shapelaw.specs.memorizers import ContextType, LastBatch, LogitScale, Task


class Memorization(Section):
    """The networks of the memorization studies and how they are trained (Mahdavi et al. 2024, section 5.2)."""

    width: Count = Field(64, description="Dimension d of inputs and layer.")
    value_dim: Count | None = Field(
        1,
        description="Value dimension d_v of each head, 1 as in the authors' code; null is the width, as in the theory.",
    )
    logit_scale: LogitScale = Field(
        "width", description="Attention logits are divided by the root of this size, or by nothing."
    )
    classes: Annotated[int, Field(ge=2)] = Field(
        100, description="Classes of the labels of a classification."
    )
    batch_size: Examples = Field(256, description="Examples of a step.")
    last_batch: LastBatch = Field(
        "filled",
        description="Last batch of an epoch: `filled` up from the next epoch, or `short`, as in the authors' code.",
    )
    learning_rate: float = Field(1e-3, gt=0, description="Adam's peak learning rate.")
    warmup: float = Field(
        0.05, ge=0, lt=1, description="Share of the steps that warms up linearly; a cosine to zero follows."
    )
    evaluate_every: Steps = Field(500, description="Steps between two evaluations on all examples.")


class MemorizationGrid(Section):
    """One grid of a memorization study: all combinations of its lists."""

    heads: Sizes = Field(description="Attention heads H.")
    context: TokenCounts = Field([32], description="Context tokens n that the query attends to.")
    head_dim: Sizes = Field([64], description="Dimension d_h of keys and queries; at most the width.")
    examples: ExampleCounts = Field(description="Random examples T to memorize.")
    task: Task = Field(
        "classification", description="Labels of the examples: classes, or a number in [0, 1)."
    )
    context_type: ContextType = Field(
        "shared",
        description="One context for all examples (section 5.2), or one for each (appendix I.1).",
    )
    seeds: Seeds = Field(1, description="Runs of every combination, with seeds 0, 1, ...")
    steps: Steps = Field(50_000, description="Optimizer steps, at least.")
    epochs: int = Field(
        0, ge=0, description="Passes through all examples, at least; the larger of this and `steps` counts."
    )
    to_the_end: bool = Field(False, description="Training goes on when everything is memorized.")
    last_batch: LastBatch | None = Field(
        None, description="As memorization.last_batch, which null stands for."
    )
