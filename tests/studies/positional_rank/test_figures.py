"""The figures of the study of the positional embedding's rank."""

from positional_runs import positional_runs

from shapelaw.studies.positional_rank.analysis import PositionalAnalysis, analyse_runs, check_positional_runs
from shapelaw.studies.positional_rank.figures import equivalents_figure, losses_figure


def analysis_of(seeds: int = 2, *, vocabulary: bool = True) -> PositionalAnalysis:
    runs = positional_runs(seeds=seeds)
    kept = runs if vocabulary else runs[runs["embedding_rank"].isna()]
    return analyse_runs(check_positional_runs(kept, "runs.csv"))


def test_both_series_and_plain_embeddings_are_drawn() -> None:
    (axis,) = losses_figure(analysis_of()).axes
    named = axis.get_legend_handles_labels()[1]
    assert sorted(named) == ["plain embeddings ± one σ", "positions factored", "tokens factored"]
    (alone,) = losses_figure(analysis_of(vocabulary=False)).axes
    assert "tokens factored" not in alone.get_legend_handles_labels()[1]


def test_what_can_t_be_drawn_is_said() -> None:
    (axis,) = equivalents_figure(analysis_of(seeds=1)).axes
    assert "no intervals" in axis.texts[0].get_text()
    assert equivalents_figure(analysis_of(vocabulary=False)) == "no network has factored token embeddings"
    (axis,) = equivalents_figure(analysis_of()).axes
    assert not axis.texts
    assert axis.get_ylim()[0] <= 2 < 128 < axis.get_ylim()[1]
