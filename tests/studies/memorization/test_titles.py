"""A figure's title says what was found, or that the numbers can't tell."""

from __future__ import annotations

import pandas as pd

from shapelaw.fits.capacity import Capacity, CapacityStatus
from shapelaw.studies.memorization.results import _heads, saturated_titles

FOUND, AT_LEAST, BELOW = CapacityStatus.FOUND, CapacityStatus.AT_LEAST, CapacityStatus.BELOW


def size(heads: float, status: CapacityStatus) -> Capacity:
    return Capacity(heads, heads, heads, heads, heads, status)


def test_heads_are_named_for_each_number_of_examples_and_bounds_are_bounds() -> None:
    needed = [
        (400, size(8, AT_LEAST)),
        (100, size(1, BELOW)),
        (200, size(5.9, FOUND)),
        (600, size(8, AT_LEAST)),
    ]
    assert _heads(needed) == "at most 1 heads for T = 100, 6 for 200, more than 8 for 400 and 600"


def test_the_share_of_examples_with_an_unsaturated_head_is_named_from_where_it_stays_high() -> None:
    free = [0.95, 0.5, 0.97, 0.93]
    rows = pd.DataFrame(
        {"heads": [1, 2, 4, 8], "saturated_share": [0.9, 0.8, 0.6, 0.35], "examples_with_free_head": free}
    )
    assert saturated_titles(rows) == (
        "35% to 90% of the heads are saturated",
        "From 4 heads on at least 93%\nof the examples have an unsaturated head",
    )
    low = rows.assign(examples_with_free_head=0.4)
    assert saturated_titles(low)[1] == "40% to 40% of the examples have an unsaturated head"
