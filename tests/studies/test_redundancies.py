"""Redundancies beside published numbers, and in figures."""

import pytest

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.redundancy import Redundancy, RedundancyStatus
from shapelaw.studies.redundancies import (
    Drawn,
    compared_redundancy,
    redundancy_figure,
)


def found(status: RedundancyStatus, value: float) -> Redundancy:
    return Redundancy(value, value - 0.01, value + 0.01, 0.0, status)


@pytest.mark.parametrize(
    ("status", "value", "agrees"),
    [
        (RedundancyStatus.AT_LEAST, 0.2, "yes"),
        (RedundancyStatus.AT_LEAST, 0.3, "no"),
        (RedundancyStatus.AT_MOST, 0.2, "no"),
        (RedundancyStatus.AT_MOST, 0.3, "open"),
        (RedundancyStatus.MEASURED, 0.28, "yes"),
        (RedundancyStatus.MEASURED, 0.3, "no"),
        (RedundancyStatus.NO_NOISE, 0.25, "open"),
    ],
)
def test_a_bound_agrees_only_on_its_side(status: RedundancyStatus, value: float, agrees: str) -> None:
    """With 0.225 to 0.275, "about 75%"."""
    row = compared_redundancy("redundancy", "r = 4", found(status, value), 0.25, 0.225, 0.275)
    assert row["agrees"] == agrees
    assert (row["ours"], row["published"], row["status"]) == (value, 0.25, status.value)


def test_bounds_and_intervals_are_named_apart() -> None:
    points = [
        Drawn("tokens", 4, found(RedundancyStatus.MEASURED, 0.2), (1.0, "")),
        Drawn("tokens", 4, found(RedundancyStatus.AT_LEAST, 0.3), (2.0, "")),
    ]
    chart = redundancy_figure(
        {SizeAxis.BLOCK: points}, {"tokens": ("k", "o"), "patches": ("r", "s")}, "rank", None, {16: 0.5}
    )
    figure = chart.figure()
    names = figure.axes[0].get_legend_handles_labels()[1]
    assert names == ["no redundancy", "published, 30M to 70M", "tokens, 68% interval", "tokens, at least"]
    assert "no intervals" in figure.axes[0].texts[0].get_text()
