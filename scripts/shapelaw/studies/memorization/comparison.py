"""The findings of Mahdavi et al. 2024 beside those of a study's runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.fits.capacity import CapacityStatus
from shapelaw.fits.isotonic import Monotony
from shapelaw.fits.line import FitStatus
from shapelaw.fits.linear_part import BENT
from shapelaw.fits.memorized import REGRESSION, standard_errors
from shapelaw.studies.memorization.analysis import SYMBOLS, CurveAnalysis, MemorizationAnalysis, published
from shapelaw.studies.memorization.tables import NO, OPEN, YES, theory_per_head

_COMPARED = ("quantity", "setting", "ours", "ours_err", "published", "agrees", "note")


def comparison_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """The paper's findings beside ours, one row per finding and curve; `agrees` is yes, no, or open with a note."""
    rows: list[tuple[Any, ...]] = []
    for one in analysis.curves:
        rows += _line_rows(one) + _knee_rows(one) + [_monotony_row(one), _theory_row(one)]
    return pd.DataFrame(rows, columns=list(_COMPARED))


def _line_rows(one: CurveAnalysis) -> list[tuple[Any, ...]]:
    if one.linear is None or one.growth is None or one.needed is None:
        return []
    part, growth, needed, setting = one.linear, one.growth, one.needed, one.curve.setting
    printed = f"a line, R² >= {published()['linear_in_heads_r_squared_at_least']}"
    bend = part.line.message
    if math.isfinite(part.line.r_squared):
        bend += f"; R² = {part.line.r_squared:.3f} over {part.line.n_points} points doesn't show a line"
    found, theory = needed.status is CapacityStatus.FOUND, theory_per_head(one.curve)
    per_head = float(one.curve.examples or 0) / needed.size if found else math.nan
    return [
        (
            "p-value of a line in H", setting, part.curvature_p, math.nan, printed,
            _says(math.isfinite(part.curvature_p), part.curvature_p >= BENT), bend,
        ),
        ("exponent of the share in H", setting, growth.exponent, growth.err, "–", OPEN, growth.message),
        (
            "examples per head where 99% are memorized", setting, per_head, math.nan,
            f"theory guarantees {theory}, for real labels", _says(found, per_head >= theory), _per_head_note(one),
        ),
    ]  # fmt: skip


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


def _knee_rows(one: CurveAnalysis) -> list[tuple[Any, ...]]:
    if one.knee is None or one.gain is None:
        return []
    knee, gain, setting, context = one.knee, one.gain, one.curve.setting, one.curve.context
    half = (knee.high68 - knee.low68) / 2
    measured = not math.isnan(gain.gain)
    note = knee.message if knee.usable else f"{knee.status}: {knee.message}"
    if knee.usable and knee.high95 < float(context or 0):
        note = f"below n: the examples that theory adds from there to n don't show; {note}"
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
