"""All tables, beside the published ones, figures and fit.json of depth against width, written."""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loss_surfaces import grid_of, simulate
from transition_runs import analysed, refitted, runs_of

from shapelaw.errors import Parts, UserError
from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import PAPER_RULE, loss_curves
from shapelaw.fits.inputs import check_runs
from shapelaw.fits.noise import Noise
from shapelaw.report.write import check_declared
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.decoders import depth_width
from shapelaw.studies.decoders.study import FIGURES, TABLES
from shapelaw.studies.transitions import tables
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


def test_the_papers_numbers_from_the_papers_transitions():
    comparison = tables.comparison_table(refitted()).set_index("quantity")
    error = (comparison["ours"] / comparison["published"] - 1).abs()
    assert error.drop(["relative error of N_transition(100)", "cov_bb"]).max() < 0.006
    assert error.max() < 0.05
    err_error = (comparison["ours_err"] / comparison["published_err"] - 1).abs().dropna()
    assert len(err_error) == 9
    assert err_error.max() < 0.03


def test_a_transition_has_the_tokens_of_each_parameter_of_its_shallower_network():
    """At a fixed number of tokens they fall as the size; with equal tokens a parameter all transitions have these."""
    made = simulate(grid_of((4, 6, 8), 6e4, 6e6, 12), {4: 150.0, 6: 200.0, 8: 260.0}, noise=0.0008)
    blocks = 12 * made["depth"] * made["width"] ** 2
    for tokens, expected in (
        (blocks * 0 + 5e7, lambda depth, d: 5e7 / (12 * depth * d**2)),
        (blocks * 20, lambda *_: 20),
    ):
        runs = check_runs(made.assign(block_params=blocks, tokens_trained=tokens), "made")
        found = analyse_runs(runs, Options(draws=200)).transitions.query("status == 'crossing'")
        assert len(found) >= 2
        wanted = [expected(depth, width) for depth, width in zip(found["depth"], found["width"], strict=True)]
        assert found["tokens_per_param"].tolist() == pytest.approx(wanted, rel=1e-6)
    assert "tokens_per_param" not in analyse_runs(check_runs(made, "made"), Options(draws=50)).transitions


def test_gaps_change_sign_at_the_crossing_and_none_is_judged_without_noise():
    runs = check_runs(simulate(grid_of((4, 6), 6e4, 6e6, 12), {4: 200.0}, noise=0.0008), "made")
    table = tables.gaps_table(analyse_runs(runs, Options(draws=50)).runs)
    assert set(table["better"]) == {"shallower", "neither", "deeper"}
    assert (table.query("better == 'deeper'")["width"] > 180).all()
    assert (table.query("better == 'shallower'")["width"] < 220).all()
    once = tables.gaps_table(analyse_runs(runs[runs["seed"] == 0], Options(draws=50)).runs)
    assert len(once) == len(table)
    assert once[["deeper_by_err", "better"]].isna().all(axis=None)


def test_the_projection_is_the_papers_table_1():
    table = tables.projection_table(refitted().fit)
    assert len(table) == 9
    assert (table["depth"] - table["published_depth"]).abs().max() <= 1
    assert (table["width"] / table["published_width"] - 1).abs().max() <= 0.015
    assert (table["status"] == "projected").all()
    small = table.set_index("model").loc["GPT-3 Small"]
    assert small["non_embedding_params"] == 125e6 - 50257 * 768
    assert table["width_err"].between(0, 0.05 * table["width"]).all()


def test_seed_noise_stands_beside_the_published_one():
    runs = simulate(grid_of((6, 12), 3e6, 5e7, 5), {6: 300.0})
    runs.loc[runs["width"] == runs["width"].unique()[1], "width"] = 320
    study = analyse_runs(check_runs(runs, "made"), Options(draws=100)).runs
    table = tables.seed_noise_table(study)
    assert table.loc[table["width"] == 320, "published_std"].item() == 0.00192
    pooled = table.iloc[-1]
    assert pooled["depth"] == "pooled"
    assert pooled["loss_std"] == study.noise.std
    assert pooled["seeds"] == 12


def test_best_depth_changes_at_the_transitions():
    truth = check_runs(simulate(grid_of((4, 8, 16), 1e5, 1e7, 25), {4: 90.0, 8: 130.0}, noise=0.0), "made")
    curves = loss_curves(truth.drop_duplicates(["depth", "width"]), Noise(1e-5, np.inf))
    table = tables.best_depth_table(tables.rank_depths(curves, Noise(1e-5, np.inf)))
    assert table["best_depth"].tolist() == [4, 8, 16]
    assert table["size_high"][0] == pytest.approx(12 * 4 * 90**2, rel=0.03)
    assert table["size_low"][2] == pytest.approx(12 * 8 * 130**2, rel=0.03)
    assert (table["certain"] > 0.85).all()
    unknown = tables.best_depth_table(tables.rank_depths(loss_curves(truth, None), None))
    assert (unknown["certain"] == 0).all()


def test_best_depth_ranks_only_what_is_there():
    """Scattered shapes: no certainty across a gap of a decade, nor where a depth has fewer than four sizes."""
    runs = simulate(
        {4: [40, 50, 60, 70, 300, 320], 8: [30, 36, 42, 50, 220, 240], 16: [60, 200]}, {4: 90.0, 8: 130.0}
    )
    curves = loss_curves(check_runs(runs, "made"), Noise(1e-5, np.inf))
    ranking = tables.rank_depths(curves, Noise(1e-5, np.inf))
    assert not ((ranking.size > 5e5) & (ranking.size < 3e6)).any()
    assert not np.isfinite(ranking.excess[ranking.depths.index(16)]).any()
    assert not ranking.certain.any()


@pytest.fixture
def mixed(tmp_path):
    """Runs of two vocabularies, those of 500 words with losses 0.05 higher."""
    runs = runs_of().rename(columns={"loss": "test_loss"}).assign(vocab_size=257)
    both = pd.concat([runs, runs.assign(vocab_size=500, test_loss=runs["test_loss"] + 0.05)])
    both.to_csv(tmp_path / "runs.csv", index=False)
    return tmp_path / "runs.csv"


def made_from(table, *options):
    given = vars(asked(depth_width.add_options, "--draws", "100", *options))
    return depth_width.results(argparse.Namespace(input=table, keep=False, **given))


def test_cells_have_rows_under_a_column_of_what_tells_them_apart(mixed):
    """And each has what it would have alone: the others' losses are no noise of its own."""
    found = made_from(mixed, "--axes", "vocab_size")
    check_declared(found, TABLES, FIGURES)
    alone = present(analyse_runs(runs_of(), Options(draws=100)))
    for name in TABLES:
        table, expected = found.tables[name].frame, alone.tables[name].frame
        assert list(table) == ["vocab_size", *expected], name
        for _, own in table.groupby("vocab_size"):
            rows = own.reset_index(drop=True)[[column for column in expected if column != "loss_mean"]]
            pd.testing.assert_frame_equal(rows, expected[list(rows)], check_dtype=False)
    assert [cell["cell"] for cell in found.fit["cells"]] == [{"vocab_size": 257}, {"vocab_size": 500}]
    assert found.answer.sentence.startswith("V = 257: Depth 6 overtakes depth 4 at width ")
    assert " V = 500: Depth 6 overtakes depth 4 at width " in found.answer.sentence
    assert "V = 500: Seed noise: " in found.summary


def test_a_table_from_elsewhere_is_split_too_and_rates_that_nobody_listed_are_a_sentence(mixed):
    runs = pd.read_csv(mixed).query("depth < 8")
    runs.to_csv(mixed, index=False)
    assert set(made_from(mixed).tables["transitions"].frame["vocab_size"]) == {257, 500}
    rates = runs.rename(columns={"vocab_size": "learning_rate"})
    rates.to_csv(mixed, index=False)
    with pytest.raises(
        UserError, match=r"has several values of learning_rate \(257, 500\) at one depth and width"
    ):
        made_from(mixed)
