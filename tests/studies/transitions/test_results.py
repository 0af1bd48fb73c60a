"""All tables, figures and fit.json of depth against width, written."""

import argparse
from dataclasses import replace
from pathlib import Path

import pandas as pd
from transition_runs import analysed

from shapelaw.errors import Parts
from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import PAPER_RULE
from shapelaw.fits.inputs import check_runs
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.transitions.analysis import Options, analyse_runs
from shapelaw.studies.transitions.results import (
    add_options,
    add_size_options,
    analyse,
    options_of,
    present,
    present_cells,
)


def test_points_off_their_line_have_a_widened_error_and_no_projection():
    found = analyse(transitions=Path(__file__).parents[2] / "faults" / "curvefit" / "scattered.csv")
    made = present(found)
    assert "b = 0.02319 ± 0.01746" in made.summary
    assert "no projection: the slope b = 0.0232 ± 0.017 is not significantly above zero" in made.summary
    assert made.tables["projection"].frame["depth"].isna().all()


def asked(add, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add(parser)
    return parser.parse_args(words)


def test_every_word_has_its_place_and_without_words_they_are_the_analysis_own() -> None:
    words = "--method paper --loss bits_per_byte --size flops --noise 0.01 --draws 7 --seed 3"
    found = options_of(asked(add_options, *words.split()))
    assert found == Options("bits_per_byte", 0.01, "paper rule", 7, 3, SizeAxis.FLOPS)
    assert options_of(asked(add_options)) == Options()
    assert vars(asked(add_size_options, "--size", "total")) == {"size": "total", "draws": Options.draws}


def test_the_papers_rule_stands_beside_a_bootstrap_that_finds_no_crossing():
    """Losses of one layer and of two as measured at V = 500, r = 32: they stray far from smooth curves."""
    one = {32: 3.158, 48: 2.901, 64: 2.795, 96: 2.662, 128: 2.573}
    two = {22: 3.342, 34: 3.013, 46: 2.850, 68: 2.605, 90: 2.511}
    rows = [(depth, width, loss) for depth, losses in ((1, one), (2, two)) for width, loss in losses.items()]
    runs = pd.DataFrame(rows, columns=["depth", "width", "test_loss"]).assign(seed=0)
    found = analyse_runs(check_runs(runs, "made"), Options(noise=0.006))
    texts = present(found).tables["transitions"].reading.texts.set_index("method")
    assert texts.loc[BOOTSTRAP, "result"] == "at the edge of the sizes, above width 71"
    assert texts.loc[PAPER_RULE, "width d"] == "80.0 (64.0 to 96.0)"


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
