"""The figures of the degree study: which networks they draw."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from degree_runs import TRUE_LOSS, digits, table, tuned_of, with_mixtures
from matplotlib.figure import Figure

from shapelaw.studies.block_degree import results as figures
from shapelaw.studies.block_degree.analysis import differences


def legend(figure: Figure) -> set[str]:
    """Its labels."""
    (found,) = figure.legends
    return {text.get_text() for text in found.get_texts()}


def test_figures_draw_the_widest_networks_and_mixtures_that_begin_half_way() -> None:
    runs = pd.concat([table(seeds=3), table(seeds=3).assign(width=16), digits(16), digits(32)])
    mixed = runs[runs["degrees"] == "3.3.3.3"].assign(mixture="True", initial_share=0.9)
    tuned = tuned_of(pd.concat([runs, mixed]))
    figure = figures.losses_figure(tuned).figure()
    degrees = {f"degree {degree}" for degree in TRUE_LOSS}
    assert legend(figure) == degrees
    separable, images = figure.axes
    assert len(separable.containers) == len(images.containers) == 4
    assert [tick.get_text() for tick in separable.get_xticklabels()] == ["2", "8"]
    wide = {
        one.name: math.exp(one.log_loss.value)
        for one in tuned
        if one.task.target == "digits" and one.task.width == 32
    }
    drawn = [container.lines[0].get_ydata()[0] for container in images.containers]
    assert drawn == pytest.approx([wide[name] for name in sorted(degrees)])


def test_no_ratio_is_drawn_to_a_network_that_diverged_or_in_a_panel_without_one() -> None:
    runs = table(seeds=3)
    runs.loc[(runs["degrees"] == "3.3.3.3") & (runs["target_rank"] == 8) & (runs["seed"] == 0), "loss"] = (
        math.nan
    )
    separable, images = figures.differences_figure(differences(tuned_of(runs))).figure().axes
    assert [tick.get_text() for tick in separable.get_xticklabels()] == ["2"]
    assert not images.lines
    assert len(separable.containers) == 3


def test_mixtures_stand_where_they_begin_side_by_side_for_each_target() -> None:
    figure = figures.mixtures_figure(tuned_of(with_mixtures())).figure()
    assert legend(figure) == {"R = 2", "R = 8", "unchanged", "e, the note's best degree"}
    drawn = [tuple(bars.lines[0].get_xdata()) for bars in figure.axes[0].containers]
    assert drawn == [pytest.approx((2.4925, 2.8925)), pytest.approx((2.5075, 2.9075))]


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
