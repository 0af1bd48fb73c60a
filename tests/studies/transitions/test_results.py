"""All tables, figures and fit.json of depth against width, written."""

import argparse
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from transition_runs import analysed

from shapelaw.errors import Parts
from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import PAPER_RULE
from shapelaw.fits.inputs import check_runs
from shapelaw.report.write import Table
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.transitions.analysis import Options, analyse_runs
from shapelaw.studies.transitions.results import (
    add_options,
    add_size_options,
    analyse,
    answer,
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


NAN = math.nan


def tables(rows, **fit):
    columns = ["depth", "deeper_depth", "width", "width_low", "width_high", "status", "side", "bound"]
    frames = {
        "transitions": pd.DataFrame(rows, columns=columns).assign(method="bootstrap"),
        "fit": pd.DataFrame([{"method": "bootstrap", "status": "too few points", **fit}]),
    }
    return {name: Table(frame, "") for name, frame in frames.items()}


def test_the_law_follows_where_the_line_converged():
    rows = [(depth, depth + 1, 100.0 + depth, NAN, NAN, "crossing", None, NAN) for depth in (1, 2, 3, 4)]
    line = {"status": "converged", "a": 5.0, "a_err": 0.03, "b": 0.05, "b_err": 0.002}
    found = answer(tables(rows, **line, p_value=0.4))
    assert found.sentence.endswith("; and 1 more.")
    assert found.more == "Law: log d = a + b L, a = 5 ± 0.03, b = 0.05 ± 0.002."
    rejected = answer(tables(rows, **line, p_value=0.035))
    assert rejected.more == "Law: a line log d = a + b L fits badly (p = 0.035); other forms: table forms."


@pytest.mark.parametrize(
    ("row", "decided", "said"),
    [
        (
            (1, 2, NAN, NAN, NAN, "none in range, shallower better everywhere", "above", 180.0),
            True,
            "Depth 1 against 2: no transition up to width 180: the shallower network is better everywhere.",
        ),
        (
            (1, 2, NAN, NAN, NAN, "too few sizes", None, NAN),
            False,
            "Depth 1 against 2: too few sizes in common.",
        ),
    ],
)
def test_without_a_crossing_one_better_depth_is_an_answer_and_all_else_undecided(row, decided, said):
    found = answer(tables([row]))
    assert found.decided is decided
    beside = answer(tables([(2, 4, NAN, NAN, NAN, "at the edge", "above", 45.0), row]))
    assert beside.decided is decided
    assert not decided or beside.sentence == found.sentence
    assert found.sentence == said
    assert not answer(tables([])).decided


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
