"""The sections of a config that are grids: all combinations of lists, and what the networks of a study share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shapelaw.settings.fields import (
    Count,
    ExampleCounts,
    Examples,
    Seconds,
    Section,
    Sizes,
    Steps,
    TokenCounts,
)
from shapelaw.specs.degrees import HALF, Target
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
    seeds: Count = Field(1, description="Runs of every combination, with seeds 0, 1, ...")
    steps: Steps = Field(50_000, description="Optimizer steps, at least.")
    epochs: int = Field(
        0, ge=0, description="Passes through all examples, at least; the larger of this and `steps` counts."
    )
    to_the_end: bool = Field(False, description="Training goes on when everything is memorized.")
    last_batch: LastBatch | None = Field(
        None, description="As memorization.last_batch, which null stands for."
    )


class DegreeGrid(Section):
    """Networks of equal budgets on a task: all combinations of networks, target ranks, learning rates and seeds."""

    target: Target = Field(
        "separable",
        description="Task: a sum of products of functions of the two input halves, or images of digits.",
    )
    target_ranks: Sizes = Field([1, 4, 16, 64], description="Products R in a separable target.")
    matrices: Count = Field(12, description="Square matrices in all layers, the budget of every network.")
    degrees: list[Count] = Field(
        [1, 2, 3, 4], description="Degrees that each make a network of equal layers."
    )
    patterns: list[Sizes] = Field([], description="Networks, each as the list of its layers' degrees.")
    mixtures: list[Annotated[int, Field(ge=2)]] = Field(
        [], description="Numbers k that each make a network whose layers learn a degree between k - 1 and k."
    )
    mixture_shares: Annotated[list[Annotated[float, Field(gt=0, lt=1)]], Field(min_length=1)] = Field(
        [HALF], description="Shares that mixtures begin with: layers of degree k - 1 + share."
    )
    width: Count = Field(32, description="Width of the layers.")
    inputs: Count = Field(16, description="Inputs of a separable target, half of them on either side.")
    learning_rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)] = Field(
        [3e-3, 1e-2, 3e-2, 1e-1],
        description="Adam's peak learning rates, the same for every network; each gets its best one.",
    )
    seeds: Count = Field(4, description="Runs of every combination, with seeds 0, 1, ...")
    steps: Steps = Field(3000, description="Optimizer steps of a run.")
    batch_size: Examples = Field(256, description="Examples of a step.")
    evaluate_every: Steps = Field(100, description="Steps between two held-out losses.")


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
        [0], description="Rank r_e of the positional embedding; 0 is no positions."
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
