"""The corollaries on pairs of networks."""

import math

import pytest
from measured_grids import ranks_of

from shapelaw.studies.separation_rank.corollaries import corollaries_table


def test_corollaries_on_pairs_of_networks():
    """Two layers of width 10 against one: 2,155 wide, where theorem 1's numbers ask for 3.5."""
    first, second = corollaries_table(ranks_of((2, 10, 20), (1, 9, 20), (3, 2, 12), (2, 6, 12))).to_dict(
        "records"
    )
    assert (first["networks"], first["holds"], first["violated"]) == (1, 1, 0)
    assert first["least_distance"] == pytest.approx(math.log(2156 / 4.5, 3))
    # of three layers of width 2, two of width 6 have more; of two of width 6, no shallower one was measured
    assert (second["networks"], second["holds"], second["open"]) == (2, 1, 1)
    assert second["least_distance"] == pytest.approx(2 - math.log(2, 3))
