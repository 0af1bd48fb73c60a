"""Is a transition an artefact of one learning rate and too few steps? The same shapes at several of both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from shapelaw.settings.fields import Section, Seeds, Steps, Widths
from shapelaw.settings.sections import Blocks, Decoders, Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.studies.grid.settings import BlockKeys, OwnAxes, Positive, Repeated
from shapelaw.studies.grid.study import OwnGrids, own_keys, repeats_anywhere
from shapelaw.studies.study import OURS, Key, Study

NAME = "undertraining"
MEANING = "The study of whether a transition depends on the learning rate and on the number of steps."
OWN = {  # keys of `training` that the study decides itself
    "steps": f"each of {NAME}.grids has its steps",
    "learning_rate": f"each of {NAME}.grids has its learning_rates",
}


class UndertrainingGrid(Section):
    """Networks of one number of steps, each at every learning rate."""

    steps: Steps = Field(description="Optimizer steps, in place of those of `training`.")
    learning_rates: list[Positive] = Field(
        min_length=1, description="Peak learning rates, in place of that of `training`."
    )
    widths: Widths = Field(description="Shapes as `depth: [widths]`; two depths at least.")
    repeated: Repeated = Field({})


class UndertrainingStudy(OwnAxes, Decoders, Blocks):
    """The study of whether a transition depends on the learning rate and on the number of steps."""

    grids: list[UndertrainingGrid] = Field(
        [],
        description="Grids, each of one number of steps; or give `axes`, with steps and learning_rate among them.",
    )
    repeated_seeds: Seeds = Field(2, description="Runs of each shape of `repeated`.")


def _grids(study: UndertrainingStudy) -> Iterator[tuple[int, BlockKeys]]:
    """The grids in the grid language: a block for each learning rate of each."""
    for place, grid in enumerate(study.grids):
        for rate in grid.learning_rates:
            of: dict[str, Any] = {"widths": grid.widths, "repeated": grid.repeated, "steps": grid.steps}
            yield place, own_keys(study, learning_rate=rate, **of)


def problems(config: Settings, root: Path) -> list[str]:
    """A sentence for each problem: no grids, two of one number of steps, impossible or incomparable shapes."""
    grids = config.section(NAME, UndertrainingStudy).grids
    found, known = GRIDS.problems(config, root), [grid.steps for grid in grids]
    for place, grid in enumerate(grids):
        if grid.steps in known[:place]:
            found.append(
                f"{GRIDS.at(place)} has the steps of a grid before it; put their shapes and rates together"
            )
        if len(set(grid.learning_rates)) < len(grid.learning_rates):
            found.append(f"{GRIDS.at(place)}.learning_rates names a rate twice; leave one out")
    return found


GRIDS = OwnGrids(
    NAME,
    _grids,
    "{steps: 1000, learning_rates: [1.0e-3, 2.0e-3], widths: {1: [32, 64], 2: [24, 48]}}",
    repeats_anywhere,
    ("steps", "learning_rate"),
    decided=OWN,
)
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
        sections={NAME: Key(UndertrainingStudy, MEANING)},
        **GRIDS.attributes | {"problems": problems},
        verdict="results/depth_width.md#more-steps-other-rates-another-block",
    ),
)
