"""The sections that every config has."""

import pytest
from shipped import SCALES, problems_of, shipped

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.studies.depth_width.study import DepthWidth
from shapelaw.studies.memorization.study import MemorizationGrid


@pytest.mark.parametrize(
    "name", ["../../x", "/etc", "a/b", "..", ".", "", "wiki\n", "A", "a b", "$(touch x)", "*", "ｗiki"]
)
def test_no_name_of_a_corpus_leads_out_of_the_results(name: str) -> None:
    """It is the one value of a config that becomes a path that something is written to."""
    said = problems_of(corpus={"name": name})
    assert (
        f"corpus.name is {name!r}: use lower-case letters, digits and underscores; it names a folder" in said
    )


def test_a_study_gets_its_section_of_the_model_that_it_declares() -> None:
    config = load_config(shipped(), SCALES)
    assert isinstance(config.section("depth_width", DepthWidth), DepthWidth)
    with pytest.raises(TypeError, match="depth_width is of DepthWidth, not of MemorizationGrid"):
        config.section("depth_width", MemorizationGrid)
    assert {type(grid) for grid in config.section_list("memorization_heads", MemorizationGrid)} == {
        MemorizationGrid
    }
    with pytest.raises(TypeError, match="memorization_heads has grids that are not of DepthWidth"):
        config.section_list("memorization_heads", DepthWidth)


def test_heads_are_a_number_or_have_a_dimension() -> None:
    depth_width = {"widths": {1: [64, 128], 2: [64]}, "repeated": {}, "block": "llama"}
    config = load_config(shipped(depth_width={**depth_width, "heads": {"dim": "32"}}), SCALES)
    shapes = [run.shape for run in runs_of(config, "depth_width", SCALES).values()]
    assert {(shape.width, shape.heads, shape.block) for shape in shapes} == {
        (64, 2, "llama"),
        (128, 4, "llama"),
    }
    for heads in ("two", 0, {"dims": 64}, {"dim": 0}, True):
        said = problems_of(depth_width={**depth_width, "heads": heads})
        assert f"depth_width.heads is {heads!r}: " in said
        assert "give a number of heads such as 2, or their dimension as {dim: 64}" in said
    said = problems_of(depth_width={**depth_width, "widths": {1: [60], 2: [64]}, "heads": {"dim": 32}})
    assert "depth 1, width 60 (width 60 is not divisible by heads of dimension 32; use width 32 or 64" in said
    said = problems_of(depth_width={**depth_width, "widths": {1: [62], 2: [64]}})
    assert "depth 1, width 62 (the dimension of a head is 31, and rotary positions" in said
    assert "kv_heads 3 does not divide 2 heads" in problems_of(depth_width={**depth_width, "kv_heads": 3})
