"""The tables of the memorization studies: points, fits, capacities, and the paper's findings beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.fits.capacity import BENT, POWER, CapacityStatus, LinearPart
from shapelaw.fits.line import FitStatus
from shapelaw.fits.memorized import (
    MEMORIZED,
    REGRESSION,
    MemorizationCurve,
    mean_squared_error,
    standard_errors,
)
from shapelaw.fits.noise import chance_words
from shapelaw.fits.significance import Monotony
from shapelaw.report.tables import OPEN, picked, says
from shapelaw.report.write import TableOf
from shapelaw.studies.memorization.analysis import (
    SYMBOLS,
    CurveAnalysis,
    MemorizationAnalysis,
    guaranteed_examples,
)
from shapelaw.studies.study import beside_published

TOLD = 0.05  # of the share: a gain that a test must be able to show before its silence says anything
_COMPARED = ("quantity", "setting", "ours", "ours_err", "published", "agrees", "note")
Row = tuple[Any, ...]


def sizes_of(curve: MemorizationCurve) -> dict[str, Any]:
    """The sizes and choices that all points of a curve share, as columns."""
    variant = ("variant",) if curve.variant else ()
    sizes = (axis for axis in SYMBOLS if axis != curve.along)
    return picked(curve, "task", "context_type", "width", *variant, *sizes)


def points_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """One row per point: means over seeds, their spread and standard error, and the share that theory guarantees.

    `in_line` marks the points of a curve along H to which its line was fitted.
    """
    tables = []
    for one in analysis.curves:
        curve = one.curve
        columns = sizes_of(curve) | {
            analysis.along: curve.x.astype(int),
            "seeds": curve.seeds.astype(int),
            "share": curve.share,
            "seed_std": curve.spread,
            "err": standard_errors(curve),
            "guaranteed_share": one.guaranteed,
        }
        if curve.task == REGRESSION:
            columns["mse"] = mean_squared_error(curve.share)
        if one.linear is not None:
            columns["in_line"] = one.linear.used
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def line_row(one: CurveAnalysis, part: LinearPart) -> dict[str, Any]:
    """A line in H as columns: slopes of the share, of the MSE for a regression, and examples per further head.

    If the points are not on a line the slope is empty, and `curvature_p` and the status say so.
    """
    curve, line = one.curve, part.line
    assert curve.examples is not None
    row = picked(line, slope="b", slope_err="b_err", intercept="a", intercept_err="a_err")
    row |= picked(line, cov_intercept_slope="cov_ab") | picked(line, "r_squared", "chi2", "dof", "p_value")
    row |= picked(part, "curvature_p", "curvature") | {
        "n_points": line.n_points,
        "examples_per_head": line.b * curve.examples,
        "examples_per_head_err": line.b_err * curve.examples,
        "errors_from": part.errors,
    }
    row |= picked(line, "status", "message")
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
    argmax of several numbers, ask less, so the two columns can't be compared as a ratio. `exponent_least` to
    `exponent_most` are four readings of the exponent (`exponents`), `r_squared` is of a line in H. The last columns but
    those of the fit are on the information learned: its line in H, which the share may lack, and the bits that a head
    learns.
    """
    rows = []
    for one in analysis.curves:
        if one.growth is None or one.needed is None:
            continue
        needed, learned, examples = one.needed, one.information, float(one.curve.examples or 0)
        rows.append(
            sizes_of(one.curve)
            | picked(needed, heads_needed="size", heads_low="low", heads_high="high", needed="status")
            | {
                "examples_per_head": examples_per_head(one),
                "per_head_low": examples / needed.high,
                "per_head_high": examples / needed.low,
                "theory_real_labels": theory_per_head(one.curve),
            }
            | picked(one.growth, "exponent", exponent_err="err", exponent_low="low", exponent_high="high")
            | dict(
                zip(("exponent_least", "exponent_most"), one.readings or (math.nan, math.nan), strict=True)
            )
            | {"r_squared": one.linear.line.r_squared if one.linear else math.nan}
            | picked(learned and learned.linear, information_curvature_p="curvature_p")
            | picked(
                learned and learned.growth, information_exponent="exponent", information_exponent_err="err"
            )
            | picked(learned, "bits_per_head")
            | {"seeds": int(one.curve.seeds.min())}
            | picked(one.growth, errors_from="errors", status="status", message="message")
        )
    return pd.DataFrame(rows)


def theory_per_head(curve: MemorizationCurve) -> int:
    """`min(n, d_h) - 1`, the examples that theorem 1 adds per head for labels of real numbers."""
    return min(curve.context or 0, curve.head_dim or 0) - 1


def examples_per_head(one: CurveAnalysis) -> float:
    """T over the H that memorizes 99% of it; NaN where that is only bounded."""
    found = one.needed is not None and one.needed.status is CapacityStatus.FOUND
    return float(one.curve.examples or 0) / one.needed.size if one.needed and found else math.nan


def knee_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """One knee in d_h per curve: its intervals, whether they contain n, and the gain beyond n."""
    rows = [
        sizes_of(one.curve)
        | one.knee.to_dict()
        | {"knee_holds_context": says(one.knee.usable, one.knee.allows(float(one.curve.context or 0)))}
        | picked(one.gain, gain_beyond_context="gain", gain_err="err", gain_p="p_value")
        | picked(one.gain, gain_points="n_points", gain_note="reason")
        for one in analysis.curves
        if one.knee is not None and one.gain is not None
    ]
    return pd.DataFrame(rows).convert_dtypes()


def monotony_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """One test per curve: does the share fall anywhere by more than the seeds' noise?"""
    tested = ("falls_p", "rises_p", "largest_fall", "largest_fall_err", "fall_from", "fall_to")
    return pd.DataFrame(
        [
            sizes_of(one.curve)
            | picked(one.monotony, *tested)
            | picked(one.curve.noise, seed_std="std", seed_dof="dof", seed_power="power")
            | picked(one.monotony, "chi2", "r_squared", "verdict", "status", "message")
            for one in analysis.curves
        ]
    )


def capacity_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """T at `MEMORIZED` per network, with the trained T on either side, beside the number that theory guarantees.

    The guarantee is for labels of real numbers, which ask more than an argmax over classes: it is a bound, not a
    prediction.
    """
    return pd.DataFrame(
        [
            sizes_of(curve)
            | picked(found, capacity="size", low="low", high="high")
            | picked(found, "memorized", "not_memorized")
            | {"seeds": int(curve.seeds.min()), "theory": float(guaranteed_examples(curve)[0])}
            | picked(found, "status")
            for curve, found in analysis.capacities
        ]
    )


def comparison_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """The paper's findings beside ours, one row per finding and curve; `agrees` is yes, no, or open with a note.

    Theory stands in the place of a finding where it says a number for our setting.
    """
    rows = [
        (name, one.curve.setting, *rest)
        for one in analysis.curves
        for name, *rest in (*_line_rows(one), *_knee_rows(one), _monotony_row(one), _theory_row(one))
    ]
    return beside_published(analysis.study, pd.DataFrame(rows, columns=list(_COMPARED)))


def _line_rows(one: CurveAnalysis) -> Iterator[Row]:
    if one.linear is None or one.growth is None or one.needed is None:
        return
    part, growth = one.linear, one.growth
    theory, per_head = theory_per_head(one.curve), examples_per_head(one)
    bend = part.line.message
    if math.isfinite(part.line.r_squared):
        bend += f"; R² = {part.line.r_squared:.3f} over {part.line.n_points} points doesn't show a line"
    known = math.isfinite(part.curvature_p) and (part.tells or part.curvature_p < BENT)
    straight = says(known, part.curvature_p >= BENT)
    if not part.tells and part.curvature_p >= BENT:
        bend += f"; H^{POWER} would pass for a line as well"
    yield "p-value of a line in H", part.curvature_p, math.nan, "", straight, bend
    yield "exponent of the share in H", growth.exponent, growth.err, "", OPEN, growth.message
    guaranteed = f"theory guarantees {theory}, for real labels"
    enough = says(one.needed.status is CapacityStatus.FOUND, per_head >= theory)
    name = "examples per head where 99% are memorized"
    yield name, per_head, math.nan, guaranteed, enough, _per_head_note(one)


def _per_head_note(one: CurveAnalysis) -> str:
    needed, examples = one.needed, float(one.curve.examples or 0)
    assert needed is not None
    if needed.status is not CapacityStatus.FOUND:
        return f"H is {needed.status} {needed.size:.0f}"
    ends = [math.nan if math.isnan(heads) else examples / heads for heads in (needed.high, needed.low)]
    said = "between " + " and ".join("an open end" if math.isnan(end) else f"{end:.0f}" for end in ends)
    if one.curve.task == REGRESSION:
        return said
    return f"{said}; classes are easier than real labels, so don't divide this by the theorem's number"


def _knee_rows(one: CurveAnalysis) -> Iterator[Row]:
    if one.knee is None or one.gain is None:
        return
    knee, gain, context = one.knee, one.gain, float(one.curve.context or 0)
    note = knee.message if knee.usable else f"{knee.status}: {knee.message}"
    if knee.usable and knee.high95 < context:
        note = f"below n: the examples that theory adds from there to n don't show; {note}"
    found = (knee.knee, (knee.high68 - knee.low68) / 2) if knee.usable else (math.nan, math.nan)
    yield "knee in d_h", *found, f"n = {one.curve.context}", says(knee.usable, knee.allows(context)), note
    flat = says(gain.p_value < 0.05 or 2 * gain.err < TOLD, not gain.p_value < 0.05)
    note = gain.reason or chance_words(gain.p_value)
    if gain.p_value >= 0.05 and 2 * gain.err >= TOLD:
        note += f"; a gain of {TOLD} would not have shown"
    yield "gain in share beyond d_h = n", gain.gain, gain.err, "", flat, note


def _monotony_row(one: CurveAnalysis) -> Row:
    test, symbol = one.monotony, SYMBOLS[one.curve.along]
    tested, falls = test.status is FitStatus.CONVERGED, test.verdict is Monotony.FALLING
    note = str(test.verdict)
    if falls:
        note += f", most from {symbol} = {test.fall_from:.0f} to {test.fall_to:.0f}"
    if tested:
        note += f" ({chance_words(test.falls_p)})"
    name = f"largest fall of the share in {symbol}"
    return name, test.largest_fall, test.largest_fall_err, "", says(tested, not falls), note


def _theory_row(one: CurveAnalysis) -> Row:
    margin, err = one.curve.share - one.guaranteed, standard_errors(one.curve)
    known = bool(np.isfinite(margin).any())
    place = int(np.nanargmin(margin)) if known else 0
    slack = 2 * err[place] if np.isfinite(err[place]) else 0.0
    agrees = says(known, bool(margin[place] + slack >= 0))
    note = f"at {SYMBOLS[one.curve.along]} = {one.curve.x[place]:.0f}"
    name = "least share above the guaranteed one"
    return name, float(margin[place]), float(err[place]), ">= 0", agrees, note


TABLES = {
    "points": TableOf(points_table, "Share memorized, means over seeds."),
    "monotony": TableOf(
        monotony_table, "A test for falls: does the share fall anywhere by more than the seeds' noise?"
    ),
    "capacity": TableOf(capacity_table, f"Examples memorized with {MEMORIZED:.0%} accuracy."),
    "linear_part": TableOf(
        linear_table, "The line in H through the points below saturation, where they are on one."
    ),
    "linear_rules": TableOf(rules_table, "The same line under other rules for the points that it uses."),
    "growth": TableOf(
        growth_table,
        "Heads that memorize T, and the exponent of the share in H. Theory's number is for labels that are real "
        "numbers; classes are easier, so don't divide one by the other.",
    ),
    "saturated": TableOf(lambda analysis: analysis.saturated, "Saturated heads of trained networks."),
    "knee": TableOf(knee_table, "The knee in the head dimension, and the gain beyond the context length."),
    "comparison": TableOf(comparison_table, "Our findings beside the published ones."),
}
