"""The figures of the study of the attention ratio."""

from ratio_runs import analysed

from shapelaw.studies.attention_ratio.figures import depths_figure, losses_figure, redundancy_figure


def test_each_feed_forward_width_has_a_panel_and_each_ratio_a_line() -> None:
    ratios = [f"$H d_a / d$ = {ratio}" for ratio in (1, 2, 4, 8, 16)]
    (alone,) = losses_figure(analysed()).axes
    assert alone.get_legend_handles_labels()[1] == ratios
    left, right = depths_figure(analysed(variant=True)).axes
    assert right.get_legend_handles_labels()[1] == [ratios[0], ratios[2], ratios[4]]
    assert {"L = 12", "L = 18", "L = 24"} <= set(left.get_legend_handles_labels()[1])
    assert left.get_xlabel() == "parameters of the blocks"


def test_a_figure_without_noise_says_so() -> None:
    left, _ = redundancy_figure(analysed(seeds=1)).axes
    assert "no intervals" in left.texts[0].get_text()
    left, _ = redundancy_figure(analysed()).axes
    assert not left.texts
    assert "published, 30M to 70M" in left.get_legend_handles_labels()[1]
