"""What a grid writes, for grids of every size, and what it says in sentences and in one line."""

import argparse
from pathlib import Path

import pytest
from grid_runs import AXES, analysed, grid_runs

from shapelaw.report.write import check_declared, write_results
from shapelaw.studies.grid import results
from shapelaw.studies.grid.analysis import analyse_grid
from shapelaw.studies.grid.results import present
from shapelaw.studies.grid.study import FIGURES, TABLES
from shapelaw.studies.grid.tables import effects_table
from shapelaw.studies.transitions.analysis import Options

GRIDS = {
    "one seed each": {},
    "several seeds": {"seeds": 2, "noise": 0.01, "vocab_sizes": (257,)},
    "one depth": {"depths": (2,), "ranks": (None,)},
    "one width": {"widths": (32,), "ranks": (None,)},
    "one shape": {"depths": (1,), "widths": (16,), "heads": (1,), "ranks": (8,), "vocab_sizes": (257,)},
}


@pytest.mark.parametrize("name", GRIDS)
def test_everything_declared_is_made_or_left_out_with_its_reason(tmp_path: Path, name: str) -> None:
    grid_runs(**GRIDS[name]).to_parquet(tmp_path / "runs.parquet")
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", type=Path)
    parser.add_argument("--keep", action="store_true")
    results.add_options(parser)
    words = ["--input", str(tmp_path / "runs.parquet"), "--draws", "200"]
    words += ["--axes", "depth", "width", "heads", "embedding_rank", "vocab_size"]
    found = results.results(parser.parse_args(words))
    check_declared(found, TABLES, FIGURES)
    assert found.fit["status"] == "too few points"
    written = {path.name for path in write_results(found, tmp_path / "out", "grid")}
    assert {"effects.csv", "effects_by_size.csv", "best_shapes.csv", "losses.svg", "fit.json"} <= written
    assert "nan" not in found.summary
    if name != "several seeds":
        assert "no network has two seeds, so nothing has an interval" in found.summary


def presented(**options):
    return present(analysed(**options))


def test_each_axis_has_its_largest_effect_or_none() -> None:
    found = presented(seeds=2, noise=0.01, ranks=(8, None), heads=(1, 2), vocab_sizes=(257,))
    assert found.answer.decided
    rank, heads = found.answer.sentence.rstrip(".").split("; ")
    assert rank.startswith(
        "embedding_rank: 3 of 3 differences are beyond the noise, most from r = 8 to full rank -0.0968 nats per token "
        "(-0.1025 to -0.0911)"
    )
    assert heads.startswith("heads: ")
    assert "P values have Holm's correction for the 6 effects of this grid." in found.summary
    assert "Within a cell (H = 2): attention_dim = width / 2." in found.summary
    assert "Seed noise: 0.0" in found.summary


def test_without_noise_nothing_is_decided_and_that_is_said() -> None:
    found = presented()
    assert not found.answer.decided
    assert "heads: H = 1 to H = 4 +0.0200 bits per byte (no noise estimate)" in found.answer.sentence
    assert "12 cells, which differ in vocab_size, embedding_rank, heads." in found.summary
    assert "All cells: depth 1 against 2: no noise estimate" in found.summary
    assert "is best; without a noise estimate" in found.summary


def test_one_cell_has_no_effects() -> None:
    found = presented(heads=(1,), ranks=(8,), vocab_sizes=(257,))
    assert found.answer.sentence.startswith("Not at these sizes; depth 1 against 2: no noise estimate")
    assert not found.answer.decided


def test_vocabularies_without_bits_per_byte_are_a_sentence() -> None:
    runs = grid_runs(heads=(1,), ranks=(None,)).drop(columns="bits_per_byte")
    found = present(analyse_grid(runs, "x", Options(draws=200), AXES))
    assert "The table has no bits per byte, in which alone the losses of several" in found.summary
    assert found.answer.sentence == "No two cells that differ in one thing have sizes in common."


def test_the_axis_with_most_values_goes_along() -> None:
    titles = [axis.get_title(loc="left") for axis in results.losses_figure(analysed()).figure().axes]
    assert titles[:3] == [f"V = 257, r = 8,\nH = {heads}" for heads in (1, 2, 4)]
    assert len(titles) == 12
    (alone,) = results.losses_figure(analysed(heads=(1,), ranks=(8,), vocab_sizes=(257,))).figure().axes
    assert alone.get_title(loc="left") == ""


def test_an_axis_has_a_panel_of_its_effects() -> None:
    analysis = analysed(seeds=2, noise=0.01)
    drawn = results.effects_figure(analysis, effects_table(analysis)).figure()
    assert [axis.get_title(loc="left") for axis in drawn.axes] == ["vocab_size", "embedding_rank", "heads"]
    labels = [text.get_text() for text in drawn.axes[2].get_yticklabels()]
    assert labels[0] == "H = 1 → H = 2; V = 257, r = 8"
    assert labels[-1] == "H = 2 → H = 4; mean of 4"
    one = analysed(heads=(1,), ranks=(8,), vocab_sizes=(257,))
    assert results.effects_figure(one, effects_table(one)).startswith("no two cells differ")


def test_every_cell_has_its_best_depths() -> None:
    (axis,) = results.best_depth_figure(analysed(heads=(1,))).figure().axes
    assert [text.get_text() for text in axis.get_yticklabels()] == [
        *("V = 257, r = 8", "V = 257, full rank", "V = 500, r = 8", "V = 500, full rank"),
    ]
    assert results.best_depth_figure(analysed(depths=(1,))).startswith("no cell has two depths")
