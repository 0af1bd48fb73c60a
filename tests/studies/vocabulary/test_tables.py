"""The tables of the vocabulary study."""

import pytest
from vocabulary_runs import SERIES, vocabulary_runs

from shapelaw.fits.line import FitStatus
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.vocabulary.analysis import analyse_series
from shapelaw.studies.vocabulary.results import present
from shapelaw.studies.vocabulary.tables import comparison_table, losses_table, relation_table


def test_each_transition_stands_beside_its_bottleneck() -> None:
    analysis = analyse_series(vocabulary_runs(SERIES), "runs.csv", Options(draws=400))
    table = comparison_table(analysis)
    assert table["ours"].tolist() == pytest.approx([257, 350, 500, 1200], rel=0.1)
    assert table["bottleneck"].tolist() == [257, 350, 500, 2000]
    assert table["agrees_with_bottleneck"].tolist()[3] == "no"  # the width is the bottleneck there, not V
    assert table["published"].notna().tolist() == [False, False, True, False]
    assert table["published_over_bottleneck"].tolist() == pytest.approx(
        [408 / 500, 504 / 500, 408 / 500, 408 / 500]
    )
    assert table["published_setting"].tolist()[0:2] == [
        "V = 500: depth 24 against 48",
        "V = 2,000, r = 500: depth 24 against 48",
    ]
    losses = losses_table(analysis)
    assert (losses["text_bytes"] / 1e6).tolist() == pytest.approx([3.0 / 0.6931471805599453] * len(losses))


def test_a_transition_in_proportion_to_the_bottleneck_is_told_from_none() -> None:
    follows = {key: 0.9 * width for key, width in SERIES.items() if key != (2000, None)}
    row = relation_table(analyse_series(vocabulary_runs(follows), "runs.csv", Options(draws=300))).iloc[0]
    assert row["status"] == FitStatus.CONVERGED
    assert row["b"] == pytest.approx(1.0, abs=3 * row["b_err"])
    assert row["p_proportional"] > 0.003
    assert row["p_none"] < 1e-4
    same = dict.fromkeys(follows, 400.0)
    row = relation_table(analyse_series(vocabulary_runs(same), "runs.csv", Options(draws=300))).iloc[0]
    assert row["b"] == pytest.approx(0.0, abs=3 * row["b_err"])
    assert row["p_proportional"] < 1e-4


def test_a_transition_that_stays_once_v_exceeds_the_width_is_told_from_a_power_of_it() -> None:
    """Figures 1, 3 and 5 of the paper: the widths of V = 2,000 and 50,257 are about the same."""
    widths = {(257, None): 257.0, (500, None): 500.0, (2000, None): 700.0, (50257, None): 700.0}
    results = present(analyse_series(vocabulary_runs(widths), "runs.csv", Options(draws=300)))
    rows = results.tables["relation"].frame.set_index("model")
    assert rows.loc["power", "p_fit"] < 1e-4
    assert rows.loc["level", "p_fit"] > 0.01
    level = rows.loc["level"]
    assert level["ratio"] == pytest.approx(1.0, abs=3 * level["ratio_err"])
    assert level["flat_width"] == pytest.approx(700, abs=3 * level["flat_width_err"])
    assert results.answer is not None
    assert results.answer.decided
    assert "and the same beyond; no power of min(V, r) fits" in results.answer.sentence
    assert "In proportion and then the same: " in results.summary


def test_both_models_are_rejected_as_often_as_their_chance_says() -> None:
    """A power of 0.5, and the paper's level: the errors of the transitions are about right, or rather too wide."""
    widths = {"power": (160.0, 224.0, 448.0, 2242.0), "level": (257.0, 500.0, 700.0, 700.0)}
    for model, true in widths.items():
        chances = []
        for seed in range(6):
            series = dict(zip(((257, None), (500, None), (2000, None), (50257, None)), true, strict=True))
            analysis = analyse_series(vocabulary_runs(series, seed=10 * seed), "runs.csv", Options(draws=100))
            (rows,) = [relation_table(analysis).set_index("model")]
            chances.append(rows.loc[model, "p_fit"])
        assert min(chances) < 0.9
        assert sum(chance < 0.05 for chance in chances) <= 2, (model, chances)
