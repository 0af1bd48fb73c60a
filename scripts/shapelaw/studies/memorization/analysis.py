"""The fits to the runs of a memorization study (Mahdavi et al. 2024, section 5.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.errors import UserError
from shapelaw.fits.capacity import (
    Capacity,
    Growth,
    LinearPart,
    capacity,
    exponents,
    fit_growth,
    heads_needed,
    line_through,
    linear_part,
)
from shapelaw.fits.line import Floats, fit_line
from shapelaw.fits.memorized import (
    CLASSIFICATION,
    HEADS_SAY,
    INFORMATION,
    LABEL_BITS,
    MEMORIZED,
    PERFECT,
    SATURATED,
    MemorizationCurve,
    memorization_curves,
    standard_errors,
)
from shapelaw.fits.plateau import KneeFit, fit_knee
from shapelaw.fits.significance import MonotonyTest, monotony
from shapelaw.studies.memorization.study import ALONG_CONTEXT, ALONG_HEAD_DIM, ALONG_HEADS
from shapelaw.theory.memorization import memorizable_examples

ALONG = {ALONG_HEADS: "heads", ALONG_CONTEXT: "context", ALONG_HEAD_DIM: "head_dim"}
SYMBOLS = {"heads": "H", "context": "n", "head_dim": "d_h", "examples": "T"}
OTHER_RULES = (0.8, SATURATED, 0.95, PERFECT)  # thresholds above which a share is saturated
# thresholds below which it is mostly guessed: one in a hundred of 100 classes is right by chance
FLOORS = (0.0, 0.03)


@dataclass(frozen=True)
class Gain:
    """The gain of the share from the first d_h >= n to the largest: a line's slope there times its length.

    `p_value` is the one-sided chance of such a gain if there is none. If the gain can't be measured, all numbers are
    NaN and `reason` says why.
    """

    gain: float
    err: float
    p_value: float
    n_points: int
    reason: str = ""


@dataclass(frozen=True)
class Information:
    """The learned part of the labels' information, against H, over the points of the share's line.

    Cross-entropy credits a label that is half known; accuracy credits it only when it ranks first of all classes.
    `linear` and `growth` are fitted to that part; `bits_per_head` is T times the bits learned per label, over H, at the
    last point.
    """

    linear: LinearPart
    growth: Growth
    bits_per_head: float


@dataclass(frozen=True)
class CurveAnalysis:
    """A curve, the share (n,) that theory guarantees at its points, and what was fitted to it.

    `linear`, `growth`, `readings` (the range of `exponents`), `needed` (H at 99%) and `information` (for
    classifications with a loss) belong to curves along H, `knee` and `gain` to curves along d_h; for other curves they
    are None.
    """

    curve: MemorizationCurve
    guaranteed: Floats
    monotony: MonotonyTest
    linear: LinearPart | None = None
    other_rules: Mapping[tuple[float, float], LinearPart] = field(default_factory=dict)
    growth: Growth | None = None
    readings: tuple[float, float] | None = None
    needed: Capacity | None = None
    information: Information | None = None
    knee: KneeFit | None = None
    gain: Gain | None = None


@dataclass(frozen=True)
class MemorizationAnalysis:
    """The curves of one study, and T at 99% for each of its networks that was trained to classify.

    `saturated` has one row per point of the curves, with the runs' columns on heads as means over seeds.
    """

    study: str
    curves: tuple[CurveAnalysis, ...]
    capacities: tuple[tuple[MemorizationCurve, Capacity], ...]
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
        tuple((curve, capacity(curve)) for curve in alone),
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


def examples_of(curve: MemorizationCurve) -> Floats:
    """(n,) T at the points of a curve."""
    return curve.x if curve.examples is None else np.full(len(curve.x), float(curve.examples))


def gain_beyond(curve: MemorizationCurve, context: int) -> Gain:
    """The gain of a curve along d_h over its unsaturated points d_h >= n: two with a noise estimate, else three."""
    beyond = curve.x >= context
    count, err = int(beyond.sum()), standard_errors(curve)[beyond]

    def unknown(reason: str) -> Gain:
        return Gain(math.nan, math.nan, math.nan, count, reason)

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
    guaranteed = np.minimum(guaranteed_examples(curve) / examples_of(curve), 1.0)
    err = standard_errors(curve)
    test = monotony(curve.x, curve.share, err, curve.noise)
    if along == "heads":
        others = {rule: linear_part(curve, *rule) for rule in product(OTHER_RULES, FLOORS)}
        line = linear_part(curve)
        growth, needed = fit_growth(curve, line.used), heads_needed(curve)
        guessed = 2.0 ** -float(runs[LABEL_BITS].fillna(math.inf).iloc[0])
        readings = exponents(curve, line.used, guessed)
        information = _information_of(curve, runs, line.used)
        return CurveAnalysis(curve, guaranteed, test, line, others, growth, readings, needed, information)
    if along == "head_dim":
        assert curve.context is not None
        knee = fit_knee(curve.x, curve.share, err if curve.noise else curve.seeds**-0.5, curve.noise)
        return CurveAnalysis(curve, guaranteed, test, knee=knee, gain=gain_beyond(curve, curve.context))
    return CurveAnalysis(curve, guaranteed, test)


def _information_of(
    curve: MemorizationCurve, runs: pd.DataFrame, used: npt.NDArray[np.bool_]
) -> Information | None:
    """The information of a curve along H; None if a point lacks it or no points are used."""
    if runs[INFORMATION].isna().any() or not used.any():
        return None
    (learned,) = memorization_curves(runs, "heads", value=INFORMATION)
    last = np.flatnonzero(used)[-1]
    bits = float(runs[LABEL_BITS].iloc[0]) * float(learned.share[last]) * float(curve.examples or 0)
    return Information(line_through(learned, used), fit_growth(learned, used), bits / float(curve.x[last]))


def _saturated(runs: pd.DataFrame) -> pd.DataFrame:
    sizes = ["task", "context_type", "width", "variant", *SYMBOLS]
    grouped = runs.groupby(sizes, as_index=False, sort=True)
    means = {name: (name, "mean") for name in HEADS_SAY}
    table = grouped.agg(seeds=("seed", "size"), share=("share", "mean"), **means)
    table["mean_saturated_heads"] = table["saturated_share"] * table["heads"]
    return table if table["variant"].any() else table.drop(columns="variant")


def _rows_of(runs: pd.DataFrame, curve: MemorizationCurve) -> pd.DataFrame:
    sizes = ("task", "context_type", "width", "variant", *SYMBOLS)
    common = [name for name in sizes if name != curve.along]
    return runs[(runs[common] == [getattr(curve, name) for name in common]).all(axis=1)]
