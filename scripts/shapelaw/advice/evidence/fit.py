"""Fits of the surface of `losses.py` to a table of public losses, with draws whose width left-out shapes have earned.

A series of losses is fitted at all its budgets together: at each budget a level and a slope of their own, over budgets
one ridge, one exponent and one penalty that change in line with log tokens. Runs of another lab join each series: they
have a level at each number of tokens, a slope at each budget and a scale of the penalty, and share the rest. Each form
is weighted by how well it predicts the shapes that are left out (pseudo-BMA+, as the surfaces of own runs; densities
are Student's, since one shape of three layers would decide alone under a normal). Forms in the blocks and forms in all
parameters have half of the draws each: networks of one vocabulary can't tell which of the two a network of another
vocabulary follows.

The draws are a wild bootstrap by shape: the residuals that a shape has when it is left out, at all budgets, times one
normal number (Cameron, Gelbach and Miller 2008), so the misfit of the form and what is peculiar to a shape are in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize, stats  # type: ignore[import-untyped]

from shapelaw.advice.evidence import losses as formula
from shapelaw.advice.evidence.losses import COLUMNS, PENALTIES, Draws, Floats
from shapelaw.advice.evidence.separable import Columns, Separable, best_fit, solve
from shapelaw.errors import UserError
from shapelaw.fits.inputs import numbers_of, require_columns
from shapelaw.fits.projection import predictive_weights

Ints = npt.NDArray[np.int64]

NEEDED = ("depth", "width", "block_params", "total_params", "tokens", "loss", "series")
# series of losses by the set of runs that they come from; only sets are independent. What the table has beside them
# are the same networks at the same tokens (`hot`, `cool_begin`).
SETS: Mapping[str, tuple[str, ...]] = {
    "full rate": ("hot_100b+", "fineweb_edu", "fineweb_dclm", "cool_end"),
    "half rate": ("lr_ablation_hot",),
}
SMALLEST_SERIES = 10  # shapes that a budget needs
# nats, about the scatter of a shape around the surface: it weighs the losses against the priors
ERROR = 0.008
LEFT_OUT = 1e4  # nats: an error with which a loss says nothing
FEWER = 0.5  # standard deviation of what steepens the ridge where tokens are few, before the losses speak
STARTS = (-0.6, 0.0, 0.6)  # of the ridge, in log depths from the middle
SKEWS = (-0.7, 0.7)
SCALED, SKEW = 8, 9  # where theta has the scale of the other recipe, and the skew, if the form has one
INDICES = ("shape", "budget", "slope")
# by what the costs told without them had to be multiplied for runs of other labs, the least and the greatest that is
# known: their recipes differ by it
SCALES = (0.8, 1.7)
HEAVY = 4  # degrees of freedom of the errors of left-out shapes
LEAST = 1e-4  # nats: penalties and slopes are at least so large


@dataclass(frozen=True)
class Losses:
    """The losses of one series.

    Attributes:
        series: its name.
        shape: (n,) index of the shape.
        budget: (n,) index of the budget, whose runs share a level.
        slope: (n,) index of the budgets that share a slope.
        other: (n,) whether the run is another lab's, with a scale of its own.
        log_blocks, log_total, log_depth, log_tokens: (n,) logs.
        loss: (n,) in nats.
    """

    series: str
    shape: Ints
    budget: Ints
    slope: Ints
    other: npt.NDArray[np.bool_]
    log_blocks: Floats
    log_total: Floats
    log_depth: Floats
    log_tokens: Floats
    loss: Floats

    @property
    def shapes(self) -> int:
        return int(self.shape.max()) + 1

    @property
    def budgets(self) -> int:
        return int(self.budget.max()) + 1

    def mean_log_tokens(self, index: Ints) -> Floats:
        """Mean logs of the tokens of the runs that an index counts."""
        return np.asarray(np.bincount(index, self.log_tokens) / np.bincount(index))

    def only(self, rows: npt.NDArray[np.bool_]) -> Losses:
        """The losses of some rows, with shapes and budgets counted anew."""
        kept = {name: values[rows] for name, values in vars(self).items() if name != "series"}
        counted = {name: _counted(kept[name]) for name in INDICES}
        return Losses(self.series, **kept | counted)

    def joined(self, other: Losses) -> Losses:
        """These losses with those of another lab, whose shapes, budgets and slopes are others."""
        parts = {name: (mine, vars(other)[name]) for name, mine in vars(self).items() if name != "series"}
        parts |= {
            name: (mine, mine.max() + 1 + theirs) for name, (mine, theirs) in parts.items() if name in INDICES
        }
        return Losses(self.series, **{name: np.concatenate(both) for name, both in parts.items()})

    @property
    def tokens(self) -> tuple[float, float]:
        """The smallest and the largest number of tokens of the series' own runs."""
        own = np.exp(self.log_tokens[~self.other])
        return float(own.min()), float(own.max())


def _counted(values: npt.NDArray[Any]) -> Ints:
    """(n,) indices of values among their sorted distinct ones."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def losses_of(table: pd.DataFrame, source: str) -> list[Losses]:
    """The losses of each series of `SETS`, in their order.

    Raises:
        UserError: a column or a series is missing, or a number is not one.
    """
    require_columns(table, NEEDED, source)
    numbers = numbers_of(table, NEEDED[:-1], source, positive=NEEDED[:-1])
    absent = [name for names in SETS.values() for name in names if name not in set(table["series"])]
    if absent:
        raise UserError(f"{source} has no series {', '.join(absent)}; the fits are of Gemstones' losses.")
    numbers["series"] = table["series"]
    return [_series(numbers, name) for names in SETS.values() for name in names]


def _series(table: pd.DataFrame, name: str) -> Losses:
    mine = table[table["series"] == name]
    billions = (mine["tokens"] / 1e9).round()
    rows = billions.map(billions.value_counts()) >= SMALLEST_SERIES
    mine, billions = mine[rows], billions[rows]
    blocks, total, depth, tokens = (
        np.log(mine[column].to_numpy(dtype=np.float64))
        for column in ("block_params", "total_params", "depth", "tokens")
    )
    shape = _counted(mine.groupby(["depth", "width"]).ngroup().to_numpy())
    budget, own = _counted(billions.to_numpy()), np.zeros(len(mine), dtype=np.bool_)
    losses = mine["loss"].to_numpy(dtype=np.float64)
    return Losses(name, shape, budget, budget, own, blocks, total, depth, tokens, losses)


def losses_of_other(runs: pd.DataFrame, name: str) -> Losses:
    """The losses of another lab's runs, those of equal `tokens` at one level, those of one `budget` with one slope.

    Their total is that of the evidence's own network with these blocks and this depth, as an answer's is.

    Args:
        runs: the columns of `predicted.COLUMNS`; untied.
        name: whose they are.
    """
    blocks = np.log(
        (runs["total_params"] - 2 * runs["vocab_size"] * runs["width"]).to_numpy(dtype=np.float64)
    )
    depth, tokens = (np.log(runs[column].to_numpy(dtype=np.float64)) for column in ("depth", "tokens"))
    groups = runs.groupby(["depth", "width"]).ngroup(), runs["tokens"], runs["budget"]
    shape, budget, slope = (_counted(values.to_numpy()) for values in groups)
    everything = np.ones(len(runs), dtype=np.bool_)
    losses = runs["loss"].to_numpy(dtype=np.float64)
    total = formula.log_total(blocks, depth)
    return Losses(name, shape, budget, slope, everything, blocks, total, depth, tokens, losses)


@dataclass(frozen=True)
class Group:
    """One form and size fitted to one series.

    Attributes:
        losses: what it was fitted to.
        form: of `FORMS`.
        size: of `SIZES`.
        theta, coefficients: the best fit.
        left_out: (n,) residuals of each shape's losses where it was left out, in nats.
        without: (shapes, 18) parameters of the fits without each shape, in the order of `evidence.COLUMNS`.
    """

    losses: Losses
    form: str
    size: str
    theta: Floats
    coefficients: Floats
    left_out: Floats
    without: Floats

    @property
    def model(self) -> Separable:
        return model_of(self.losses, self.form)

    @property
    def error(self) -> float:
        """Root mean square of the residuals of left-out shapes, in nats."""
        return float(np.sqrt(np.mean(self.left_out**2)))

    @property
    def shape_errors(self) -> Floats:
        """(shapes,) root mean squares of the residuals of each left-out shape, in nats."""
        return np.sqrt(np.bincount(self.losses.shape, self.left_out**2) / np.bincount(self.losses.shape))

    @property
    def scale(self) -> float:
        """The scale of Student's distribution that the errors of left-out shapes have, in nats."""
        off = self.shape_errors

        def against(log_scale: float) -> float:
            return -float(_log_density(off, np.exp(log_scale)).sum())

        middle = np.log(np.median(off))
        return float(np.exp(optimize.minimize_scalar(against, bounds=(middle - 2.0, middle + 2.0)).x))

    @property
    def densities(self) -> Floats:
        """(shapes,) log predictive densities of the left-out shapes, each shape counted as one observation."""
        return _log_density(self.shape_errors, self.scale)


def _log_density(off: Floats, scale: float) -> Floats:
    return np.asarray(stats.t.logpdf(off / scale, HEAVY) - np.log(scale))


def place(losses: Losses, size: str) -> tuple[Floats, Floats]:
    """(n,) log sizes and log depths about their middles."""
    log_size = losses.log_total if size == "total" else losses.log_blocks
    return log_size - formula.MIDDLE_SIZE, losses.log_depth - formula.MIDDLE_DEPTH


def model_of(losses: Losses, form: str) -> Separable:
    """The model of a form for the budgets of a series; its linear parts are levels and slopes of the budgets."""
    scale, kind = form.split(" ", 1)
    mean = [0.2, 0.0, 0.0, 1.0 / 3.0, 0.0, 0.0, *([np.log(0.3), 0.0] if scale == "size" else [0.0, 0.0]), 0.0]
    std = [0.25, 0.1, 1.5, 0.5, 0.3, FEWER, *([1.5, 0.5] if scale == "size" else [0.5, 0.5]), scale_spread()]
    if kind != PENALTIES[0]:
        mean, std = [*mean, 0.0], [*std, 1.0]
    return Separable(_columns(losses, scale, kind), np.array(mean), np.array(std))


def scale_spread() -> float:
    """The standard deviation of the log of a recipe's scale: half of the range that is known."""
    return float(np.log(SCALES[1] / SCALES[0]) / 2.0)


def _columns(losses: Losses, scale: str, kind: str) -> Columns:
    u, below = losses.log_tokens - formula.MIDDLE_TOKENS, formula.few(losses.log_tokens)
    of_budget, of_slope = (
        (index[:, None] == np.arange(index.max() + 1)).astype(np.float64)
        for index in (losses.budget, losses.slope)
    )

    def columns(theta: Floats, x: Floats, z: Floats) -> Floats:
        alpha, alpha_u, c0, c1, c2, c3, p, p_u, scaled = (theta[..., j, None] for j in range(SKEW))
        t = z - (c0 + c1 * x + c2 * u + c3 * below)
        lost = formula.penalty(kind, t, theta[..., SKEW, None] if theta.shape[-1] > SKEW else 0.0)
        in_nats = scale == "nats"
        factor = np.exp((p * x if in_nats else p) + p_u * u + scaled * losses.other)
        size = x + 0.0 * t if in_nats else x - factor * lost
        slope = formula.power(alpha + alpha_u * u, size)
        parts = [np.broadcast_to(of_budget, (*slope.shape, of_budget.shape[1])), slope[..., None] * of_slope]
        if in_nats:
            parts.append((factor * lost)[..., None])
        return np.concatenate(parts, axis=-1)

    return columns


def fit_group(losses: Losses, form: str, size: str) -> Group:
    """The best fit of a form, and the residuals of each shape by a fit without it."""
    model, (x, z) = model_of(losses, form), place(losses, size)
    theta, coefficients = best_fit(model, x, z, losses.loss, ERROR, _starts(model), 60)
    mine = losses.shape == np.arange(losses.shapes)[:, None]
    several, start = np.broadcast_to(losses.loss, mine.shape), np.tile(theta, (len(mine), 1))
    without = solve(model, x, z, several, np.where(mine, LEFT_OUT, ERROR), start, 40)
    off = losses.loss - model.values(without.theta, without.coefficients, x, z)
    parts = _parameters(losses, form, without.theta, without.coefficients)
    return Group(losses, form, size, theta, coefficients, off[losses.shape, np.arange(len(x))], parts)


def _starts(model: Separable) -> Floats:
    skewed = len(model.mean) > SKEW
    places = np.array(list(product(STARTS, SKEWS if skewed else (0.0,))))
    starts = np.tile(model.mean, (len(places), 1))
    starts[:, 2] = places[:, 0]
    starts[:, SKEW:] = places[:, 1:] if skewed else 0.0
    return starts


def drawn(group: Group, count: int, rng: np.random.Generator) -> Floats:
    """(count, 18) draws of a group's parameters, in the order of `evidence.COLUMNS`."""
    if not count:
        return np.zeros((0, len(COLUMNS)))
    losses, model, (x, z) = group.losses, group.model, place(group.losses, group.size)
    fitted = model.values(group.theta, group.coefficients, x, z)
    moved = fitted + rng.standard_normal((count, losses.shapes))[:, losses.shape] * group.left_out
    start = np.tile(group.theta, (count, 1))
    found = solve(model, x, z, moved, np.full_like(moved, ERROR), start, 20)
    return _parameters(losses, group.form, found.theta, found.coefficients)


def _parameters(losses: Losses, form: str, theta: Floats, coefficients: Floats) -> Floats:
    """(b, 18) parameters in the order of `evidence.COLUMNS`, of (b, k) and (b, m) fitted ones."""
    budgets, in_nats = losses.budgets, form.startswith("nats")
    slopes = np.log(np.maximum(-coefficients[:, budgets : budgets + losses.slope.max() + 1], LEAST))
    terms = formula.slope_terms(losses.mean_log_tokens(losses.slope), losses.tokens)
    square = np.linalg.lstsq(terms, slopes.T, rcond=None)[0].T
    scale = np.log(np.maximum(coefficients[:, -1:], LEAST)) if in_nats else theta[:, 6:7]
    scale = scale + theta[:, SCALED:SKEW] / 2.0  # of a recipe in the middle
    others = theta[:, 6:SCALED] if in_nats else np.column_stack([theta[:, 7], np.zeros(len(theta))])
    skew = theta[:, SKEW:] if theta.shape[1] > SKEW else np.zeros((len(theta), 1))
    own = np.unique(losses.budget[~losses.other])
    u, degree = losses.mean_log_tokens(losses.budget)[own] - formula.MIDDLE_TOKENS, min(3, len(own) - 1)
    level = np.polynomial.polynomial.polyfit(u, coefficients[:, own].T, degree).T
    level = np.pad(level, ((0, 0), (0, 3 - degree)))
    return np.concatenate([theta[:, :6], scale, others, skew, square, level], axis=1)


@dataclass(frozen=True)
class Fitted:
    """All groups, each with its weight, which sum to one in each series and size, and its draws."""

    groups: tuple[tuple[Group, float, Floats], ...]

    def of_series(self, names: Sequence[str]) -> list[tuple[Group, float, Floats]]:
        """The groups of some series, each with its weight and its draws."""
        return [one for one in self.groups if one[0].losses.series in names]

    def surface(self, names: Sequence[str]) -> Draws:
        """The draws of some series, as `evidence.Draws`."""
        return as_draws([(group, draws) for group, _, draws in self.of_series(names)])


def as_draws(parts: Sequence[tuple[Group, Floats]]) -> Draws:
    """Groups with (d, 18) parameters each as draws of one surface."""
    least, most = zip(*(group.losses.tokens for group, _ in parts), strict=True)
    groups = ((group.form, group.size, values) for group, values in parts)
    return formula.draws_of(groups, (min(least), max(most)))


def fit_evidence(series: Sequence[Losses], draws: int, seed: int = 0) -> Fitted:
    """Fit every form and size to every series.

    Args:
        series: the losses.
        draws: number of draws of each series; half for each size, shared among forms by their weights.
        seed: of the draws.
    """
    done: list[tuple[Group, float, Floats]] = []
    for index, losses in enumerate(series):
        rng = np.random.default_rng([seed, index])
        for size in formula.SIZES:
            mine = [fit_group(losses, form, size) for form in formula.FORMS]
            weight = predictive_weights(np.array([group.densities for group in mine]))
            counts = np.diff(np.round(np.cumsum(weight) * draws / len(formula.SIZES)).astype(int), prepend=0)
            done += [
                (group, float(one), drawn(group, int(count), rng))
                for group, one, count in zip(mine, weight, counts, strict=True)
            ]
    return Fitted(tuple(done))
