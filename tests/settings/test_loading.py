"""A scale and the config's own keys become one config; all problems are told at once."""

from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st
from shipped import problems_of

from shapelaw.settings.loading import load_settings, merge
from shapelaw.studies.config import Config
from shapelaw.studies.depth_width.settings import DepthWidth

NUMBERS = st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3)
VALUES = st.dictionaries(
    st.sampled_from("xyz"), NUMBERS | st.integers() | st.lists(st.integers()), max_size=3
)


def test_all_mistakes_are_told_at_once() -> None:
    said = problems_of(
        training={"steps": 0, "batchsize": 3},
        corpus={"test_fraction": 2.0},
        depth_width={"widths": {1: [33]}},
        colour="red",
    )
    assert said.startswith("The config has 5 problems:")
    assert "width 33 is not divisible by 2 heads" in said  # what no single key shows, beside what one does
    assert len(said.splitlines()) == 6


def test_a_scale_that_there_is_not_is_told_with_those_there_are() -> None:
    said = problems_of(scale="dmeo")
    assert "scale is 'dmeo'; it must be one of demo, gpu, laptop, paper (did you mean demo?)" in said


def test_a_key_of_the_config_goes_over_that_of_its_scale_and_a_scales_over_those_of_its_parts(
    tmp_path: Path,
) -> None:
    files = {
        "parts/recipe": {"training": {"steps": 10, "batch_size": 2, "warmup_steps": 0}},
        "parts/sizes": {"depth_width": {"widths": {1: [8], 2: [8]}}, "training": {"batch_size": 3}},
        "tiny": {"include": ["recipe", "sizes"], "training": {"steps": 20}},
    }
    for name, values in files.items():
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(values))
    own = {"scale": "tiny", "training": {"learning_rate": 0.01}, "depth_width": {"widths": {4: [8]}}}
    config = load_settings(Config, own, tmp_path, lambda config: [])
    training = config.training.spec()
    assert (training.steps, training.batch_size, training.learning_rate) == (20, 3, 0.01)
    assert config.section("depth_width", DepthWidth).widths == {4: [8]}  # a grid is replaced whole


@given(VALUES, VALUES)
def test_merged_values_are_those_on_top_and_what_only_lies_below(
    base: dict[str, Any], top: dict[str, Any]
) -> None:
    merged = merge(base, top)
    assert merged.keys() == base.keys() | top.keys()
    for key, value in merged.items():
        below, above = base.get(key), top.get(key)
        if key in top and isinstance(below, dict) and isinstance(above, dict):
            assert value == {**below, **above}
        else:
            assert value == (above if key in top else below)
    assert merge(merged, top) == merged
