"""Figures in two formats, always the same."""

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from shapelaw.report.plots import (
    ACCENT,
    COLUMN,
    FIFTH,
    FOURTH,
    LEAST_TICKS,
    MOST_TICKS,
    SECOND,
    THIRD,
    explain,
    log_axis,
    ordered_looks,
    readable_ticks,
    save_figure,
    style,
    tick_label,
)


def draw():
    with style():
        figure = Figure(figsize=(COLUMN, 2.6))
        left, right = figure.subplots(1, 2)
        left.plot([1e6, 1e9], [3, 2])
        log_axis(left)
        explain(right, "no line is fitted")
    return figure


def test_a_saved_figure_is_what_matplotlib_saves_and_always_the_same(tmp_path):
    ours = save_figure(draw(), tmp_path / "new" / "v1.5")
    assert [file.name for file in ours] == ["v1.5.svg", "v1.5.png"]
    figure = draw()
    with style():
        figure.savefig(tmp_path / "theirs.svg", metadata={"Date": None})
        figure.set_layout_engine("none")  # the layout is that of the SVG
        figure.savefig(tmp_path / "theirs.png")
    theirs = [(tmp_path / f"theirs{file.suffix}").read_bytes() for file in ours]
    assert [file.read_bytes() for file in ours] == theirs


def labels_of(low, high, *, whole=False):
    """The labels that a reader sees on a logarithmic axis between two ends."""
    with style():
        figure = Figure(figsize=(COLUMN, 2.6))
        axes = figure.subplots()
        axes.plot([low, high], [1, 2])
        axes.set_xlim(low, high)
        log_axis(axes, whole=whole)
        figure.draw_without_rendering()
        axis = axes.xaxis
        minor = [tick.label1.get_text() for tick in axis.get_minor_ticks()]
    assert not any(minor)
    return [tick.label1.get_text() for tick in axis.get_major_ticks()]


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (96, 192, ["100", "120", "140", "160", "180"]),
        (5e4, 8e5, ["50K", "100K", "200K", "500K"]),
        (20, 900, ["30", "100", "300"]),
        (40, 70, ["40", "50", "70"]),
        (1e6, 1e12, ["1M", "10M", "100M", "1B", "10B", "100B", "1T"]),
        (2e-5, 0.5, ["$10^{-4}$", "0.001", "0.01", "0.1"]),
    ],
)
def test_the_ticks_of_a_logarithmic_axis_can_be_read_off(low, high, labels):
    assert labels_of(low, high) == labels
    assert labels_of(1.9, 4.2, whole=True) == ["2", "3", "4"]


@given(st.floats(1e-6, 1e12), st.floats(1.01, 1e9))
@settings(max_examples=200, deadline=None)
def test_every_logarithmic_axis_has_a_few_ticks_inside_it(low, factor):
    ticks = readable_ticks(low, low * factor)
    assert LEAST_TICKS - 1 <= len(ticks) <= MOST_TICKS + 2
    assert all(low * 0.999 <= tick <= low * factor * 1.001 for tick in ticks)
    assert ticks == sorted(ticks)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (40, "40"), (0.002, "0.002"), (2e-4, r"$2\cdot 10^{-4}$"), (1e-5, "$10^{-5}$")),
        *((3100, "3.1K"), (999_999, "1M"), (1.25e8, "125M"), (1.3e9, "1.3B"), (1e12, "1T")),
    ],
)
def test_a_tick_says_a_plain_short_number(value, text):
    assert tick_label(value) == text


def test_no_colour_of_a_kind_is_a_green_and_looks_differ_in_more_than_colour():
    kinds = [ACCENT, SECOND, THIRD, FOURTH, FIFTH]
    for color in [*kinds, *(look.color for look in ordered_looks(range(6)).values())]:
        red, green, blue = mpl.colors.to_rgb(color)
        assert green <= max(red, blue)
    looks = ordered_looks(range(4)).values()
    assert len({(look.marker, look.dashes) for look in looks}) == 4
    assert not {look.marker for look in looks} & {"^", "v"}
