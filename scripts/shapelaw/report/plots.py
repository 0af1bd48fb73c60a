"""One style for all figures, and their common helpers. No pyplot, so no global list of figures."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

# inches; the text width of a two-column and of a one-column page
COLUMN, PAGE = 3.4, 7.0
INK, MUTED, ACCENT, SECOND, THIRD = "#222222", "#8a8f98", "#c8442d", "#2f6f9f", "#e08a1e"

_STYLE: dict[Any, Any] = {
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 220,
    "svg.hashsalt": "shapelaw",  # so that the same figure makes the same file
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same everywhere
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e8eb",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "errorbar.capsize": 2,
    "legend.frameon": False,
    "legend.fontsize": 7,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this context, e.g. `with style(): fig, axes = new_figure(1, 2); ...`."""
    with mpl.rc_context(_STYLE):
        yield


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = COLUMN, height: float = 2.6, **grid: Any
) -> tuple[Figure, npt.NDArray[np.object_]]:
    """A figure (size in inches) and its (rows, columns) array of axes; `grid` goes to `Figure.subplots`."""
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, columns, squeeze=False, **grid)


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Write PATH.svg and PATH.png and return the two paths; a dot in the name is kept, missing folders are made.

    The SVG has no date, so the same numbers make the same file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    svg, png = path.with_name(path.name + ".svg"), path.with_name(path.name + ".png")
    with style():
        figure.savefig(svg, metadata={"Date": None})
        figure.set_layout_engine("none")  # laid out already; again would take a third of the time
        figure.savefig(png)
    return [svg, png]


def ordered_colors(values: Sequence[int]) -> dict[int, str]:
    """A colour for each value, dark to light in ascending order, for quantities such as depth."""
    ordered = sorted(set(values))
    positions = np.linspace(0.05, 0.82, len(ordered)) if len(ordered) > 1 else np.array([0.3])
    return {
        value: mpl.colors.to_hex(mpl.colormaps["viridis"](float(at)))
        for value, at in zip(ordered, positions, strict=True)
    }


def size_axis(axes: Axes, which: str = "x") -> None:
    """Make an axis logarithmic in parameters, with ticks such as 300K, 10M, 1.5B, 1T."""
    getattr(axes, f"set_{which}scale")("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axis.set_minor_formatter(NullFormatter())


def value_axis(axes: Axes, values: Collection[float]) -> None:
    """Make the x axis logarithmic, with a tick at each of a few values and nowhere else."""
    axes.set_xscale("log")
    axes.set_xticks(sorted(set(values)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axes.xaxis.set_minor_locator(NullLocator())


def ratio_axis(axes: Axes) -> None:
    """Make the y axis logarithmic in a ratio, with plain numbers and a line at 1."""
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 5, 7)))
    for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        which(FuncFormatter(lambda value, _: short_number(value)))
    axes.axhline(1, color=MUTED, linewidth=0.8, zorder=0)


def side_by_side(place: int, places: int, apart: float = 1.06) -> float:
    """A factor for a position on a logarithmic axis, so that intervals at one position can be told apart."""
    return math.pow(apart, place - (places - 1) / 2)


def short_number(value: float) -> str:
    """`12_300_000` -> `12.3M`; three significant digits."""
    for limit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= limit * 0.9995:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"


def explain(axes: Axes, text: str, at: tuple[float, float] = (0.5, 0.5)) -> None:
    """Write into the axes what could not be drawn; `at` is the middle of the box as a share of the axes."""
    axes.text(
        *at,
        text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=ACCENT,
        bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": ACCENT, "linewidth": 0.7},
        zorder=10,
    )
