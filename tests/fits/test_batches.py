"""Batches of runs: which columns say them, and which of them say something of a comparison."""

import numpy as np
import pandas as pd
import pytest

from shapelaw.fits.batches import apart, batch_columns, batches_of, contrasts

RUNS = pd.DataFrame(
    {
        "depth": [1, 1, 1, 2],
        "width": [8, 8, 16, 8],
        "seed": [0, 1, 0, 0],
        "host": ["a", "b", "b", None],
        "started_at": ["2026-11-26T10:00:00Z", "2026-11-26T23:00:00Z", "2026-11-27T01:00:00Z", "2026-11-27"],
        "loss": 1.0,
    }
)


def test_a_shape_has_the_shares_of_its_runs_and_dates_count_by_day() -> None:
    shapes = (1, 8), (1, 16), (2, 8)
    told = {batch: dict(zip(shapes, shares, strict=True)) for batch, shares in batches_of(RUNS).items()}
    assert told["host", "b"] == {(1, 8): 0.5, (1, 16): 1.0, (2, 8): 0.0}
    assert told["host", ""] == {(1, 8): 0.0, (1, 16): 0.0, (2, 8): 1.0}
    assert told["started_at", "2026-11-26"] == {(1, 8): 1.0, (1, 16): 0.0, (2, 8): 0.0}
    assert batch_columns(RUNS.drop(columns=["host", "started_at"])) == {}


def labels(**columns: list[str]) -> dict[tuple[str, str], np.ndarray]:
    return {
        (name, value): np.array([float(each == value) for each in values])
        for name, values in columns.items()
        for value in dict.fromkeys(values)
    }


def test_columns_that_divide_alike_are_one_and_one_of_many_values_has_no_offset() -> None:
    one = labels(host=["a", "a", "b"], torch=["2", "2", "1"], date=["1", "2", "3"])
    other = labels(host=["a", "a", "a"], torch=["2", "2", "2"], date=["4", "5", "6"])
    found = contrasts([one, other])
    assert list(found) == ["host and torch"]
    assert found["host and torch"].tolist() == [0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (["a", "a", "b", "b", "b"], ["c", "c", "c", "d", "d"], ["host"]),  # days of one depth and of the next
        (["a", "b", "c", "d", "e"], ["f", "g", "h", "i", "j"], []),  # a value a run: always apart
        (["a", "a", "b", "b", "c"], ["c", "c", "b", "a", "c"], []),
        (["a", "a", "a", "a", "a"], ["b", "b", "b", "b", "b"], []),  # two values: their offset decides
    ],
)
def test_batches_are_apart_beyond_what_chance_does(one: list[str], other: list[str], told: list[str]) -> None:
    assert apart([labels(host=one)], [labels(host=other)]) == told
