"""A figure as a specification: panels with their axes, and what stands in them. `Chart.figure` draws it.

A study says what is shown: points, bands, lines across, words. This module says how, with the helpers of `plots`: the
style, readable ticks, one legend for all panels, labels at the outer panels alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.report import plots

Scale = Literal["linear", "whole", "log", "whole log", "values"]


class Mark(Protocol):
    """What stands in a panel. A study may have a mark of its own: whatever draws itself into axes."""

    def draw(self, axes: Axes) -> None:
        """Draw the mark; what the legend says of it is the label of one of its artists."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points, with error bars or without, joined by a line or not.

    Attributes:
        x, y: one number each, or (n,) each.
        label: in the legend; marks of one label have one entry, and none has no label.
        color, marker: without a marker there is the line alone.
        line: dashes that join the points; empty for none.
        err, x_err: lengths of the bars of y and of x: one number, (n,), or (2, n) below and above. NaN is no bar.
        hollow: the markers are not filled.
        more: what else `Axes.errorbar` takes, such as `markersize` or `alpha`.
    """

    x: npt.ArrayLike
    y: npt.ArrayLike
    label: str = ""
    color: str = plots.INK
    marker: str = ""
    line: Any = ""
    err: npt.ArrayLike | None = None
    x_err: npt.ArrayLike | None = None
    hollow: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Draw them, the error bars below."""
        look: dict[str, Any] = {
            "color": self.color, "marker": self.marker or "none", "linestyle": self.line or "none",
            "label": self.label, **({"markerfacecolor": "none"} if self.hollow else {}), **self.more,
        }  # fmt: skip
        x, y = np.atleast_1d(self.x), np.atleast_1d(self.y)
        if self.err is None and self.x_err is None:
            axes.plot(x, y, **look)
        else:
            axes.errorbar(x, y, _bars(self.err), _bars(self.x_err), **look)


def _bars(lengths: npt.ArrayLike | None) -> npt.NDArray[np.float64] | None:
    """Lengths of error bars, a missing one 0."""
    return None if lengths is None else np.nan_to_num(np.asarray(lengths, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Band:
    """The area between two lines: (n,) positions, and the lower and the upper end at each."""

    x: npt.ArrayLike
    low: npt.ArrayLike
    high: npt.ArrayLike
    label: str = ""
    color: str = plots.MUTED
    alpha: float = 0.2

    def draw(self, axes: Axes) -> None:
        """Fill it, without an edge."""
        axes.fill_between(
            self.x, self.low, self.high, color=self.color, alpha=self.alpha, linewidth=0, label=self.label
        )


@dataclass(frozen=True)
class Across:
    """A straight line across the whole panel, at a value of `axis`, with an interval around it or without.

    Attributes:
        at: the value; NaN draws the interval alone.
        axis: "x" for an upright line.
        low, high: ends of the interval; NaN for none.
        more: what else `Axes.axhline` takes; its `zorder` is the interval's too.
    """

    at: float
    axis: Literal["x", "y"] = "y"
    label: str = ""
    color: str = plots.MUTED
    line: Any = "-"
    low: float = np.nan
    high: float = np.nan
    alpha: float = 0.2
    more: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Draw the line and the interval, below what has been drawn with a higher `zorder`."""
        upright = self.axis == "x"
        if not np.isnan(self.at):
            line = axes.axvline if upright else axes.axhline
            look = {"linewidth": 0.8, "color": self.color, "linestyle": self.line, **self.more}
            line(self.at, label=self.label, **look)
        if not np.isnan(self.low):
            span = axes.axvspan if upright else axes.axhspan
            label = self.label if np.isnan(self.at) else ""
            below = {"zorder": self.more.get("zorder", 1)}
            span(self.low, self.high, color=self.color, alpha=self.alpha, linewidth=0, label=label, **below)


@dataclass(frozen=True)
class Words:
    """Words beside a point: `offset` is in printed points; `more` is what else `Axes.annotate` takes."""

    text: str
    x: float
    y: float
    offset: tuple[float, float] = (0.0, 0.0)
    color: str = plots.INK
    more: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Write them, small."""
        look = {"fontsize": 6, "color": self.color, "va": "center", **self.more}
        axes.annotate(self.text, (self.x, self.y), self.offset, textcoords="offset points", **look)


@dataclass(frozen=True)
class Span:
    """An axis of a panel.

    Attributes:
        label: what it shows, with its unit.
        scale: "linear"; "log" has readable ticks at whatever it spans, parameters and FLOPs too (300K, 1.5B); "whole"
            and "whole log" count something; "values" is a logarithmic x axis with ticks at `ticks` alone.
        ticks: where they are, with their words where these are not the numbers themselves.
        limits: the two ends; None leaves one to the data.
        turned: degrees by which long words of ticks are turned.
    """

    label: str = ""
    scale: Scale = "linear"
    ticks: Mapping[float, str] | Collection[float] = ()
    limits: tuple[float | None, float | None] = (None, None)
    turned: float = 0.0

    def apply(self, axes: Axes, which: Literal["x", "y"]) -> None:
        """Give an axis of a panel its scale, ticks and limits; the label follows from where the panel stands."""
        places, axis = sorted(self.ticks), getattr(axes, f"{which}axis")
        if self.scale == "values":
            plots.value_axis(axes, places)
        elif self.scale == "whole":
            plots.whole_axis(axis)
        elif self.scale != "linear":
            plots.log_axis(axes, which, whole=self.scale == "whole log")
        if isinstance(self.ticks, Mapping):
            words = [self.ticks[place] for place in places]
            look = {"rotation": self.turned, "ha": "right"} if self.turned else {}
            axis.set_ticks(places, words, **look)
        elif places and self.scale != "values":
            axis.set_ticks(places)
        if self.limits != (None, None):
            axes.set(**{f"{which}lim": self.limits})


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes.

    Attributes:
        marks: what stands in it, the first below.
        x, y: its axes.
        title: above it.
        legend: arguments of a legend inside, such as `{"loc": "upper left"}`; None leaves all to the chart's legend.
        nothing: the reason why there is nothing to draw, which stands there in place of axes.
        note: words in a box, over the lower edge: what a reader should know of all that is drawn.
    """

    marks: Iterable[Mark] = ()
    x: Span = Span()
    y: Span = Span()
    title: str = ""
    legend: Mapping[str, Any] | None = None
    nothing: str = ""
    note: str = ""

    def draw(self, axes: Axes) -> None:
        """Draw the panel without the labels of its axes."""
        axes.set_title(self.title)
        if self.nothing:
            axes.set_axis_off()
            plots.explain(axes, self.nothing)
            return
        for mark in self.marks:
            mark.draw(axes)
        self.x.apply(axes, "x")
        self.y.apply(axes, "y")
        if self.legend is not None:
            axes.legend(**self.legend)
        if self.note:
            plots.explain(axes, self.note, (0.5, 0.1))


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure before it is drawn.

    Attributes:
        panels: row after row; None is an empty place.
        columns: panels in a row.
        width, height: of the whole, in inches; a column or a page, and 3 a row, if not given.
        widths, heights: shares of the columns and of the rows.
        share_x, share_y: the panels have one x, one y axis. Where all do, only the outer ones have labels and only
            those at the left have ticks of y.
        title: small, above all.
        legend: entries in a row of the legend below, which has each label once; 0 for no legend.
        keys: entries of the legend in place of the panels' labels.
    """

    panels: Sequence[Panel | None]
    columns: int = 1
    width: float = 0.0
    height: float = 0.0
    widths: Sequence[float] | None = None
    heights: Sequence[float] | None = None
    share_x: bool = False
    share_y: bool = False
    title: str = ""
    legend: int = 3
    keys: Sequence[Artist] = ()

    def figure(self) -> Figure:
        """Draw it. The label of an axis is left out where the panel below, or to the left, has the same, and the words
        of its ticks where the panel below has the same limits too."""
        rows = -(-len(self.panels) // self.columns)
        with plots.style():
            width = self.width or (plots.COLUMN if self.columns == 1 else plots.PAGE)
            figure = Figure(figsize=(width, self.height or 3.0 * rows))
            axes = figure.subplots(
                rows, self.columns, squeeze=False, width_ratios=self.widths, height_ratios=self.heights,
                sharex=self.share_x, sharey=self.share_y,
            )  # fmt: skip
            for place in range(rows * self.columns):
                at: Axes = axes[divmod(place, self.columns)]
                panel = self._at(place)
                if panel is None:
                    at.set_axis_off()
                    continue
                panel.draw(at)
                self._label(at, place, panel)
            if self.title:
                figure.suptitle(self.title, x=0.01, ha="left", fontsize=7)
            if self.keys:
                columns = min(self.legend, len(self.keys))
                figure.legend(handles=list(self.keys), loc="outside lower center", ncols=columns)
            elif self.legend:
                plots.legend_below(figure, self.legend)
            return figure

    def _at(self, place: int) -> Panel | None:
        return self.panels[place] if 0 <= place < len(self.panels) else None

    def _label(self, axes: Axes, place: int, panel: Panel) -> None:
        """Label the axes of a panel, and show the ticks of a shared x axis where its label is."""
        below, left = self._at(place + self.columns), self._at(place - 1) if place % self.columns else None
        if below is None or below.nothing or below.x.label != panel.x.label:
            axes.set_xlabel(panel.x.label)
            axes.tick_params(labelbottom=True)
        elif panel.x.limits != (None, None) and below.x.limits == panel.x.limits:
            axes.tick_params(labelbottom=False)
        if panel.y.label and (left is None or left.nothing or left.y.label != panel.y.label):
            axes.set_ylabel(panel.y.label)


def looked(look: plots.Look) -> dict[str, Any]:
    """The colour, marker and dashes of a look, as arguments of `Points`."""
    return {"color": look.color, "marker": look.marker, "line": look.dashes}
