"""The memorization studies: how many examples the heads of one attention layer learn (Mahdavi et al. 2024)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

from shapelaw.errors import UserError
from shapelaw.settings.sections import Settings
from shapelaw.settings.sentences import ordinal
from shapelaw.specs.kinds import MEMORIZATION
from shapelaw.specs.memorizers import MemorizationRun, Memorizer, check_memorization_run
from shapelaw.studies.memorization.settings import Memorization, MemorizationGrid
from shapelaw.studies.study import OURS, Key, Study

ALONG_HEADS, ALONG_CONTEXT = "memorization_heads", "memorization_context"
ALONG_HEAD_DIM = "memorization_head_dim"
SATURATION, RELU = "memorization_saturation", "relu"
ROOM = Path(__file__).parent
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


def runs(study: str, config: Settings, _root: Path) -> Iterator[MemorizationRun]:
    """All runs of a study."""
    common = config.section("memorization", Memorization)
    for grid in config.section_list(study, MemorizationGrid):
        yield from grid_runs(common, study, grid)


def problems(study: str, config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: no grids, or impossible networks."""
    common, grids = config.section("memorization", Memorization), config.section_list(study, MemorizationGrid)
    if not grids:
        return [f"{study} is empty; give it a list of grids, such as [{{heads: [4, 8], examples: [300]}}]"]
    found = []
    for place, grid in enumerate(grids):
        for run in grid_runs(common, study, grid):
            try:
                check_memorization_run(run)
            except UserError as error:
                found += [f"{study}.{ordinal(place)}: {sentence}" for sentence in str(error).splitlines()]
    return list(dict.fromkeys(found))


def relu_problems(config: Settings, _root: Path) -> list[str]:
    """A sentence if ReLU networks are asked for without the networks that they are compared with."""
    if RELU in config.extras and ALONG_HEADS not in config.studies:
        return [
            f"extras has {RELU}, which is trained beside {ALONG_HEADS}, and studies has no {ALONG_HEADS}; add it"
        ]
    return []


def attention_options(_config: Settings) -> list[str]:
    """The option that names the folder of the largest weights."""
    return ["--attention", "results/runs"]


def _study(name: str, what: str, question: str, tables: Sequence[str], figures: Mapping[str, str]) -> Study:
    return Study(
        name,
        "Memorization",
        f"fits and figures of {name}",
        ROOM,
        tables,
        figures,
        "shapelaw.studies.memorization.results",
        question=question,
        verdict="results/memorization.md",
        subtitle=name.removeprefix("memorization_").replace("_", " "),
        kind=MEMORIZATION,
        sections=_COMMON | {name: Key(list[MemorizationGrid], f"Grids of the study of {what}.")},
        runs=partial(runs, name),
        problems=partial(problems, name),
        options=attention_options if name == SATURATION else lambda _config: [],
    )


STUDIES = (
    _study(
        ALONG_HEADS,
        "how much attention heads memorize, against the number of heads",
        "Does the share that attention heads memorize grow in a line with their number?",
        (
            *("points", "monotony", "capacity", "linear_part", "linear_rules"),
            *("growth", "saturated", "comparison"),
        ),
        {
            "share": "figures 2a, 4 and 5 of the memorization paper",
            "per_head": OURS,
            "saturated": "our own, on figure 3's subject",
            "capacity": OURS,
        },
    ),
    _study(
        ALONG_CONTEXT,
        "how much attention heads memorize, against the length of the context",
        "Does the share that attention heads memorize grow with the length of the context?",
        ("points", "monotony", "capacity", "comparison"),
        {"share": "figures 2b, 4 and 5 of the memorization paper", "capacity": OURS},
    ),
    _study(
        ALONG_HEAD_DIM,
        "how much attention heads memorize, against the dimension of a head",
        "Does a head's dimension stop helping at the length of the context?",
        ("points", "monotony", "capacity", "knee", "comparison"),
        {"share": "figure 2c of the memorization paper", "capacity": OURS},
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
        "what ReLU networks memorize beside attention heads",
        ROOM,
        (RELU,),
        {},
        "shapelaw.studies.memorization.relu",
        question="Does a ReLU network memorize more than attention heads of equal parameters?",
        verdict="results/memorization.md#relu-networks-of-equal-parameters",
        subtitle="ReLU networks",
        problems=relu_problems,
        input=f"results/{RELU}/measured.csv",
        extra=True,
        tables_caption=RELU,
    ),
)
