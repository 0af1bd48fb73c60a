"""Which series share the noise between seeds."""

import pandas as pd
from vocabulary_runs import vocabulary_runs

from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.vocabulary.analysis import analyse_series
from shapelaw.studies.vocabulary.noise import noise_kind
from shapelaw.studies.vocabulary.tables import spread_of_seeds


def test_all_ranks_of_tokens_share_their_noise_and_none_of_patches() -> None:
    assert noise_kind(500, 32, False) == noise_kind(500, None, False) != noise_kind(2000, 32, False)
    assert len({noise_kind(257, None, False), noise_kind(257, None, True), noise_kind(257, 2, True)}) == 3


def test_a_series_that_repeats_no_shape_takes_the_noise_of_its_vocabulary() -> None:
    """Not that of another vocabulary, whose losses have another unit."""
    runs = vocabulary_runs({(500, None): 257.0, (2000, 350): 350.0, (2000, None): 700.0})
    full = (runs["vocab_size"] == 2000) & runs["embedding_rank"].isna()
    once = runs[~full | (runs["seed"] == 0)]
    found = {
        one.name: one.transitions.runs for one in analyse_series(once, "runs.csv", Options(draws=100)).series
    }
    noise = {name: one.noise for name, one in found.items() if one is not None}
    assert noise["V = 2,000"] is not None
    assert noise["V = 2,000"] == noise["V = 2,000, r = 350"] != noise["V = 500"]
    alone = once[once["embedding_rank"].isna()]
    *_, last = analyse_series(alone, "runs.csv", Options(draws=100)).series
    assert last.transitions.bootstrap_rows[0]["status"] == "no noise estimate"


def test_a_patch_embedding_of_lower_rank_has_a_noise_of_its_own() -> None:
    """Two seeds of a network that sees 2 of a patch's 4 numbers may differ by ten times those that see all."""
    runs = vocabulary_runs({(257, None): 257.0}).assign(patch_embedding="True")
    spread = runs["test_loss"] + 0.1 * runs["seed"]
    both = pd.concat([runs, runs.assign(embedding_rank=2, test_loss=spread)], ignore_index=True)
    analysis = analyse_series(both, "runs.csv", Options(draws=100))
    low, full = (one.transitions.runs.noise for one in analysis.series if one.transitions.runs is not None)
    assert low is not None
    assert full is not None
    assert low.std > 5 * full.std
    pooled = spread_of_seeds(analysis).query("depth == 'pooled'")
    assert pooled["loss_std"].tolist() == [low.std, full.std]
    assert pooled["embedding_rank"].fillna(0).tolist() == [2, 0]
