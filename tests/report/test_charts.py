"""A figure's specification becomes panels, marks, labels where they are needed, and one legend."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from shapelaw.report.charts import Across, Band, Chart, Panel, Points, Span, Words, looked
from shapelaw.report.plots import ACCENT, ordered_looks


def legend_of(figure: Figure) -> list[str]:
    """The words of the legend below all panels."""
    return [text.get_text() for text in figure.legends[0].get_texts()] if figure.legends else []


def test_marks_are_drawn_in_their_order_and_named_once() -> None:
    marks = [
        Band([1, 2], [0, 1], [2, 3], "a band"),
        Points([1, 2], [1, 2], "points", ACCENT, "o", "-", err=[0.5, np.nan]),
        Points(3, 3, "points", ACCENT, "^", err=[[1], [2]], hollow=True),
        Across(2, label="a value", low=1, high=3),
        Across(1.5, "x", "another", line="--"),
        Words("here", 1, 1, (4, 0)),
    ]
    figure = Chart([Panel(marks, Span("size", "log"), Span("loss", limits=(0, None)), "title")]).figure()
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left")) == ("size", "loss", "title")
    assert axes.get_xscale() == "log"
    assert axes.get_ylim()[0] == 0
    assert sorted(legend_of(figure)) == ["a band", "a value", "another", "points"]
    first, second = axes.containers
    assert np.asarray(first.lines[2][0].get_segments())[:, :, 1].tolist() == [[0.5, 1.5], [2, 2]]
    assert np.asarray(second.lines[2][0].get_segments())[:, :, 1].tolist() == [[2, 5]]
    assert first.lines[0].get_color() == ACCENT
    assert second.lines[0].get_markerfacecolor() == "none"
    assert [text.get_text() for text in axes.texts] == ["here"]


def test_labels_stand_at_the_outer_panels_and_where_they_change() -> None:
    loss = Panel(x=Span("d"), y=Span("loss"))
    panels = [loss, loss, Panel(x=Span("L"), y=Span("W"))]
    axes = Chart([*panels, None], columns=2, share_x=True).figure().axes
    labels = [(one.get_xlabel(), one.get_ylabel()) for one in axes]
    assert labels == [("d", "loss"), ("d", ""), ("L", "W"), ("", "")]
    assert [one.axison for one in axes] == [True, True, True, False]
    shown = [one.xaxis.get_tick_params()["labelbottom"] for one in axes[:3]]
    assert shown == [True, True, True]


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (Span(scale="values", ticks=(10, 300)), ["10", "300"]),
        (Span(scale="values", ticks={1: "one", 10: "best"}), ["one", "best"]),
        (Span(ticks={0: "left", 1: "right"}), ["left", "right"]),
        (Span(ticks=(1, 2), limits=(0, 3)), ["1", "2"]),
        (Span(scale="whole log", limits=(8, 70)), ["10", "20", "50"]),
    ],
)
def test_an_axis_has_the_ticks_that_are_asked_for(span: Span, words: list[str]) -> None:
    figure = Chart([Panel([Points([1, 10], [1, 2])], span)]).figure()
    figure.draw_without_rendering()
    low, high = figure.axes[0].get_xlim()
    ticks = zip(figure.axes[0].get_xticks(), figure.axes[0].get_xticklabels(), strict=True)
    assert [text.get_text() for at, text in ticks if low <= at <= high] == words


def test_a_panel_without_anything_says_why_and_one_with_a_legend_of_its_own_leaves_none_below() -> None:
    shown = Panel([Points(1, 1, "own")], legend={"loc": "upper left"}, note="no intervals")
    figure = Chart([Panel(nothing="no width"), shown], columns=2, title="all").figure()
    empty, full = figure.axes
    assert [text.get_text() for text in empty.texts] == ["no width"]
    assert not empty.axison
    assert [text.get_text() for text in full.texts] == ["no intervals"]
    assert legend_of(figure) == []
    assert full.get_legend() is not None
    assert figure.get_suptitle() == "all"


def test_keys_take_the_place_of_the_panels_labels_and_looks_are_arguments() -> None:
    look = ordered_looks([1, 2])[2]
    point = Points([1, 2], [1, 2], "a point", **looked(look))
    key = mpl.lines.Line2D([], [], label="a key")
    figure = Chart([Panel([point])], keys=[key]).figure()
    assert legend_of(figure) == ["a key"]
    line = figure.axes[0].get_lines()[0]
    drawn = line.get_color(), line.get_marker(), line.get_linestyle()
    assert drawn == (look.color, look.marker, look.dashes)
