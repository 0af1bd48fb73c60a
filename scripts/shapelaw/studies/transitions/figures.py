"""The figures of transitions between depths, after figures 1b to 4 of Levine et al. 2020."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.curves import SIZE_LABELS, Side, SizeAxis, Transition, TransitionStatus
from shapelaw.fits.forms import draw_sizes
from shapelaw.fits.noise import chance_words
from shapelaw.fits.projection import (
    standard_params,
    transition_size,
    transition_width,
    why_no_projection,
    widened,
)
from shapelaw.report.plots import (
    ACCENT,
    COLUMN,
    FOURTH,
    INK,
    MUTED,
    PAGE,
    SECOND,
    THIRD,
    legend_below,
    log_axis,
    new_figure,
    ordered_looks,
    size_axis,
    style,
    whole_axis,
)
from shapelaw.studies.transitions.analysis import (
    GPT3_VOCABULARY,
    Pair,
    Runs,
    TransitionAnalysis,
    crossings,
    published,
    published_fit,
)
from shapelaw.studies.transitions.tables import rank_depths

LIKELY = (0.025, 0.975)
FARTHEST_DEPTH = 100
PANELS_A_ROW = 3


def loss_figure(pairs: Sequence[Pair], loss_label: str, size: SizeAxis = SizeAxis.BLOCK) -> Figure | str:
    """Figures 1b and 2: for each pair the loss against size with error bars, and below it the difference.

    A grey background marks the sizes below the transition, where deepening does not pay; a line and band are
    the bootstrap's transition and its 68% interval, a black bracket the two sizes of the paper's rule. Below are
    deeper minus shallower at the shallower one's sizes, and the smooth difference with its 68% band. A pair
    without a transition says so. Without two depths, the reason why nothing is drawn.
    """
    if not pairs:
        return "there are no two depths to compare"
    with style():
        columns = 2 if len(pairs) == 4 else min(PANELS_A_ROW, len(pairs))
        blocks = -(-len(pairs) // columns)
        figure, axes = new_figure(
            2 * blocks,
            columns,
            width=min(PAGE, 1.4 + 2.0 * columns),
            height=3.3 * blocks + (0.9 if columns == 1 else 0.6),
            height_ratios=[1.9, 1.0] * blocks,
        )
        for place in range(blocks * columns):
            block, column = divmod(place, columns)
            upper, lower = axes[2 * block, column], axes[2 * block + 1, column]
            if place >= len(pairs):
                upper.set_axis_off()
                lower.set_axis_off()
                continue
            _draw_losses(upper, pairs[place])
            _draw_difference(lower, pairs[place])
            low, high = _span(pairs[place])
            for axis in (upper, lower):
                size_axis(axis)
                axis.set_xlim(low, high)
            upper.tick_params(labelbottom=False)
            lower.set_xlabel(SIZE_LABELS[size])
            if column == 0:
                upper.set_ylabel(loss_label)
                lower.set_ylabel("deeper −\nshallower")
        legend_below(figure, columns)
        return figure


def transition_width_figure(analysis: TransitionAnalysis) -> Figure | str:
    """Figure 3a: log transition width against depth, the weighted line and its one-sigma band; or why there is none."""
    with style():
        figure, axes = new_figure(width=COLUMN * 1.2, height=3.3)
        axis = axes[0, 0]
        whose = "" if analysis.runs is None else "ours, "
        methods = [analysis.method, *(name for name in analysis.fits if name != analysis.method)]
        for place, method in enumerate(methods):
            used = crossings(analysis.transitions, method)
            if used.empty:
                continue
            low, high = used["width"] - used["width_low"], used["width_high"] - used["width"]
            axis.errorbar(
                used["depth"] + 0.15 * place,
                used["width"],
                yerr=np.abs([low, high]),
                fmt="x" if place == 0 else "s",
                color=INK if place == 0 else MUTED,
                ecolor=ACCENT if place == 0 else MUTED,
                markerfacecolor="none",
                label=f"{whose}{method}, 68% interval",
            )
        _draw_bounds(axis, analysis)
        _overlay_published(axis, analysis)
        fit = analysis.fit
        if fit.usable:
            used = crossings(analysis.transitions, analysis.method)
            depth = np.linspace(used["depth"].min() - 1, used["depth"].max() + 1, 100)
            width, err = transition_width(fit, depth)
            axis.plot(depth, width, color=SECOND, zorder=1, label="fitted line")
            axis.fill_between(
                depth,
                *_log_band(width, err),
                color=SECOND,
                alpha=0.18,
                linewidth=0,
                label="± one σ of the line",
            )
            axis.set_title(
                f"log d = ({fit.a:.3f} ± {fit.a_err:.3f}) + ({fit.b:.4f} ± {fit.b_err:.4f}) L\n"
                f"R² = {fit.r_squared:.3f}, χ²/dof = {fit.chi2_reduced:.2f} "
                f"({fit.dof} dof, {chance_words(fit.p_value)})"
                + ("\nthe points scatter more than their errors" if fit.p_value < 0.01 else "")
            )
        else:
            axis.set_title(fill(f"no line of ours is fitted: {fit.status} ({fit.message})", 50))
        axis.set_xlabel("depth L")
        at_equal = "" if analysis.runs is None else f"\nat equal {SIZE_LABELS[analysis.runs.size]}"
        axis.set_ylabel("transition width d" + at_equal)
        log_axis(axis, "y", whole=True)
        whole_axis(axis)
        if not axis.has_data():
            return f"no fit: {fit.status} ({fit.message})"
        legend_below(figure, 2)
        return figure


def transition_size_figure(analysis: TransitionAnalysis) -> Figure | str:
    """Figure 3b: `N_transition(L)` with its error band (eq. 10), and the measured transitions; or why there is none."""
    if not analysis.fit.usable:
        return why_no_projection(analysis.fit) or ""
    with style():
        figure, axes = new_figure()
        axis = axes[0, 0]
        _draw_sizes(axis, analysis, None)
        legend_below(figure, 1)
        return figure


def extrapolation_figure(analysis: TransitionAnalysis) -> Figure | str:
    """Figure 4: `N_transition(L)` to 100 layers, with the trained GPT-3 models of table 1; or why there is no curve."""
    reason = why_no_projection(analysis.fit)
    if reason is not None:
        return reason
    with style():
        figure, axes = new_figure(width=PAGE * 0.72, height=3.6)
        axis = axes[0, 0]
        _draw_sizes(axis, analysis, FARTHEST_DEPTH)
        models = published("projection").dropna(subset="trained_depth")
        sizes = models["params"] - GPT3_VOCABULARY * models["trained_width"]
        axis.plot(
            models["trained_depth"],
            sizes,
            "D",
            color=FOURTH,
            label="GPT-3 models as trained, without embeddings",
        )
        together = models.groupby("trained_depth")["params"]
        apart = 1.5 * (
            together.rank() - (together.transform("size") + 1) / 2
        )  # names of one depth, in points
        for name, depth, size, up in zip(models["model"], models["trained_depth"], sizes, apart, strict=True):
            axis.annotate(
                name.removeprefix("GPT-3 "), (depth, size), (-5, up), textcoords="offset points", ha="right",
                va="center", fontsize=6, color=FOURTH,
            )  # fmt: skip
        axis.set_xlim(0, FARTHEST_DEPTH + 4)
        legend_below(figure, 2)
        return figure


def best_depth_figure(runs: Runs) -> Figure | str:
    """Figure 3c: loss of each depth over the best one against size; the strip shows the best depth.

    The strip is pale where another depth is not significantly worse. Without a shared size, the reason.
    """
    ranking = rank_depths(runs.curves, runs.noise)
    if not ranking.size.size:
        return "no two depths share a size, so none is the best"
    with style():
        figure, axes = new_figure(2, 1, width=PAGE * 0.72, height=3.0, height_ratios=[5, 1], sharex=True)
        upper, strip = axes[:, 0]
        looks = ordered_looks(ranking.depths)
        colors = {depth: look.color for depth, look in looks.items()}
        for depth, excess in zip(ranking.depths, ranking.excess, strict=True):
            upper.plot(
                ranking.size, excess, color=colors[depth], linestyle=looks[depth].dashes, label=f"L = {depth}"
            )
        half = np.sqrt(ranking.size[1] / ranking.size[0]) if len(ranking.size) > 1 else 1.1
        state = np.stack([ranking.best, ranking.certain])
        for part in _runs_of(state):
            color, alpha = colors[ranking.depths[state[0, part[0]]]], 1.0 if state[1, part[0]] else 0.3
            left, right = ranking.size[part[0]] / half, ranking.size[part[-1]] * half
            strip.axvspan(left, right, color=color, alpha=alpha, linewidth=0)
        for part in _runs_of(ranking.best[None, :]):
            if len(part) > len(ranking.size) / 25:
                middle = np.sqrt(ranking.size[part[0]] * ranking.size[part[-1]])
                at, depth = (middle, 0.5), ranking.depths[ranking.best[part[0]]]
                strip.annotate(
                    str(depth), at, xycoords=("data", "axes fraction"), ha="center", va="center", fontsize=7,
                    bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "linewidth": 0, "alpha": 0.85},
                )  # fmt: skip
        # the far ends of networks that are too deep would flatten everything else
        upper.set_ylim(0, 1.1 * float(np.nanquantile(ranking.excess, 0.8)) or None)
        upper.set_ylabel(f"{runs.loss_label}\nover the best depth")
        upper.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        strip.set_yticks([])
        strip.grid(False)
        strip.set_ylabel("best L", rotation=0, ha="right", va="center")
        strip.set_xlabel(f"{SIZE_LABELS[runs.size]}   (pale: another depth is as good, within the noise)")
        size_axis(strip)
        return figure


def _runs_of(state: np.ndarray) -> list[np.ndarray]:
    """Groups of consecutive indices (of m) in which all rows of `state` (k, m) stay the same."""
    changes = np.flatnonzero((np.diff(state, axis=1) != 0).any(axis=0)) + 1
    return np.split(np.arange(state.shape[1]), changes) if state.shape[1] else []


def _draw_losses(axis: Axes, pair: Pair) -> None:
    for curve, marker, color in ((pair.shallow, "o", SECOND), (pair.deep, "D", THIRD)):
        err = np.nan_to_num(curve.loss_err)
        axis.errorbar(
            curve.size, curve.loss, err, fmt=f"{marker}-", color=color, linewidth=0.9, markersize=3.5,
            label=f"L = {curve.depth}",
        )  # fmt: skip
    axis.legend()
    _mark_transition(axis, pair)
    found = pair.bootstrap
    crossing = found.status is TransitionStatus.CROSSING
    what = f"d = {found.width:.0f} ± {found.width_err:.0f}" if crossing else found.status
    axis.set_title(fill(f"L = {pair.shallow.depth} against {pair.deep.depth}: {what}", 36), fontsize=7.5)


def _draw_difference(axis: Axes, pair: Pair) -> None:
    axis.axhline(0, color=INK, linewidth=0.7)
    deep, deep_err = pair.deep.loss_at(pair.shallow.size)
    err = np.nan_to_num(np.hypot(pair.shallow.loss_err, deep_err))
    axis.errorbar(
        pair.shallow.size, deep - pair.shallow.loss, err, fmt="s", color=INK, markersize=2.5, elinewidth=0.8,
        label="deeper minus shallower, measured",
    )  # fmt: skip
    if pair.draws is not None:
        size = np.exp(pair.draws.log_size)
        axis.plot(size, pair.draws.difference, color=INK, linewidth=0.9, label="smoothed, 68% band")
        axis.fill_between(size, pair.draws.low, pair.draws.high, color=MUTED, alpha=0.3, linewidth=0)
    _mark_transition(axis, pair)


def _mark_transition(axis: Axes, pair: Pair) -> None:
    """Draw the bootstrap's transition, and the bracket of the paper's rule along the lower edge, where they exist."""
    if pair.bootstrap.status is TransitionStatus.CROSSING:
        middle, low, high = _as_sizes(pair, pair.bootstrap)
        axis.axvline(middle, color=ACCENT, linewidth=0.9, linestyle="--", label="transition, 68% interval")
        axis.axvspan(low, high, color=ACCENT, alpha=0.15, linewidth=0)
        axis.axvspan(
            1.0, low, color="#eceef0", linewidth=0, zorder=0, label="sizes where deepening does not pay"
        )
    if pair.rule.status is TransitionStatus.CROSSING:
        _, low, high = _as_sizes(pair, pair.rule)
        axis.plot(
            [low, high], [0.04, 0.04], "|-", color=INK, transform=axis.get_xaxis_transform(), linewidth=1.2,
            label="the paper's rule: between these sizes",
        )  # fmt: skip


def _as_sizes(pair: Pair, transition: Transition) -> tuple[float, float, float]:
    widths = np.log([transition.width, transition.width_low, transition.width_high])
    curve = pair.shallow
    middle, low, high = np.exp(np.interp(widths, np.log(curve.width), curve.log_size))
    return float(middle), float(low), float(high)


def _span(pair: Pair) -> tuple[float, float]:
    sizes = np.concatenate([pair.shallow.size, pair.deep.size])
    return float(sizes.min() / 1.15), float(sizes.max() * 1.15)


def _draw_sizes(axis: Axes, analysis: TransitionAnalysis, up_to: float | None) -> None:
    used = crossings(analysis.transitions, analysis.method)
    if not used.empty:
        size = standard_params(used["depth"], used["width"])
        low, high = (standard_params(used["depth"], used[name]) for name in ("width_low", "width_high"))
        axis.errorbar(
            used["depth"], size, [size - low, high - size], fmt="x", color=INK, ecolor=ACCENT,
            label=f"transitions ({analysis.method}), 68% interval", zorder=4,
        )  # fmt: skip
    start = 1.0 if up_to else used["depth"].min() - 1
    depth = np.linspace(max(start, 0.5), up_to or used["depth"].max() + 1, 200)
    curve, err = transition_size(widened(analysis.fit), depth)
    axis.plot(depth, curve, color=SECOND, label=r"$N_{\mathrm{transition}}(L)$")
    axis.fill_between(
        depth, *_log_band(curve, err), color=SECOND, alpha=0.25, linewidth=0, label="± one σ, if it is a line"
    )
    if up_to and analysis.forms:
        low, high = np.exp(np.quantile(draw_sizes(analysis.forms, depth), LIKELY, axis=0))
        axis.fill_between(
            depth, low, high, color=SECOND, alpha=0.12, linewidth=0, label="95% over several forms", zorder=0
        )
    axis.set_title("too shallow above the curve, too deep below it")
    size_axis(axis, "y")
    axis.set_xlabel("depth L")
    axis.set_ylabel(SIZE_LABELS[SizeAxis.BLOCK])


def _log_band(values: np.ndarray, err: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A band of one standard error either way in the logarithm, so that it stays positive."""
    factor = np.exp(err / values)
    return values / factor, values * factor


def _draw_bounds(axis: Axes, analysis: TransitionAnalysis) -> None:
    """Draw arrows for limits of the main method, and hollow marks for transitions at the edge of the grid."""
    table = analysis.transitions[analysis.transitions["method"] == analysis.method]
    for side in Side:
        rows = table[table["side"] == side.value]
        if rows.empty:
            continue
        depth, bound, err = (
            rows[name].to_numpy(dtype=np.float64) for name in ("depth", "bound", "bound_err")
        )
        if side is Side.AT:
            axis.errorbar(
                depth, bound, err, fmt="o", color=ACCENT, markerfacecolor="none", markersize=4,
                label="ours, at the edge, not confirmed",
            )  # fmt: skip
            continue
        axis.errorbar(
            depth, bound, 0.25 * bound, lolims=side is Side.ABOVE, uplims=side is Side.BELOW, fmt="_", color=ACCENT,
            markersize=6, label=f"ours: {side} this width",
        )  # fmt: skip


def _overlay_published(axis: Axes, analysis: TransitionAnalysis) -> None:
    """Draw the paper's transitions and line beside those of our runs."""
    if analysis.runs is None:
        return
    reference, fit = published("transitions"), published_fit()
    axis.errorbar(
        reference["depth"], reference["width"], reference["width_err"], fmt="^", color=SECOND, markersize=3,
        markerfacecolor="none", elinewidth=0.7, label="Levine et al. 2020, ± one σ",
    )  # fmt: skip
    depths = [*analysis.runs.curves, *reference["depth"]]
    depth = np.linspace(min(depths), max(depths), 50)
    axis.plot(
        depth, np.exp(fit["a"] + fit["b"] * depth), color=SECOND, linewidth=0.9, linestyle=":", zorder=1,
        label="their line",
    )  # fmt: skip
