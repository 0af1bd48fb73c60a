"""What the evidence predicts of what was left out, and the widths of predictive intervals that follow from it.

Left out are a whole lab, a whole set of runs (the half rate, the full rate), each shape, the largest or the smallest
shapes, the most or the fewest tokens. Best depths are compared in log depth, costs and losses in nats. Series of one
set are the same networks, so that they are left out together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.advice.answer.costs import DEPTHS, HIGH, LOW, Spread, outside
from shapelaw.advice.evidence import fit
from shapelaw.advice.evidence.fit import SETS, Fitted, Group, Losses
from shapelaw.advice.evidence.losses import TABLE, Draws, Floats, lowest
from shapelaw.errors import UserError

ASKED = (60e6, 125e6, 350e6, 760e6, 1.3e9)  # sizes whose best depths are compared
ALL = tuple(name for names in SETS.values() for name in names)
BUDGETS = (1e10, 3e10, 1e11)  # tokens at which they are
MEASURES = ("equal blocks", "equal total")
EVERYWHERE = {measure: list(product(ASKED, BUDGETS)) for measure in MEASURES}
SEVERAL = (6e7, 3.5e8, 1.3e9)
# what is cut off, what is kept of log blocks and log tokens, and the sizes and budgets that are then predicted
CUTS: tuple[tuple[str, Callable[[Losses], Any], tuple[float, ...], tuple[float, ...]], ...] = (
    ("shapes above 1 billion", lambda one: one.log_blocks < math.log(1e9), (1.7e9,), BUDGETS),
    ("shapes above 500 million", lambda one: one.log_blocks < math.log(5e8), (8.5e8, 1.7e9), BUDGETS),
    ("shapes below 40 million", lambda one: one.log_blocks > math.log(4e7), (2.5e7,), BUDGETS),
    ("shapes below 60 million", lambda one: one.log_blocks > math.log(6e7), (2.5e7, 4.5e7), BUDGETS),
    ("tokens below 90 billion", lambda one: one.log_tokens > math.log(9e10), SEVERAL, (1e10, 3e10)),
    ("tokens above 60 billion", lambda one: one.log_tokens < math.log(6e10), SEVERAL, (1e11, 3e11)),
)
FAR = 0.3  # e-folds outside from which a prediction is an extrapolation
COLUMNS = (
    *("predicted", "left_out", "count", "error", "interval", "held"),
    *("predictive_interval", "held_predictive", "scale"),
)
STUDENT = 1.141  # half the width of Student's central 68% (0.16 to 0.84) with `HEAVY` degrees of freedom
assert fit.HEAVY == 4


@dataclass(frozen=True)
class Miss:
    """One prediction of something left out.

    Attributes:
        off: what came out less what was predicted, in log depth or nats.
        own: half the width of the evidence's own 68% interval.
        low, high: the same interval's ends less the prediction.
        out: e-folds by which it was extrapolated.
        moved: standard deviation of log depth by which a unit shift of the ridge moves the prediction; 0 in nats.
    """

    off: float
    own: float
    low: float
    high: float
    out: float = 0.0
    moved: float = 0.0

    @classmethod
    def of(cls, off: float, draws: Floats, middle: float, out: float = 0.0, moved: float = 0.0) -> Miss:
        """That of a prediction with its draws (D,), whose interval holds the prediction."""
        low, high = np.quantile(draws, (LOW, HIGH)) - middle
        return cls(off, (high - low) / 2.0, min(low, 0.0), max(high, 0.0), out, moved)

    def held(self, shift: float = 0.0) -> bool:
        """Whether the interval holds what came out, once ridges are moved by a standard deviation."""
        more = shift * self.moved
        return -math.hypot(self.low, more) <= self.off <= math.hypot(self.high, more)


def log_blocks_at(size: float, measure: str) -> Floats:
    """Logs of the blocks of networks of one size along `DEPTHS`; total means the evidence's own vocabulary, untied."""
    if measure == MEASURES[0]:
        return np.full_like(DEPTHS, math.log(size))
    depth = np.exp(DEPTHS)
    width = 2.0 * size / (TABLE + np.sqrt(TABLE**2 + 48.0 * depth * size))
    return np.asarray(np.log(12.0 * depth * width**2))


def best_depths(
    draws: Draws, size: float, tokens: float, measure: str, shift: float = 0.0
) -> tuple[float, Floats]:
    """The log depth of least mean loss, and that of each draw (D,)."""
    losses = draws.losses(log_blocks_at(size, measure), DEPTHS, math.log(tokens), shift)
    return float(lowest(losses.mean(axis=0)[None], DEPTHS)[0][0]), lowest(losses, DEPTHS)[0]


def miss_of(
    predicted: Draws, truth: Draws, size: float, tokens: float, measure: str, out: float = 0.0
) -> Miss:
    """A best depth by draws, against the one by others."""
    middle, each = best_depths(predicted, size, tokens, measure)
    true, _ = best_depths(truth, size, tokens, measure)
    up, down = (best_depths(predicted, size, tokens, measure, step)[0] for step in (0.25, -0.25))
    return Miss.of(true - middle, each, middle, out, (up - down) / 0.5)


def between(
    predicted: Draws, truth: Draws, asked: Mapping[str, Sequence[tuple[float, float]]] = EVERYWHERE
) -> dict[str, list[Miss]]:
    """Best depths by the draws of some runs, against those of others, by measure.

    Args:
        predicted, truth: the draws.
        asked: sizes and tokens by measure.
    """
    return {
        measure: [
            miss_of(predicted, truth, size, tokens, measure, outside(tokens, predicted.tokens))
            for size, tokens in places
        ]
        for measure, places in asked.items()
    }


def costs_between(predicted: Draws, fitted: Fitted, names: Sequence[str]) -> tuple[list[Miss], float]:
    """Costs of the shapes of some series by the draws of other runs, and the scale: what came out is this times what
    was predicted.

    What a shape's cost came out as is its own runs' surface there plus its losses' residuals about it.
    """
    truth, groups = fitted.surface(names), fitted.of_series(names)
    scales = np.average([group.scale for group, _, _ in groups], weights=[weight for _, weight, _ in groups])
    scatter = STUDENT * float(scales)
    misses, pairs = [], []
    for name in names:
        mine = [(group, weight) for group, weight, _ in groups if group.losses.series == name]
        losses = mine[0][0].losses
        off = losses.loss - sum(weight * _fitted(group) for group, weight in mine) / sum(w for _, w in mine)
        for row in range(len(losses.loss)):
            place_ = losses.log_blocks[row : row + 1], losses.log_depth[row : row + 1]
            said = _cost(predicted, *place_, losses.log_tokens[row])
            came = float(_cost(truth, *place_, losses.log_tokens[row]).mean()) + off[row]
            middle = float(said.mean())
            own = Miss.of(came - middle, said, middle)
            ends = math.hypot(own.low, scatter), math.hypot(own.high, scatter)
            misses.append(Miss(own.off, sum(ends) / 2.0, *ends))
            pairs.append((middle, came))
    said_, came_ = np.array(pairs).T
    return misses, float(said_ @ came_ / (said_ @ said_))


def _fitted(group: Group) -> Floats:
    return group.model.values(group.theta, group.coefficients, *fit.place(group.losses, group.size))


def _cost(draws: Draws, log_blocks: Floats, log_depth: Floats, log_tokens: float) -> Floats:
    """(D,) losses of one network above the best of its blocks."""
    least = lowest(draws.losses(np.full_like(DEPTHS, log_blocks[0]), DEPTHS, log_tokens), DEPTHS)[1]
    return np.maximum(draws.losses(log_blocks, log_depth, log_tokens)[:, 0] - least, 0.0)


def left_out_losses(fitted: Fitted, names: Sequence[str], other: bool = False) -> list[Miss]:
    """The losses of each shape by the fits without it; the interval is of Student's distribution.

    Args:
        fitted: the fits.
        names: of their series.
        other: the shapes of the other lab, rather than those of the series.
    """
    misses = []
    for group, weight, _ in fitted.of_series(names):
        if weight >= 0.05:
            half = STUDENT * group.scale
            mine = group.left_out[group.losses.other == other]
            misses += [Miss(float(off), half, half, half) for off in mine]
    return misses


def without_each_shape(fitted: Fitted, names: Sequence[str]) -> dict[str, list[Miss]]:
    """Best depths by all shapes, against those without each shape: the jackknife's standard error beside the draws'.

    A miss stands for a size and a number of tokens; its `off` is the jackknife's standard error.
    """
    groups, all_draws = fitted.of_series(names), fitted.surface(names)
    share = np.array([weight for _, weight, _ in groups])
    shapes = min(group.losses.shapes for group, *_ in groups)
    found: dict[str, list[Miss]] = {}
    for measure, size, tokens in product(MEASURES, ASKED, BUDGETS):
        at = []
        for shape in range(shapes):
            each = fit.as_draws([(group, group.without[shape : shape + 1]) for group, *_ in groups])
            losses = each.losses(log_blocks_at(size, measure), DEPTHS, math.log(tokens))
            at.append(float(lowest((share @ losses)[None] / share.sum(), DEPTHS)[0][0]))
        err = math.sqrt((shapes - 1) / shapes * float(np.sum((np.array(at) - np.mean(at)) ** 2)))
        middle, drawn = best_depths(all_draws, size, tokens, measure)
        low, high = np.quantile(drawn, (LOW, HIGH)) - middle
        found.setdefault(measure, []).append(Miss(err, (high - low) / 2.0, low, high))
    return found


def beyond(series: Iterable[Losses], fitted: Fitted, draws: int) -> dict[tuple[str, str], list[Miss]]:
    """Best depths outside of what a fit has seen, by fits of each series without some sizes or budgets."""
    found: dict[tuple[str, str], list[Miss]] = {}
    for losses in series:
        truth = fitted.surface((losses.series,))
        for name, kept, sizes, budgets in CUTS:
            rows = kept(losses)
            if len(np.unique(losses.budget[rows])) < 3 or len(np.unique(losses.shape[rows])) < 8:
                continue
            part = losses.only(rows)
            predicted = fit.fit_evidence([part], draws).surface((losses.series,))
            seen = [tokens for tokens in budgets if tokens <= 1.2 * math.exp(losses.log_tokens.max())]
            for measure, size, tokens in product(MEASURES, sizes, seen):
                out = outside(size, _span(part.log_blocks)) + outside(tokens, _span(part.log_tokens))
                miss = miss_of(predicted, truth, size, tokens, measure, out)
                found.setdefault((name, measure), []).append(miss)
    return found


def _span(logs: Floats) -> tuple[float, float]:
    return float(np.exp(logs.min())), float(np.exp(logs.max()))


def against_law(fitted: Fitted, law: Callable[[float], float]) -> list[Miss]:
    """The best depths at equal blocks of another source, whose depth `law` gives for a size, by all series."""
    draws = fitted.surface(ALL)
    misses = []
    for size in ASKED:
        middle, each = best_depths(draws, size, BUDGETS[1], MEASURES[0])
        misses.append(Miss.of(math.log(law(size)) - middle, each, middle, moved=1.0))
    return misses


def spread_between_sources(sources: Iterable[Sequence[Miss]]) -> float:
    """The standard deviation of one source's log depth, beyond the errors of its fit, by the method of moments.

    Two sources differ by twice its variance and by the errors of the evidence's fit; theirs are far smaller. Each of
    the other sources counts alike, whatever it was asked.
    """
    apart = [np.mean([one.off**2 - one.own**2 for one in misses]) for misses in sources]
    return math.sqrt(max(float(np.mean(apart)), 0.0) / 2.0)


def growth(groups: Iterable[Sequence[Miss]]) -> float:
    """The standard deviation of log depth for each e-fold of extrapolation that the draws don't have by themselves.

    Draws lie apart the more the farther they are extrapolated; this is what errors have beyond it, by the method of
    moments, in the worst of some groups of predictions.

    Raises:
        UserError: nothing was extrapolated far enough to tell.
    """
    far = [[one for one in group if one.out > FAR] for group in groups]
    excess = [np.mean([(one.off**2 - one.own**2) / one.out**2 for one in group]) for group in far if group]
    if not excess:
        raise UserError(
            "The table has too few sizes or budgets to see how predictions fail outside of them; it takes eight shapes "
            "below 500 million parameters and above 60 million, and three budgets below 60 billion tokens and above 90."
        )
    return math.sqrt(max(float(max(excess)), 0.0))


def check(
    series: Sequence[Losses],
    fitted: Fitted,
    law: tuple[str, Callable[[float], float]],
    other: tuple[str, Losses, Fitted, Fitted],
    draws: int,
) -> tuple[Spread, pd.DataFrame]:
    """Predict all that can be left out: what follows for predictive intervals, and a row a check.

    Args:
        series: the losses of one lab.
        fitted: the fits of all of them.
        law: a source with its best depth at equal blocks.
        other: another lab with its losses, the fits of these alone, and the fits of both labs.
        draws: number of draws of the fits without some sizes or budgets.
    """
    cut = beyond(series, fitted, draws)
    sizes, tokens = (
        [misses for (name, _), misses in cut.items() if name.startswith(kind)]
        for kind in ("shapes", "tokens")
    )
    by_law = against_law(fitted, law[1])
    name, losses, alone, both = other
    everything, other_draws = fitted.surface(ALL), alone.surface([name])
    lab = between(everything, other_draws, _places(losses))
    spread = Spread(
        spread_between_sources([by_law, lab[MEASURES[0]]]),
        growth(sizes),
        growth(tokens),
        growth(lab.values()),
        fit.scale_spread(),
    )
    rows: list[dict[str, Any]] = []
    for known, asked in (("full rate", "half rate"), ("half rate", "full rate")):
        predicted = fitted.surface(SETS[known])
        for measure, misses in between(predicted, fitted.surface(SETS[asked])).items():
            rows.append(_row(f"best depth, {measure}", f"all runs of the {asked}", misses, spread))
        costs, scale = costs_between(predicted, fitted, SETS[asked])
        rows.append({**_row("cost of a shape, nats", f"all runs of the {asked}", costs), "scale": scale})
    for asked, names in SETS.items():
        kept = left_out_losses(fitted, names)
        rows.append(_row("loss of a shape, nats", f"each shape of the {asked}", kept))
        for measure, misses in without_each_shape(fitted, names).items():
            rows.append(_row(f"best depth, {measure}", f"each shape of the {asked} (jackknife)", misses))
    for (asked, measure), misses in cut.items():
        rows.append(_row(f"best depth, {measure}", asked, misses, spread))
    rows.append(_row("best depth, equal blocks", law[0], by_law, spread))
    for of, found in ((name, lab), ("Gemstones, by the other lab", between(other_draws, everything))):
        for measure, misses in found.items():
            rows.append(_row(f"best depth, {measure}", f"all runs of {of}", misses, spread))
    for label, which in ((f"each shape of {name}", True), ("each shape of Gemstones", False)):
        misses = left_out_losses(both, ALL, which)
        rows.append(_row("loss of a shape, nats", f"{label}, by fits of both labs", misses))
    return spread, pd.DataFrame(rows, columns=list(COLUMNS))


def _places(losses: Losses) -> dict[str, list[tuple[float, float]]]:
    """By measure the geometric mean of the sizes and the tokens of each budget."""
    runs, tokens = np.bincount(losses.budget), np.exp(losses.mean_log_tokens(losses.budget))
    sizes = zip(MEASURES, (losses.log_blocks, losses.log_total), strict=True)
    return {
        measure: list(
            zip(np.exp(np.bincount(losses.budget, logs) / runs).tolist(), tokens.tolist(), strict=True)
        )
        for measure, logs in sizes
    }


def _row(
    predicted: str, left_out: str, misses: Sequence[Miss], spread: Spread | None = None
) -> dict[str, Any]:
    """A check: root mean squares of the error and of half the own interval, and the shares of intervals that hold."""
    row: dict[str, Any] = {
        "predicted": predicted,
        "left_out": left_out,
        "count": len(misses),
        "error": _root_mean_square([one.off for one in misses]),
        "interval": _root_mean_square([one.own for one in misses]),
        "held": float(np.mean([one.held() for one in misses])),
    }
    if spread is not None:
        widths = [math.hypot(one.own, spread.sources * one.moved) for one in misses]
        row["predictive_interval"] = _root_mean_square(widths)
        row["held_predictive"] = float(np.mean([one.held(spread.sources) for one in misses]))
    return row


def _root_mean_square(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
