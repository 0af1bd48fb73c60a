"""The study's figures: what is drawn, and what is said where nothing can be."""

from dataclasses import replace

from transition_runs import analysed

from shapelaw.errors import Parts
from shapelaw.studies.transitions.results import present, present_cells


def test_each_cell_has_its_panels_under_its_name():
    analysis = analysed()
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


def test_where_every_depth_doubles_the_last_one_figure_serves_for_two():
    analysis = analysed()
    assert (drawn := present(analysis).figures)["loss_doubled"] is not drawn["loss_adjacent"]
    doubling = replace(analysis, runs=replace(analysis.runs, doubled=analysis.runs.adjacent))
    assert (drawn := present(doubling).figures)["loss_doubled"] is drawn["loss_adjacent"]
