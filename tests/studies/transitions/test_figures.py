"""The study's figures: what is drawn, and what is said where nothing can be."""

from dataclasses import replace

import loss_surfaces
import pandas as pd
import pytest
from transition_runs import DEPTHS, lines, words

from shapelaw.errors import Parts
from shapelaw.fits.inputs import check_runs
from shapelaw.report.charts import Chart
from shapelaw.report.plots import ordered_looks
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.transitions import tables
from shapelaw.studies.transitions.analysis import (
    Options,
    analyse_runs,
    analyse_transitions,
    check_transitions,
    published_transitions,
)
from shapelaw.studies.transitions.figures import curves_panel, layers_text
from shapelaw.studies.transitions.results import present, present_cells, summary


def test_figures_draw_a_usable_fit(analysis, refitted):
    of_transitions = {name: chart.figure() for name, chart in present(refitted).figures.items()}
    assert list(of_transitions) == ["transition_width", "transition_size", "extrapolation"]
    for figure in of_transitions.values():
        assert lines(figure)
        assert not any("no fit" in text for text in words(figure))
    depth = lines(of_transitions["extrapolation"])[0].get_xdata()
    assert max(depth) == 100
    drawn = present(analysis).figures
    losses = drawn["loss_adjacent"].figure()
    assert any(text.startswith("6 layers beat 4 from width") for text in words(losses))
    named = [text.get_text() for text in losses.legends[0].get_texts()]
    assert len(named) == len(set(named))
    assert "transition, 68% interval" in named
    assert not any(
        name.endswith((" layer", " layers")) for name in named
    )  # each panel names its own two depths
    labels = [text.get_text() for text in drawn["best_depth"].figure().axes[0].get_legend().get_texts()]
    assert labels == [layers_text(depth) for depth in DEPTHS]


def test_figures_say_that_there_is_no_fit_and_draw_none():
    two = analyse_transitions(check_transitions(published_transitions().head(2), "two"))
    drawn = present(two).figures
    widths = drawn["transition_width"].figure()
    assert any("too few points" in text for text in words(widths))
    assert not lines(widths)
    for why in (drawn["transition_size"], drawn["extrapolation"]):
        assert "too few points" in why


def test_each_cell_has_its_panels_under_its_name(analysis, refitted):
    drawn = present_cells([({"heads": 1}, analysis), ({"heads": 2}, analysis)], Parts()).figures
    panels = {name: [panel for panel in chart.panels if panel] for name, chart in drawn.items()}
    assert {name: len(some) for name, some in panels.items()} == {
        **dict.fromkeys(("transition_width", "transition_size", "extrapolation"), 2),
        "loss_adjacent": 16,
        "loss_doubled": 8,
        "best_depth": 4,
    }
    for some in panels.values():
        for name in ("H = 1", "H = 2"):
            assert any(panel.title.startswith(name) for panel in some)


def test_where_every_depth_doubles_the_last_one_figure_serves_for_two(analysis):
    assert (drawn := present(analysis).figures)["loss_doubled"] is not drawn["loss_adjacent"]
    doubling = replace(analysis, runs=replace(analysis.runs, doubled=analysis.runs.adjacent))
    assert (drawn := present(doubling).figures)["loss_doubled"] is drawn["loss_adjacent"]


def test_a_flat_line_is_drawn_but_not_extrapolated():
    flat = pd.DataFrame({"depth": [6, 12, 18, 24], "width": [300, 301, 299, 300], "width_err": 10})
    study = analyse_transitions(check_transitions(flat, "flat"))
    drawn = present(study).figures
    assert lines(drawn["transition_width"].figure())
    assert "not significantly above zero" in drawn["extrapolation"]
    projection = tables.projection_table(study.fit)
    assert projection["depth"].isna().all()
    assert projection["status"].str.contains("not significantly above zero").all()
    assert "no projection" in summary(study)


def test_every_depth_is_a_curve_and_a_crossing_is_a_line_at_its_size() -> None:
    middle = loss_surfaces.size(4, 120)
    widths = loss_surfaces.grid_of((4, 8), middle / 9, middle * 9, 7)
    runs = loss_surfaces.simulate(widths, {4: 120.0}, noise=0.0003).rename(columns={"loss": "test_loss"})
    analysis = analyse_runs(check_runs(runs, "runs.csv", size=SizeAxis.BLOCK), Options(draws=100))
    (axis,) = Chart([curves_panel(analysis, ordered_looks([4, 8]), "two depths")]).figure().axes
    assert axis.get_legend_handles_labels()[1] == ["transition, 68% interval", "4 layers", "8 layers"]
    lines = [line.get_xdata()[0] for line in axis.lines if len(set(line.get_xdata())) == 1]
    assert lines == [pytest.approx(middle, rel=0.1)]
