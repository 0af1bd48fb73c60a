"""The figures of the vocabulary study."""

from vocabulary_runs import SERIES, vocabulary_runs

from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.vocabulary.analysis import analyse_series
from shapelaw.studies.vocabulary.figures import bits_per_byte_figure, losses_figure, relation_figure


def test_every_series_is_drawn() -> None:
    runs = vocabulary_runs(SERIES)
    analysis = analyse_series(runs, "runs.csv", Options(draws=100))
    panels = losses_figure(analysis).figure().axes
    by_vocabulary = ["V = 257", "V = 500", "V = 2,000, r = 350", "V = 2,000"]
    assert [axis.get_title(loc="left") for axis in panels[:4]] == by_vocabulary
    (axis,) = relation_figure(analysis).figure().axes
    labels = axis.get_legend_handles_labels()[1]
    assert labels[0] == "width = min(V, r)"
    assert labels[1].startswith("width ~ min(V, r)^(")  # the points come after the lines
    (axis,) = bits_per_byte_figure(analysis).figure().axes
    labels = axis.get_legend_handles_labels()[1]
    assert len(labels) == len(SERIES) + 1
    assert labels[-1] == "best of this size or less"
    without = analyse_series(runs.drop(columns="bits_per_byte"), "runs.csv", Options(draws=100))
    assert bits_per_byte_figure(without) == "the runs have no bits per byte or no total_params"
