"""What the evidence tells of public runs that it has not seen, against what was measured.

Runs are compared where they had equal tokens: a constant for each number of tokens, one slope in log size for each
budget, and the told cost of the shape. What is left are the errors of the told costs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize  # type: ignore[import-untyped]

from shapelaw.advice.answer.allocation import FLOPS_A_PARAMETER, Law, law_of_losses
from shapelaw.advice.answer.costs import Evidence, Question, ask
from shapelaw.advice.answer.sizes import Counting
from shapelaw.advice.evidence.fit import Fitted, as_draws
from shapelaw.advice.evidence.losses import Floats, LeastSquares, least_squares
from shapelaw.errors import UserError, reason_of
from shapelaw.fits.inputs import require_columns
from shapelaw.specs.sizes import SizeAxis

ROBUST = 0.01  # nats beyond which a residual counts less than by its square
COLUMNS = ("name", "budget", "depth", "width", "vocab_size", "tied", "total_params", "tokens", "loss")


def read_public(path: Path) -> pd.DataFrame:
    """A CSV of public runs, in which lines that begin with # are comments.

    Raises:
        UserError: it can't be read.
    """
    try:
        return pd.read_csv(path, comment="#")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} can't be read as a CSV ({reason_of(error)}).") from error


def predicted(runs: pd.DataFrame, evidence: Evidence, source: str) -> pd.DataFrame:
    """The runs with `told`, the cost of their shape at their own size and tokens, its 68% ends `low` and `high`, the
    `best_depth` told, and `measured`, their loss above that of the best shape, all costs in nats.

    Args:
        runs: `COLUMNS`; runs of a `budget` share a slope in log size, and those of equal `tokens` a constant.
        evidence: the fits.
        source: the table's name in messages.

    Raises:
        UserError: a column is missing, or a vocabulary leaves no room for blocks.
    """
    require_columns(runs, list(COLUMNS), source)
    return _measured(_with_told(runs, evidence))


def without_each_shape(runs: pd.DataFrame, evidence: Evidence, fitted: Fitted) -> pd.DataFrame:
    """As `predicted`, each shape's costs by the fits without its runs.

    Args:
        runs: as `predicted` takes them; they are the other lab's of `fitted`, in its order of shapes.
        evidence: with the draws of `fitted`, whose intervals count.
        fitted: the fits, of this lab's runs as well.
    """
    shapes = runs.groupby(["depth", "width"]).ngroup()
    parts = []
    for shape, part in runs.groupby(shapes):
        at = int(shape) - int(shapes.max()) - 1  # its shapes are the last ones
        draws = as_draws(
            [(group, np.tile(group.without[at], (len(values), 1))) for group, _, values in fitted.groups]
        )
        told = _with_told(part, replace(evidence, draws=draws))
        parts.append(_with_told(part, evidence).assign(told=told["told"]))
    return _measured(pd.concat(parts).loc[runs.index])


def _with_told(runs: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    columns = ["told", "low", "high", "best_depth"]
    told = pd.DataFrame([_told(run, evidence) for run in runs.itertuples()], runs.index, columns)
    return runs[list(COLUMNS)].join(told)


def _measured(table: pd.DataFrame) -> pd.DataFrame:
    groups = [
        part.assign(measured=part["told"] + _fit(part["loss"] - part["told"], size_terms(part)).left)
        for _, part in table.groupby("budget", sort=False)
    ]
    return pd.concat(groups)


def _told(run: Any, evidence: Evidence) -> tuple[float, float, float, float]:
    total, counting = float(run.total_params), Counting(SizeAxis.TOTAL, int(run.vocab_size), bool(run.tied))
    costs = ask(evidence, Question(total, counting, float(run.tokens), evidence.clock))
    blocks = total - (1 if counting.tied else 2) * counting.vocab_size * int(run.width)
    cost = costs.at(int(run.depth), blocks)
    return cost.value, cost.low, cost.high, costs.best.depth


def allocation_law(table: pd.DataFrame, name: str) -> Law:
    """The law of the best size by E + A N^-alpha + B D^-beta plus the told costs, fitted to the runs of `predicted`.

    Args:
        table: of `predicted`; N are all parameters.
        name: whose runs they are.
    """
    size, tokens = np.log(table["total_params"].to_numpy()), np.log(table["tokens"].to_numpy())
    middles = float(size.mean()), float(tokens.mean())
    left = (table["loss"] - table["told"]).to_numpy(dtype=np.float64)

    def residuals(theta: Floats) -> Floats:
        terms = [theta[1 + i] - theta[3 + i] * (logs - middles[i]) for i, logs in enumerate((size, tokens))]
        return np.asarray(left - np.exp(theta[0]) - np.exp(terms[0]) - np.exp(terms[1]))

    starts = product((math.log(1.5), math.log(2.2)), (0.2, 0.5), (0.2, 0.5))
    fits = [
        optimize.least_squares(residuals, (least, -0.5, -0.5, alpha, beta), loss="soft_l1", f_scale=ROBUST)
        for least, alpha, beta in starts
    ]
    _, *factors, alpha, beta = min(fits, key=lambda fit: float(fit.cost)).x
    scaled = [
        math.exp(f + power * middle) for f, power, middle in zip(factors, (alpha, beta), middles, strict=True)
    ]
    flops = FLOPS_A_PARAMETER * np.exp(size + tokens)
    return law_of_losses(name, (alpha, beta), scaled, (float(flops.min()), float(flops.max())))


def size_terms(part: pd.DataFrame) -> Floats:
    """(n, g + 1) columns of a budget's runs: one for each number of tokens, and log size about its mean there."""
    constants = pd.get_dummies(part["tokens"]).to_numpy(dtype=np.float64)
    log_size = np.log(part["total_params"].to_numpy(dtype=np.float64))
    means = constants @ ((constants.T @ log_size) / constants.sum(axis=0))
    return np.column_stack([constants, log_size - means])


def _fit(losses: pd.Series, terms: Floats) -> LeastSquares:
    return least_squares(terms, losses.to_numpy(dtype=np.float64))


def by_budget(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each budget of the runs of `predicted`.

    `size_alone` and `with_told` are the residuals of the losses without and with the told costs, in nats; `factor` is
    what the told costs would have to be multiplied by, with its standard error; `held` is the share of runs whose
    measured cost lies in the 68% interval. Of the `deeper` runs, those deeper than the best depth told, `deeper_held`
    is the same and `deeper_error` the mean of measured less told costs.
    """
    rows = []
    for budget, part in table.groupby("budget", sort=False):
        terms, told = size_terms(part), part["told"].to_numpy(dtype=np.float64)
        freed = _fit(part["loss"], np.column_stack([terms, told]))
        held, deeper = part["measured"].between(part["low"], part["high"]), part["depth"] > part["best_depth"]
        rows.append(
            {
                "budget": budget,
                "runs": len(part),
                "least_tokens": part["tokens"].min(),
                "most_tokens": part["tokens"].max(),
                "size_alone": _fit(part["loss"], terms).std,
                "with_told": _fit(part["loss"] - part["told"], terms).std,
                "factor": freed.values[-1],
                "factor_err": freed.errors[-1],
                "held": held.mean(),
                "deeper": int(deeper.sum()),
                "deeper_held": held[deeper].mean(),
                "deeper_error": (part["measured"] - part["told"])[deeper].mean(),
            }
        )
    return pd.DataFrame(rows)
