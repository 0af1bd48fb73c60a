"""Figures in two formats, always the same."""

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.report.plots import (
    explain,
    new_figure,
    ordered_colors,
    save_figure,
    short_number,
    size_axis,
    style,
)


def draw():
    with style():
        figure, axes = new_figure(1, 2)
        axes[0, 0].plot([1e6, 1e9], [3, 2])
        size_axis(axes[0, 0])
        explain(axes[0, 1], "no line is fitted")
    return figure


def test_a_figure_is_saved_twice_and_always_the_same(tmp_path):
    files = save_figure(draw(), tmp_path / "new" / "v1.5")
    assert [f.name for f in files] == ["v1.5.svg", "v1.5.png"]
    assert files[0].read_text().startswith("<?xml")
    assert files[1].read_bytes().startswith(b"\x89PNG")
    again = save_figure(draw(), tmp_path / "again")
    assert again[0].read_bytes() == files[0].read_bytes()
    assert again[1].read_bytes() == files[1].read_bytes()


def test_the_style_leaves_no_trace():
    before = {name: mpl.rcParams[name] for name in ("font.size", "axes.grid", "svg.hashsalt", "figure.dpi")}
    with style():
        assert mpl.rcParams["svg.hashsalt"] == "shapelaw"
    assert {name: mpl.rcParams[name] for name in before} == before


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12))
@settings(max_examples=30, deadline=None)
def test_colours_follow_the_order_of_the_values(values):
    colors = ordered_colors(values)
    assert list(colors) == sorted(set(values))
    assert len(set(colors.values())) == len(colors)
    brightness = [sum(mpl.colors.to_rgb(color)) for color in colors.values()]
    assert brightness == sorted(brightness)


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12"), (3100, "3.1K"), (999_999, "1M"), (1.25e8, "125M"), (1.3e9, "1.3B"), (1e12, "1T")],
)
def test_short_numbers(value, text):
    assert short_number(value) == text
