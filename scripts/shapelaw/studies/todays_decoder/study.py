"""Does a transition survive today's decoder? GPT-2's block and Llama's, one learning rate and the best, any budget."""

from pathlib import Path

from shapelaw.studies.grid.study import Grid, declared_study
from shapelaw.studies.study import OURS

NAME = "todays_decoder"
COMPARED = ("block", "gelu", "kv_heads", "base_width", "steps", "budget", "learning_rate")
STUDIES = (
    declared_study(
        Grid(NAME, COMPARED, "transitions"),
        Path(__file__).parent,
        {
            "axes": {"block": ["gpt2", "llama"], "learning_rate": [1e-3, 2e-3], "steps": 1000},
            "widths": {1: [28, 64, 96, 128], 2: [20, 44, 68, 92]},
            "repeated": {1: [64], 2: [44]},
            "repeated_seeds": 2,
        },
        title="Today's decoder",
        message="whether transitions survive Llama's block, the best rates and other budgets",
        subtitle="",
        tables=(
            *("crossings", "transitions", "size_axes", "gaps", "ratios", "best_rates", "losses"),
            "seed_noise",
        ),
        figures={"losses": OURS, "crossings": OURS},
        answering=("ratios", "crossings"),
        results="shapelaw.studies.todays_decoder.results",
        question="Do transitions survive today's block, the best learning rates and other token budgets?",
        verdict="results/depth_width.md#more-steps-other-rates-another-block",
    ),
)
