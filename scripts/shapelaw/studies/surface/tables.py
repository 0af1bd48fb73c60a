"""The tables of a surface: what each shape costs, the best depth of each size, the forms, who overtakes whom."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from shapelaw.fits.surface import Surface
from shapelaw.fits.surface_answers import BestDepth, unknown_penalty
from shapelaw.studies.surface.analysis import AVERAGE, SurfaceAnalysis


def penalty_table(analysis: SurfaceAnalysis) -> pd.DataFrame:
    """One row a shape by size: `depth, width, block_params, seeds, loss, penalty, ..., needed, ..., share, status`."""
    shapes, status = analysis.surface.shapes, analysis.surface.status
    nothing = unknown_penalty(status)
    rows = []
    for index in np.argsort(shapes.size, kind="stable"):
        cost = analysis.penalties[index] if analysis.penalties else nothing
        size = float(shapes.size[index])
        rows.append(
            {
                "depth": int(shapes.depth[index]),
                "width": int(shapes.width[index]),
                analysis.size_column: size,
                "seeds": int(shapes.seeds[index]),
                "loss": float(shapes.loss[index]),
                "penalty": cost.loss,
                "penalty_low": cost.low,
                "penalty_high": cost.high,
                "needed": cost.needed,
                "needed_low": cost.needed_low,
                "needed_high": cost.needed_high,
                "share": cost.needed / size,
                "status": cost.status.value,
            }
        )
    return pd.DataFrame(rows)


def best_depth_table(analysis: SurfaceAnalysis) -> pd.DataFrame:
    """One row a size and model: `block_params, depth, depth_low, depth_high, width, status, model`."""
    nan, status = math.nan, analysis.surface.status
    best = analysis.best or [(AVERAGE, BestDepth(size, nan, nan, nan, status)) for size in analysis.sizes]
    return pd.DataFrame(
        [
            {
                analysis.size_column: one.size,
                "depth": one.depth,
                "depth_low": one.low,
                "depth_high": one.high,
                "width": float(analysis.rule.width(one.depth, one.size)),
                "status": one.status.value,
                "model": model,
            }
            for model, one in best
        ]
    )


def forms_table(surface: Surface) -> pd.DataFrame:
    """One row a form: `form, formula, weight, left_out, scatter`, losses in nats."""
    columns = ["form", "formula", "weight", "left_out", "scatter"]
    rows = [[one.form.name, one.form.formula, one.weight, one.left_out, one.scatter] for one in surface.forms]
    return pd.DataFrame(rows, columns=columns)


def overtaking_table(analysis: SurfaceAnalysis) -> pd.DataFrame:
    """One row a pair of neighbouring depths: `depth, deeper_depth, width, ..., share`; NaN without a crossing."""
    rows = []
    for one in analysis.overtakings:
        sizes = np.array([one.size, one.low, one.high])
        width, low, high = (float(value) for value in analysis.rule.width(np.full(3, one.depth), sizes))
        row = {"depth": one.depth, "deeper_depth": one.deeper, "width": width, "width_low": low}
        rows.append(row | {"width_high": high, analysis.size_column: one.size, "share": one.share})
    columns = ["depth", "deeper_depth", "width", "width_low", "width_high", analysis.size_column, "share"]
    return pd.DataFrame(rows, columns=columns)
