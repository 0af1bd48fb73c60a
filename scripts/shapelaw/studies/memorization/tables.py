"""The tables of the memorization studies: points, fits, capacities, and the paper's findings beside ours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.fits.isotonic import Monotony
from shapelaw.fits.line import FitStatus
from shapelaw.fits.linear_part import LinearPart
from shapelaw.fits.memorized import (
    PERFECT,
    REGRESSION,
    MemorizationCurve,
    mean_squared_error,
    standard_errors,
)
from shapelaw.studies.memorization.analysis import (
    SYMBOLS,
    Analysis,
    CurveAnalysis,
    guaranteed_examples,
    published,
)

YES, NO, OPEN = "yes", "no", "open"
_COMPARED = ("quantity", "setting", "ours", "ours_err", "published", "agrees", "note")


def sizes_of(curve: MemorizationCurve) -> dict[str, object]:
    """What all points of a curve have in common, as columns."""
    sizes = {axis: getattr(curve, axis) for axis in SYMBOLS if axis != curve.along}
    common = {"task": curve.task, "context_type": curve.context_type, "width": curve.width}
    return common | ({"variant": curve.variant} if curve.variant else {}) | sizes


def points_table(analysis: Analysis) -> pd.DataFrame:
    """One row per point: means over seeds, their spread and standard error, and the share that theory guarantees.

    `in_line` says which points of a curve along H its line was fitted to.
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
    """A line in H as columns: that of the share, of the MSE for a regression, and examples per head."""
    curve, line = one.curve, part.line
    assert curve.examples is not None
    assert curve.context is not None
    assert curve.head_dim is not None
    per_head, theory = line.b * curve.examples, min(curve.context, curve.head_dim) - 1
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
        "n_points": line.n_points,
        "examples_per_head": per_head,
        "examples_per_head_err": line.b_err * curve.examples,
        "theory_per_head": theory,
        "over_theory": per_head / theory if theory else math.nan,
        "errors_from": part.errors,
        "status": line.status.value,
        "message": line.message,
    }
    if curve.task == REGRESSION:
        row["mse_slope"] = -line.b / 12.0
        row["mse_slope_err"] = line.b_err / 12.0
        row["mse_intercept"] = (1.0 - line.a) / 12.0
    return row


def linear_table(analysis: Analysis) -> pd.DataFrame:
    """One line in H per curve, with the examples that one more head memorizes beside theory's min(n, d_h) - 1."""
    return pd.DataFrame(
        [sizes_of(one.curve) | line_row(one, one.linear) for one in analysis.curves if one.linear]
    )


def rules_table(analysis: Analysis) -> pd.DataFrame:
    """How much the line hangs on the shares from which on a point counts as saturated, and below which as guessed."""
    kept = ("slope", "slope_err", "r_squared", "n_points", "examples_per_head", "status")
    rows = []
    for one in analysis.curves:
        for (saturated, floor), part in one.other_rules.items():
            found = line_row(one, part)
            rule = {"saturated": saturated, "floor": floor}
            rows.append(sizes_of(one.curve) | rule | {name: found[name] for name in kept})
    return pd.DataFrame(rows)


def knee_table(analysis: Analysis) -> pd.DataFrame:
    """One knee in d_h per curve: its intervals, whether they hold n, and what is gained beyond n."""
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


def monotony_table(analysis: Analysis) -> pd.DataFrame:
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
                "chi2": test.chi2,
                "r_squared": test.r_squared,
                "verdict": test.verdict.value,
                "status": test.status.value,
                "message": test.message,
            }
        )
    return pd.DataFrame(rows)


def capacity_table(analysis: Analysis) -> pd.DataFrame:
    """T at `MEMORIZED` per network, with the trained T on either side, beside the number that theory guarantees."""
    rows = []
    for curve, found in analysis.capacities:
        rows.append(
            sizes_of(curve)
            | {
                "capacity": found.examples,
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


def comparison_table(analysis: Analysis) -> pd.DataFrame:
    """The paper's findings against ours, a row per finding and curve; `agrees` is yes, no, or open with a note."""
    rows: list[tuple[Any, ...]] = []
    for one in analysis.curves:
        rows += _line_rows(one) + _knee_rows(one) + [_monotony_row(one), _theory_row(one)]
    return pd.DataFrame(rows, columns=list(_COMPARED))


def _line_rows(one: CurveAnalysis) -> list[tuple[Any, ...]]:
    if one.linear is None:
        return []
    line, setting, least = (
        one.linear.line,
        one.curve.setting,
        published()["linear_in_heads_r_squared_at_least"],
    )
    wider = one.other_rules[PERFECT, 0.0].line
    found = line_row(one, one.linear)
    per_head, err, theory = (
        found[name] for name in ("examples_per_head", "examples_per_head_err", "theory_per_head")
    )
    note, wider_note = (
        f"{each.n_points} points" if each.usable else f"{each.status}: {each.message}"
        for each in (line, wider)
    )
    enough = line.usable and per_head + 2 * err >= theory
    return [
        (
            "R² of the linear part", setting, line.r_squared, math.nan, f">= {least}",
            _says(line.usable, line.r_squared >= least), note,
        ),
        (
            "R² up to what is memorized perfectly", setting, wider.r_squared, math.nan, f">= {least}",
            _says(wider.usable, wider.r_squared >= least), wider_note,
        ),
        (
            "examples memorized per head", setting, per_head, err, f"theory guarantees {theory}",
            _says(line.usable, enough), note,
        ),
    ]  # fmt: skip


def _knee_rows(one: CurveAnalysis) -> list[tuple[Any, ...]]:
    if one.knee is None or one.gain is None:
        return []
    knee, gain, setting, context = one.knee, one.gain, one.curve.setting, one.curve.context
    half = (knee.high68 - knee.low68) / 2
    measured = not math.isnan(gain.gain)
    note = knee.message if knee.usable else f"{knee.status}: {knee.message}"
    if knee.usable and knee.high95 < float(context or 0):
        note = f"below n: what theory adds from there to n is not seen; {note}"
    return [
        (
            "knee in d_h", setting, knee.knee if knee.usable else math.nan, half if knee.usable else math.nan,
            f"n = {context}", _says(knee.usable, knee.allows(float(context or 0))),
            note,
        ),
        (
            "gain in share beyond d_h = n", setting, gain.gain, gain.err, "none",
            _says(measured, not gain.p_value < 0.05), gain.reason or f"p = {gain.p_value:.2g}",
        ),
    ]  # fmt: skip


def _monotony_row(one: CurveAnalysis) -> tuple[Any, ...]:
    test, symbol = one.monotony, SYMBOLS[one.curve.along]
    tested = test.status is FitStatus.CONVERGED
    note = str(test.verdict)
    if test.verdict is Monotony.FALLING:
        note += f", most from {symbol} = {test.fall_from:.0f} to {test.fall_to:.0f}"
    if tested:
        note += f" (p = {test.falls_p:.2g})"
    return (
        f"largest fall of the share in {symbol}", one.curve.setting, test.largest_fall, test.largest_fall_err,
        "none", _says(tested, test.verdict is not Monotony.FALLING), note,
    )  # fmt: skip


def _theory_row(one: CurveAnalysis) -> tuple[Any, ...]:
    margin, err = one.curve.share - one.guaranteed, standard_errors(one.curve)
    known = np.isfinite(margin)
    place = int(np.nanargmin(margin)) if known.any() else 0
    slack = 2 * err[place] if np.isfinite(err[place]) else 0.0
    return (
        "least share above the guaranteed one", one.curve.setting, float(margin[place]), float(err[place]), ">= 0",
        _says(bool(known.any()), bool(margin[place] + slack >= 0)),
        f"at {SYMBOLS[one.curve.along]} = {one.curve.x[place]:.0f}",
    )  # fmt: skip


def _says(known: bool, holds: bool) -> str:
    return OPEN if not known else YES if holds else NO
