"""Budgets and learning rates of widths in a config."""

from typing import Any

import pytest
from shipped import SCALES, problems_of, shipped

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.specs.runs import Run

GRID: dict[str, Any] = {"widths": {1: [64, 128], 2: [64]}, "repeated": {}}


def runs_with(rates: dict[str, Any], **changes: Any) -> list[Run]:
    config = load_config(shipped(depth_width={**GRID, "rates": rates, **changes}), SCALES)
    return [run for run in runs_of(config, "depth_width", SCALES).values() if isinstance(run, Run)]


def test_a_table_gives_each_width_its_rate_and_the_key_says_it() -> None:
    runs = runs_with({"by_width": {64: 4e-3, 128: 2e-3}})
    assert {(run.shape.width, run.training.learning_rate) for run in runs} == {(64, 4e-3), (128, 2e-3)}
    assert {run.key.split("-H2-")[1].split("-")[0] for run in runs} == {"lr0.004", "lr0.002"}


def test_the_rule_of_the_width_scales_every_shape_from_its_base() -> None:
    runs = runs_with({"rule": "width", "base_width": 64})
    assert {(run.shape.base_width, run.shape.base_attention_dim) for run in runs} == {(64, 32)}
    assert {run.shape.width_ratio for run in runs} == {1.0, 0.5}
    assert len({run.training.learning_rate for run in runs}) == 1
    (of_dimension,) = {
        run.shape.base_attention_dim
        for run in runs_with({"rule": "width", "base_width": 64}, heads={"dim": 32})
    }
    assert of_dimension is None


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"rule": "width"}, "depth_width.rates.rule is width without base_width; give the width whose rate"),
        ({"base_width": 64}, "depth_width.rates.base_width is 64 without a rule; add rule: width"),
        ({"rule": "width", "base_width": 63}, "depth_width.rates.base_width 63 is not divisible by 2 heads"),
        ({"by_width": {64: 1e-3}}, "depth_width.rates.by_width has no rate for width 128; give every width"),
        (
            {"by_width": {64: 1e-3, 128: 1e-3}, "rule": "width", "base_width": 64},
            "depth_width.rates.by_width and depth_width.rates.rule are both set",
        ),
        ({"by_width": {64: -1.0}}, "depth_width.rates.by_width"),
    ],
)
def test_each_mistake_is_a_sentence(rates: dict[str, Any], sentence: str) -> None:
    assert sentence in problems_of(depth_width={**GRID, "rates": rates})


def test_a_run_has_no_more_observations_than_are_kept() -> None:
    said = problems_of(
        training={"schedule": "constant", "steps": 1000, "evaluate_every": 2, "warmup_steps": 1}
    )
    assert "training.evaluate_every is 2 and training.schedule is constant: that is 500 observations" in said
    assert "test at most every 7 steps" in said
