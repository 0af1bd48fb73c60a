"""Tables of a surface without figures."""

import math
from dataclasses import replace

import pytest
from scattered_shapes import Design, budget_of

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.surface_answers import Overtaking
from shapelaw.studies.surface.analysis import Options, analyse_surface
from shapelaw.studies.surface.tables import forms_table, overtaking_table, penalty_table


@pytest.fixture(scope="module")
def analysis():
    return analyse_surface(budget_of(Design(16)), Options(draws=100))


def test_forms_are_listed_by_weight_with_their_formulas(analysis):
    table = forms_table(analysis.surface)
    assert table["weight"].is_monotonic_decreasing
    assert table["formula"].str.len().min() > 10


def test_an_overtaking_size_is_a_width_of_the_shallower_depth(analysis):
    known = replace(analysis, overtakings=(Overtaking(4.0, 8.0, 48e6, 12e6, 192e6, 1.0),))
    (row,) = overtaking_table(known).to_dict("records")
    assert (row["width"], row["width_low"], row["width_high"]) == pytest.approx((1000.0, 500.0, 2000.0))
    nan = math.nan
    unknown = replace(analysis, overtakings=(Overtaking(4.0, 8.0, nan, nan, nan, 0.4),))
    assert overtaking_table(unknown)["width"].isna().all()


def test_flops_are_not_called_parameters(analysis):
    assert "step_flops" in penalty_table(replace(analysis, axis=SizeAxis.FLOPS))
