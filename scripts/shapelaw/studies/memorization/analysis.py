"""The fits to the runs of a memorization study and their tables (Mahdavi et al. 2024, section 5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.errors import UserError
from shapelaw.fits import capacity
from shapelaw.fits.line import FitStatus, Floats, fit_line
from shapelaw.fits.memorized import (
    CLASSIFICATION,
    HEADS_SAY,
    INFORMATION,
    LABEL_BITS,
    MEMORIZED,
    REGRESSION,
    MemorizationCurve,
    mean_squared_error,
    memorization_curves,
    standard_errors,
)
from shapelaw.fits.noise import chance_words
from shapelaw.fits.significance import Monotony, MonotonyTest, monotony
from shapelaw.report.tables import OPEN, picked, says
from shapelaw.report.write import TableOf
from shapelaw.studies.memorization.study import ALONG_CONTEXT, ALONG_HEAD_DIM, ALONG_HEADS
from shapelaw.studies.study import beside_published
from shapelaw.theory.memorization import memorizable_examples

ALONG = {ALONG_HEADS: "heads", ALONG_CONTEXT: "context", ALONG_HEAD_DIM: "head_dim"}
SYMBOLS = {"heads": "H", "context": "n", "head_dim": "d_h", "examples": "T"}
_LEARNED = (
    *("information_curvature_p", "information_exponent", "information_exponent_err"),
    "bits_per_head",
)
_SIZES = ("task", "context_type", "width", "variant", *SYMBOLS)


class Gain(NamedTuple):
    """The gain of the share from the first d_h >= n to the largest: a line's slope there times its length.

    `p_value` is the one-sided chance of such a gain if there is none. If the gain can't be measured, all numbers are
    NaN and `message` says why.
    """

    gain: float
    gain_err: float
    p_value: float
    n_points: int
    status: FitStatus = FitStatus.CONVERGED
    message: str = ""


@dataclass(frozen=True)
class CurveAnalysis:
    """A curve, the share (n,) that theory guarantees at its points, and what was fitted to it.

    `linear`, `growth`, `readings` (the range of `exponents`), `needed` (H at 99%) and `information` (columns, of
    classifications with a loss) belong to curves along H, `gain` to curves along d_h; other curves have none.
    """

    curve: MemorizationCurve
    guaranteed: Floats
    monotony: MonotonyTest
    linear: capacity.LinearPart | None = None
    growth: capacity.Growth | None = None
    readings: tuple[float, float] = (math.nan, math.nan)
    needed: capacity.Capacity | None = None
    information: dict[str, float] = field(default_factory=dict)
    gain: Gain | None = None


@dataclass(frozen=True)
class MemorizationAnalysis:
    """The curves of one study, and T at 99% for each of its networks that was trained to classify.

    `saturated` has one row per point of the curves, with the runs' columns on heads as means over seeds.
    """

    study: str
    curves: tuple[CurveAnalysis, ...]
    capacities: tuple[tuple[MemorizationCurve, capacity.Capacity], ...]
    saturated: pd.DataFrame

    @property
    def along(self) -> str:
        return ALONG[self.study]


def analyse_runs(runs: pd.DataFrame, study: str) -> MemorizationAnalysis:
    """Fit curves to checked runs (`check_memorization_runs`) along the size that the study varies.

    Raises:
        UserError: no two runs differ only in that size.
    """
    along = ALONG[study]
    curves = memorization_curves(runs, along)
    if not curves:
        others = ", ".join(name for axis, name in SYMBOLS.items() if axis != along)
        raise UserError(f"{study} needs runs that differ in {along} at the same {others}; there are none.")
    in_study = pd.concat([_rows_of(runs, curve) for curve in curves])
    alone = memorization_curves(in_study[in_study["task"] == CLASSIFICATION], "examples", least_points=1)
    return MemorizationAnalysis(
        study,
        tuple(_analyse_curve(curve, along, _rows_of(runs, curve)) for curve in curves),
        tuple((curve, capacity.capacity(curve)) for curve in alone),
        _saturated(in_study),
    )


def guaranteed_examples(curve: MemorizationCurve) -> Floats:
    """(n,) `H (min(n, d_h) - 1) + 1` at the points of a curve; NaN where n >= d, which theorem 1 doesn't cover."""
    sizes = [
        curve.x if axis == curve.along else np.full(len(curve.x), getattr(curve, axis))
        for axis in ("heads", "context", "head_dim")
    ]
    rows = np.array(sizes, dtype=np.int64).T.tolist()
    return np.array([memorizable_examples(*row) if row[1] < curve.width else math.nan for row in rows])


def gain_beyond(curve: MemorizationCurve, context: int) -> Gain:
    """The gain of a curve along d_h over its unsaturated points d_h >= n: two with a noise estimate, else three."""
    beyond = curve.x >= context
    count, err = int(beyond.sum()), standard_errors(curve)[beyond]

    def unknown(reason: str) -> Gain:
        return Gain(math.nan, math.nan, math.nan, count, FitStatus.TOO_FEW_POINTS, reason)

    x, y, noise = curve.x[beyond], curve.share[beyond], curve.noise
    if count < (2 if noise else 3):
        return unknown(f"too few points with d_h >= n: {count}, and a gain needs {2 if noise else 3}")
    if y.max() > MEMORIZED:
        return unknown("all is memorized there, so nothing could be gained; take more examples")
    if noise is not None and count == 2:
        gain, gain_err = float(y[1] - y[0]), float(np.hypot(err[0], err[1]))
        return Gain(gain, gain_err, float(stats.t.sf(gain / gain_err, noise.dof)), count)
    known = noise is not None
    line = fit_line(x, y, err if known else curve.seeds[beyond] ** -0.5, rescale_covariance=not known)
    length, dof = float(x[-1] - x[0]), noise.dof if noise is not None else float(line.dof)
    p_value = float(stats.t.sf(line.b / line.b_err, dof)) if line.b_err > 0 else math.nan
    return Gain(line.b * length, line.b_err * length, p_value, count)


def _analyse_curve(curve: MemorizationCurve, along: str, runs: pd.DataFrame) -> CurveAnalysis:
    examples = curve.x if curve.examples is None else float(curve.examples)
    guaranteed = np.minimum(guaranteed_examples(curve) / examples, 1.0)
    err = standard_errors(curve)
    test = monotony(curve.x, curve.share, err, curve.noise)
    if along == "heads":
        line = capacity.linear_part(curve)
        growth, needed = capacity.fit_growth(curve, line.used), capacity.heads_needed(curve)
        guessed = 2.0 ** -float(runs[LABEL_BITS].fillna(math.inf).iloc[0])
        readings = capacity.exponents(curve, line.used, guessed)
        information = _information_of(curve, runs, line.used)
        return CurveAnalysis(curve, guaranteed, test, line, growth, readings, needed, information)
    if along == "head_dim":
        assert curve.context is not None
        return CurveAnalysis(curve, guaranteed, test, gain=gain_beyond(curve, curve.context))
    return CurveAnalysis(curve, guaranteed, test)


def _information_of(
    curve: MemorizationCurve, runs: pd.DataFrame, used: npt.NDArray[np.bool_]
) -> dict[str, float]:
    """The learned part of the labels' information, against H, as columns; NaN if a point lacks it or none is used.

    Cross-entropy credits a label that is half known; accuracy credits it only when it ranks first of all classes. A
    line and a growth are fitted to that part over the points of the share's line; `bits_per_head` is T times the bits
    learned per label, over H, at the last point.
    """
    if runs[INFORMATION].isna().any() or not used.any():
        return dict.fromkeys(_LEARNED, math.nan)
    (learned,) = memorization_curves(runs, "heads", value=INFORMATION)
    last = np.flatnonzero(used)[-1]
    bits = float(runs[LABEL_BITS].iloc[0]) * float(learned.share[last]) * float(curve.examples or 0)
    line, growth = capacity.line_through(learned, used), capacity.fit_growth(learned, used)
    numbers = line.curvature_p, growth.exponent, growth.err, bits / float(curve.x[last])
    return dict(zip(_LEARNED, numbers, strict=True))


def _saturated(runs: pd.DataFrame) -> pd.DataFrame:
    grouped = runs.groupby([*_SIZES], as_index=False, sort=True)
    means = {name: (name, "mean") for name in HEADS_SAY}
    table = grouped.agg(seeds=("seed", "size"), share=("share", "mean"), **means)
    table["mean_saturated_heads"] = table["saturated_share"] * table["heads"]
    return table if table["variant"].any() else table.drop(columns="variant")


def _rows_of(runs: pd.DataFrame, curve: MemorizationCurve) -> pd.DataFrame:
    common = [name for name in _SIZES if name != curve.along]
    return runs[(runs[common] == [getattr(curve, name) for name in common]).all(axis=1)]


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


def line_row(one: CurveAnalysis, part: capacity.LinearPart) -> dict[str, Any]:
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
        needed, examples = one.needed, float(one.curve.examples or 0)
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
            | dict(zip(("exponent_least", "exponent_most"), one.readings, strict=True))
            | {"r_squared": one.linear.line.r_squared if one.linear else math.nan}
            | one.information
            | {"seeds": int(one.curve.seeds.min())}
            | picked(one.growth, errors_from="errors", status="status", message="message")
        )
    return pd.DataFrame(rows)


def theory_per_head(curve: MemorizationCurve) -> int:
    """`min(n, d_h) - 1`, the examples that theorem 1 adds per head for labels of real numbers."""
    return min(curve.context or 0, curve.head_dim or 0) - 1


def examples_per_head(one: CurveAnalysis) -> float:
    """T over the H that memorizes 99% of it; NaN where that is only bounded."""
    found = one.needed is not None and one.needed.status is capacity.CapacityStatus.FOUND
    return float(one.curve.examples or 0) / one.needed.size if one.needed and found else math.nan


def gain_table(analysis: MemorizationAnalysis) -> pd.DataFrame:
    """The gain of the share beyond d_h = n, one row per curve; where it can't be measured, `message` says why."""
    rows = [sizes_of(one.curve) | one.gain._asdict() for one in analysis.curves if one.gain is not None]
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
        for name, *rest in (*_line_rows(one), *_gain_rows(one), _monotony_row(one), _theory_row(one))
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
    known = math.isfinite(part.curvature_p) and (part.tells or part.curvature_p < capacity.BENT)
    straight = says(known, part.curvature_p >= capacity.BENT)
    if not part.tells and part.curvature_p >= capacity.BENT:
        bend += f"; H^{capacity.POWER} would pass for a line as well"
    yield "p-value of a line in H", part.curvature_p, math.nan, "", straight, bend
    yield "exponent of the share in H", growth.exponent, growth.err, "", OPEN, growth.message
    guaranteed = f"theory guarantees {theory}, for real labels"
    enough = says(one.needed.status is capacity.CapacityStatus.FOUND, per_head >= theory)
    name = "examples per head where 99% are memorized"
    yield name, per_head, math.nan, guaranteed, enough, _per_head_note(one)


def _per_head_note(one: CurveAnalysis) -> str:
    needed, examples = one.needed, float(one.curve.examples or 0)
    assert needed is not None
    if needed.status is not capacity.CapacityStatus.FOUND:
        return f"H is {needed.status} {needed.size:.0f}"
    ends = [math.nan if math.isnan(heads) else examples / heads for heads in (needed.high, needed.low)]
    said = "between " + " and ".join("an open end" if math.isnan(end) else f"{end:.0f}" for end in ends)
    if one.curve.task == REGRESSION:
        return said
    return f"{said}; classes are easier than real labels, so don't divide this by the theorem's number"


def _gain_rows(one: CurveAnalysis) -> Iterator[Row]:
    if one.gain is None:
        return
    gain = one.gain
    flat = says(gain.p_value < 0.05 or 2 * gain.gain_err < TOLD, not gain.p_value < 0.05)
    note = gain.message or chance_words(gain.p_value)
    if gain.p_value >= 0.05 and 2 * gain.gain_err >= TOLD:
        note += f"; a gain of {TOLD} would not have shown"
    yield "gain in share beyond d_h = n", gain.gain, gain.gain_err, "", flat, note


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
        lambda analysis: pd.DataFrame(
            [sizes_of(one.curve) | line_row(one, one.linear) for one in analysis.curves if one.linear]
        ),
        "The line in H through the points below saturation, where they are on one.",
    ),
    "growth": TableOf(
        growth_table,
        "Heads that memorize T, and the exponent of the share in H. Theory's number is for labels that are real "
        "numbers; classes are easier, so don't divide one by the other.",
    ),
    "saturated": TableOf(lambda analysis: analysis.saturated, "Saturated heads of trained networks."),
    "gain": TableOf(gain_table, "The gain of the share from head dimensions beyond the context length."),
    "comparison": TableOf(comparison_table, "Our findings beside the published ones."),
}
