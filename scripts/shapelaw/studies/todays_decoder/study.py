"""Does a transition survive today's decoder? GPT-2's block and Llama's, one learning rate and the best, any budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from shapelaw.settings.fields import BudgetKeys, Count, Section, Seeds, Steps, Widths, budget_problems
from shapelaw.settings.problems import recipe_problems
from shapelaw.settings.sections import Decoders, Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Budget, Training
from shapelaw.specs.shapes import Block as BlockName
from shapelaw.studies.grid.settings import BlockKeys, OwnAxes, Positive, Repeated
from shapelaw.studies.grid.study import OwnGrids, own_keys, repeats_anywhere
from shapelaw.studies.study import OURS, Key, Study

NAME = "todays_decoder"
MEANING = "The study of whether transitions survive today's block, rates and budgets."
OWN = {  # keys of `training` that the study decides itself
    "steps": f"the budgets of {NAME}.grids decide the steps",
    "learning_rate": f"{NAME}.learning_rates has the rates of all networks",
}


class TodaysDecoderGrid(Section):
    """Networks of one budget, each of every block at every learning rate."""

    budget: BudgetKeys = Field(description="How long the networks are trained.")
    widths: Widths = Field(description="Shapes as `depth: [widths]`; two depths at least.")
    repeated: Repeated = Field({})
    observed_steps: list[Steps] = Field(
        [],
        description="Steps whose test losses count as budgets of their own, multiples of `training.evaluate_every`; "
        "they need `schedule: constant` or `redecayed` in the recipe.",
    )


class TodaysDecoderStudy(OwnAxes, Decoders):
    """The study of whether transitions survive today's block, the best rate of each shape, and other budgets."""

    blocks: Annotated[list[BlockName], Field(min_length=1)] = Field(
        ["gpt2", "llama"], description="Blocks to compare."
    )
    kv_heads: Count | None = Field(
        None, description="Heads of keys and values of Llama's block; null is as many as heads."
    )
    tied: bool = Field(False, description="The classifier is the token embedding, not a matrix of its own.")
    learning_rates: Annotated[list[Positive], Field(min_length=1)] = Field(
        [1.6e-3],
        description="Peak learning rates of every shape, in place of that of `training`; of several, each shape also "
        "has its best, picked on other seeds.",
    )
    base_widths: Annotated[list[Count | None], Field(min_length=1)] = Field(
        [None],
        description="Widths from which rates, initialisation and logits are scaled, as in muP; null is no scaling.",
    )
    grids: list[TodaysDecoderGrid] = Field(
        [],
        description="Grids, each of one budget; or give `axes`, with block, base_width, learning_rate and a budget "
        "(steps, tokens_per_param, tokens_per_block_param or flops) among them.",
    )
    repeated_seeds: Seeds = Field(2, description="Runs of each shape of `repeated`.")


GPT2_GELU = TodaysDecoderStudy.model_fields["gelu"].default


def _grids(study: TodaysDecoderStudy) -> Iterator[tuple[int, BlockKeys]]:
    """The grids in the grid language: for each one for every kind of block."""
    own: dict[str, dict[str, Any]] = {
        "gpt2": {"gelu": study.gelu},
        "llama": {"gelu": GPT2_GELU, "kv_heads": study.kv_heads},
        "printed": {"gelu": GPT2_GELU},
    }
    axes = {
        "base_width": list(dict.fromkeys(study.base_widths)),
        "learning_rate": list(dict.fromkeys(study.learning_rates)),
    }
    for place, grid in enumerate(study.grids):
        of = {**grid.budget.given, "widths": grid.widths, "repeated": grid.repeated, "axes": axes}
        for block in dict.fromkeys(study.blocks):
            yield place, own_keys(study, but=["kv_heads"], **of, **own[block], block=block)


def problems(config: Settings, root: Path) -> list[str]:
    """A sentence for each problem: no grids, two of one budget, impossible shapes, observations that are not made."""
    study = config.section(NAME, TodaysDecoderStudy)
    if wrong := list(_budget_problems(study)):
        return recipe_problems(config, NAME, study.recipe, OWN) + wrong
    found = GRIDS.problems(config, root)
    if study.axes.values() or recipe_problems(config, NAME, study.recipe, OWN):
        return found
    found += _unused(study)
    recipe = config.training.spec(study.recipe)
    for place, grid in enumerate(study.grids):
        if grid.observed_steps:
            where, budget = f"{GRIDS.at(place)}.observed_steps", grid.budget.budget
            if budget.kind != "steps":
                found.append(f"{where} needs budget.steps: networks of other budgets have steps of their own")
            found += _observation_problems(budget, recipe, grid, where)
    return found


def _budget_problems(study: TodaysDecoderStudy) -> Iterator[str]:
    """A sentence for each budget that is none, or that of a grid before it."""
    known = [grid.budget.given for grid in study.grids]
    for place, grid in enumerate(study.grids):
        yield from budget_problems(grid.budget, f"{GRIDS.at(place)}.budget")
        if grid.budget.given in known[:place]:
            yield f"{GRIDS.at(place)} has the budget of a grid before it; put their shapes together"


def _unused(study: TodaysDecoderStudy) -> Iterator[str]:
    """A sentence for each key that no network of the study would have."""
    if study.kv_heads is not None and "llama" not in study.blocks:
        yield f"{NAME}.kv_heads is {study.kv_heads} and no block is llama, which has them; leave it out"
    if study.gelu != GPT2_GELU and "gpt2" not in study.blocks:
        yield f"{NAME}.gelu is {study.gelu} and no block is gpt2, which alone has GELU; leave it out"


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


def options(config: Settings) -> list[str]:
    """The options for the size at which networks are compared, and for the observations."""
    study = config.section(NAME, TodaysDecoderStudy)
    observed = sorted({step for grid in study.grids for step in grid.observed_steps})
    said = ["--observed-steps", *map(str, observed)] if observed else []
    return [*GRIDS.options(config), *said]


GRIDS = OwnGrids(
    NAME,
    _grids,
    "{budget: {steps: 1000}, widths: {1: [32, 64], 2: [24, 48]}}",
    repeats_anywhere,
    ("block", "base_width", "steps", "budget", "learning_rate"),
    ("grids", "blocks", "learning_rates", "base_widths"),
    decided=OWN,
    paths={name: f"budget.{name}" for name in BudgetKeys.model_fields},
)


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
        sections={NAME: Key(TodaysDecoderStudy, MEANING)},
        **GRIDS.attributes | {"problems": problems, "options": options},
        verdict="results/depth_width.md#more-steps-other-rates-another-block",
    ),
)
