"""Tables, sentences and fit.json of a surface."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scattered_shapes import Design, budget_of, draw_shapes, symmetric

from shapelaw.advice.surface.analysis import (
    Options,
    analyse_surface,
)
from shapelaw.advice.surface.answers import Overtaking, middle_sizes
from shapelaw.advice.surface.average import Surface
from shapelaw.advice.surface.forms import SurfaceStatus
from shapelaw.advice.surface.results import (
    best_depth_figure,
    overtaking_table,
    penalty_figure,
    penalty_table,
    present_surface,
)
from shapelaw.specs.sizes import SizeAxis


@pytest.fixture(scope="module")
def analysis():
    return analyse_surface(budget_of(Design(24)), Options(sizes=(3e8, 1e10), draws=300))


def test_what_equal_size_means_is_said_first(analysis):
    lines = present_surface(analysis).summary.splitlines()
    assert lines[0] == (
        "Equal size means the same number of parameters in the blocks; every run saw 1e+10 tokens."
    )
    assert "the residuals" in lines[1]
    (head,) = (at for at, line in enumerate(lines) if "best depth (68%)" in line)
    assert lines[head + 1].split()[0] == "300M"
    assert lines[head + 1].endswith("converged")
    assert lines[head + 2].split()[0] == "10B"
    assert lines[head + 2].endswith("extrapolated")


def test_left_out_shapes_that_are_missed_far_are_said(analysis):
    assert not any("times as far" in line for line in present_surface(analysis).summary.splitlines())
    forms = tuple(replace(one, left_out=3.6 * one.scatter) for one in analysis.surface.forms)
    mixed = replace(analysis, surface=replace(analysis.surface, forms=forms))
    assert "Left-out shapes are missed 3.6 times as far" in present_surface(mixed).summary


def test_shapes_that_allow_no_surface_still_have_tables_with_their_status():
    results = present_surface(analyse_surface(budget_of(Design(5)), Options(draws=100)))
    assert set(results.tables["penalty"].frame["status"]) == {"too few shapes"}
    assert set(results.tables["best_depth"].frame["status"]) == {"too few shapes"}
    assert results.fit["status"] == "too few shapes"
    assert results.figures == {}
    assert set(results.left_out) == {"figure penalty", "figure best_depth", "table overtaking"}
    assert "5 shapes, and a surface needs 8" in results.summary


def test_an_overtaking_size_is_a_width_of_the_shallower_depth(analysis):
    known, nan = Overtaking(4.0, 8.0, 48e6, 12e6, 192e6, 1.0), math.nan
    both = replace(analysis, overtakings=(known, Overtaking(4.0, 8.0, nan, nan, nan, 0.4)))
    row, unknown = overtaking_table(both).to_dict("records")
    assert (row["width"], row["width_low"], row["width_high"]) == pytest.approx((1000.0, 500.0, 2000.0))
    assert math.isnan(unknown["width"])


def test_flops_are_not_called_parameters(analysis):
    assert "step_flops" in penalty_table(replace(analysis, axis=SizeAxis.FLOPS))


@pytest.fixture(scope="module")
def drawn(analysis):
    """At five sizes of the shapes' own."""
    return replace(analysis, sizes=tuple(middle_sizes(analysis.surface.shapes).tolist()))


def test_a_panel_for_each_size_with_its_shapes_and_the_cost_at_zero(drawn):
    figure = penalty_figure(drawn).figure()
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) == 5
    curve, points = panels[2].get_lines()[:2]
    assert curve.get_ydata().min() == pytest.approx(0.0, abs=1e-3)
    assert len(points.get_xdata()) > 2
    assert "aspect ratio" in panels[3].get_xlabel()


def test_the_band_the_published_line_and_known_models(drawn):
    figure = best_depth_figure(drawn).figure()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["trained shapes", "best depth, 68% band"]
    assert any("Levine" in label for label in labels)
    assert "known models, as trained" in labels
    assert "GPT-2 1542M" in [text.get_text() for text in figure.axes[0].texts]
    line = next(one for one in figure.axes[0].get_lines() if one.get_label() == "best depth, 68% band")
    middle = len(line.get_ydata()) // 2
    assert line.get_ydata()[middle] == pytest.approx(16.0, rel=0.2)
    total = best_depth_figure(replace(drawn, axis=SizeAxis.TOTAL)).figure()
    assert not any("Levine" in text.get_text() for text in total.legends[0].get_texts())


def test_what_cannot_be_drawn_is_said(drawn):
    shapes, _ = draw_shapes(symmetric, Design(5), 0)
    nothing = replace(drawn, surface=Surface(shapes, None, SurfaceStatus.TOO_FEW, "5 shapes"))
    assert penalty_figure(nothing) == best_depth_figure(nothing) == "too few shapes: 5 shapes"
    without_rule = replace(drawn, rule=replace(drawn.rule, error=0.5))
    assert "follow no rule" in penalty_figure(without_rule)
    assert np.isnan(without_rule.rule.width(4.0, 1e6))
