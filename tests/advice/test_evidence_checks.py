"""What the evidence predicts of what was left out, and the intervals that follow."""

import math

import numpy as np
import pytest
from public_losses import SERIES, best_at, made_table

from shapelaw.advice.answer.costs import DEPTHS
from shapelaw.advice.evidence.checks import (
    Miss,
    against_law,
    best_depths,
    between,
    costs_between,
    growth,
    left_out_losses,
    log_blocks_at,
    spread_between_sources,
    without_each_shape,
)
from shapelaw.advice.evidence.fit import SETS, Fitted, drawn, fit_group, losses_of
from shapelaw.errors import UserError


def fitted_by_one_form(scatter: float = 0.004) -> Fitted:
    series = losses_of(made_table(scatter), "made")
    groups = [fit_group(losses, "nats square", "block") for losses in series]
    return Fitted(
        tuple(
            (group, 1.0, drawn(group, 20, np.random.default_rng(index))) for index, group in enumerate(groups)
        )
    )


FITTED = fitted_by_one_form()


def test_equal_totals_leave_less_for_the_blocks_of_wide_networks() -> None:
    blocks = log_blocks_at(1e8, "equal total")
    assert (np.diff(blocks) > 0).all()
    assert (blocks < math.log(1e8)).all()
    assert log_blocks_at(1e8, "equal blocks") == pytest.approx(np.full_like(DEPTHS, math.log(1e8)))


def test_series_of_the_same_networks_predict_each_other() -> None:
    found = between(*(FITTED.surface(SETS[name]) for name in ("full rate", "half rate")))
    assert max(abs(one.off) for misses in found.values() for one in misses) < 0.1
    at_equal_blocks = found["equal blocks"]
    assert [one.moved for one in at_equal_blocks] == pytest.approx([1.0] * len(at_equal_blocks), abs=0.05)
    # an untied vocabulary holds the best depth of a small network
    assert min(one.moved for one in found["equal total"]) < 0.8


def test_costs_of_the_same_networks_come_out_as_said() -> None:
    misses, scale = costs_between(FITTED.surface(SETS["full rate"]), FITTED, SETS["half rate"])
    assert scale == pytest.approx(1.0, abs=0.1)
    assert np.sqrt(np.mean([one.off**2 for one in misses])) < 0.01
    assert np.mean([one.held() for one in misses]) > 0.5


def test_left_out_shapes_are_held_about_as_often_as_said_and_a_jackknife_is_about_as_wide_as_the_draws() -> (
    None
):
    held = np.mean([one.held() for one in left_out_losses(FITTED, SETS["full rate"])])
    assert 0.55 <= held <= 0.85
    misses = without_each_shape(FITTED, SETS["half rate"])["equal blocks"]
    ratio = [one.off / one.own for one in misses]
    assert 0.3 < np.median(ratio) < 2.0


def test_another_source_that_is_off_by_a_known_amount_gives_its_spread() -> None:
    misses = against_law(FITTED, lambda size: math.exp(best_at(size) + 0.4))
    assert [one.off for one in misses] == pytest.approx([0.4] * len(misses), abs=0.12)
    own = float(np.mean([one.own**2 for one in misses]))
    off = float(np.mean([one.off**2 for one in misses]))
    assert spread_between_sources([misses]) == pytest.approx(math.sqrt((off - own) / 2.0))
    none = [Miss(0.0, 0.0, 0.0, 0.0)]
    assert spread_between_sources([misses, none]) == pytest.approx(math.sqrt((off - own) / 4.0))
    same = against_law(
        FITTED, lambda size: math.exp(best_depths(FITTED.surface(SERIES), size, 3e10, "equal blocks")[0])
    )
    assert spread_between_sources([same]) == 0.0


def test_growth_is_what_errors_have_beyond_the_draws() -> None:
    one = Miss(0.5, 0.3, -0.3, 0.3, 2.0)
    assert growth([[one, one]]) == pytest.approx(0.4 / 2.0)
    assert growth([[Miss(0.1, 0.3, -0.3, 0.3, 2.0)]]) == 0.0
    assert growth([[Miss(0.1, 0.3, -0.3, 0.3, 2.0)], [one]]) == pytest.approx(0.2)  # the worst of the groups
    with pytest.raises(UserError, match="too few sizes or budgets"):
        growth([[Miss(0.1, 0.3, -0.3, 0.3, 0.1)]])
    off = Miss(0.35, 0.2, -0.2, 0.2, 0.0, 1.0)
    assert (off.held(), off.held(0.3)) == (False, True)  # a moved interval holds more
