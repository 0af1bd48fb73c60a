"""One style for all figures, and their common helpers. No pyplot, so no global list of figures."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from shapelaw.specs.cost import short_number as short_number

# inches; the text width of a two-column and of a one-column page
COLUMN, PAGE = 3.4, 7.0
# after Okabe and Ito 2008, who chose colours that the colour-blind tell apart; none of them is a green
INK, MUTED, ACCENT, SECOND, THIRD = "#222222", "#8a8f98", "#d55e00", "#0072b2", "#e69f00"
FOURTH, FIFTH = "#cc79a7", "#56b4e9"
MARKERS = "osDPXph*"  # of kinds; triangles are left to bounds
DASHES = ("-", "--", "-.", ":")
MOST_COLUMNS = 3  # of panels
LEAST_TICKS, MOST_TICKS = 3, 7  # with a label, on a logarithmic axis
# leading digits of ticks, the coarsest first
_DIGITS = (
    (1.0,),
    (1.0, 3.0),
    (1.0, 2.0, 5.0),
    (1.0, 2.0, 3.0, 5.0, 7.0),
    (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0),
)
_SVG_DPI = 72  # of every SVG that matplotlib writes
_NARROW, _MOST_NARROW = 1.5, 4  # a panel's width in inches, and the labels of ticks that it has room for
_TINY = 1e-3  # below it a label is a power of ten

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


def style() -> AbstractContextManager[None]:
    """Draw inside this context, e.g. `with style(): figure = Figure(); ...`."""
    return mpl.rc_context(_STYLE)


def key(label: str, color: str = MUTED, line: Any = "-", **look: Any) -> Line2D:
    """What a legend shows of a line or, without a `line`, of a marker."""
    with style():
        return Line2D([], [], color=color, linestyle=line, label=label, **look)


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Write PATH.svg and PATH.png and return the two paths; a dot in the name is kept, missing folders are made.

    The SVG has no date, so the same numbers make the same file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    svg, png = path.with_name(path.name + ".svg"), path.with_name(path.name + ".png")
    with style():
        # the bytes of two `savefig`, which draws the figure once more before each, in 0.6 of their time
        canvas: Any = FigureCanvasSVG(figure)  # Any: how it prints has no types
        figure.dpi = _SVG_DPI
        if figure.axes and (engine := figure.get_layout_engine()) is not None:
            engine.execute(figure)
        figure.set_layout_engine("none")
        canvas.print_svg(svg, metadata={"Date": None})
        figure.dpi = mpl.rcParams["savefig.dpi"]
        canvas = FigureCanvasAgg(figure)
        canvas.print_png(png)
    return [svg, png]


@dataclass(frozen=True)
class Look:
    """The colour, the marker and the dashes of one series, so that none is told by its colour alone."""

    color: str
    marker: str
    dashes: str


def ordered_looks(values: Sequence[int]) -> dict[int, Look]:
    """A look for each value, such as a depth: colours from dark blue to light orange in ascending order, markers and
    dashes in turn."""
    ordered = sorted(set(values))
    positions = np.linspace(0.0, 0.82, len(ordered)) if len(ordered) > 1 else np.array([0.2])
    return {
        value: Look(
            mpl.colors.to_hex(mpl.colormaps["plasma"](float(at))),
            MARKERS[place % len(MARKERS)],
            DASHES[place % len(DASHES)],
        )
        for place, (value, at) in enumerate(zip(ordered, positions, strict=True))
    }


def readable_ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """Round values between two positive ends of a logarithmic axis, at least 3 of them and at most 7 where possible.

    Their leading digits are the coarsest of 1; 1, 3; 1, 2, 5; ... that give enough; within a factor of about two they
    are equally spaced numbers.

    Args:
        whole: the axis counts something, so that there are no ticks between whole numbers.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, -(-(last - first) // MOST_TICKS))
    near = 1e-9  # of a tick at the very end
    for digits in _DIGITS:
        powers = range(first, last + 1, stride if digits == (1.0,) else 1)
        ticks = [digit * 10.0**power for power in powers for digit in digits]
        ticks = [
            tick
            for tick in ticks
            if low * (1 - near) <= tick <= high * (1 + near) and not (whole and tick % 1)
        ]
        if LEAST_TICKS <= len(ticks) <= MOST_TICKS:
            return ticks
    # steps=10 may not be missing, by matplotlib's rule
    even = MaxNLocator(nbins=MOST_TICKS - 2, steps=[1, 2, 2.5, 5, 10], integer=whole).tick_values(low, high)
    return [float(tick) for tick in even if low * (1 - near) <= tick <= high * (1 + near)]


class _ReadableLog(LogLocator):
    """Ticks of a logarithmic axis at `readable_ticks`; every other one of many below a narrow panel."""

    def __init__(self, whole: bool) -> None:
        super().__init__()
        self._whole = whole

    def tick_values(self, vmin: float, vmax: float) -> Any:
        low, high = sorted((vmin, vmax))
        ticks = readable_ticks(low, high, self._whole) if low > 0 else []
        return np.array(ticks[::2] if len(ticks) > _MOST_NARROW and self._below_a_narrow_panel() else ticks)

    def _below_a_narrow_panel(self) -> bool:
        axes = getattr(self.axis, "axes", None)
        if axes is None or self.axis is not axes.xaxis:
            return False
        return bool(axes.get_window_extent().width / axes.figure.dpi < _NARROW)


def tick_label(value: float) -> str:
    """A tick's label: a plain short number, a power of ten below a thousandth."""
    if 0 < value < _TINY:
        power = math.floor(math.log10(value) + 1e-9)
        lead = f"{value / 10.0**power:.3g}"
        return f"$10^{{{power}}}$" if lead == "1" else f"${lead}\\cdot 10^{{{power}}}$"
    return short_number(value)


def log_axis(axes: Axes, which: str = "x", *, whole: bool = False) -> None:
    """Make an axis logarithmic, with ticks that can be read off whatever it spans: `readable_ticks`, plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    axis: Axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(_ReadableLog(whole))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_label(value)))
    axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=30))
    axis.set_minor_formatter(NullFormatter())


def whole_axis(axis: Axis) -> None:
    """Put the ticks of a linear axis on whole numbers, for what is counted."""
    axis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def value_axis(axes: Axes, values: Collection[float]) -> None:
    """Make the x axis logarithmic, with a tick at each of a few values and nowhere else."""
    ticks = sorted(set(values))
    log_axis(axes)
    axes.xaxis.set_ticks(ticks)
    axes.xaxis.set_minor_locator(NullLocator())
    if ticks:
        margin = 1.3 * (ticks[-1] / ticks[0]) ** 0.04
        axes.set_xlim(ticks[0] / margin, ticks[-1] * margin)


def side_by_side(place: int, places: int, apart: float = 1.06) -> float:
    """A factor for a position on a logarithmic axis, so that intervals at one position can be told apart."""
    return math.pow(apart, place - (places - 1) / 2)


def legend_below(figure: Figure, columns: int) -> None:
    """Add one legend of all that the panels name, each name once, in rows of `columns`.

    What a panel's own legend explains already is left out.
    """
    named = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        if label not in _own_legend(axes)
    }
    if named:
        figure.legend(
            list(named.values()), list(named), loc="outside lower center", ncols=min(columns, len(named))
        )


def _own_legend(axes: Axes) -> set[str]:
    legend = axes.get_legend()
    return set() if legend is None else {text.get_text() for text in legend.get_texts()}


def notice(why: str) -> Figure:
    """What stands where a figure has nothing to draw: its reason, and no axes."""
    text = fill(f"No figure: {why}", 62)
    with style():
        figure = Figure(figsize=(COLUMN * 1.2, 0.3 + 0.16 * len(text.splitlines())))
        figure.text(0.5, 0.5, text, ha="center", va="center", color=INK)
    return figure


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
