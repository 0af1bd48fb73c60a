"""Is a transition an artefact of one learning rate and too few steps? The same shapes at several of both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shapelaw.settings.problems import recipe_place, recipe_problems, step_problems
from shapelaw.settings.sections import Settings
from shapelaw.settings.sentences import ordinal
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.studies.grid.expansion import Block, networks_of, runs_of_networks
from shapelaw.studies.grid.language import decoder_values, listed_problems, make_block
from shapelaw.studies.grid.study import defaults_of, place_warnings
from shapelaw.studies.study import OURS, Key, Study
from shapelaw.studies.undertraining.settings import UndertrainingStudy

NAME = "undertraining"
OWN = {  # keys of `training` that the study decides itself
    "steps": f"each of {NAME}.grids has its steps",
    "learning_rate": f"each of {NAME}.grids has its learning_rates",
}


def _section(config: Settings) -> UndertrainingStudy:
    return config.section(NAME, UndertrainingStudy)


def _blocks(study: UndertrainingStudy) -> list[Block]:
    """The grids in the grid language: a block for each learning rate of each."""
    return [
        make_block(
            f"{NAME}.grids.{ordinal(place)}",
            {**decoder_values(study), "steps": [grid.steps], "learning_rate": [rate]},
            grid.widths,
            repeated=grid.repeated,
            repeated_seeds=study.repeated_seeds,
        )
        for place, grid in enumerate(study.grids)
        for rate in grid.learning_rates
    ]


def runs(config: Settings, _root: Path) -> Iterator[Run]:
    """All networks of all grids, each at every learning rate of its grid."""
    study = _section(config)
    networks = networks_of(_blocks(study), defaults_of(config, study.recipe))
    yield from runs_of_networks(networks)


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: no grids, two of one number of steps, impossible or incomparable shapes."""
    study = _section(config)
    wrong = recipe_problems(config, NAME, study.recipe, OWN)
    found = [*wrong]
    if not study.grids:
        found.append(
            f"{NAME}.grids is empty; give it a list of grids, such as "
            "[{steps: 1000, learning_rates: [1.0e-3, 2.0e-3], widths: {1: [32, 64], 2: [24, 48]}}]"
        )
    known = [grid.steps for grid in study.grids]
    for place, grid in enumerate(study.grids):
        where = f"{NAME}.grids.{ordinal(place)}"
        if grid.steps in known[:place]:
            found.append(f"{where} has the steps of a grid before it; put their shapes and rates together")
        if len(set(grid.learning_rates)) < len(grid.learning_rates):
            found.append(f"{where}.learning_rates names a rate twice; leave one out")
        if not wrong:
            training = config.training.spec({**study.recipe, "steps": grid.steps})
            found += step_problems(recipe_place(NAME, study.recipe, f"{where}.steps"), training)
    found += listed_problems(_blocks(study), defaults_of(config))
    return list(dict.fromkeys(found))


def warnings(config: Settings, _root: Path) -> list[str]:
    """A sentence for each transition that a grid can't give."""
    study = _section(config)
    repeats = study.repeated_seeds > 1 and any(any(grid.repeated.values()) for grid in study.grids)
    # once: the noise is pooled over all grids
    return place_warnings(
        _blocks(study), defaults_of(config), study.size_axis, lambda place: repeats or place > 0
    )


def options(config: Settings) -> list[str]:
    """The option for the size at which networks are compared."""
    return ["--size", _section(config).size_axis]


STUDIES = (
    Study(
        NAME,
        "Learning rate and steps",
        "whether transitions depend on the learning rate and on the steps",
        Path(__file__).parent,
        ("transitions", "size_axes", "gaps", "ratios", "best_rates", "losses", "seed_noise"),
        {"losses": OURS, "transition_rate": OURS},
        "shapelaw.studies.undertraining.results",
        question="Does the width at which depth pays depend on the number of steps?",
        kind=LANGUAGE,
        sections={
            NAME: Key(
                UndertrainingStudy,
                "The study of whether a transition depends on the learning rate and on the number of steps.",
            )
        },
        runs=runs,
        problems=problems,
        warnings=warnings,
        options=options,
        verdict="results/depth_width.md#more-steps-other-rates-another-block",
    ),
)
