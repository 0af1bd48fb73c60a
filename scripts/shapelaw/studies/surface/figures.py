"""The figures of a surface: what an aspect ratio costs, and the best depth against size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from shapelaw.fits.curves import SIZE_LABELS, SizeAxis
from shapelaw.fits.line import Floats, fit_line
from shapelaw.fits.projection import project, standard_params
from shapelaw.fits.surface_answers import INTERVAL, best_depth, lowest, tried_depths
from shapelaw.fits.surface_forms import SurfaceStatus
from shapelaw.report.charts import Across, Band, Chart, Mark, Panel, Points, Span, Words
from shapelaw.report.plots import COLUMN, INK, MUTED, PAGE, SECOND, THIRD, short_number
from shapelaw.studies.study import REFERENCE
from shapelaw.studies.surface.analysis import SurfaceAnalysis

PANELS = 6  # sizes that get a panel
SIZES = 31  # at which the best depth is drawn
DEPTHS = 61
NEAR = np.log(1.6)  # shapes whose size is less than this factor away are drawn in a panel
DECODERS = ("GPT-2", "GPT-3", "Llama", "Gemma", "Qwen")


def penalty_figure(analysis: SurfaceAnalysis) -> Chart | str:
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
    own = _above_best(analysis, surface.shapes.x, surface.shapes.loss)
    panels = [_penalties(analysis, size, own) for size in sizes]
    columns = min(3, len(sizes))
    height = 2.1 * -(-len(sizes) // columns) + 0.5
    return Chart(panels, columns, PAGE, height, share_x=True, share_y=True)


def _penalties(analysis: SurfaceAnalysis, size: float, own: Floats) -> Panel:
    """What an aspect ratio costs at one size; `own` is the cost of each shape at its own."""
    surface, shapes, x = analysis.surface, analysis.surface.shapes, float(np.log(size))
    grid = np.linspace(*tried_depths(shapes, x), DEPTHS)
    losses = surface.losses(np.full_like(grid, x), grid)
    above = losses - lowest(losses, grid)[1][:, None]
    ratio = analysis.rule.width(np.exp(grid), size) / np.exp(grid)
    low, high = np.quantile(above, INTERVAL, axis=0)
    near, small = np.abs(shapes.x - x) < NEAR, {"markersize": 3}
    words = "trained shapes of 0.6 to 1.6 times the size, above the best of their own"
    marks: list[Mark] = [
        Points(ratio, np.median(above, axis=0), "surface at this size", SECOND, line="-"),
        Band(ratio, low, high, "68% of the draws", SECOND),
        Points((shapes.width / shapes.depth)[near], own[near], words, INK, "o", more=small),
        Across(0, label="the best of this size", more={"linewidth": 0.7}),
    ]
    x_axis, y_axis = Span("aspect ratio, width / depth", "log"), Span("loss above the best (nats)")
    return Panel(marks, x_axis, y_axis, f"size {short_number(size)}")


def best_depth_figure(analysis: SurfaceAnalysis) -> Chart | str:
    """The best depth against size with its 68% band or bound, the shapes, the published line and known models."""
    surface = analysis.surface
    if not surface.usable:
        return f"{surface.status}: {surface.message}"
    shapes, small = surface.shapes, {"markersize": 3}
    sizes = np.geomspace(shapes.size.min(), shapes.size.max(), SIZES)
    found = [best_depth(surface, float(size)) for size in sizes]
    depth, low, high = np.array([(one.depth, one.low, one.high) for one in found]).T
    status = np.array([one.status for one in found])
    inside = status == SurfaceStatus.CONVERGED
    depth, least, most = (np.where(inside, one, np.nan) for one in (depth, low, high))
    marks: list[Mark] = [
        Points(shapes.size, shapes.depth, "trained shapes", MUTED, "o", more=small),
        Points(sizes, depth, "best depth, 68% band", SECOND, line="-"),
        Band(sizes, least, most, color=SECOND),
    ]
    for side, bound, marker, words in (
        (SurfaceStatus.DEEPER, low, "^", "best depth is above (84%)"),
        (SurfaceStatus.SHALLOWER, high, "v", "best depth is below (84%)"),
    ):
        at = status == side
        if at.any():
            marks.append(Points(sizes[at], bound[at], words, SECOND, marker, more=small))
    marks += _published(analysis, sizes)
    y = Span("depth", "log", limits=(shapes.depth.min() / 1.3, shapes.depth.max() * 1.3))
    return Chart(
        [Panel(marks, Span(SIZE_LABELS[analysis.axis], "log"), y)], width=1.35 * COLUMN, height=3.0, legend=2
    )


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


def _published(analysis: SurfaceAnalysis, sizes: Floats) -> Iterator[Mark]:
    """The published line and known decoders where they lie in the figure, by 12 L d² or all their parameters."""
    if analysis.axis is SizeAxis.FLOPS:
        return
    if analysis.axis is SizeAxis.BLOCK:
        table = pd.read_csv(REFERENCE / "levine2020_transitions.csv")
        width, err = table["width"].to_numpy(), table["width_err"].to_numpy()
        line = fit_line(table["depth"], np.log(width), err / width)
        depths, words = (
            [project(line, float(size)).depth for size in sizes],
            "published line (Levine et al. 2020)",
        )
        yield Points(sizes, depths, words, THIRD, line="--", more={"linewidth": 1.0})
    models = pd.read_csv(REFERENCE / "architectures.csv")
    models = models[models["name"].str.startswith(DECODERS)].drop_duplicates(["width", "depth"])
    blocks = standard_params(models["depth"], models["width"])
    known = blocks if analysis.axis is SizeAxis.BLOCK else models["params"].to_numpy(dtype=np.float64)
    shown = (known >= sizes[0]) & (known <= sizes[-1])
    if not shown.any():
        return
    depths = models["depth"].to_numpy()[shown]
    yield Points(known[shown], depths, "known models, as trained", INK, "D", more={"markersize": 3})
    for name, size, depth in zip(models["name"][shown], known[shown], depths, strict=True):
        yield Words(name, size, depth, (3, -3), more={"va": "top", "fontsize": 5})
