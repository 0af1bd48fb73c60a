"""The figures of a surface: what an aspect ratio costs, and the best depth against size."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.curves import SIZE_LABELS, SizeAxis
from shapelaw.fits.line import Floats, fit_line
from shapelaw.fits.projection import project, standard_params
from shapelaw.fits.surface_answers import INTERVAL, best_depth, lowest, tried_depths
from shapelaw.fits.surface_shapes import SurfaceStatus
from shapelaw.report.plots import (
    COLUMN,
    INK,
    MUTED,
    PAGE,
    SECOND,
    THIRD,
    log_axis,
    new_figure,
    short_number,
    size_axis,
    style,
)
from shapelaw.studies.reference import REFERENCE
from shapelaw.studies.surface.analysis import SurfaceAnalysis

PANELS = 6  # sizes that get a panel
SIZES = 31  # at which the best depth is drawn
DEPTHS = 61
NEAR = np.log(1.6)  # shapes whose size is less than this factor away are drawn in a panel
DECODERS = ("GPT-2", "GPT-3", "Llama", "Gemma", "Qwen")


def penalty_figure(analysis: SurfaceAnalysis) -> Figure | str:
    """Loss above the best of its size against aspect ratio, a panel for each size; or why there is none.

    Line and band: the surface and its 68% interval over the depths that were tried. Points: shapes of about this size,
    each above the best of its own size, by its measured loss.
    """
    surface, rule = analysis.surface, analysis.rule
    if not surface.usable:
        return f"{surface.status}: {surface.message}"
    if not surface.told:
        return "depth makes no difference beyond the noise"
    if not rule.exact:
        return "the sizes follow no rule of depth and width, so that an aspect ratio can't be told"
    sizes = [size for size in analysis.sizes if _inside(analysis, size)][:PANELS]
    if not sizes:
        return "no asked size lies among the shapes'"
    shapes = surface.shapes
    own = _above_best(analysis, shapes.x, shapes.loss)
    with style():
        columns = min(3, len(sizes))
        figure, axes = new_figure(
            -(-len(sizes) // columns), columns, width=PAGE, height=2.1 * -(-len(sizes) // columns) + 0.5,
            sharex=True, sharey=True,
        )  # fmt: skip
        panels: list[Axes] = axes.ravel().tolist()
        for axis, size in zip(panels, sizes, strict=False):
            x = np.log(size)
            grid = np.linspace(*tried_depths(shapes, float(x)), DEPTHS)
            losses = surface.losses(np.full_like(grid, x), grid)
            above = losses - lowest(losses, grid)[1][:, None]
            ratio = rule.width(np.exp(grid), size) / np.exp(grid)
            low, high = np.quantile(above, INTERVAL, axis=0)
            axis.plot(ratio, np.median(above, axis=0), color=SECOND, label="surface at this size")
            axis.fill_between(
                ratio, low, high, color=SECOND, alpha=0.2, linewidth=0, label="68% of the draws"
            )
            near = np.abs(shapes.x - x) < NEAR
            axis.plot(
                (shapes.width / shapes.depth)[near], own[near], "o", color=INK, markersize=3,
                label="trained shapes of 0.6 to 1.6 times the size, above the best of their own",
            )  # fmt: skip
            axis.axhline(0, color=MUTED, linewidth=0.7, label="the best of this size")
            axis.set_title(f"size {short_number(size)}")
            log_axis(axis, "x")
        for axis in panels[len(sizes) :]:
            axis.set_axis_off()
        for axis in axes[:, 0]:
            axis.set_ylabel("loss above the best (nats)")
        for axis in panels[: len(sizes)][-columns:]:
            axis.set_xlabel("aspect ratio, width / depth")
            axis.tick_params(labelbottom=True)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        return figure


def best_depth_figure(analysis: SurfaceAnalysis) -> Figure | str:
    """The best depth against size with its 68% band or bound, the shapes, the published line and known models."""
    surface = analysis.surface
    if not surface.usable:
        return f"{surface.status}: {surface.message}"
    shapes = surface.shapes
    sizes = np.geomspace(shapes.size.min(), shapes.size.max(), SIZES)
    found = [best_depth(surface, float(size)) for size in sizes]
    with style():
        figure, axes = new_figure(width=COLUMN * 1.35, height=3.0)
        axis = axes[0, 0]
        axis.plot(shapes.size, shapes.depth, "o", color=MUTED, markersize=3, label="trained shapes")
        depth, low, high = (
            np.array([getattr(one, name) for one in found]) for name in ("depth", "low", "high")
        )
        status = np.array([one.status for one in found])
        inside = status == SurfaceStatus.CONVERGED
        axis.plot(sizes, np.where(inside, depth, np.nan), color=SECOND, label="best depth, 68% band")
        axis.fill_between(
            sizes, np.where(inside, low, np.nan), np.where(inside, high, np.nan),
            color=SECOND, alpha=0.2, linewidth=0,
        )  # fmt: skip
        for side, bound, marker, words in (
            (SurfaceStatus.DEEPER, low, "^", "best depth is above (84%)"),
            (SurfaceStatus.SHALLOWER, high, "v", "best depth is below (84%)"),
        ):
            at = status == side
            if at.any():
                axis.plot(sizes[at], bound[at], marker, color=SECOND, markersize=3, label=words)
        _published(axis, analysis, sizes)
        size_axis(axis)
        log_axis(axis, "y")
        axis.set_ylim(shapes.depth.min() / 1.3, shapes.depth.max() * 1.3)
        axis.set_xlabel(SIZE_LABELS[analysis.axis])
        axis.set_ylabel("depth")
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=6)
        return figure


def _inside(analysis: SurfaceAnalysis, size: float) -> bool:
    shapes = analysis.surface.shapes
    return bool(shapes.size.min() * 0.9 <= size <= shapes.size.max() * 1.1)


def _above_best(analysis: SurfaceAnalysis, x: Floats, loss: Floats) -> Floats:
    """(n,) losses less the surface's lowest at their (n,) log sizes."""
    surface = analysis.surface
    best = []
    for value in x:
        grid = np.linspace(*tried_depths(surface.shapes, float(value)), DEPTHS)
        best.append(lowest(surface.fitted(np.full_like(grid, value), grid)[None, :], grid)[1][0])
    return np.asarray(loss - np.array(best), dtype=np.float64)


def _published(axis: Axes, analysis: SurfaceAnalysis, sizes: Floats) -> None:
    """The published line and known decoders where they lie in the figure, by 12 L d² or all their parameters."""
    if analysis.axis is SizeAxis.FLOPS:
        return
    if analysis.axis is SizeAxis.BLOCK:
        table = pd.read_csv(REFERENCE / "levine2020_transitions.csv")
        width, err = table["width"].to_numpy(), table["width_err"].to_numpy()
        line = fit_line(table["depth"], np.log(width), err / width)
        depths = [project(line, float(size)).depth for size in sizes]
        axis.plot(
            sizes, depths, "--", color=THIRD, linewidth=1.0, label="published line (Levine et al. 2020)"
        )
    models = pd.read_csv(REFERENCE / "architectures.csv")
    models = models[models["name"].str.startswith(DECODERS)].drop_duplicates(["width", "depth"])
    blocks = standard_params(models["depth"], models["width"])
    known = blocks if analysis.axis is SizeAxis.BLOCK else models["params"].to_numpy(dtype=np.float64)
    shown = (known >= sizes[0]) & (known <= sizes[-1])
    if not shown.any():
        return
    depths = models["depth"].to_numpy()[shown]
    axis.plot(known[shown], depths, "D", color=INK, markersize=3, label="known models, as trained")
    for name, size, depth in zip(models["name"][shown], known[shown], depths, strict=True):
        axis.annotate(name, (size, depth), (3, -3), textcoords="offset points", va="top", fontsize=5)
