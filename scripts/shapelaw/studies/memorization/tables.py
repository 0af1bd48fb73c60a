"""The tables of the memorization studies: points, fits, capacities."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from shapelaw.fits.capacity import CapacityStatus
from shapelaw.fits.linear_part import LinearPart
from shapelaw.fits.memorized import (
    REGRESSION,
    MemorizationCurve,
    mean_squared_error,
    standard_errors,
)
from shapelaw.studies.memorization.analysis import (
    SYMBOLS,
    CurveAnalysis,
    MemorizationAnalysis,
    guaranteed_examples,
)

YES, NO, OPEN = "yes", "no", "open"


def sizes_of(curve: MemorizationCurve) -> dict[str, object]:
    """The sizes and choices that all points of a curve share, as columns."""
    sizes = {axis: getattr(curve, axis) for axis in SYMBOLS if axis != curve.along}
    common = {"task": curve.task, "context_type": curve.context_type, "width": curve.width}
    return common | ({"variant": curve.variant} if curve.variant else {}) | sizes


def points_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """One row per point: means over seeds, their spread and standard error, and the share that theory guarantees.

    `in_line` marks the points of a curve along H to which its line was fitted.
    """
    rows = []
    for one in analysis.curves:
        curve, err = one.curve, standard_errors(one.curve)
        for place, x in enumerate(curve.x):
            row = sizes_of(curve) | {
                analysis.along: int(x),
                "seeds": int(curve.seeds[place]),
                "share": curve.share[place],
                "seed_std": curve.spread[place],
                "err": err[place],
                "guaranteed_share": one.guaranteed[place],
            }
            if curve.task == REGRESSION:
                row["mse"] = float(mean_squared_error(curve.share[place : place + 1])[0])
            if one.linear is not None:
                row["in_line"] = bool(one.linear.used[place])
            rows.append(row)
    return pd.DataFrame(rows)


def line_row(one: CurveAnalysis, part: LinearPart) -> dict[str, Any]:
    """A line in H as columns: slopes of the share, of the MSE for a regression, and examples per further head.

    If the points are not on a line the slope is empty, and `curvature_p` and the status say so.
    """
    curve, line = one.curve, part.line
    assert curve.examples is not None
    row: dict[str, Any] = {
        "slope": line.b,
        "slope_err": line.b_err,
        "intercept": line.a,
        "intercept_err": line.a_err,
        "cov_intercept_slope": line.cov_ab,
        "r_squared": line.r_squared,
        "chi2": line.chi2,
        "dof": line.dof,
        "p_value": line.p_value,
        "curvature_p": part.curvature_p,
        "curvature": part.curvature,
        "n_points": line.n_points,
        "examples_per_head": line.b * curve.examples,
        "examples_per_head_err": line.b_err * curve.examples,
        "errors_from": part.errors,
        "status": line.status.value,
        "message": line.message,
    }
    if curve.task == REGRESSION:
        row["mse_slope"] = -line.b / 12.0
        row["mse_slope_err"] = line.b_err / 12.0
        row["mse_intercept"] = (1.0 - line.a) / 12.0
    return row


def linear_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """One line in H per curve, with the test of a bend, and the examples that one more head memorizes."""
    return pd.DataFrame(
        [sizes_of(one.curve) | line_row(one, one.linear) for one in analysis.curves if one.linear]
    )


def rules_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """The line by the shares above which a point counts as saturated and below which it counts as guessed."""
    kept = ("slope", "slope_err", "r_squared", "curvature_p", "n_points", "examples_per_head", "status")
    rows = []
    for one in analysis.curves:
        for (saturated, floor), part in one.other_rules.items():
            found = line_row(one, part)
            rule = {"saturated": saturated, "floor": floor}
            rows.append(sizes_of(one.curve) | rule | {name: found[name] for name in kept})
    return pd.DataFrame(rows)


def growth_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """One row per curve along H: H at `MEMORIZED`, examples a head there, and the exponent of the share in H.

    `theory_real_labels` is what theorem 1 adds per head, for labels of real numbers. Labels that are classes, the
    argmax of several numbers, ask less, so the two columns can't be compared as a ratio.
    """
    rows = []
    for one in analysis.curves:
        if one.growth is None or one.needed is None:
            continue
        growth, needed, examples = one.growth, one.needed, float(one.curve.examples or 0)
        found = needed.status is CapacityStatus.FOUND
        rows.append(
            sizes_of(one.curve)
            | {
                "heads_needed": needed.size,
                "heads_low": needed.low,
                "heads_high": needed.high,
                "needed": needed.status.value,
                "examples_per_head": examples / needed.size if found else math.nan,
                "per_head_low": examples / needed.high,
                "per_head_high": examples / needed.low,
                "theory_real_labels": theory_per_head(one.curve),
                "exponent": growth.exponent,
                "exponent_err": growth.err,
                "exponent_low": growth.low,
                "exponent_high": growth.high,
                **_information_columns(one),
                "seeds": int(one.curve.seeds.min()),
                "errors_from": growth.errors,
                "status": growth.status.value,
                "message": growth.message,
            }
        )
    return pd.DataFrame(rows)


def _information_columns(one: CurveAnalysis) -> dict[str, float]:
    """Columns on the information learned: its line in H, which the share may lack, and the bits that a head learns."""
    learned = one.information
    return {
        "information_curvature_p": math.nan if learned is None else learned.linear.curvature_p,
        "information_exponent": math.nan if learned is None else learned.growth.exponent,
        "information_exponent_err": math.nan if learned is None else learned.growth.err,
        "bits_per_head": math.nan if learned is None else learned.bits_per_head,
    }


def theory_per_head(curve: MemorizationCurve) -> int:
    """`min(n, d_h) - 1`, the examples that theorem 1 adds per head for labels of real numbers."""
    return min(curve.context or 0, curve.head_dim or 0) - 1


def knee_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """One knee in d_h per curve: its intervals, whether they contain n, and the gain beyond n."""
    rows = []
    for one in analysis.curves:
        if one.knee is None or one.gain is None:
            continue
        found = {
            "knee_holds_context": (YES if one.knee.allows(float(one.curve.context or 0)) else NO)
            if one.knee.usable
            else OPEN,
            "gain_beyond_context": one.gain.gain,
            "gain_err": one.gain.err,
            "gain_p": one.gain.p_value,
            "gain_points": one.gain.n_points,
            "gain_note": one.gain.reason,
        }
        rows.append(sizes_of(one.curve) | one.knee.to_dict() | found)
    return pd.DataFrame(rows).convert_dtypes()


def monotony_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """One test per curve: does the share fall anywhere by more than the seeds' noise?"""
    rows = []
    for one in analysis.curves:
        noise, test = one.curve.noise, one.monotony
        rows.append(
            sizes_of(one.curve)
            | {
                "falls_p": test.falls_p,
                "rises_p": test.rises_p,
                "largest_fall": test.largest_fall,
                "largest_fall_err": test.largest_fall_err,
                "fall_from": test.fall_from,
                "fall_to": test.fall_to,
                "seed_std": math.nan if noise is None else noise.std,
                "seed_dof": math.nan if noise is None else noise.dof,
                "seed_power": math.nan if noise is None else noise.power,
                "chi2": test.chi2,
                "r_squared": test.r_squared,
                "verdict": test.verdict.value,
                "status": test.status.value,
                "message": test.message,
            }
        )
    return pd.DataFrame(rows)


def capacity_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """T at `MEMORIZED` per network, with the trained T on either side, beside the number that theory guarantees.

    The guarantee is for labels of real numbers, which ask more than an argmax over classes: it is a bound, not a
    prediction.
    """
    rows = []
    for curve, found in analysis.capacities:
        rows.append(
            sizes_of(curve)
            | {
                "capacity": found.size,
                "low": found.low,
                "high": found.high,
                "memorized": found.memorized,
                "not_memorized": found.not_memorized,
                "seeds": int(curve.seeds.min()),
                "theory": float(guaranteed_examples(curve)[0]),
                "status": found.status.value,
            }
        )
    return pd.DataFrame(rows)
