"""Transitions of each vocabulary, and the line through them, against known ones."""

import pandas as pd
import pytest
from transition_runs import SERIES, analysed_series, vocabulary_runs

from shapelaw.errors import UserError
from shapelaw.fits.line import FitStatus
from shapelaw.studies.decoders.vocabulary import (
    TABLES,
    analyse_series,
    fit_relations,
    present,
    relation_table,
    spread_of_seeds,
)
from shapelaw.studies.transitions.analysis import Options


def test_patches_are_a_series_of_their_own() -> None:
    runs = vocabulary_runs({(257, None): 257.0})
    patched = runs.assign(patch_embedding=["True"] * len(runs))
    both = pd.concat([runs, patched, patched.assign(embedding_rank=2)], ignore_index=True)
    analysis = analysed_series(both)
    assert [(one.name, one.bottleneck) for one in analysis.series] == [
        ("patches of 4 numbers, r = 2", 2),
        ("patches of 4 numbers", 4),
        ("V = 257", 257),
    ]
    assert set(TABLES["losses"].frame(analysis)["embedding"]) == {"tokens", "patches"}


def test_a_transition_beyond_the_widths_is_a_limit_of_the_line() -> None:
    """The networks of V = 2,000 end below its transition: it is above them, and that alone lifts the exponent."""
    runs = vocabulary_runs({**SERIES, (2000, 350): 270.0, (500, None): 280.0})
    size = 12 * runs["depth"] * runs["width"] ** 2
    beyond = (runs["vocab_size"] == 2000) & runs["embedding_rank"].isna() & (size > 1.1 * 12 * 24 * 1200**2)
    found = analysed_series(runs[~beyond], 300)
    (row,) = found.series[-1].transitions.bootstrap_rows
    assert row["side"] == "above"
    power = found.relations[0].power
    assert (power.status, power.n_points) == (FitStatus.CONVERGED, 3)
    assert "1 limit used" in power.message
    without = analysed_series(runs[(runs["vocab_size"] != 2000) | runs["embedding_rank"].notna()], 300)
    assert power.b > without.relations[0].power.b + 3 * without.relations[0].power.b_err


def test_a_given_noise_is_taken_though_seeds_have_equal_losses() -> None:
    runs = vocabulary_runs({(257, None): 257.0})
    same = runs.assign(test_loss=runs.groupby(["depth", "width"])["test_loss"].transform("mean"))
    (one,) = analyse_series(same, "runs.csv", Options(draws=100, noise=0.001)).series
    assert one.compared.noise.std == 0.001


def test_a_transition_at_the_edge_of_the_sizes_is_a_point() -> None:
    runs = vocabulary_runs({(257, None): 257.0})
    cut = runs[runs["depth"] * runs["width"] ** 2 < 1.6 * 24 * 257**2]
    (one,) = analysed_series(cut, 300).series
    (row,) = one.transitions.bootstrap_rows
    assert (row["status"], row["side"]) == ("at the edge", "at")
    (relation,) = fit_relations([one])
    assert relation.power.n_points == 1


def test_runs_of_a_series_differ_in_their_shapes_and_seeds_alone() -> None:
    runs = vocabulary_runs({(257, None): 257.0, (500, 350): 350.0}).assign(corpus="wiki", steps=16000)
    for column, value in (("corpus", "prose"), ("steps", 4000)):
        deep = (runs["vocab_size"] == 500) & (runs["depth"] == 48)
        mixed = runs.assign(**{column: runs[column].where(~deep, value)})
        with pytest.raises(UserError, match=rf"V = 500, r = 350 with different values of {column} \("):
            analysed_series(mixed)
        apart = runs.assign(**{column: runs[column].where(runs["vocab_size"] == 257, value)})
        analysis = analysed_series(apart)
        said = "Series differ in their text too: wiki (V = 257), prose (V = 500, r = 350)."
        assert (said in present(analysis).summary) == (column == "corpus")
        assert dict(TABLES["losses"].frame(analysis).groupby("vocab_size")["corpus"].first()) == {
            257: "wiki",
            500: value if column == "corpus" else "wiki",
        }


def test_a_series_that_repeats_no_shape_takes_the_noise_of_its_vocabulary() -> None:
    """Not that of another vocabulary, whose losses have another unit."""
    runs = vocabulary_runs({(500, None): 257.0, (2000, 350): 350.0, (2000, None): 700.0})
    full = (runs["vocab_size"] == 2000) & runs["embedding_rank"].isna()
    once = runs[~full | (runs["seed"] == 0)]
    noise = {one.name: one.compared.noise for one in analysed_series(once).series}
    assert noise["V = 2,000"] is not None
    assert noise["V = 2,000"] == noise["V = 2,000, r = 350"] != noise["V = 500"]
    alone = once[once["embedding_rank"].isna()]
    *_, last = analysed_series(alone).series
    assert last.transitions.bootstrap_rows[0]["status"] == "no noise estimate"


def test_a_patch_embedding_of_lower_rank_has_a_noise_of_its_own() -> None:
    """Two seeds of a network that sees 2 of a patch's 4 numbers may differ by ten times those that see all."""
    runs = vocabulary_runs({(257, None): 257.0}).assign(patch_embedding="True")
    spread = runs["test_loss"] + 0.1 * runs["seed"]
    both = pd.concat([runs, runs.assign(embedding_rank=2, test_loss=spread)], ignore_index=True)
    analysis = analysed_series(both)
    low, full = (one.compared.noise for one in analysis.series)
    assert low.std > 5 * full.std
    pooled = spread_of_seeds(analysis).query("depth == 'pooled'")
    assert pooled["loss_std"].tolist() == [low.std, full.std]
    assert pooled["embedding_rank"].fillna(0).tolist() == [2, 0]


def test_a_transition_in_proportion_to_the_bottleneck_is_told_from_none() -> None:
    follows = {key: 0.9 * width for key, width in SERIES.items() if key != (2000, None)}
    row = relation_table(analysed_series(vocabulary_runs(follows), 300)).iloc[0]
    assert row["status"] == FitStatus.CONVERGED
    assert row["b"] == pytest.approx(1.0, abs=3 * row["b_err"])
    assert row["p_proportional"] > 0.003
    assert row["p_none"] < 1e-4
    same = dict.fromkeys(follows, 400.0)
    row = relation_table(analysed_series(vocabulary_runs(same), 300)).iloc[0]
    assert row["b"] == pytest.approx(0.0, abs=3 * row["b_err"])
    assert row["p_proportional"] < 1e-4


def test_a_transition_that_stays_once_v_exceeds_the_width_is_told_from_a_power_of_it() -> None:
    """Figures 1, 3 and 5 of the paper: the widths of V = 2,000 and 50,257 are about the same."""
    widths = {(257, None): 257.0, (500, None): 500.0, (2000, None): 700.0, (50257, None): 700.0}
    results = present(analysed_series(vocabulary_runs(widths), 300))
    rows = results.tables["relation"].frame.set_index("model")
    assert rows.loc["power", "p_fit"] < 1e-4
    assert rows.loc["level", "p_fit"] > 0.01
    level = rows.loc["level"]
    assert level["ratio"] == pytest.approx(1.0, abs=3 * level["ratio_err"])
    assert level["flat_width"] == pytest.approx(700, abs=3 * level["flat_width_err"])
    assert results.answer.decided
    assert "and the same beyond; no power of min(V, r) fits" in results.answer.sentence


def test_both_models_are_rejected_as_often_as_their_chance_says() -> None:
    """A power of 0.5, and the paper's level: the errors of the transitions are about right, or rather too wide."""
    widths = {"power": (160.0, 224.0, 448.0, 2242.0), "level": (257.0, 500.0, 700.0, 700.0)}
    for model, true in widths.items():
        chances = []
        for seed in range(4):
            series = dict(zip(((257, None), (500, None), (2000, None), (50257, None)), true, strict=True))
            runs = vocabulary_runs(series, seed=10 * seed)
            chances.append(relation_table(analysed_series(runs)).set_index("model").loc[model, "p_fit"])
        assert min(chances) < 0.9
        assert sum(chance < 0.05 for chance in chances) <= 2, (model, chances)


@pytest.mark.parametrize("unknown", ["tokens_trained", "bits_per_byte"])
def test_bits_per_byte_and_the_text_seen_may_be_unknown(unknown: str) -> None:
    analysis = analysed_series(vocabulary_runs({(257, None): 257.0}, sizes=True).drop(columns=unknown))
    assert "text_bytes" not in present(analysis).tables["losses"].frame
