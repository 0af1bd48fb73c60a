"""The figures of a grid."""

from grid_runs import grid_runs

from shapelaw.studies.grid import figures
from shapelaw.studies.grid.analysis import GridAnalysis, analyse_grid
from shapelaw.studies.grid.tables import effects_table
from shapelaw.studies.transitions.analysis import Options

AXES = ("heads", "embedding_rank", "vocab_size")


def analysed(**options) -> GridAnalysis:
    return analyse_grid(grid_runs(**options), "x", Options(draws=200), AXES, surfaces=False)


def test_the_axis_with_most_values_goes_along() -> None:
    titles = [axis.get_title(loc="left") for axis in figures.losses_figure(analysed()).figure().axes]
    assert titles[:3] == [f"V = 257, r = 8,\nH = {heads}" for heads in (1, 2, 4)]
    assert len(titles) == 12
    (alone,) = figures.losses_figure(analysed(heads=(1,), ranks=(8,), vocab_sizes=(257,))).figure().axes
    assert alone.get_title(loc="left") == ""


def test_an_axis_has_a_panel_of_its_effects() -> None:
    analysis = analysed(seeds=2, noise=0.01)
    drawn = figures.effects_figure(analysis, effects_table(analysis)).figure()
    assert [axis.get_title(loc="left") for axis in drawn.axes] == ["vocab_size", "embedding_rank", "heads"]
    labels = [text.get_text() for text in drawn.axes[2].get_yticklabels()]
    assert labels[0] == "H = 1 → H = 2; V = 257, r = 8"
    assert labels[-1] == "H = 2 → H = 4; mean of 4"
    one = analysed(heads=(1,), ranks=(8,), vocab_sizes=(257,))
    assert figures.effects_figure(one, effects_table(one)).startswith("no two cells differ")


def test_every_cell_has_its_best_depths() -> None:
    (axis,) = figures.best_depth_figure(analysed(heads=(1,))).figure().axes
    assert [text.get_text() for text in axis.get_yticklabels()] == [
        *("V = 257, r = 8", "V = 257, full rank", "V = 500, r = 8", "V = 500, full rank"),
    ]
    assert figures.best_depth_figure(analysed(depths=(1,))).startswith("no cell has two depths")
