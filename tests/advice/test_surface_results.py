"""Tables, sentences and fit.json of a surface."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scattered_shapes import Design, budget_of, draw_shapes, symmetric

from shapelaw.advice.surface.analysis import (
    AVERAGE,
    ENOUGH_DRAWS,
    Options,
    analyse_surface,
    check_options,
    sizes_of,
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
from shapelaw.errors import UserError
from shapelaw.specs.sizes import SizeAxis


@pytest.fixture(scope="module")
def analysis():
    return analyse_surface(budget_of(Design(24)), Options(sizes=(3e8, 1e10), draws=300))


def test_the_average_comes_first_and_forms_with_enough_draws_follow(analysis):
    names = [name for name, _ in analysis.best]
    assert names[:2] == [AVERAGE, AVERAGE]
    enough = [one.form.name for one in analysis.surface.forms if len(one.drawn_theta) >= ENOUGH_DRAWS]
    assert names[2::2] == enough
    assert len(analysis.penalties) == 24


@pytest.mark.parametrize("text", ["", "big", "3e8,", "3x"])
def test_sizes_that_are_none(text):
    with pytest.raises(UserError, match="write numbers, such as"):
        sizes_of(text)
    assert sizes_of("6e7, 300M,1.3B") == (6e7, 3e8, 1.3e9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(sizes=(-3e8,)), "--sizes has -3e.08; a size is a number above zero"),
        (Options(sizes=(math.nan,)), "--sizes has nan"),
        (Options(noise=0.0), "The noise is 0.0"),
        (Options(draws=5), "5 bootstrap draws are too few"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(UserError, match=words):
        check_options(options)


def test_tables_have_what_each_shape_and_depth_costs(analysis):
    results = present_surface(analysis)
    penalty, costs, best = (results.tables[name].frame for name in ("penalty", "costs", "best_depth"))
    assert len(penalty) == 24
    assert penalty["block_params"].is_monotonic_increasing
    assert (penalty["penalty"] >= 0).all()
    known = penalty.dropna(subset="needed")
    assert len(known) > 12
    assert (known["needed"] <= known["block_params"] * 1.0001).all()
    less = penalty[penalty["needed"].isna()]  # smaller than all shapes
    assert (less["needed_high"] >= penalty["block_params"].min()).all()
    assert set(costs["block_params"]) == {3e8}  # 1e10 is more than three times beyond
    assert (12 * costs["depth"] * costs["width"] ** 2).to_numpy() == pytest.approx(3e8)
    assert (costs["cost_low"] <= costs["cost"]).all()
    assert (costs["cost"] <= costs["cost_high"]).all()
    (least,) = costs[costs["is"] == "best"].to_dict("records")
    assert least["cost"] == 0.0
    assert abs(least["depth"] - 16) <= 3
    assert costs["cost"].max() > 0.005
    assert (costs[costs["is"] == "flat"]["cost"] <= 0.005).all()
    assert (costs["loss_high"] - costs["loss_low"] > 1.5 * 0.004).all()  # the scatter of a run is in it
    assert (penalty["penalty_low"] <= penalty["penalty"] + 1e-12).all()
    average = best[best["model"] == "average"].set_index("block_params")
    assert average.loc[3e8, "status"] == "converged"
    assert 12 * average.loc[3e8, "depth"] * average.loc[3e8, "width"] ** 2 == pytest.approx(3e8)
    assert average.loc[1e10, "status"] == "extrapolated"
    fit = results.fit
    alone = set(best["model"]) - {"average"}
    assert alone
    assert alone <= {form["name"] for form in fit["forms"]}
    assert fit["status"] == "converged"
    assert fit["size_axis"] == "block"
    assert fit["token_rule"] == "every run saw 1e+10 tokens"
    assert sum(form["weight"] for form in fit["forms"]) == pytest.approx(1.0)
    symmetric_form = next(form for form in fit["forms"] if form["name"] == "symmetric")
    assert np.shape(symmetric_form["covariance"]) == (4, 4)
    assert json.dumps(fit, allow_nan=False)


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
