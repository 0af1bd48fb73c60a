"""The figures of transitions between depths, after figures 1b to 4 of Levine et al. 2020; a panel for each cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import product
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes

from shapelaw.fits import projection
from shapelaw.fits.curves import Side, Transition, TransitionStatus, status_sentence
from shapelaw.fits.noise import SIGNIFICANT, chance_words
from shapelaw.report.charts import Across, Band, Chart, Mark, Panel, Points, Span, Words
from shapelaw.report.plots import ACCENT, COLUMN, FOURTH, INK, MUTED, PAGE, SECOND, THIRD, Look, ordered_looks
from shapelaw.specs.sizes import SIZE_LABELS, SizeAxis
from shapelaw.studies.study import published_log_width
from shapelaw.studies.transitions.analysis import (
    GPT3_VOCABULARY,
    Pair,
    Runs,
    TransitionAnalysis,
    crossings,
    published_projection,
    published_transitions,
)
from shapelaw.studies.transitions.tables import Ranking, rank_depths, stretches

LIKELY = (0.025, 0.975)
FARTHEST_DEPTH = 100
MOST_PANELS = 3  # in a row
LAWS = {  # how the width grows by a form of log d
    "line": "The width grows exponentially with the depth:",
    "quadratic": "The width follows a parabola in the depth:",
    "root": "The width grows as a root of the depth:",
    "power law": "The width grows as a power of the depth:",
}
Analyses = Mapping[str, TransitionAnalysis]  # by the names of their cells; that of a single one is empty
Draw = Callable[[TransitionAnalysis], Panel | str]


def figures_of(cells: Analyses) -> Mapping[str, Callable[[object], Chart | str]]:
    """How all figures are drawn; of transitions that were given without runs those that need none."""
    of_cells = {
        "transition_width": (width_panel, 1.2 * COLUMN, 3.3, 2),
        "transition_size": (size_panel, COLUMN, 2.6, 1),
        "extrapolation": (extrapolation_panel, 0.72 * PAGE, 3.6, 2),
    }
    drawn = {name: partial(_of_cells, cells, *of) for name, of in of_cells.items()}
    runs = {name: one.runs for name, one in cells.items() if one.runs is not None}
    if not runs:
        return drawn
    adjacent = cache(lambda: loss_figure(runs, lambda one: one.adjacent))  # the same chart is drawn once
    only_doubled = all(_depths(one.adjacent) == _depths(one.doubled) for one in runs.values())
    return {
        **drawn,
        "loss_adjacent": lambda _: adjacent(),
        "loss_doubled": lambda _: adjacent() if only_doubled else loss_figure(runs, lambda one: one.doubled),
        "best_depth": lambda _: best_depth_figure(runs),
    }


def _depths(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    return [(pair.shallow.depth, pair.deep.depth) for pair in pairs]


def _of_cells(
    cells: Analyses, draw: Draw, width: float, height: float, legend: int, _: object
) -> Chart | str:
    """A panel for each cell that has one; where none has, the reason of the first."""
    drawn = {name: draw(one) for name, one in cells.items()}
    panels = [
        replace(panel, title="\n".join(filter(None, (fill(name, 50), panel.title))))
        for name, panel in drawn.items()
        if isinstance(panel, Panel)
    ]
    if not panels:
        return next(why for why in drawn.values() if isinstance(why, str))
    columns = min(2, len(panels))
    height *= -(-len(panels) // columns)
    return Chart(panels, columns, width if columns == 1 else PAGE, height, legend=legend)


def loss_figure(cells: Mapping[str, Runs], pairs_of: Callable[[Runs], Sequence[Pair]]) -> Chart | str:
    """Figures 1b and 2: for each pair the loss against size with error bars, and below it the difference.

    A grey background marks the sizes below the transition, where deepening does not pay; a line and band are
    the bootstrap's transition and its 68% interval, a black bracket the two sizes of the paper's rule. Below are
    deeper minus shallower at the shallower one's sizes, and the smooth difference with its 68% band. A pair
    without a transition says so. Without two depths, the reason why nothing is drawn.

    Args:
        cells: the runs of each cell, by its name.
        pairs_of: those of their pairs that are drawn.
    """
    pairs = [(name, runs, pair) for name, runs in cells.items() for pair in pairs_of(runs)]
    if not pairs:
        return "there are no two depths to compare"
    columns = 2 if len(pairs) == 4 else min(MOST_PANELS, len(pairs))
    panels: list[Panel | None] = []
    for first in range(0, len(pairs), columns):
        row = pairs[first : first + columns]
        for draw in (_losses, _difference):
            panels += [*(draw(*one) for one in row), *[None] * (columns - len(row))]
    blocks = len(panels) // (2 * columns)
    width, height = min(PAGE, 1.4 + 2.0 * columns), 3.3 * blocks + (0.9 if columns == 1 else 0.6)
    return Chart(panels, columns, width, height, heights=[1.9, 1.0] * blocks, legend=columns)


def _losses(name: str, runs: Runs, pair: Pair) -> Panel:
    """The losses of two depths, with the transition in the title."""
    look = {"linewidth": 0.9, "markersize": 3.5}
    marks: list[Mark] = [
        Points(
            curve.size, curve.loss, layers_text(curve.depth), color, marker, "-", curve.loss_err, more=look
        )
        for curve, marker, color in ((pair.shallow, "o", SECOND), (pair.deep, "D", THIRD))
    ]
    marks += [replace(mark, label="") for mark in _marks(pair)]  # the panel below names them
    found = pair.bootstrap
    deeper, shallower = layers_text(pair.deep.depth), pair.shallow.depth
    said = f"{deeper} against {shallower}: {status_sentence(asdict(found))}"
    if found.status is TransitionStatus.CROSSING:
        said = f"{deeper} beat {shallower} from width {found.width:.0f} ± {found.width_err:.0f}"
    title = "\n".join(fill(part, 28) for part in (name, said) if part)
    return Panel(marks, _span(pair, runs.size), Span(runs.loss_label), title, legend={})


def layers_text(depth: int) -> str:
    """`1 layer`, `2 layers`."""
    return f"{depth} layer{'s' if depth > 1 else ''}"


def _difference(_: str, runs: Runs, pair: Pair) -> Panel:
    """The deeper network's loss less the shallower's, and the smooth difference."""
    deep, deep_err = pair.deep.loss_at(pair.shallow.size)
    err, look = np.hypot(pair.shallow.loss_err, deep_err), {"markersize": 2.5, "elinewidth": 0.8}
    measured, above = "deeper minus shallower, measured", deep - pair.shallow.loss
    marks: list[Mark] = [
        Across(0, color=INK, more={"linewidth": 0.7}),
        Points(pair.shallow.size, above, measured, INK, "s", err=err, more=look),
    ]
    if pair.draws is not None:
        size, smooth = np.exp(pair.draws.log_size), "smoothed, 68% band"
        marks.append(Points(size, pair.draws.difference, smooth, INK, line="-", more={"linewidth": 0.9}))
        low, high = pair.draws.band()
        marks.append(Band(size, low, high, alpha=0.3))
    return Panel([*marks, *_marks(pair)], _span(pair, runs.size), Span("deeper −\nshallower"))


def _span(pair: Pair, size: SizeAxis) -> Span:
    sizes = np.concatenate([pair.shallow.size, pair.deep.size])
    return Span(SIZE_LABELS[size], "log", limits=(float(sizes.min() / 1.15), float(sizes.max() * 1.15)))


def _marks(pair: Pair) -> Iterator[Across | Bracket]:
    """The bootstrap's transition, and the bracket of the paper's rule along the lower edge, where they exist."""
    if pair.bootstrap.status is TransitionStatus.CROSSING:
        middle, low, high = _as_sizes(pair, pair.bootstrap)
        look = {"linewidth": 0.9}
        yield Across(middle, "x", "transition, 68% interval", ACCENT, "--", low, high, 0.15, look)
        below = "sizes where deepening does not pay"
        yield Across(np.nan, "x", below, "#eceef0", low=1.0, high=low, alpha=1.0, more={"zorder": 0})
    if pair.rule.status is TransitionStatus.CROSSING:
        yield Bracket(*_as_sizes(pair, pair.rule)[1:])


@dataclass(frozen=True)
class Bracket:
    """The sizes of the paper's rule, along the lower edge of a panel."""

    low: float
    high: float
    label: str = "the paper's rule: between these sizes"

    def draw(self, axes: Axes) -> None:
        """Draw it at a height of the panel, whatever its losses are."""
        ends, at = [self.low, self.high], axes.get_xaxis_transform()
        axes.plot(ends, [0.04, 0.04], "|-", color=INK, transform=at, linewidth=1.2, label=self.label)


def _as_sizes(pair: Pair, transition: Transition) -> tuple[float, float, float]:
    widths = np.log([transition.width, transition.width_low, transition.width_high])
    curve = pair.shallow
    middle, low, high = np.exp(np.interp(widths, np.log(curve.width), curve.log_size))
    return float(middle), float(low), float(high)


def width_panel(analysis: TransitionAnalysis) -> Panel | str:
    """Figure 3a: log transition width against depth, the weighted line and its one-sigma band; or why there is none."""
    fit, marks = analysis.fit, [*_widths(analysis), *_bounds(analysis), *_overlay(analysis)]
    if not marks:
        return f"no fit: {fit.status} ({fit.message})"
    title = fill(f"no law is fitted to these runs: {fit.status} ({fit.message})", 50)
    if fit.usable:
        used = crossings(analysis.transitions, analysis.method)
        depth = np.linspace(max(used["depth"].min() - 1, 0.5), used["depth"].max() + 1, 100)
        width, err = projection.transition_width(fit, depth)
        law, rejected = _law_that_fits(analysis), fit.p_value < SIGNIFICANT
        name = f"exponential law{', rejected' if rejected else ''}"
        marks.append(Points(depth, width, name, SECOND, line=":" if rejected else "-", more={"zorder": 1}))
        title = (
            f"log d = ({fit.a:.3f} ± {fit.a_err:.3f}) + ({fit.b:.4f} ± {fit.b_err:.4f}) L\n"
            f"R² = {fit.r_squared:.3f}, χ²/dof = {fit.chi2_reduced:.2f} ({fit.dof} dof, {chance_words(fit.p_value)})"
            + ("\nthe points scatter more than their errors" if fit.p_value < projection.SCATTERED else "")
        )
        color = SECOND
        if law is not None:
            log_width, log_err = projection.log_width_of(law, depth)
            width, color = np.exp(log_width), ACCENT
            err = width * log_err
            marks.append(Points(depth, width, "law that fits best", color, line="-", more={"zorder": 1}))
            title = (
                f"{LAWS[law.name]}\nlog d = {projection.FORMS[law.name][0]}, "
                f"{_slopes(law)} ({chance_words(law.p_value)})\n"
                f"log d = a + b L is rejected ({chance_words(fit.p_value)})"
            )
        marks.append(Band(depth, *_log_band(width, err), "its ± one standard error", color, 0.18))
    equal = "" if analysis.runs is None else f"\nat equal {SIZE_LABELS[analysis.runs.size]}"
    return Panel(
        marks, Span("depth L", "whole"), Span(f"transition width d{equal}", "whole log"), title=title
    )


def _law_that_fits(analysis: TransitionAnalysis) -> projection.Form | None:
    """The form of greatest weight, where the transitions reject the exponential law and not that form."""
    best = next(iter(analysis.forms), None)
    rejected = analysis.fit.p_value < SIGNIFICANT
    return best if best is not None and rejected and best.p_value >= SIGNIFICANT else None


def _slopes(law: projection.Form) -> str:
    """`b = 0.339 ± 0.030`: its coefficients but the first."""
    errors = np.sqrt(np.diag(law.covariance))
    values = zip("bc", law.coefficients[1:], errors[1:], strict=False)
    return ", ".join(f"{name} = {value:.3f} ± {err:.3f}" for name, value, err in values)


def _widths(analysis: TransitionAnalysis) -> Iterator[Mark]:
    """The crossings by each method, the main one first."""
    methods = [analysis.method, *(name for name in analysis.fits if name != analysis.method)]
    for place, method in enumerate(methods):
        used = crossings(analysis.transitions, method)
        if not used.empty:
            low, high = used["width"] - used["width_low"], used["width_high"] - used["width"]
            color, marker, bars = (MUTED, "s", MUTED) if place else (INK, "x", ACCENT)
            yield Points(
                used["depth"] + 0.15 * place, used["width"], f"{method}, 68% interval", color, marker,
                err=np.abs([low, high]), hollow=True, more={"ecolor": bars},
            )  # fmt: skip


def _bounds(analysis: TransitionAnalysis) -> Iterator[Mark]:
    """Arrows for limits of the main method, and hollow marks for transitions at the edge of the grid."""
    table = analysis.transitions[analysis.transitions["method"] == analysis.method]
    for side in Side:
        rows = table[table["side"] == side.value]
        if rows.empty:
            continue
        depth, bound, err = rows[["depth", "bound", "bound_err"]].to_numpy(dtype=np.float64).T
        if side is Side.AT:
            words, look = "at the edge of the sizes, not confirmed", {"markersize": 4}
            yield Points(depth, bound, words, ACCENT, "o", err=err, hollow=True, more=look)
        else:
            arrows = {"lolims": side is Side.ABOVE, "uplims": side is Side.BELOW, "markersize": 6}
            yield Points(depth, bound, f"transition {side} (84%)", ACCENT, "_", err=0.25 * bound, more=arrows)


def _overlay(analysis: TransitionAnalysis) -> Iterator[Mark]:
    """The paper's transitions and line beside those of our runs."""
    if analysis.runs is None:
        return
    reference = published_transitions()
    look = {"markersize": 3, "elinewidth": 0.7}
    yield Points(
        reference["depth"], reference["width"], "Levine et al. 2020, transitions", SECOND, "^",
        err=reference["width_err"], hollow=True, more=look,
    )  # fmt: skip
    depths = [*analysis.runs.curves, *reference["depth"]]
    depth = np.linspace(min(depths), max(depths), 50)
    line, look = [math.exp(published_log_width(one)) for one in depth], {"linewidth": 0.9, "zorder": 1}
    yield Points(depth, line, "Levine et al. 2020, law", SECOND, line=":", more=look)


def size_panel(analysis: TransitionAnalysis) -> Panel | str:
    """Figure 3b: `N_transition(L)` with its error band (eq. 10), and the measured transitions; or why there is none."""
    if not analysis.fit.usable:
        return projection.why_no_projection(analysis.fit) or ""
    return _sizes_panel(analysis, None)


def extrapolation_panel(analysis: TransitionAnalysis) -> Panel | str:
    """Figure 4: `N_transition(L)` to 100 layers, with the trained GPT-3 models of table 1; or why there is no curve."""
    if reason := projection.why_no_projection(analysis.fit):
        return reason
    models = published_projection().dropna(subset="trained_depth")
    depths, sizes = models["trained_depth"], models["params"] - GPT3_VOCABULARY * models["trained_width"]
    together = models.groupby("trained_depth")["params"]
    apart = 1.5 * (together.rank() - (together.transform("size") + 1) / 2)  # names of one depth, in points
    names = models["model"].str.removeprefix("GPT-3 ")
    drawn = _sizes_panel(analysis, FARTHEST_DEPTH)
    trained: list[Mark] = [
        Points(depths, sizes, "GPT-3 models as trained, without embeddings", FOURTH, "D"),
        *(
            Words(name, depth, size, (-5, up), FOURTH, {"ha": "right"})
            for name, depth, size, up in zip(names, depths, sizes, apart, strict=True)
        ),
    ]
    return replace(drawn, marks=[*drawn.marks, *trained], x=Span("depth L", limits=(0, FARTHEST_DEPTH + 4)))


def _sizes_panel(analysis: TransitionAnalysis, up_to: float | None) -> Panel:
    used = crossings(analysis.transitions, analysis.method)
    marks: list[Mark] = []
    if not used.empty:
        size, low, high = (
            projection.standard_params(used["depth"], used[name])
            for name in ("width", "width_low", "width_high")
        )
        words = f"transitions ({analysis.method}), 68% interval"
        look = {"ecolor": ACCENT, "zorder": 4}
        marks.append(Points(used["depth"], size, words, INK, "x", err=[size - low, high - size], more=look))
    start = 1.0 if up_to else used["depth"].min() - 1
    depth = np.linspace(max(start, 0.5), up_to or used["depth"].max() + 1, 200)
    curve, err = projection.transition_size(projection.widened(analysis.fit), depth)
    marks.append(Points(depth, curve, r"$N_{\mathrm{transition}}(L)$", SECOND, line="-"))
    marks.append(Band(depth, *_log_band(curve, err), "± one SE, if the law is exponential", SECOND, 0.25))
    if up_to and analysis.forms:
        low, high = projection.sizes_between(analysis.forms, depth, LIKELY)
        marks.append(Band(depth, low, high, "95% over several forms", SECOND, 0.12))
    title = "too shallow above the curve, too deep below it"
    return Panel(marks, Span("depth L"), Span(SIZE_LABELS[SizeAxis.BLOCK], "log"), title)


def _log_band(values: np.ndarray, err: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A band of one standard error either way in the logarithm, so that it stays positive."""
    factor = np.exp(err / values)
    return values / factor, values * factor


def best_depth_figure(cells: Mapping[str, Runs]) -> Chart | str:
    """Figure 3c: loss of each depth over the best one against size; the strip shows the best depth.

    The strip is pale where another depth is not significantly worse. Without a shared size, the reason.
    """
    found = {name: (rank_depths(runs.curves, runs.noise), runs) for name, runs in cells.items()}
    shown = {name: one for name, one in found.items() if one[0].size.size}
    if not shown:
        return "no two depths share a size, so none is the best"
    looks = ordered_looks(sorted({depth for ranking, _ in shown.values() for depth in ranking.depths}))
    panels = [
        panel for name, (ranking, runs) in shown.items() for panel in _ranking(name, ranking, runs, looks)
    ]
    count, width = len(shown), 0.72 * PAGE
    return Chart(panels, 1, width, 3.0 * count, heights=[5, 1] * count, share_x=True, legend=0)


def _ranking(name: str, ranking: Ranking, runs: Runs, looks: Mapping[int, Look]) -> Iterator[Panel]:
    """What each depth loses, and the strip of the best one below."""
    lines = [
        Points(ranking.size, excess, layers_text(depth), looks[depth].color, line=looks[depth].dashes)
        for depth, excess in zip(ranking.depths, ranking.excess, strict=True)
    ]
    # the far ends of networks that are too deep would flatten everything else
    limits = (0, 1.1 * float(np.nanquantile(ranking.excess, 0.8)) or None)
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    x = Span(f"{SIZE_LABELS[runs.size]}   (pale: another depth is as good, within the noise)", "log")
    y = Span(f"{runs.loss_label}\nover the best depth", limits=limits)
    yield Panel(lines, x, y, name, legend=beside)
    yield Panel([Strip(ranking, looks)], x)


@dataclass(frozen=True, eq=False)
class Strip:
    """The best depth along the sizes, as a coloured strip."""

    ranking: Ranking
    looks: Mapping[int, Look]

    def draw(self, axes: Axes) -> None:
        """Draw it, with the number of each depth where there is room."""
        ranking, size = self.ranking, self.ranking.size
        half = np.sqrt(size[1] / size[0]) if len(size) > 1 else 1.1
        for part in stretches(ranking.best, ranking.certain):
            depth, sure = ranking.depths[ranking.best[part[0]]], ranking.certain[part[0]]
            color, alpha = self.looks[depth].color, 1.0 if sure else 0.3
            axes.axvspan(size[part[0]] / half, size[part[-1]] * half, color=color, alpha=alpha, linewidth=0)
        for part in stretches(ranking.best):
            if len(part) > len(size) / 25:
                middle, depth = np.sqrt(size[part[0]] * size[part[-1]]), ranking.depths[ranking.best[part[0]]]
                axes.annotate(
                    str(depth), (middle, 0.5), xycoords=("data", "axes fraction"), ha="center", va="center",
                    fontsize=7,
                    bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "linewidth": 0, "alpha": 0.85},
                )  # fmt: skip
        axes.set_yticks([])
        axes.grid(False)
        axes.set_ylabel("best L", rotation=0, ha="right", va="center")


def curves_chart(analyses: Mapping[tuple[str, str], TransitionAnalysis], columns: Sequence[str]) -> Chart:
    """Loss curves of several settings, a panel each, on one size axis: where they cross can be compared.

    Args:
        analyses: by the names of their row and column, the rows in the order in which they stand.
        columns: names of the columns in order; an empty name is left out of a panel's title.
    """
    rows = list(dict.fromkeys(row for row, _ in analyses))
    looks = ordered_looks(sorted({depth for one in analyses.values() for depth in one.compared.curves}))
    panels = [
        curves_panel(one, looks, ",\n".join(filter(None, at))) if (one := analyses.get(at)) else None
        for at in product(rows, columns)
    ]
    return Chart(panels, len(columns), PAGE, 2.1 * len(rows) + 0.4, share_x=True, legend=6)


def curves_panel(analysis: TransitionAnalysis, looks: Mapping[int, Look], title: str) -> Panel:
    """The loss of every depth against size, with the crossings of adjacent depths and their 68% intervals."""
    runs = analysis.compared
    more = {"markersize": 3, "linewidth": 0.9}
    marks: list[Mark] = []
    for depth, curve in runs.curves.items():
        look, label = looks[depth], layers_text(depth)
        marks.append(
            Points(curve.size, curve.loss, label, look.color, look.marker, "-", curve.loss_err, more=more)
        )
    for pair, row in zip(runs.adjacent, analysis.bootstrap_rows, strict=False):
        if row["status"] == TransitionStatus.CROSSING:
            low, middle, high = (
                float(np.interp(row[name], pair.shallow.width, pair.shallow.size))
                for name in ("width_low", "width", "width_high")
            )
            words, ink = "transition, 68% interval", {"linewidth": 0.9, "color": INK}
            marks.append(Across(middle, "x", words, MUTED, "--", low, high, 0.25, ink))
    return Panel(marks, Span(SIZE_LABELS[runs.size], "log"), Span(runs.loss_label), title)
