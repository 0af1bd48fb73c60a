"""The surface of the public evidence, by its formula and its committed draws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.advice.answer.costs import evidence_of
from shapelaw.advice.evidence.losses import (
    BLOCK_SHARE,
    COLUMNS,
    FEW_TOKENS,
    PENALTIES,
    TABLE,
    Draws,
    log_total,
    lowest,
    penalty,
    power,
)
from shapelaw.studies.study import published_json

CONTENT = published_json("evidence")
DRAWS = evidence_of(CONTENT).draws
assert isinstance(DRAWS, Draws)


@given(st.sampled_from(PENALTIES), st.floats(-3, 3), st.floats(-2, 2))
def test_a_penalty_is_zero_on_the_ridge_and_grows_away_from_it(kind: str, t: float, skew: float) -> None:
    near, far, ridge = (float(penalty(kind, np.array([x]), skew)[0]) for x in (t, 1.5 * t, 0.0))
    assert ridge == 0.0
    assert near >= 0.0
    assert far >= near
    assert penalty(kind, np.array([t]), 0.0) == pytest.approx(t**2, abs=1e-3)  # without skew a square


def test_a_power_law_is_a_line_where_its_exponent_is_zero() -> None:
    x = np.linspace(-2, 2, 5)
    assert power(np.array(0.0), x) == pytest.approx(x, abs=1e-5)
    assert power(np.array(0.5), x) == pytest.approx((1 - np.exp(-0.5 * x)) / 0.5)


def test_all_parameters_are_those_of_the_evidence_s_networks() -> None:
    """28 layers of width 1,024: 440,460,288 in blocks of 15 d², 543,482,880 with two tables of 50,304 and norms."""
    found = float(np.exp(log_total(np.log([440_460_288.0]), np.log([28.0])))[0])
    assert found == pytest.approx(543_482_880, rel=2e-4)
    assert pytest.approx(found, rel=2e-4) == 28 * BLOCK_SHARE * 1024**2 + TABLE * 1024  # but for norms


def test_the_committed_draws_are_those_of_their_groups() -> None:
    groups = CONTENT["groups"]
    assert len(DRAWS) == sum(len(group["draws"]) for group in groups) == 400
    assert CONTENT["columns"] == list(COLUMNS)
    assert {group["set"] for group in groups} == {"full rate", "half rate"}
    for series in {group["series"] for group in groups}:
        mine = [group for group in groups if group["series"] == series]
        for size in ("block", "total"):
            part = [group for group in mine if group["size"] == size]
            assert sum(group["weight"] for group in part) == pytest.approx(1.0, abs=0.01)
            assert sum(len(group["draws"]) for group in part) == 40


@pytest.mark.parametrize("tokens", [1e9, 3e10, 3e11, 1e13])
def test_the_best_of_a_larger_size_is_better_in_every_draw(tokens: float) -> None:
    """Down to a third of the smallest network and up to three times the largest."""
    grid = np.linspace(0.0, 6.2, 250)
    best = [
        lowest(DRAWS.losses(np.full_like(grid, math.log(size)), grid, math.log(tokens)), grid)[1]
        for size in (7.5e6, 2e7, 6e7, 3e8, 1.3e9, 5.3e9)
    ]
    assert np.isfinite(best).all()
    assert (np.diff(best, axis=0) < 0).all()


def test_the_slope_goes_on_along_its_tangent_outside_of_the_tokens() -> None:
    """And where tokens are few, it and the ridge bend by a term of their own."""
    low, high = DRAWS.tokens
    at = np.log([1e8, 1e9]), np.log([16.0, 16.0])
    straight = DRAWS.by_levels()
    straight = replace(straight, values=straight.values * (np.array(COLUMNS) != "c3"))
    for draws, end in ((DRAWS, high), (straight, low)):
        slopes = [np.diff(draws.losses(*at, math.log(end) + step)) for step in (-0.01, 0.0, 0.01)]
        assert slopes[0] - slopes[1] == pytest.approx(slopes[1] - slopes[2], abs=1e-4)
    assert DRAWS.losses(*at, math.log(FEW_TOKENS)) == pytest.approx(
        straight.losses(*at, math.log(FEW_TOKENS))
    )
    assert (DRAWS.losses(*at, math.log(2e9)) != straight.losses(*at, math.log(2e9))).all()


def test_a_scaled_penalty_costs_so_much_more() -> None:
    """At equal blocks and tokens, in nats."""
    grid = np.linspace(0.5, 6.0, 221)
    size = np.full_like(grid, math.log(4e8))
    rows = DRAWS.in_nats & ~DRAWS.of_total
    kept = (values[rows] for name, values in vars(DRAWS).items() if name != "tokens")
    once = Draws(*kept, DRAWS.tokens)
    losses = [
        draws.losses(size, grid, math.log(3e10))
        for draws in (once, once.scaled(np.full(len(once), math.log(2.0))))
    ]
    costs = [one - one.min(axis=1, keepdims=True) for one in losses]
    assert costs[1] == pytest.approx(2.0 * costs[0])


def test_a_shift_moves_the_ridge_by_itself() -> None:
    grid = np.linspace(0.5, 6.0, 1101)
    size = np.full_like(grid, math.log(4e8))
    rows = ~DRAWS.of_total
    kept = (values[rows] for name, values in vars(DRAWS).items() if name != "tokens")
    blocks = Draws(*kept, DRAWS.tokens)
    here, moved = (
        lowest(blocks.losses(size, grid, math.log(3e10), np.full(len(blocks), shift)), grid)[0]
        for shift in (0.0, 0.3)
    )
    assert moved - here == pytest.approx(np.full(len(blocks), 0.3), abs=0.02)


@given(st.floats(2.0, 4.5), st.floats(0.1, 2.0))
@settings(max_examples=20)
def test_the_lowest_of_a_parabola_is_found_between_points(place: float, bend: float) -> None:
    grid = np.linspace(1.0, 6.0, 26)
    at, loss = lowest((bend * (grid - place) ** 2)[None], grid)
    assert at[0] == pytest.approx(place, abs=1e-6)
    assert loss[0] == pytest.approx(0.0, abs=1e-6)
