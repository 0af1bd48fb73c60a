"""The study's figures: what is drawn, and what is said where nothing can be."""

import pandas as pd
from transition_runs import DEPTHS, lines, words

from shapelaw.fits.inputs import check_transitions
from shapelaw.studies.transitions import tables
from shapelaw.studies.transitions.analysis import analyse_transitions, published
from shapelaw.studies.transitions.figures import (
    best_depth_figure,
    extrapolation_figure,
    loss_figure,
    transition_size_figure,
    transition_width_figure,
)
from shapelaw.studies.transitions.sentences import summary


def test_figures_draw_a_usable_fit(analysis, refitted):
    for figure in (
        transition_width_figure(refitted),
        transition_size_figure(refitted),
        extrapolation_figure(refitted),
    ):
        assert lines(figure)
        assert not any("no fit" in text for text in words(figure))
    depth = lines(extrapolation_figure(refitted))[0].get_xdata()
    assert max(depth) == 100
    losses = loss_figure(analysis.runs.adjacent, "test loss")
    assert any("L = 4 against 6: d = " in text for text in words(losses))
    named = [text.get_text() for text in losses.legends[0].get_texts()]
    assert len(named) == len(set(named))
    assert "transition, 68% interval" in named
    assert not any(name.startswith("L = ") for name in named)  # each panel names its own two depths
    labels = [text.get_text() for text in best_depth_figure(analysis.runs).axes[0].get_legend().get_texts()]
    assert labels == [f"L = {depth}" for depth in DEPTHS]


def test_figures_say_that_there_is_no_fit_and_draw_none():
    two = analyse_transitions(check_transitions(published("transitions").head(2), "two"))
    assert any("too few points" in text for text in words(transition_width_figure(two)))
    assert not lines(transition_width_figure(two))
    for why in (transition_size_figure(two), extrapolation_figure(two)):
        assert "too few points" in str(why)


def test_a_flat_line_is_drawn_but_not_extrapolated():
    flat = pd.DataFrame({"depth": [6, 12, 18, 24], "width": [300, 301, 299, 300], "width_err": 10})
    study = analyse_transitions(check_transitions(flat, "flat"))
    assert lines(transition_width_figure(study))
    assert "not significantly above zero" in str(extrapolation_figure(study))
    projection = tables.projection_table(study.fit)
    assert projection["depth"].isna().all()
    assert projection["status"].str.contains("not significantly above zero").all()
    assert "no projection" in summary(study)
