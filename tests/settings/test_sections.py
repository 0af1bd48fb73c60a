"""The sections that every config has."""

import pytest
from shipped import SCALES, problems_of, shipped

from shapelaw.studies.config import load_config
from shapelaw.studies.depth_width.settings import DepthWidth
from shapelaw.studies.memorization.settings import MemorizationGrid


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
    assert {type(grid) for grid in config.grids("memorization_heads", MemorizationGrid)} == {MemorizationGrid}
    with pytest.raises(TypeError, match="memorization_heads has grids that are not of DepthWidth"):
        config.grids("memorization_heads", DepthWidth)
