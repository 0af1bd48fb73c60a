"""The memorization studies: how many examples the heads of one attention layer learn (Mahdavi et al. 2024)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from shapelaw.settings import sections
from shapelaw.settings.problems import ordinal
from shapelaw.specs.kinds import MEMORIZATION
from shapelaw.specs.memorizers import ContextType, LastBatch, LogitScale, MemorizationRun, Memorizer, Task
from shapelaw.studies.study import Key, Study

ALONG_HEADS, ALONG_CONTEXT = "memorization_heads", "memorization_context"
ALONG_HEAD_DIM = "memorization_head_dim"
SATURATION, RELU = "memorization_saturation", "relu"
CAPTIONS = Path(__file__).parent / "captions"


class Memorization(sections.Section):
    """The networks of the memorization studies and how they are trained (Mahdavi et al. 2024, section 5.2)."""

    width: sections.Even = Field(64, description="Dimension d of inputs and layer.")
    value_dim: sections.Count | None = Field(
        1,
        description="Value dimension d_v of each head, 1 as in the authors' code; null is the width, as in the theory.",
    )
    logit_scale: LogitScale = Field(
        "width", description="Attention logits are divided by the root of this size, or by nothing."
    )
    classes: Annotated[int, Field(ge=2)] = Field(
        100, description="Classes of the labels of a classification."
    )
    batch_size: sections.Examples = Field(256, description="Examples of a step.")
    last_batch: LastBatch = Field(
        "filled",
        description="Last batch of an epoch: `filled` up from the next epoch, or `short`, as in the authors' code.",
    )
    learning_rate: float = Field(1e-3, gt=0, description="Adam's peak learning rate.")
    warmup: float = Field(
        0.05, ge=0, lt=1, description="Share of the steps that warms up linearly; a cosine to zero follows."
    )
    evaluate_every: sections.Steps = Field(500, description="Steps between two evaluations on all examples.")


class MemorizationGrid(sections.Section):
    """One grid of a memorization study: all combinations of its lists."""

    heads: sections.Sizes = Field(description="Attention heads H.")
    context: sections.TokenCounts = Field([32], description="Context tokens n that the query attends to.")
    head_dim: sections.Sizes = Field(
        [64], description="Dimension d_h of keys and queries; at most the width."
    )
    examples: sections.ExampleCounts = Field(description="Random examples T to memorize.")
    task: Task = Field(
        "classification", description="Labels of the examples: classes, or a number in [0, 1)."
    )
    context_type: ContextType = Field(
        "shared",
        description="One context for all examples (section 5.2), or one for each (appendix I.1).",
    )
    seeds: sections.Seeds = Field(1, description="Runs of every combination, with seeds 0, 1, ...")
    steps: sections.Steps = Field(50_000, description="Optimizer steps, at least.")
    epochs: int = Field(
        0, ge=0, description="Passes through all examples, at least; the larger of this and `steps` counts."
    )
    to_the_end: bool = Field(False, description="Training goes on when everything is memorized.")
    last_batch: LastBatch | None = Field(
        None, description="As memorization.last_batch, which null stands for."
    )


_COMMON = {"memorization": Key(Memorization, "The settings that the four memorization studies share.")}


def grid_runs(common: Memorization, study: str, grid: MemorizationGrid) -> Iterator[MemorizationRun]:
    """All runs of a grid."""
    outputs = common.classes if grid.task == "classification" else 1
    for heads, context, head_dim, examples, seed in itertools.product(
        grid.heads, grid.context, grid.head_dim, grid.examples, range(grid.seeds)
    ):
        last_batch = grid.last_batch or common.last_batch
        batches = Fraction(examples, common.batch_size)  # batches of an epoch
        if last_batch == "short":
            batches = Fraction(math.ceil(batches))
        yield MemorizationRun(
            Memorizer(heads, context, head_dim, common.width, common.value_dim, outputs, common.logit_scale),
            grid.task,
            grid.context_type,
            examples,
            max(grid.steps, int(grid.epochs * batches)),
            seed,
            **common.model_dump(include={"batch_size", "learning_rate", "warmup", "evaluate_every"}),
            stop_when_memorized=not grid.to_the_end,
            keep_attention=study == SATURATION,
            last_batch=last_batch,
        )


def runs(study: str, config: sections.Settings, _root: Path) -> Iterator[MemorizationRun]:
    """All runs of a study."""
    common = config.section("memorization", Memorization)
    for grid in config.section(study, list):
        yield from grid_runs(common, study, grid)


def problems(study: str, config: sections.Settings, _root: Path) -> list[str]:
    """A sentence for each problem: no grids, or impossible networks."""
    common, grids = config.section("memorization", Memorization), config.section(study, list)
    if not grids:
        return [f"{study} is empty; give it a list of grids, such as [{{heads: [4, 8], examples: [300]}}]"]
    return [
        f"{study}.{ordinal(place)}: {sentence}"
        for place, grid in enumerate(grids)
        for sentence in size_problems(common, grid)
    ]


def size_problems(common: Memorization, grid: MemorizationGrid) -> list[str]:
    """A sentence for each size of a grid that makes no network."""
    return [
        f"head_dim is {dim}, above the width {common.width}; more adds nothing (eq. 1)"
        for dim in grid.head_dim
        if dim > common.width
    ]


def relu_problems(config: sections.Settings, _root: Path) -> list[str]:
    """A sentence if ReLU networks are asked for without the networks that they are compared with."""
    if RELU in config.extras and ALONG_HEADS not in config.studies:
        return [
            f"extras has {RELU}, which is trained beside {ALONG_HEADS}, and studies has no {ALONG_HEADS}; add it"
        ]
    return []


def _study(name: str, what: str, question: str, tables: Sequence[str], figures: Mapping[str, str]) -> Study:
    return Study(
        name,
        "Memorization",
        CAPTIONS,
        tables,
        figures,
        "shapelaw.studies.memorization.results",
        question=question,
        verdict="results/memorization.md",
        subtitle=name.removeprefix("memorization_").replace("_", " "),
        answering=("comparison",),
        kind=MEMORIZATION,
        sections=_COMMON | {name: Key(list[MemorizationGrid], f"Grids of the study of {what}.")},
        runs=partial(runs, name),
        problems=partial(problems, name),
        # of saturation the folder of the largest weights
        options=lambda _config: ["--attention", "results/runs"] if name == SATURATION else [],
    )


STUDIES = (
    _study(
        ALONG_HEADS,
        "how much attention heads memorize, against the number of heads",
        "Does the share that attention heads memorize grow in a line with their number?",
        (*("points", "monotony", "capacity", "linear_part", "growth", "saturated", "comparison"),),
        {
            "share": "figures 2a, 4 and 5 of the memorization paper",
            "saturated": "our own, on figure 3's subject",
        },
    ),
    _study(
        ALONG_CONTEXT,
        "how much attention heads memorize, against the length of the context",
        "Does the share that attention heads memorize grow with the length of the context?",
        ("points", "monotony", "capacity", "comparison"),
        {"share": "figures 2b, 4 and 5 of the memorization paper"},
    ),
    _study(
        ALONG_HEAD_DIM,
        "how much attention heads memorize, against the dimension of a head",
        "Does a head's dimension stop helping at the length of the context?",
        ("points", "monotony", "capacity", "gain", "comparison"),
        {"share": "figure 2c of the memorization paper"},
    ),
    _study(
        SATURATION,
        "how many heads are saturated",
        "Are most heads of trained networks saturated, as in the theorem's proof?",
        ("saturation", "perfect", "comparison"),
        {"saturation": "figure 3 of the memorization paper"},
    ),
    Study(
        RELU,
        "Memorization",
        CAPTIONS,
        (RELU,),
        {},
        "shapelaw.studies.memorization.results",
        question="Does a ReLU network memorize more than attention heads of equal parameters?",
        verdict="results/memorization.md#relu-networks-of-equal-parameters",
        subtitle="ReLU networks",
        problems=relu_problems,
        input=f"results/{RELU}/measured.csv",
        extra=True,
        tables_caption=RELU,
    ),
)
