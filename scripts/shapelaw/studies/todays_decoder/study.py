"""Does a transition survive today's decoder? GPT-2's block and Llama's, one learning rate and the best, any budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from shapelaw.settings.budgets import base_problems, budget_problems
from shapelaw.settings.problems import observation_problems, recipe_place, recipe_problems
from shapelaw.settings.sections import Settings
from shapelaw.settings.sentences import ordinal
from shapelaw.specs.budgets import Budget
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run, Training
from shapelaw.studies.grid.expansion import Block, Network, networks_of, runs_of_networks
from shapelaw.studies.grid.language import decoder_values, listed_problems, make_block, most_steps
from shapelaw.studies.grid.study import defaults_of, place_warnings
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


def _blocks(study: TodaysDecoderStudy, base_widths: Sequence[int | None] | None = None) -> list[Block]:
    """The grids in the grid language: for each one for every kind of block.

    Args:
        base_widths: in place of the study's.
    """
    of_all = decoder_values(study)
    own: dict[str, dict[str, Sequence[Any]]] = {
        "gpt2": {"gelu": [study.gelu]},
        "llama": {"kv_heads": of_all.pop("kv_heads"), "gelu": [GPT2_GELU]},
        "printed": {"gelu": [GPT2_GELU]},
    }
    return [
        make_block(
            f"{NAME}.grids.{ordinal(place)}",
            {
                **of_all,
                "block": [block],
                **own[block],
                "base_width": tuple(dict.fromkeys(base_widths or study.base_widths)),
                **{name: [amount] for name, amount in grid.budget.given.items()},
                "learning_rate": tuple(dict.fromkeys(study.learning_rates)),
            },
            grid.widths,
            seeds=study.seeds,
            repeated=grid.repeated,
            repeated_seeds=study.repeated_seeds,
        )
        for place, grid in enumerate(study.grids)
        for block in dict.fromkeys(study.blocks)
    ]


def runs(config: Settings, _root: Path) -> Iterator[Run]:
    """All networks of all grids: of every block, scaled from every base width, at every learning rate."""
    study = _section(config)
    networks = networks_of(_blocks(study), defaults_of(config, study.recipe))
    yield from runs_of_networks(networks)


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
        blocks = [block for block in _blocks(study, [None]) if block.where == where]
        wrong += listed_problems(blocks, defaults_of(config, {} if of_recipe else study.recipe))
        found += wrong
        if not wrong and not of_recipe:
            networks = networks_of(blocks, defaults_of(config, study.recipe))
            found += _training_problems(config, study, grid, where, networks)
    return list(dict.fromkeys(found))


def _unused(study: TodaysDecoderStudy) -> Iterator[str]:
    """A sentence for each key that no network of the study would have."""
    if study.kv_heads is not None and "llama" not in study.blocks:
        yield f"{NAME}.kv_heads is {study.kv_heads} and no block is llama, which has them; leave it out"
    if study.gelu != GPT2_GELU and "gpt2" not in study.blocks:
        yield f"{NAME}.gelu is {study.gelu} and no block is gpt2, which alone has GELU; leave it out"


def _training_problems(
    config: Settings,
    study: TodaysDecoderStudy,
    grid: TodaysDecoderGrid,
    where: str,
    networks: Sequence[Network],
) -> Iterator[str]:
    """A sentence for each problem of the fewest and the most steps of a grid, and of its observations."""
    budget, recipe = grid.budget.budget, config.training.spec(study.recipe)
    if too_many := list(most_steps(f"{where}.budget", networks)):
        yield from too_many
        return
    steps = [one.training.steps for one in networks]
    fewest = min(steps)
    yield from observation_problems(recipe_place(NAME, study.recipe), recipe, max(steps))
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
    study = _section(config)
    repeated = study.repeated_seeds > 1 and any(any(grid.repeated.values()) for grid in study.grids)
    # once: the noise of a block is pooled over all grids
    return place_warnings(
        _blocks(study),
        defaults_of(config),
        study.size_axis,
        lambda place: study.seeds > 1 or repeated or place > 0,
    )


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
        verdict="results/depth_width.md#more-steps-other-rates-another-block",
    ),
)
