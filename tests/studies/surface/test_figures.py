"""What the figures of a surface show."""

from dataclasses import replace

import numpy as np
import pytest
from scattered_shapes import Design, budget_of, draw_shapes, symmetric

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.surface import Surface
from shapelaw.fits.surface_forms import SurfaceStatus
from shapelaw.studies.surface.analysis import Options, analyse_surface
from shapelaw.studies.surface.figures import best_depth_figure, penalty_figure


@pytest.fixture(scope="module")
def analysis():
    return analyse_surface(budget_of(Design(24)), Options(draws=200))


def test_a_panel_for_each_size_with_its_shapes_and_the_cost_at_zero(analysis):
    figure = penalty_figure(analysis).figure()
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title(loc="left") for axes in panels] == [
        f"size {text}" for text in ("51M", "128M", "324M", "817M", "2.06B")
    ] or len(panels) == 5
    curve, points = panels[2].get_lines()[:2]
    assert curve.get_ydata().min() == pytest.approx(0.0, abs=1e-3)
    assert len(points.get_xdata()) > 2
    assert "aspect ratio" in panels[3].get_xlabel()


def test_the_band_the_published_line_and_known_models(analysis):
    figure = best_depth_figure(analysis).figure()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["trained shapes", "best depth, 68% band"]
    assert any("Levine" in label for label in labels)
    assert "known models, as trained" in labels
    assert "GPT-2 1542M" in [text.get_text() for text in figure.axes[0].texts]
    line = next(one for one in figure.axes[0].get_lines() if one.get_label() == "best depth, 68% band")
    middle = len(line.get_ydata()) // 2
    assert line.get_ydata()[middle] == pytest.approx(16.0, rel=0.2)
    total = best_depth_figure(replace(analysis, axis=SizeAxis.TOTAL)).figure()
    assert not any("Levine" in text.get_text() for text in total.legends[0].get_texts())


def test_what_cannot_be_drawn_is_said(analysis):
    shapes, _ = draw_shapes(symmetric, Design(5), 0)
    nothing = replace(analysis, surface=Surface(shapes, None, SurfaceStatus.TOO_FEW, "5 shapes"))
    assert penalty_figure(nothing) == best_depth_figure(nothing) == "too few shapes: 5 shapes"
    without_rule = replace(analysis, rule=replace(analysis.rule, error=0.5))
    assert "follow no rule" in penalty_figure(without_rule)
    assert np.isnan(without_rule.rule.width(4.0, 1e6))
