"""The titles of the degree study's figures."""

from degree_runs import table, tuned_of, with_mixtures

from shapelaw.studies.block_degree import results as figures
from shapelaw.studies.block_degree.analysis import differences


def test_titles_name_what_differs_from_degree_3_after_holm_and_what_cant_be_told() -> None:
    tuned = tuned_of(table(seeds=3))
    separable, _ = figures.differences_figure(differences(tuned)).panels
    assert separable is not None
    assert separable.title.startswith("Separable: worse than degree 3: degree 1 (R\u00a0=\u00a02, 8)")
    alone, _ = figures.differences_figure(differences(tuned_of(table(seeds=1)))).panels
    assert alone is not None
    assert alone.title == "Separable: can't tell: one seed"
    mixed = figures.mixtures_figure(tuned_of(with_mixtures()))
    assert isinstance(mixed, figures.Chart)
    assert mixed.panels[0] is not None
    assert mixed.panels[0].title.startswith("Mixtures end within ")
