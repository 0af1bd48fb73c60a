"""Is a transition an artefact of one learning rate and too few steps? The same shapes at several of both."""

from pathlib import Path

from shapelaw.studies.grid.study import Grid, declared_study
from shapelaw.studies.study import OURS

NAME = "undertraining"
STUDIES = (
    declared_study(
        Grid(NAME, ("steps", "learning_rate"), "transitions"),
        Path(__file__).parent,
        {
            "axes": {"steps": [1000, 4000], "learning_rate": [1e-3, 2e-3]},
            "widths": {1: [32, 64, 96, 128], 2: [22, 46, 68, 90]},
            "repeated": {1: [64], 2: [46]},
            "repeated_seeds": 2,
        },
        title="Learning rate and steps",
        message="whether transitions depend on the learning rate and on the steps",
        subtitle="",
        tables=("transitions", "size_axes", "gaps", "ratios", "best_rates", "losses", "seed_noise"),
        figures={"losses": OURS, "transition_rate": OURS},
        answering=("ratios", "transitions"),
        results="shapelaw.studies.undertraining.results",
        question="Does the width at which depth pays depend on the number of steps?",
        verdict="results/depth_width.md#more-steps-other-rates-another-block",
    ),
)
