"""Runs of the memorization studies, the share that they memorize along one of heads, n, d_h and T, and its noise.

And the search for the largest number of examples that a network memorizes: which T to train next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special  # type: ignore[import-untyped]

from shapelaw.errors import UserError
from shapelaw.fits.inputs import numbers_of, refuse, refuse_twice, require_columns, run_numbers
from shapelaw.fits.noise import Floats, Noise

# 0: one noise for all shares; 0.5: a binomial's; 1: equal noise of the log odds
POWERS: Floats = np.linspace(0.0, 1.5, 31)
# prior mean and standard deviation of the power: few seeds hardly determine it
PRIOR = (0.75, 0.35)
LEAST_SHARE = 1e-3
CLASSIFICATION, REGRESSION = "classification", "regression"
SHARED, PER_EXAMPLE = "shared", "per_example"
AXES = ("heads", "context", "head_dim", "examples")
DEFAULTS: dict[str, str | int] = {"task": CLASSIFICATION, "context_type": SHARED, "width": 64}
# choices of the model that separate curves
OPTIONS = ("logit_scale", "attend_to_query", "last_batch")
# optional columns on a run's heads
HEADS_SAY = ("saturated_share", "examples_with_free_head")
# of classifications: the part of the labels' information that is learned, and the bits of a label
INFORMATION, LABEL_BITS = "information", "label_bits"
# labels of the regression task are uniform(0, 1) (Mahdavi et al. 2024, section 5.2)
LABEL_VARIANCE = 1.0 / 12.0
# from this share on a point counts as saturated; see `linear_part`
SATURATED = 0.9
# from this share on everything counts as memorized: the level of a capacity
MEMORIZED = 0.99
# shares closer than this are equal up to rounding
EQUAL = 1e-12


@dataclass(frozen=True)
class ShareNoise(Noise):
    """The variance of one run at share p: the mean of `unit2 (p (1 - p))^(2 k)` over the powers k of `POWERS`.

    `weight` (powers,) is the posterior of k, `unit2` (powers,) the most likely unit for each. `std` is the single
    number that pooling would give. The function is fitted to shares between `lowest` and `highest`; a share beyond has
    the value at that end, since nothing is known there.
    """

    weight: Floats
    unit2: Floats
    lowest: float
    highest: float

    @property
    def power(self) -> float:
        """The posterior mean of the power of p (1 - p) in the standard deviation."""
        return float(self.weight @ POWERS)

    def at(self, share: npt.ArrayLike) -> Floats:
        """Standard deviations of one run at (n,) shares."""
        inside = np.clip(np.asarray(share, dtype=np.float64), self.lowest, self.highest)
        return np.asarray(np.sqrt((self.weight * self.unit2) @ _relative(inside)), dtype=np.float64)


def share_noise(share: Floats, std: Floats, dof: Floats) -> ShareNoise | None:
    """The noise of (n,) mean shares whose runs have standard deviations `std` with `dof` degrees of freedom each.

    Deviations are assumed normal; each power has its most likely unit. None if no point has repeats, or all repeats
    agree.
    """
    there = dof > 0
    p, squares, weight = share[there], std[there] ** 2, dof[there]
    total = float(weight.sum())
    if not (squares > 0).any():
        return None
    relative = _relative(p)  # (powers, n)
    unit2 = (weight * squares / relative).sum(axis=1) / total
    log_likelihood = -0.5 * (total * np.log(unit2) + (weight * np.log(relative)).sum(axis=1))
    log_prior = -0.5 * ((POWERS - PRIOR[0]) / PRIOR[1]) ** 2
    return ShareNoise(
        std=math.sqrt(float((weight * squares).sum()) / total),
        dof=total,
        weight=special.softmax(log_likelihood + log_prior),
        unit2=unit2,
        lowest=float(p.min()),
        highest=float(p.max()),
    )


def _relative(share: Floats) -> Floats:
    """(powers, n) variances in terms of the unit."""
    inside = np.clip(share, LEAST_SHARE, 1.0 - LEAST_SHARE)
    return np.asarray((inside * (1.0 - inside)) ** (2.0 * POWERS[:, None]), dtype=np.float64)


@dataclass(frozen=True)
class MemorizationCurve:
    """The share of examples memorized by networks that differ in one size, `along`, and in their seeds.

    Of the four sizes the one that varies is None. `x` (n,) are its values by growing size; `shares` (n, s) the share
    memorized, one column a seed, NaN where that seed is missing. A share is the accuracy, or for regression the
    share of the labels' variance that is fitted, `1 - 12 MSE` (0 for a constant answer).
    """

    task: str
    context_type: str
    width: int
    variant: str
    along: str
    heads: int | None
    context: int | None
    head_dim: int | None
    examples: int | None
    x: Floats
    shares: Floats

    @property
    def share(self) -> Floats:
        """(n,) means over seeds."""
        return np.asarray(np.nanmean(self.shares, axis=1), dtype=np.float64)

    @property
    def seeds(self) -> Floats:
        """(n,) how many seeds there are."""
        return np.asarray(np.isfinite(self.shares).sum(axis=1), dtype=np.float64)

    @property
    def spread(self) -> Floats:
        """(n,) standard deviations over seeds, NaN for one seed."""
        return pd.DataFrame(self.shares).std(axis=1).to_numpy(dtype=np.float64)

    @property
    def noise(self) -> ShareNoise | None:
        """The seeds' standard deviation by share, from the points below `SATURATED`; None without repeats there.

        Saturated points all agree and would make the others look more certain than they are.
        """
        repeated = (self.seeds > 1) & (self.share <= SATURATED)
        spread = np.where(self.spread[repeated] > EQUAL, self.spread[repeated], 0.0)
        return share_noise(self.share[repeated], spread, self.seeds[repeated] - 1.0)

    @property
    def setting(self) -> str:
        """The sizes and choices of all points, e.g. "classification, shared context, n = 32, d_h = 64, T = 10,000"."""
        names = {"heads": "H", "context": "n", "head_dim": "d_h", "examples": "T"}
        kind = "a context per example" if self.context_type == PER_EXAMPLE else "shared context"
        sizes = ", ".join(
            f"{names[axis]} = {value:,}" for axis in AXES if (value := getattr(self, axis)) is not None
        )
        return ", ".join(part for part in (self.task, kind, self.variant, sizes) if part)


def check_memorization_runs(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with a column `share`, one row per run, in order.

    `INFORMATION` is `1 - loss / log(classes)` for a classification with a cross-entropy: 0 for an uninformed guess, 1
    where every label is certain. It is NaN elsewhere, as are `HEADS_SAY` where the table lacks them.

    Args:
        table: one row per trained network: `heads, context, head_dim, examples, seed`, and `accuracy` (0 to 1) or
            `loss` (mean squared error of a regression). `task`, `context_type` and `width` default to
            classification, shared and 64. `value_dim`, `classes`, `logit_scale`, `attend_to_query`,
            `last_batch`, `steps` and `steps_done` are used and `HEADS_SAY` kept if present; other columns are ignored.
        source: the table's name in messages, e.g. its path.

    Raises:
        UserError: a column is missing; a size is not a whole number above zero; an accuracy is not in [0, 1] or a loss
            below zero; a run was stopped before its last step without memorizing all; or a run has two rows.
    """
    require_columns(table, [*AXES, "seed"], source)
    if "accuracy" not in table and "loss" not in table:
        raise UserError(
            f"{source} has neither accuracy (classification) nor loss (regression); it needs one of them."
        )
    runs = table.assign(**{name: default for name, default in DEFAULTS.items() if name not in table})
    if _there(runs, "classes"):  # a regression has no classes
        runs["classes"] = runs["classes"].where(runs["task"] != REGRESSION, 1)
    sizes = [*AXES, "width", *(name for name in ("value_dim", "classes") if _there(runs, name))]
    whole = run_numbers(runs, sizes, [], source)
    for name, known in (("task", (CLASSIFICATION, REGRESSION)), ("context_type", (SHARED, PER_EXAMPLE))):
        refuse(runs, ~runs[name].isin(known), source, f"{name} must be {known[0]} or {known[1]}")
    checked = whole.assign(
        task=runs["task"].astype(str),
        context_type=runs["context_type"].astype(str),
        share=_share(runs, source),
    )
    _refuse_unfinished(runs, checked["share"], source)
    options = runs[[name for name in OPTIONS if name in runs]]
    options = options.fillna({"last_batch": "filled"})  # runs from before there was a choice
    checked["variant"] = _variant(checked, options)
    key = ["task", "context_type", "width", "variant", *AXES, "seed"]
    twice = "a run (sizes, task, context type, seed) must have one row; keep one number of steps"
    refuse_twice(checked, key, source, twice)
    for name in HEADS_SAY:
        checked[name] = pd.to_numeric(runs[name], errors="coerce") if name in runs else np.nan
    checked = checked.assign(**_information(runs))
    kept = [*key, "share", INFORMATION, LABEL_BITS, *HEADS_SAY]
    return checked[kept].sort_values(key, ignore_index=True)


def memorization_curves(
    runs: pd.DataFrame, along: str, least_points: int = 2, value: str = "share"
) -> list[MemorizationCurve]:
    """The curves along one of `AXES` of checked runs, with at least `least_points` points each, by their other sizes.

    `value` names the column of their shares.
    """
    others = [axis for axis in AXES if axis != along]
    common = ["task", "context_type", "width", "variant", *others]
    curves = []
    for _, rows in runs.groupby(common, sort=True):
        table = rows.pivot_table(index=along, columns="seed", values=value)
        if len(table) >= least_points:
            shared: dict[str, Any] = {str(name): value for name, value in rows.iloc[0][common].items()}
            x, shares = (values.to_numpy(dtype=np.float64) for values in (table.index, table))
            curves.append(MemorizationCurve(**shared | {along: None}, along=along, x=x, shares=shares))
    return curves


def standard_errors(curve: MemorizationCurve) -> Floats:
    """(n,) the seed noise at each share over the root of the number of seeds; NaN without a noise estimate."""
    noise = curve.noise
    std = np.full(len(curve.x), np.nan) if noise is None else noise.at(curve.share)
    return np.asarray(std / np.sqrt(curve.seeds), dtype=np.float64)


def mean_squared_error(share: Floats) -> Floats:
    """The MSE of a regression's shares, elementwise."""
    return (1.0 - share) * LABEL_VARIANCE


def _share(runs: pd.DataFrame, source: str) -> pd.Series[float]:
    share = pd.Series(np.nan, index=runs.index)
    for task, column in ((CLASSIFICATION, "accuracy"), (REGRESSION, "loss")):
        rows = runs[runs["task"] == task]
        if rows.empty:
            continue
        if column not in runs:
            raise UserError(f"{source} lacks {column}, which the runs of task {task} need.")
        values = numbers_of(rows, [column], source)[column]
        refuse(rows, values < 0, source, f"{column} must not be below zero")
        if task == CLASSIFICATION:
            refuse(rows, values > 1, source, "accuracy must be at most 1")
        share[rows.index] = values if task == CLASSIFICATION else 1.0 - values / LABEL_VARIANCE
    return share


def _information(runs: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """The columns `INFORMATION` and `LABEL_BITS`."""
    nothing = pd.Series(np.nan, index=runs.index)
    if "loss" not in runs or "classes" not in runs:
        return {INFORMATION: nothing, LABEL_BITS: nothing}
    classes = pd.to_numeric(runs["classes"], errors="coerce").where(runs["task"] == CLASSIFICATION)
    nats = np.log(classes.where(classes > 1))
    return {
        INFORMATION: 1.0 - pd.to_numeric(runs["loss"], errors="coerce") / nats,
        LABEL_BITS: nats / np.log(2.0),
    }


def _refuse_unfinished(runs: pd.DataFrame, share: pd.Series[float], source: str) -> None:
    """Refuse runs that stopped early without memorizing everything: their share is not final."""
    if not (_there(runs, "steps") and _there(runs, "steps_done")):
        return
    steps = numbers_of(runs, ["steps", "steps_done"], source)
    unfinished = (steps["steps_done"] < steps["steps"]) & (share < 1.0)
    refuse(
        runs, unfinished, source, "the run stopped before its last step; train it to the end or take it out"
    )


def _there(table: pd.DataFrame, name: str) -> bool:
    return name in table and bool(table[name].notna().any())


def _variant(runs: pd.DataFrame, options: pd.DataFrame) -> pd.Series[str]:
    """The value dimension, number of classes and model `options`, each only where it differs between runs."""
    parts = []
    if (
        "value_dim" in runs
        and runs["value_dim"].nunique() > 1
        and (runs["value_dim"] != runs["head_dim"]).any()
    ):
        parts.append("d_v = " + runs["value_dim"].astype(str))
    if "classes" in runs:
        several = runs.groupby("task")["classes"].transform("nunique") > 1
        parts.append((runs["classes"].astype(str) + " classes").where(several, ""))
    parts += [f"{name} " + options[name].astype(str) for name in options if options[name].nunique() > 1]
    if not parts:
        return pd.Series("", index=runs.index)
    return pd.concat(parts, axis=1).apply(lambda row: ", ".join(part for part in row if part), axis=1)


def next_sizes(memorized: Mapping[int, bool], low: int, high: int, within: int) -> list[int]:
    """The T to train next, given which of those tried were memorized; empty when the search is over.

    Both ends come first: where `low` is not memorized or `high` is, no bisection between them can find the largest T.
    Then the interval between the largest T memorized and the next one above, which is not, is halved until its ends are
    at most `within` apart.
    """
    if untried := [size for size in (low, high) if size not in memorized]:
        return untried
    if not memorized[low] or memorized[high]:
        return []
    below, above = (size or 0 for size in bracket(memorized))  # both ends were tried, so neither is missing
    return [(below + above) // 2] if above - below > within else []


def bracket(memorized: Mapping[int, bool]) -> tuple[int | None, int | None]:
    """The largest T that is memorized, and the smallest T above it that is not; None for one that wasn't found."""
    below = max((size for size, done in memorized.items() if done), default=None)
    above = min((size for size in memorized if size > (below or 0)), default=None)
    return below, above
