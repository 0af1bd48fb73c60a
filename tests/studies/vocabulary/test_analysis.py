"""Transitions of each vocabulary, and the line through them, against known ones."""

import pandas as pd
import pytest
from vocabulary_runs import SERIES, vocabulary_runs

from shapelaw.errors import UserError
from shapelaw.fits.line import FitStatus
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.vocabulary.analysis import analyse_series
from shapelaw.studies.vocabulary.tables import losses_table


def test_series_are_ordered_by_their_bottleneck() -> None:
    analysis = analyse_series(vocabulary_runs(SERIES), "runs.csv", Options(draws=100))
    assert [one.name for one in analysis.series] == ["V = 257", "V = 2,000, r = 350", "V = 500", "V = 2,000"]
    assert [one.bottleneck for one in analysis.series] == [257, 350, 500, 2000]


def test_patches_are_a_series_of_their_own() -> None:
    runs = vocabulary_runs({(257, None): 257.0})
    patched = runs.assign(patch_embedding=["True"] * len(runs))
    both = pd.concat([runs, patched, patched.assign(embedding_rank=2)], ignore_index=True)
    analysis = analyse_series(both, "runs.csv", Options(draws=100))
    assert [(one.name, one.bottleneck) for one in analysis.series] == [
        ("patches of 4 numbers, r = 2", 2),
        ("patches of 4 numbers", 4),
        ("V = 257", 257),
    ]
    assert set(losses_table(analysis)["embedding"]) == {"tokens", "patches"}


def test_a_transition_beyond_the_widths_is_a_limit_of_the_line() -> None:
    runs = vocabulary_runs({key: SERIES[key] for key in SERIES if key != (2000, None)})
    cut = runs[(runs["vocab_size"] != 500) | (runs["depth"] * runs["width"] ** 2 < 0.5 * 24 * 500**2)]
    found = analyse_series(cut, "runs.csv", Options(draws=300))
    assert found.relation.status in (FitStatus.CONVERGED, FitStatus.TOO_FEW_POINTS)
    assert found.relation.n_points == 2


def test_unusable_runs_are_a_sentence() -> None:
    runs = vocabulary_runs({(257, None): 257.0})
    for change, sentence in (
        (runs.drop(columns="vocab_size"), "lacks vocab_size"),
        (runs[runs["depth"] == 24], "no vocabulary with two depths"),
        (runs.assign(embedding_rank="full"), "embedding_rank must be a number"),
    ):
        with pytest.raises(UserError, match=sentence):
            analyse_series(change, "runs.csv", Options(draws=100))
