"""The ratio of two transitions."""

import math

import pytest

from shapelaw.fits.curves import TransitionStatus
from shapelaw.fits.noise import Noise
from shapelaw.studies.transitions.ratios import NO_RATIO, ratio_of


def transition(width: float, err: float, status: str = TransitionStatus.CROSSING.value) -> dict[str, object]:
    return {"status": status, "width": width, "width_err": err}


def test_a_ratio_has_the_errors_of_both() -> None:
    found = ratio_of(transition(100, 3), transition(200, 8))
    assert found["ratio"] == pytest.approx(2.0)
    assert math.log(found["ratio_high"] / found["ratio"]) == pytest.approx(0.05)  # 3% and 4%
    assert found["p_equal"] < 1e-10
    assert ratio_of(transition(100, 3), transition(105, 4.2))["p_equal"] == pytest.approx(0.33, abs=0.01)


def test_a_bound_has_no_ratio() -> None:
    found = ratio_of(transition(100, 3), transition(math.nan, math.nan, "no crossing"))
    assert found["status"] == NO_RATIO
    assert math.isnan(found["ratio"])


def test_few_degrees_of_freedom_have_students_tails() -> None:
    pair = transition(100, 1), transition(125, 1)
    assert ratio_of(*pair)["p_equal"] < 1e-50
    assert ratio_of(*pair, Noise(0.01, 4.0), Noise(0.01, 9.0))["p_equal"] == pytest.approx(1e-4, rel=0.5)
