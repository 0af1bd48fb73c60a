"""Decoders with attention of each degree: of equal size, and what is wrong with their grid."""

from typing import Any

import pytest
from shipped import SCALE_NAMES, SCALES, problems_of, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.specs.runs import Run, run_from_dict, run_to_dict


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_every_scale_has_attention_of_each_degree_at_equal_parameters(scale: str) -> None:
    config = load_config(shipped(scale=scale, studies=["attention_degree"]), SCALES)
    assert (
        "attention_degree" not in load_config(shipped(scale=scale), SCALES).studies
    )  # minutes that demo has not
    runs = runs_of(config, "attention_degree", REPOSITORY)
    sizes: dict[tuple[int, int], dict[int | None, int]] = {}
    for key, run in runs.items():
        assert isinstance(run, Run)
        assert run.key == key
        assert run_from_dict(run_to_dict(run)) == run
        shape = run.shape
        sizes.setdefault((shape.depth, shape.width), {})[shape.attention_degree] = shape.total_params
    for params in sizes.values():
        assert set(params) == {None, 2, 3, 4}
        assert max(params.values()) <= 1.02 * min(params.values())
        assert params[3] == params[None]
    assert len(runs) == len(sizes) * 4 * config.attention_degree.seeds


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        (
            {"studies": ["attention_degree"], "attention_degree": {"widths": {}}},
            ["attention_degree has no widths"],
        ),
        (
            {"studies": ["attention_degree"], "attention_degree": {"heads": 2, "widths": {1: [6, 7]}}},
            [
                "attention_degree.widths.1: no heads' dimension gives attention of degree 4 within 2%",
                "attention_degree.widths.1: width 7 is not divisible by 2 heads",
            ],
        ),
    ],
)
def test_each_mistake_in_its_keys_is_a_sentence(changes: dict[str, Any], sentences: list[str]) -> None:
    said = problems_of(**changes)
    assert all(sentence in said for sentence in sentences), said
