"""Loss curves in one panel."""

import loss_surfaces
import matplotlib.pyplot as plt
import pytest

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.inputs import check_runs
from shapelaw.report.plots import ordered_looks
from shapelaw.studies.transitions.analysis import Options, analyse_runs
from shapelaw.studies.transitions.drawing import draw_curves


def test_every_depth_is_a_curve_and_a_crossing_is_a_line_at_its_size() -> None:
    middle = loss_surfaces.size(4, 120)
    widths = loss_surfaces.grid_of((4, 8), middle / 9, middle * 9, 7)
    runs = loss_surfaces.simulate(widths, {4: 120.0}, noise=0.0003).rename(columns={"loss": "test_loss"})
    analysis = analyse_runs(check_runs(runs, "runs.csv", size=SizeAxis.BLOCK), Options(draws=100))
    figure, axis = plt.subplots()
    rows = analysis.transitions[analysis.transitions["method"] == "bootstrap"].to_dict("records")
    assert analysis.runs is not None
    draw_curves(axis, analysis.runs, rows, ordered_looks([4, 8]))
    assert axis.get_legend_handles_labels()[1] == ["transition, 68% interval", "L = 4", "L = 8"]
    lines = [line.get_xdata()[0] for line in axis.lines if len(set(line.get_xdata())) == 1]
    assert lines == [pytest.approx(middle, rel=0.1)]
    plt.close(figure)
