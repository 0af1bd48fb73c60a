"""What a grid makes, for grids of every size, and what it says in sentences and in one line."""

import argparse
from pathlib import Path

import pytest
from grid_runs import AXES, analysed, grid_runs

from shapelaw.report.charts import Chart
from shapelaw.report.write import Results, check_declared
from shapelaw.studies.grid import results
from shapelaw.studies.grid.analysis import analyse_grid
from shapelaw.studies.grid.results import present
from shapelaw.studies.grid.study import FIGURES, TABLES
from shapelaw.studies.grid.tables import effects_table
from shapelaw.studies.transitions.analysis import Options

NOISY = {"seeds": 2, "noise": 0.01}
ONE_CELL = {"heads": (1,), "ranks": (8,), "vocab_sizes": (257,)}
GRIDS = {
    "several seeds": {**NOISY, "heads": (1, 2), "vocab_sizes": (257,)},
    "one depth": {"depths": (2,), "ranks": (None,)},
    "one shape": {"depths": (1,), "widths": (16,), **ONE_CELL},
}


def presented(**options) -> Results:
    return present(analysed(**options))


@pytest.mark.parametrize("name", GRIDS)
def test_everything_declared_is_made_or_left_out_with_its_reason(name: str) -> None:
    found = presented(**GRIDS[name])
    check_declared(found, TABLES, FIGURES)
    assert all(chart.figure() for chart in found.figures.values() if isinstance(chart, Chart))
    assert found.fit["status"] == "too few points"
    assert "nan" not in found.summary
    silent = "no network has two seeds, so nothing has an interval" in found.summary
    assert silent == (name != "several seeds")


def test_a_table_of_runs_is_analysed_by_the_axes_of_a_command_line(tmp_path: Path) -> None:
    grid_runs(**ONE_CELL).to_parquet(tmp_path / "runs.parquet")
    parser = argparse.ArgumentParser()
    results.add_options(parser)
    words = parser.parse_args(["--draws", "200", "--axes", "depth", *AXES])
    found = results.results(argparse.Namespace(input=tmp_path / "runs.parquet", keep=False, **vars(words)))
    assert found.fit["cells"][0]["runs"] == 6


def test_each_axis_has_its_largest_effect_or_none() -> None:
    found = presented(**GRIDS["several seeds"])
    assert found.answer.decided
    rank, heads = found.answer.sentence.rstrip(".").split("; ")
    assert rank.startswith("embedding rank: r = 8 to full rank -0.0")
    assert " nats per token on average over 2 settings (-0." in rank
    assert heads.startswith("heads: H = 1 to H = 2 +0.0")
    assert heads.endswith(", beyond the noise in 2 of 2 settings but not on average")
    assert "P values have Holm's correction for the 6 effects of this grid." in found.summary
    assert "Within a cell (H = 2): attention_dim = width / 2." in found.summary
    assert "Seed noise: 0.0" in found.summary


def test_without_noise_nothing_is_decided_and_that_is_said() -> None:
    found = presented()
    assert not found.answer.decided
    assert (
        "heads: H = 1 to H = 4 +0.0200 bits per byte on average over 4 settings (no noise"
        in found.answer.sentence
    )
    assert "12 cells, which differ in vocab_size, embedding_rank, heads." in found.summary
    alone = presented(**ONE_CELL)
    assert alone.answer.sentence.startswith("Depth 1 against 2: no noise estimate")
    assert not alone.answer.decided


def test_several_vocabularies_without_bits_per_byte_have_no_best_and_no_effect_of_the_vocabulary() -> None:
    runs = grid_runs(heads=(1, 2), ranks=(None,)).drop(columns="bits_per_byte")
    analysis = analyse_grid(runs, "x", Options(draws=200), AXES)
    assert analysis.best == ()
    assert {e.axis for e in analysis.effects if e.found is None} == {"vocab_size"}
    assert {e.unit for e in analysis.effects if e.found is not None} == {"test_loss"}
    alone = present(analyse_grid(runs[runs["heads"] == 1], "x", Options(draws=200), AXES))
    assert "The table has no bits per byte, in which alone the losses of several" in alone.summary
    assert alone.answer.sentence == "No two cells that differ in one thing have sizes in common."


def test_the_losses_of_several_vocabularies_are_drawn_in_bits() -> None:
    panels = results.losses_figure(analysed()).panels
    assert {panel.y.label for panel in panels} == {"bits per byte"}
    (first, *_), cell = panels[0].marks, analysed().analyses[0]
    assert list(first.y) == list(next(iter(cell.bits[0].values())).loss)
    assert {panel.y.label for panel in results.losses_figure(analysed(vocab_sizes=(257,))).panels} == {
        "test loss (nats per token)"
    }


def test_cells_axes_and_depths_have_their_places() -> None:
    """The axis with most values goes along, each axis has a panel of its effects, each cell its best depths."""
    titles = [panel.title for panel in results.losses_figure(analysed()).panels]
    assert titles[:3] == [f"V = 257, r = 8,\nH = {heads}" for heads in (1, 2, 4)]
    assert len(titles) == 12
    one = analysed(**ONE_CELL)
    (alone,) = results.losses_figure(one).panels
    assert alone.title == ""
    analysis = analysed(**NOISY)
    drawn = results.effects_figure(analysis, effects_table(analysis))
    assert [panel.title for panel in drawn.panels] == ["vocab_size", "embedding_rank", "heads"]
    labels = list(drawn.panels[2].y.ticks.values())
    assert (labels[0], labels[-1]) == ("H = 1 → H = 2; V = 257, r = 8", "H = 2 → H = 4; mean of 4")
    assert results.effects_figure(one, effects_table(one)).startswith("no two cells differ")
    (panel,) = results.best_depth_figure(analysed(heads=(1,))).panels
    names = [f"V = {size}, {rank}" for size in (257, 500) for rank in ("r = 8", "full rank")]
    assert list(panel.y.ticks.values()) == names
    assert results.best_depth_figure(analysed(**GRIDS["one depth"])).startswith("no cell has two depths")
