"""Means and noise of runs that differ in their seed alone."""

import math

import pandas as pd
import pytest

from shapelaw.errors import UserError
from shapelaw.fits.groups import group_means, group_noise

RUNS = pd.DataFrame(
    {
        "width": [8, 8, 8, 16, 16, 32],
        "rank": [4.0, 4.0, None, 4.0, 4.0, 4.0],
        "seed": [0, 1, 0, 0, 1, 0],
        "loss": [1.0, 3.0, 5.0, 2.0, 4.0, 9.0],
        "size": [80, 80, 81, 160, 160, 320],
    }
)


def test_a_missing_rank_is_a_group_of_its_own() -> None:
    means = group_means(RUNS, ["width", "rank"], ["size"])
    assert means["loss"].tolist() == [2.0, 5.0, 3.0, 9.0]
    assert means["seeds"].tolist() == [2, 1, 2, 1]
    assert means["size"].tolist() == [80, 81, 160, 320]


def test_the_noise_is_pooled_over_repeated_groups() -> None:
    noise = group_noise(group_means(RUNS, ["width", "rank"]))
    assert noise is not None
    assert (noise.std, noise.dof) == (pytest.approx(math.sqrt(2.0)), 2.0)
    assert group_noise(group_means(RUNS, ["width", "rank", "seed"])) is None
    with pytest.raises(UserError, match="exactly equal losses"):
        group_noise(group_means(RUNS.assign(loss=1.0), ["width", "rank"]))
