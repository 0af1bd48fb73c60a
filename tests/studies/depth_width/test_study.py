"""The grid of depth against width: from its keys to runs, and what is wrong with it."""

import math

from hypothesis import given
from hypothesis import strategies as st
from made_runs import a_run

from shapelaw.studies.decoders.study import by_information
from shapelaw.studies.study import published_log_width


def crossing_width(depth: int) -> float:
    """Of the published line, for this depth and the next."""
    return math.exp(published_log_width(depth))


def test_the_width_at_the_published_crossing_is_first() -> None:
    at = 2 * round(crossing_width(12) / 2)
    widths = [at - 120, at - 40, at, at + 20, at + 300]
    runs = [a_run(depth, width) for depth in (12, 18) for width in widths]
    order = by_information(runs)
    assert (order[0].shape.depth, order[0].shape.width) == (12, at)
    nearest_first = [at, at + 20, at - 40, at - 120, at + 300]
    assert [run.shape.width for run in order if run.shape.depth == 12] == nearest_first
    # the deeper one meets it at the same size, where it is narrower by the root of the depths' ratio
    deeper = next(run.shape.width for run in order if run.shape.depth == 18)
    assert deeper == min(widths, key=lambda width: abs(math.log(width / (at * math.sqrt(12 / 18)))))


@given(st.permutations([(depth, seed) for depth in (6, 12, 18) for seed in range(3)]))
def test_a_further_seed_of_a_shape_comes_after_its_first(some: list[tuple[int, int]]) -> None:
    order = by_information([a_run(depth, 300, seed=seed) for depth, seed in some])
    for depth in (6, 12, 18):
        assert [run.seed for run in order if run.shape.depth == depth] == [0, 1, 2]


def test_one_depth_alone_has_no_crossing_and_its_first_seeds_come_first() -> None:
    runs = [a_run(6, width, seed=seed) for seed in (1, 0) for width in (400, 200)]
    order = [(run.shape.width, run.seed) for run in by_information(runs)]
    assert order == [(400, 0), (200, 0), (400, 1), (200, 1)]
