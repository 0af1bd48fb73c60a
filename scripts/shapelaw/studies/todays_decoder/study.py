"""Does a transition survive today's decoder? GPT-2's block and Llama's, one learning rate and the best, any budget."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from shapelaw.settings.budgets import base_problems, budget_problems, scaled
from shapelaw.settings.fields import MOST_STEPS
from shapelaw.settings.problems import observation_problems, recipe_place, recipe_problems
from shapelaw.settings.sections import Settings
from shapelaw.settings.sentences import ordinal
from shapelaw.specs.budgets import Budget
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run, Training
from shapelaw.specs.shapes import Block, Shape, make_shape
from shapelaw.studies.shape_grids import (
    depth_problems,
    grid_warnings,
    repeated_problems,
    shapes_of,
    width_problems,
)
from shapelaw.studies.study import OURS, Key, Study
from shapelaw.studies.todays_decoder.settings import TodaysDecoderGrid, TodaysDecoderStudy

NAME = "todays_decoder"
OWN = {  # keys of `training` that the study decides itself
    "steps": f"the budgets of {NAME}.grids decide the steps",
    "learning_rate": f"{NAME}.learning_rates has the rates of all networks",
}
GPT2_GELU = TodaysDecoderStudy.model_fields["gelu"].default


def _section(config: Settings) -> TodaysDecoderStudy:
    return config.section(NAME, TodaysDecoderStudy)


def _shape(study: TodaysDecoderStudy, block: Block, depth: int, width: int) -> Shape:
    """A shape of a block.

    Raises:
        ShapeError: these numbers don't make one.
    """
    sizes = depth, width, study.heads, study.vocab_size, study.context_length
    if block == "llama":
        return make_shape(*sizes, block=block, kv_heads=study.kv_heads, tied=study.tied)
    return make_shape(*sizes, gelu=study.gelu, tied=study.tied)


def runs(config: Settings, _root: Path) -> Iterator[Run]:
    """All networks of all grids: of every block, scaled from every base width, at every learning rate."""
    study = _section(config)
    recipe = config.training.spec({name: value for name, value in study.recipe.items() if name != "steps"})
    for grid in study.grids:
        budget = grid.budget.budget
        said = None if budget.kind == "steps" else budget
        for block in dict.fromkeys(study.blocks):
            for depth, width, seeds in shapes_of(
                grid.widths, grid.repeated, study.repeated_seeds, study.seeds
            ):
                shape = _shape(study, block, depth, width)
                steps = budget.steps(shape, recipe.batch_size)
                for base_width in dict.fromkeys(study.base_widths):
                    one = scaled(shape, base_width, study.heads)
                    for rate in dict.fromkeys(study.learning_rates):
                        changes = {**study.recipe, "steps": steps, "learning_rate": rate}
                        training = config.training.spec(changes)
                        for seed in range(seeds):
                            yield Run(config.corpus.name, one, training, seed, said)


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: no grids, two of one budget, impossible shapes, observations that are not made."""
    study = _section(config)
    of_recipe = recipe_problems(config, NAME, study.recipe, OWN)
    found = [*of_recipe, *_unused(study)]
    if not study.grids:
        found.append(
            f"{NAME}.grids is empty; give it a list of grids, such as "
            "[{budget: {steps: 1000}, widths: {1: [32, 64], 2: [24, 48]}}]"
        )
    for base_width in study.base_widths:
        found += base_problems(base_width, study.heads, f"{NAME}.base_widths")
    known: list[dict[str, float]] = []
    for place, grid in enumerate(study.grids):
        where = f"{NAME}.grids.{ordinal(place)}"
        wrong = budget_problems(grid.budget, f"{where}.budget")
        if grid.budget.given in known:
            wrong.append(f"{where} has the budget of a grid before it; put their shapes together")
        known.append(grid.budget.given)
        wrong += _shape_problems(study, grid, where)
        found += wrong
        if not wrong and not of_recipe:
            found += _training_problems(config, study, grid, where)
    return list(dict.fromkeys(found))


def _unused(study: TodaysDecoderStudy) -> Iterator[str]:
    """A sentence for each key that no network of the study would have."""
    if study.kv_heads is not None and "llama" not in study.blocks:
        yield f"{NAME}.kv_heads is {study.kv_heads} and no block is llama, which has them; leave it out"
    if study.gelu != GPT2_GELU and "gpt2" not in study.blocks:
        yield f"{NAME}.gelu is {study.gelu} and no block is gpt2; Llama's has SwiGLU, so leave it out"


def _shape_problems(study: TodaysDecoderStudy, grid: TodaysDecoderGrid, where: str) -> Iterator[str]:
    yield from depth_problems(grid.widths, where)
    for block in study.blocks:
        yield from width_problems(grid.widths, partial(_shape, study, block), where, block)
    yield from repeated_problems(grid.widths, grid.repeated, where)


def _training_problems(
    config: Settings, study: TodaysDecoderStudy, grid: TodaysDecoderGrid, where: str
) -> Iterator[str]:
    """A sentence for each problem of the fewest and the most steps of a grid, and of its observations."""
    budget, recipe = grid.budget.budget, config.training.spec(study.recipe)
    steps = [
        budget.steps(_shape(study, block, depth, width), recipe.batch_size)
        for block in study.blocks
        for depth, row in grid.widths.items()
        for width in row
    ]
    fewest, most = min(steps), max(steps)
    if most > MOST_STEPS:
        yield f"{where}.budget gives a network {most:.3g} steps, and {MOST_STEPS:,} are the most; give a smaller one"
        return
    yield from observation_problems(recipe_place(NAME, study.recipe), recipe, most)
    if recipe.warmup_steps >= fewest:
        yield (
            f"{where}.budget gives the smallest network {fewest} steps, and training.warmup_steps is "
            f"{recipe.warmup_steps}; give a larger budget or a shorter warm-up"
        )
    if not grid.observed_steps:
        return
    if budget.kind != "steps":
        yield f"{where}.observed_steps needs budget.steps: networks of other budgets have steps of their own"
    yield from _observation_problems(budget, recipe, grid, f"{where}.observed_steps")


def _observation_problems(
    budget: Budget, recipe: Training, grid: TodaysDecoderGrid, where: str
) -> Iterator[str]:
    if recipe.schedule == Training.schedule:
        yield (
            f"{where} is set and the schedule is cosine, whose losses on the way are not those of shorter runs; set "
            "recipe.schedule to constant or redecayed"
        )
    for step in grid.observed_steps:
        if step <= recipe.warmup_steps:
            yield (
                f"{where} has {step}, within the warm-up ({recipe.warmup_steps} steps), in which the rate rises; "
                "observe later"
            )
        elif step % recipe.evaluate_every or step > budget.amount:
            yield (
                f"{where} has {step}, at which there is no test loss; use multiples of training.evaluate_every "
                f"({recipe.evaluate_every}) up to {budget.amount:.0f}"
            )


def warnings(config: Settings, _root: Path) -> list[str]:
    """A sentence for each transition that a grid can't give; of one block where the others give it."""
    study, found = _section(config), list[str]()
    blocks = list(dict.fromkeys(study.blocks))
    repeated = study.repeated_seeds > 1 and any(any(grid.repeated.values()) for grid in study.grids)
    for place, grid in enumerate(study.grids):
        warns_of_noise = place == 0  # once: the noise of a block is pooled over all grids
        repeats = study.seeds > 1 or repeated or not warns_of_noise
        said: dict[str, list[Block]] = {}
        for block in blocks:
            where, shape = f"{NAME}.grids.{ordinal(place)}", partial(_shape, study, block)
            for sentence in grid_warnings(where, grid.widths, study.size_axis, shape, repeats):
                said.setdefault(sentence, []).append(block)
        for sentence, of in said.items():
            found.append(sentence if of == blocks else f"{sentence} (block {' and '.join(of)})")
    return found


def options(config: Settings) -> list[str]:
    """The options for the size at which networks are compared, and for the observations."""
    study = _section(config)
    observed = sorted({step for grid in study.grids for step in grid.observed_steps})
    said = ["--observed-steps", *map(str, observed)] if observed else []
    return ["--size", study.size_axis, *said]


STUDIES = (
    Study(
        NAME,
        "Today's decoder",
        "whether transitions survive Llama's block, the best rates and other budgets",
        Path(__file__).parent,
        ("crossings", "transitions", "size_axes", "gaps", "ratios", "best_rates", "losses", "seed_noise"),
        {"losses": OURS, "crossings": OURS},
        "shapelaw.studies.todays_decoder.results",
        question="Do transitions survive today's block, the best learning rates and other token budgets?",
        kind=LANGUAGE,
        sections={
            NAME: Key(
                TodaysDecoderStudy,
                "The study of whether transitions survive today's block, rates and budgets.",
            )
        },
        runs=runs,
        problems=problems,
        warnings=warnings,
        options=options,
        verdict="results/todays_decoder.md",
    ),
)
