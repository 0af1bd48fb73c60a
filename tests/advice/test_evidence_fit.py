"""The fits of public losses, on losses whose surface is known."""

import math

import numpy as np
import pandas as pd
import pytest
from public_losses import SERIES, SHAPES, best_at, made_table

from shapelaw.advice.evidence.fit import (
    Fitted,
    Losses,
    drawn,
    fit_evidence,
    fit_group,
    losses_of,
    losses_of_other,
)
from shapelaw.advice.evidence.losses import COLUMNS, Draws, log_total, lowest
from shapelaw.errors import UserError

GRID = np.linspace(0.5, 5.5, 201)


def one_series(scatter: float, seed: int = 0) -> Losses:
    return losses_of(made_table(scatter, seed), "made")[0]


def best_depths(draws: Draws, size: float) -> np.ndarray:
    """(D,) log depths that are best at equal blocks."""
    losses = draws.losses(np.full_like(GRID, math.log(size)), GRID, math.log(3e10))
    return lowest(losses, GRID)[0]


def test_a_known_ridge_is_found_where_nothing_scatters() -> None:
    losses = one_series(0.0)
    assert (losses.shapes, losses.budgets) == (len(SHAPES), 3)
    assert log_total(losses.log_blocks, losses.log_depth) == pytest.approx(losses.log_total, abs=1e-9)
    part = losses.only(losses.log_blocks < math.log(5e8))
    assert part.shapes == sum(15 * depth * width**2 < 5e8 for depth, width in SHAPES)
    group = fit_group(losses, "nats square", "block")
    assert group.error < 1e-3
    fitted = Fitted(((group, 1.0, drawn(group, 10, np.random.default_rng(0))),))
    for size in (6e7, 4e8, 1.3e9):
        assert best_depths(fitted.surface(SERIES), size) == pytest.approx(best_at(size), abs=0.05)


def test_forms_that_fit_have_the_weight_and_all_find_the_ridge() -> None:
    fitted = fit_evidence([one_series(0.003)], 40)
    weights = {(group.size, group.form): weight for group, weight, _ in fitted.of_series(SERIES[:1])}
    for size in ("block", "total"):
        assert sum(weight for (of, _), weight in weights.items() if of == size) == pytest.approx(1.0)
    in_nats = sum(
        weight for (size, form), weight in weights.items() if size == "block" and form.startswith("nats")
    )
    assert in_nats > 0.6  # as the losses were made
    depths = best_depths(fitted.surface(SERIES[:1]), 4e8)
    assert np.median(depths) == pytest.approx(best_at(4e8), abs=0.12)


def test_68_percent_intervals_hold_what_is_true() -> None:
    """Over made tables the interval of one form holds the true best depth in half to nearly all of them."""
    held = []
    for seed in range(12):
        group = fit_group(one_series(0.008, seed), "nats square", "block")
        draws = Fitted(((group, 1.0, drawn(group, 60, np.random.default_rng(seed))),)).surface(SERIES)
        for size in (6e7, 4e8, 1.3e9):
            low, high = np.quantile(best_depths(draws, size), (0.16, 0.84))
            held.append(low <= best_at(size) <= high)
    assert 0.5 <= np.mean(held) <= 0.92


def test_a_shape_that_is_left_out_is_predicted() -> None:
    group = fit_group(one_series(0.006), "nats square", "block")
    assert group.without.shape == (len(SHAPES), len(COLUMNS))
    assert 0.004 < group.error < 0.02
    assert 0.004 < group.scale < 0.02
    assert len(group.densities) == len(SHAPES)


def test_the_runs_of_another_lab_say_what_few_tokens_change() -> None:
    """Its levels, its scale of costs and a ridge that is steeper in log tokens below ten billion, by 0.4, come back."""
    rng, rows = np.random.default_rng(0), []
    for tokens, budget in ((2e9, "a"), (4e9, "a"), (8e9, "b"), (2e10, "b"), (4e10, "b")):
        for depth in (3, 5, 8, 12, 18, 26):
            width = 64 * round(math.sqrt(tokens / 40.0 / (12.0 * depth)) / 64 * rng.uniform(0.9, 1.1))
            total = 12.0 * depth * width**2 + 2 * 50432 * width
            size = 12.0 * depth * width**2
            best = best_at(size) + 0.4 * min(math.log(tokens / 1e10), 0.0)
            loss = 3.0 + 0.6 * (size / 4e8) ** -0.18 - 0.2 * math.log(tokens / 1e10)
            loss += 1.5 * 0.03 * (math.log(depth) - best) ** 2
            rows.append((budget, depth, width, 50432, total, tokens, loss))
    columns = ["budget", "depth", "width", "vocab_size", "total_params", "tokens", "loss"]
    other = losses_of_other(pd.DataFrame(rows, columns=columns), "another lab")
    both = one_series(0.0).joined(other)
    assert (both.shapes, both.budgets) == (len(SHAPES) + other.shapes, 3 + 5)
    assert both.tokens == pytest.approx((1e10, 1e11))  # of levels
    group = fit_group(both, "nats square", "block")
    values = dict(zip(COLUMNS, drawn(group, 5, np.random.default_rng(0)).mean(axis=0), strict=True))
    assert values["c3"] == pytest.approx(0.4, abs=0.05)
    assert math.exp(values["p0"]) == pytest.approx(
        0.03 * math.sqrt(1.5), rel=0.1
    )  # of a recipe in the middle
    assert group.without.shape == (both.shapes, len(COLUMNS))


def test_a_wrong_table_is_a_sentence() -> None:
    table = made_table(0.0, budgets=(1e10,))
    for wrong, sentence in (
        (table.drop(columns="tokens"), "lacks tokens; it has the columns"),
        (table[table["series"] != "cool_end"], "has no series cool_end"),
        (table.assign(loss=[math.nan, *table["loss"][1:]]), "row 1: loss must be a finite number"),
    ):
        with pytest.raises(UserError, match=sentence):
            losses_of(wrong, "made.csv")
