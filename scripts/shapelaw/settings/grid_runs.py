"""From a config to the specs of runs: the recipe of training, and the runs of the grids."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from shapelaw.settings.grids import DegreeGrid, MemorizationGrid
from shapelaw.settings.sections import Config, MemorizationStudy
from shapelaw.specs.degrees import DIGITS, DegreeRun, ProductShape, layers_of_budget
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.specs.runs import Training


def training_of(config: Config) -> Training:
    """The training section as the frozen part of a run's spec."""
    return Training(**config.training.model_dump())


def memorization_runs(
    config: Config, study: MemorizationStudy, grid: MemorizationGrid
) -> list[MemorizationRun]:
    """All runs of a grid."""
    common = config.memorization
    outputs = common.classes if grid.task == "classification" else 1
    runs = []
    for heads, context, head_dim, examples, seed in itertools.product(
        grid.heads, grid.context, grid.head_dim, grid.examples, range(grid.seeds)
    ):
        memorizer = Memorizer(
            heads, context, head_dim, common.width, common.value_dim, outputs, common.logit_scale
        )
        last_batch = grid.last_batch or common.last_batch
        batches = Fraction(examples, common.batch_size)  # of an epoch
        if last_batch == "short":
            batches = Fraction(math.ceil(batches))
        steps = max(grid.steps, int(grid.epochs * batches))
        run = MemorizationRun(
            study,
            memorizer,
            grid.task,
            grid.context_type,
            examples,
            steps,
            seed,
            batch_size=common.batch_size,
            learning_rate=common.learning_rate,
            warmup=common.warmup,
            evaluate_every=common.evaluate_every,
            stop_when_memorized=not grid.to_the_end,
            keep_attention=study == "memorization_saturation",
            last_batch=last_batch,
        )
        runs.append(run)
    return runs


def degree_runs(grid: DegreeGrid) -> list[DegreeRun]:
    """All runs of a grid.

    Raises:
        UserError: a degree does not divide the budget.
    """
    digits = grid.target == "digits"
    sizes = grid.width, *(DIGITS if digits else (grid.inputs, 1))
    networks = [ProductShape(layers_of_budget(degree, grid.matrices), *sizes) for degree in grid.degrees]
    networks += [ProductShape(tuple(pattern), *sizes) for pattern in grid.patterns]
    networks += [
        ProductShape(layers_of_budget(degree, grid.matrices), *sizes, True, share)
        for degree, share in itertools.product(grid.mixtures, grid.mixture_shares)
    ]
    return [
        DegreeRun(
            "block_degree",
            network,
            grid.target,
            rank,
            grid.steps,
            seed,
            grid.batch_size,
            rate,
            evaluate_every=grid.evaluate_every,
        )
        for network, rank, rate, seed in itertools.product(
            networks, [0] if digits else grid.target_ranks, grid.learning_rates, range(grid.seeds)
        )
    ]
