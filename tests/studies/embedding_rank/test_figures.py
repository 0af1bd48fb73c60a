"""The figures of the study of the embedding's rank."""

from rank_runs import rank_runs

from shapelaw.studies.embedding_rank.analysis import analyse_runs, check_rank_runs
from shapelaw.studies.embedding_rank.figures import losses_figure, redundancy_figure


def test_full_and_low_rank_are_told_apart() -> None:
    analysis = analyse_runs(check_rank_runs(rank_runs(), "runs.csv"))
    left, right = losses_figure(analysis).axes
    assert right.get_legend_handles_labels()[1] == [
        "full rank, narrower",
        "low rank, positions of that rank too",
    ]
    assert left.get_xlabel() == "parameters of the blocks"
    assert {text.get_text() for text in left.texts} == {"4", "8", "16", "32", "64"}
    sides = [text.get_ha() for text in sorted(left.texts, key=lambda text: text.xy[1])]
    assert sides == [
        "left",
        "right",
        "left",
        "right",
        "left",
    ]  # labels of neighbours never lie on one another
    assert len(redundancy_figure(analysis).axes) == 2
    alone = redundancy_figure(analyse_runs(check_rank_runs(rank_runs(seeds=1), "runs.csv")))
    assert "no intervals" in alone.axes[0].texts[0].get_text()
