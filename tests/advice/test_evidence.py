"""The public evidence: its surface, its fits, what they predict and answer, and the commands that make it."""

import csv
import json
import math
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import output_of
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.advice.answer import laws
from shapelaw.advice.answer.costs import DEPTHS, evidence_of
from shapelaw.advice.evidence import checks, fit
from shapelaw.advice.evidence import losses as formula
from shapelaw.advice.evidence.predicted import by_budget, predicted, size_terms
from shapelaw.advice.evidence.public import MODELS, public_evidence, shipped_models
from shapelaw.errors import UserError
from shapelaw.fits.projection import first_depths, fit_forms
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.study import REFERENCE, published_json

CONTENT = published_json("evidence")
DRAWS = evidence_of(CONTENT).draws
assert isinstance(DRAWS, formula.Draws)


@given(st.sampled_from(formula.PENALTIES), st.floats(-3, 3), st.floats(-2, 2))
def test_a_penalty_is_zero_on_the_ridge_and_grows_away_from_it(kind: str, t: float, skew: float) -> None:
    near, far, ridge = (float(formula.penalty(kind, np.array([x]), skew)[0]) for x in (t, 1.5 * t, 0.0))
    assert ridge == 0.0
    assert near >= 0.0
    assert far >= near
    assert formula.penalty(kind, np.array([t]), 0.0) == pytest.approx(t**2, abs=1e-3)  # without skew a square


def test_a_power_law_is_a_line_where_its_exponent_is_zero() -> None:
    x = np.linspace(-2, 2, 5)
    assert formula.power(np.array(0.0), x) == pytest.approx(x, abs=1e-5)
    assert formula.power(np.array(0.5), x) == pytest.approx((1 - np.exp(-0.5 * x)) / 0.5)


def test_the_committed_draws_are_those_of_their_groups() -> None:
    groups = CONTENT["groups"]
    assert len(DRAWS) == sum(len(group["draws"]) for group in groups) == 400
    assert CONTENT["columns"] == list(formula.COLUMNS)
    assert {group["set"] for group in groups} == {"full rate", "half rate"}
    for series in {group["series"] for group in groups}:
        mine = [group for group in groups if group["series"] == series]
        for size in ("block", "total"):
            part = [group for group in mine if group["size"] == size]
            assert sum(group["weight"] for group in part) == pytest.approx(1.0, abs=0.01)
            assert sum(len(group["draws"]) for group in part) == 40


@pytest.mark.parametrize("tokens", [1e9, 3e10, 3e11, 1e13])
def test_the_best_of_a_larger_size_is_better_in_every_draw(tokens: float) -> None:
    """Down to a third of the smallest network and up to three times the largest."""
    grid = np.linspace(0.0, 6.2, 250)
    best = [
        formula.lowest(DRAWS.losses(np.full_like(grid, math.log(size)), grid, math.log(tokens)), grid)[1]
        for size in (7.5e6, 2e7, 6e7, 3e8, 1.3e9, 5.3e9)
    ]
    assert np.isfinite(best).all()
    assert (np.diff(best, axis=0) < 0).all()


def test_the_slope_goes_on_along_its_tangent_outside_of_the_tokens() -> None:
    """And where tokens are few, it and the ridge bend by a term of their own."""
    low, high = DRAWS.tokens
    at = np.log([1e8, 1e9]), np.log([16.0, 16.0])
    straight = DRAWS.by_levels()
    straight = replace(straight, values=straight.values * (np.array(formula.COLUMNS) != "c3"))
    for draws, end in ((DRAWS, high), (straight, low)):
        slopes = [np.diff(draws.losses(*at, math.log(end) + step)) for step in (-0.01, 0.0, 0.01)]
        assert slopes[0] - slopes[1] == pytest.approx(slopes[1] - slopes[2], abs=1e-4)
    assert DRAWS.losses(*at, math.log(formula.FEW_TOKENS)) == pytest.approx(
        straight.losses(*at, math.log(formula.FEW_TOKENS))
    )
    assert (DRAWS.losses(*at, math.log(2e9)) != straight.losses(*at, math.log(2e9))).all()


@given(st.floats(2.0, 4.5), st.floats(0.1, 2.0))
@settings(max_examples=20)
def test_the_lowest_of_a_parabola_is_found_between_points(place: float, bend: float) -> None:
    grid = np.linspace(1.0, 6.0, 26)
    at, loss = formula.lowest((bend * (grid - place) ** 2)[None], grid)
    assert at[0] == pytest.approx(place, abs=1e-6)
    assert loss[0] == pytest.approx(0.0, abs=1e-6)


# the depths and widths of Gemstones
_SHAPES = """
    23x256 3x768 27x256 13x384 11x512 12x512 13x512 14x512 16x512 71x256 36x384 80x256 7x1792 15x1280 45x768
    28x1024 8x2560 18x1792 36x1280 12x3072 27x2048 50x1536
"""
SHAPES = [tuple(map(int, shape.split("x"))) for shape in _SHAPES.split()]
SERIES = [name for names in fit.SETS.values() for name in names]


def best_at(size: float) -> float:
    """The log depth that is best in the made losses."""
    return math.log(22.0) + 0.35 * np.log(size / 4e8)


def made_table(
    scatter: float, seed: int = 0, budgets: tuple[float, ...] = (1e10, 3e10, 1e11)
) -> pd.DataFrame:
    """Losses with a ridge and a penalty of 0.03 t² nats; each shape is off by a number of its own at all budgets."""
    rows = product(SHAPES, budgets, SERIES)
    table = pd.DataFrame(
        [(*shape, tokens, series) for shape, tokens, series in rows],
        columns=["depth", "width", "tokens", "series"],
    )
    size, tokens = 15.0 * table["depth"] * table["width"] ** 2, table["tokens"] / 3e10
    loss = 2.5 + 0.6 * (size / 4e8) ** -0.18 * tokens**0.05 + 0.3 * tokens**-0.4
    loss += 0.03 * (np.log(table["depth"]) - best_at(size)) ** 2
    off = scatter * np.random.default_rng(seed).standard_normal(len(SHAPES))
    loss += off.repeat(len(budgets) * len(SERIES))
    return table.assign(block_params=size, total_params=size + 2 * 50304 * table["width"], loss=loss)


DEPTHS_TRIED = np.linspace(0.5, 5.5, 201)


def one_series(scatter: float, seed: int = 0) -> fit.Losses:
    return fit.losses_of(made_table(scatter, seed), "made")[0]


def drawn_depths(draws: formula.Draws, size: float) -> np.ndarray:
    """(D,) log depths that are best at equal blocks."""
    losses = draws.losses(np.full_like(DEPTHS_TRIED, math.log(size)), DEPTHS_TRIED, math.log(3e10))
    return formula.lowest(losses, DEPTHS_TRIED)[0]


def test_a_known_ridge_is_found_where_nothing_scatters() -> None:
    losses = one_series(0.0)
    assert (losses.shapes, losses.budgets) == (len(SHAPES), 3)
    assert formula.log_total(losses.log_blocks, losses.log_depth) == pytest.approx(losses.log_total, abs=1e-9)
    part = losses.only(losses.log_blocks < math.log(5e8))
    assert part.shapes == sum(15 * depth * width**2 < 5e8 for depth, width in SHAPES)
    group = fit.fit_group(losses, "nats square", "block")
    assert group.error < 1e-3
    fitted = fit.Fitted(((group, 1.0, fit.drawn(group, 10, np.random.default_rng(0))),))
    for size in (6e7, 4e8, 1.3e9):
        assert drawn_depths(fitted.surface(SERIES), size) == pytest.approx(best_at(size), abs=0.05)


def test_forms_that_fit_have_the_weight_and_all_find_the_ridge() -> None:
    fitted = fit.fit_evidence([one_series(0.003)], 40)
    weights = {(group.size, group.form): weight for group, weight, _ in fitted.of_series(SERIES[:1])}
    for size in ("block", "total"):
        assert sum(weight for (of, _), weight in weights.items() if of == size) == pytest.approx(1.0)
    in_nats = sum(
        weight for (size, form), weight in weights.items() if size == "block" and form.startswith("nats")
    )
    assert in_nats > 0.6  # as the losses were made
    depths = drawn_depths(fitted.surface(SERIES[:1]), 4e8)
    assert np.median(depths) == pytest.approx(best_at(4e8), abs=0.12)


def test_68_percent_intervals_hold_what_is_true() -> None:
    """Over made tables the interval of one form holds the true best depth in half to nearly all of them."""
    held = []
    for seed in range(12):
        group = fit.fit_group(one_series(0.008, seed), "nats square", "block")
        draws = fit.Fitted(((group, 1.0, fit.drawn(group, 60, np.random.default_rng(seed))),)).surface(SERIES)
        for size in (6e7, 4e8, 1.3e9):
            low, high = np.quantile(drawn_depths(draws, size), (0.16, 0.84))
            held.append(low <= best_at(size) <= high)
    assert 0.5 <= np.mean(held) <= 0.92


def test_a_shape_that_is_left_out_is_predicted() -> None:
    group = fit.fit_group(one_series(0.006), "nats square", "block")
    assert group.without.shape == (len(SHAPES), len(formula.COLUMNS))
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
    other = fit.losses_of_other(pd.DataFrame(rows, columns=columns), "another lab")
    both = one_series(0.0).joined(other)
    assert (both.shapes, both.budgets) == (len(SHAPES) + other.shapes, 3 + 5)
    assert both.tokens == pytest.approx((1e10, 1e11))  # of levels
    group = fit.fit_group(both, "nats square", "block")
    values = dict(
        zip(formula.COLUMNS, fit.drawn(group, 5, np.random.default_rng(0)).mean(axis=0), strict=True)
    )
    assert values["c3"] == pytest.approx(0.4, abs=0.05)
    assert math.exp(values["p0"]) == pytest.approx(
        0.03 * math.sqrt(1.5), rel=0.1
    )  # of a recipe in the middle
    assert group.without.shape == (both.shapes, len(formula.COLUMNS))


def test_a_wrong_table_is_a_sentence() -> None:
    table = made_table(0.0, budgets=(1e10,))
    for wrong, sentence in (
        (table.drop(columns="tokens"), "lacks tokens; it has the columns"),
        (table[table["series"] != "cool_end"], "has no series cool_end"),
        (table.assign(loss=[math.nan, *table["loss"][1:]]), "row 1: loss must be a finite number"),
    ):
        with pytest.raises(UserError, match=sentence):
            fit.losses_of(wrong, "made.csv")


@cache
def fitted() -> fit.Fitted:
    """By one form."""
    series = fit.losses_of(made_table(0.004), "made")
    groups = [fit.fit_group(losses, "nats square", "block") for losses in series]
    return fit.Fitted(
        tuple(
            (group, 1.0, fit.drawn(group, 20, np.random.default_rng(index)))
            for index, group in enumerate(groups)
        )
    )


def test_equal_totals_leave_less_for_the_blocks_of_wide_networks() -> None:
    blocks = checks.log_blocks_at(1e8, "equal total")
    assert (np.diff(blocks) > 0).all()
    assert (blocks < math.log(1e8)).all()
    assert checks.log_blocks_at(1e8, "equal blocks") == pytest.approx(np.full_like(DEPTHS, math.log(1e8)))


def test_series_of_the_same_networks_predict_each_other() -> None:
    found = checks.between(*(fitted().surface(fit.SETS[name]) for name in ("full rate", "half rate")))
    assert max(abs(one.off) for misses in found.values() for one in misses) < 0.1
    at_equal_blocks = found["equal blocks"]
    assert [one.moved for one in at_equal_blocks] == pytest.approx([1.0] * len(at_equal_blocks), abs=0.05)
    # an untied vocabulary holds the best depth of a small network
    assert min(one.moved for one in found["equal total"]) < 0.8


def test_costs_of_the_same_networks_come_out_as_said() -> None:
    misses, scale = checks.costs_between(
        fitted().surface(fit.SETS["full rate"]), fitted(), fit.SETS["half rate"]
    )
    assert scale == pytest.approx(1.0, abs=0.1)
    assert np.sqrt(np.mean([one.off**2 for one in misses])) < 0.01
    assert np.mean([one.held() for one in misses]) > 0.5


def test_left_out_shapes_are_held_about_as_often_as_said_and_a_jackknife_is_about_as_wide_as_the_draws() -> (
    None
):
    held = np.mean([one.held() for one in checks.left_out_losses(fitted(), fit.SETS["full rate"])])
    assert 0.55 <= held <= 0.85
    misses = checks.without_each_shape(fitted(), fit.SETS["half rate"])["equal blocks"]
    ratio = [one.off / one.own for one in misses]
    assert 0.3 < np.median(ratio) < 2.0


def test_another_source_that_is_off_by_a_known_amount_gives_its_spread() -> None:
    misses = checks.against_law(fitted(), lambda size: math.exp(best_at(size) + 0.4))
    assert [one.off for one in misses] == pytest.approx([0.4] * len(misses), abs=0.12)
    own = float(np.mean([one.own**2 for one in misses]))
    off = float(np.mean([one.off**2 for one in misses]))
    assert checks.spread_between_sources([misses]) == pytest.approx(math.sqrt((off - own) / 2.0))
    none = [checks.Miss(0.0, 0.0, 0.0, 0.0)]
    assert checks.spread_between_sources([misses, none]) == pytest.approx(math.sqrt((off - own) / 4.0))
    same = checks.against_law(
        fitted(),
        lambda size: math.exp(checks.best_depths(fitted().surface(SERIES), size, 3e10, "equal blocks")[0]),
    )
    assert checks.spread_between_sources([same]) == 0.0


def test_growth_is_what_errors_have_beyond_the_draws() -> None:
    one = checks.Miss(0.5, 0.3, -0.3, 0.3, 2.0)
    assert checks.growth([[one, one]]) == pytest.approx(0.4 / 2.0)
    near = checks.Miss(0.1, 0.3, -0.3, 0.3, 2.0)
    assert checks.growth([[near]]) == 0.0
    assert checks.growth([[near], [one]]) == pytest.approx(0.2)  # the worst of the groups
    with pytest.raises(UserError, match="too few sizes or budgets"):
        checks.growth([[checks.Miss(0.1, 0.3, -0.3, 0.3, 0.1)]])
    off = checks.Miss(0.35, 0.2, -0.2, 0.2, 0.0, 1.0)
    assert (off.held(), off.held(0.3)) == (False, True)  # a moved interval holds more


def with_times(table: pd.DataFrame) -> pd.DataFrame:
    """Times of a machine whose FLOP/s go as work^0.25 and depth^-0.4."""
    work = table["block_params"] + (50304 + 2 * 2048 * table["depth"]) * table["width"]
    seconds = work * 4e6 / (8 * work**0.25 * table["depth"] ** -0.4)
    return table.assign(vocab_size=50304, batch_tokens=4e6, nodes=8, seconds_per_step=seconds)


@pytest.mark.slow
def test_a_table_of_losses_becomes_draws_that_shape_reads(tmp_path: Path) -> None:
    losses = made_table(0.004, budgets=(1e10, 3e10, 5e10, 1e11, 2e11, 3e11))
    losses = losses[losses.groupby(["depth", "width"]).ngroup() % 2 == 0].reset_index(
        drop=True
    )  # fewer to leave out
    with_times(losses).to_csv(tmp_path / "losses.csv", index=False)
    given = ("losses.csv", "--out", "made", "--checks", "checks.csv", "--draws", 20)
    output_of("evidence", *given, cwd=tmp_path)
    content = json.loads((tmp_path / "made" / "evidence.json").read_text(encoding="utf-8"))
    assert sum(len(group["draws"]) for group in content["groups"]) == 5 * 20
    assert content["time"]["work"] == pytest.approx(0.25, abs=1e-3)
    assert content["time"]["depth"] == pytest.approx(-0.4, abs=1e-3)
    assert content["command"] == "shapelaw evidence losses.csv"
    rows = pd.read_csv(tmp_path / "checks.csv")
    assert set(rows["left_out"]) >= {
        "all runs of the half rate",
        "Levine et al. 2020, table 4a",
        "all runs of Bian et al. 2025, 20N",
        "each shape of Bian et al. 2025, 20N",
    }
    assert rows["held"].dropna().between(0, 1).all()
    assert content["range"]["tokens"][0] == 1610612736 < content["range"]["level_tokens"][0] == 10**10
    text = json.dumps(content)
    assert "loss" not in content["groups"][0]
    assert str(losses["loss"][0])[:8] not in text  # fits, not losses


RUNS = pd.read_csv(REFERENCE / "bian_morph.csv", comment="#")


@pytest.fixture(scope="module")
def told() -> pd.DataFrame:
    """What the evidence predicts of these runs."""
    return predicted(RUNS, public_evidence(), "x")


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_losses_that_are_as_told_leave_nothing_and_have_their_factor(
    factor: float, told: pd.DataFrame
) -> None:
    loss = 3.0 - 0.2 * np.log(RUNS["total_params"] / 1e8) - 0.1 * np.log(RUNS["tokens"] / 1e10)
    found = by_budget(predicted(RUNS.assign(loss=loss + factor * told["told"]), public_evidence(), "x"))
    assert found["factor"].to_numpy() == pytest.approx(factor)
    assert (found["size_alone"] > 0.01).all()
    if factor == 1.0:
        assert found["with_told"].to_numpy() == pytest.approx(0.0, abs=1e-9)
        assert (found["held"] == 1.0).all()


def test_runs_are_compared_at_equal_tokens(told: pd.DataFrame) -> None:
    """A constant for each number of tokens takes whatever they do to the loss."""
    part = RUNS[RUNS["budget"] == "20N"]
    terms = size_terms(part)
    assert terms.shape == (35, part["tokens"].nunique() + 1)
    shifted = RUNS.assign(loss=RUNS["loss"] + RUNS["tokens"].rank(method="dense"))
    after = by_budget(predicted(shifted, public_evidence(), "x"))
    pd.testing.assert_frame_equal(by_budget(told), after)


def test_what_was_shipped_says_where_each_row_comes_from() -> None:
    assert len(shipped_models(SizeAxis.TOTAL)) == 140
    head, *rows = MODELS.read_text(encoding="utf-8").splitlines()
    assert head.split(",")[-3:-1] == ["source", "tokens_source"]
    kinds = (".json", "config", "README", "metadata", "table", ".py")
    assert all(any(kind in row for kind in kinds) for row in rows)
    facts = list(csv.DictReader([head, *rows]))
    assert all(bool(one["tokens"] or one["origin"]) == bool(one["tokens_source"]) for one in facts)


LAW = laws.read_law(laws.PUBLISHED)


def written(folder: Path, depths: list[int], scatter: float = 0.0, err: float = 0.02) -> Path:
    rng = np.random.default_rng(0)
    width = [math.exp(4.8 + 0.1 * depth + scatter * rng.standard_normal()) for depth in depths]
    table = pd.DataFrame({"depth": depths, "width": width, "width_err": [err * one for one in width]})
    table.to_csv(folder / "transitions.csv", index=False)
    return folder


def test_the_published_law_says_where_it_was_measured() -> None:
    assert LAW.depths == (6, 30)
    assert LAW.sizes == pytest.approx((12 * 6 * 214**2, 12 * 30 * 824**2))
    assert LAW.forms[0].name == "line"
    assert LAW.count == 5
    assert laws.best_depth_at(LAW, 6e7) == pytest.approx(23.8, abs=0.3)


def test_depths_that_tie_have_the_best_depth_between_them(tmp_path: Path) -> None:
    """Loss rises as the square of the distance to the best depth, which is 0.005 N^0.6 layers, in log depth."""
    pairs = [(1, 2), (2, 4), (4, 8), (8, 12)]
    sizes = [(math.sqrt(one * other) / 0.005) ** (1 / 0.6) for one, other in pairs]
    width = [math.sqrt(size / (12 * depth)) for (depth, _), size in zip(pairs, sizes, strict=True)]
    table = pd.DataFrame(pairs, columns=["depth", "deeper_depth"])
    table.assign(width=width, width_err=[0.01 * one for one in width]).to_csv(
        tmp_path / "transitions.csv", index=False
    )
    law = laws.read_law(str(tmp_path))
    assert law.forms[0].name == "power law"
    for size in (2e4, 1e5, 5e5):
        assert laws.best_depth_at(law, size) == pytest.approx(0.005 * size**0.6, rel=0.03)


def test_points_off_their_law_have_a_small_chance_and_a_wider_interval(tmp_path: Path) -> None:
    (tmp_path / "on").mkdir()
    (tmp_path / "off").mkdir()
    on = laws.own_law(str(written(tmp_path / "on", [4, 8, 12, 16, 20])))
    off = laws.own_law(str(written(tmp_path / "off", [4, 8, 12, 16, 20], scatter=0.15)))
    assert off.p_value < 0.001 < 0.01 < on.p_value
    widths = [one.log_blocks[0] - one.log_blocks[2] for one in (on, off)]
    assert widths[1][60] > 3 * widths[0][60]


def test_three_transitions_hold_as_often_as_they_say() -> None:
    """The depth at twice the deepest of three, of lines and power laws: 68% intervals hold in 58 to 82%."""
    rng, held = np.random.default_rng(1), []
    depths = np.array([6.0, 12.0, 18.0])
    for truth in (lambda x: 4.9 + 0.056 * x, lambda x: 3.6 + 0.75 * np.log(x)):
        size = 12 * 36.0 * np.exp(2 * truth(np.array(36.0)))
        for seed in range(40):
            forms = fit_forms(depths, truth(depths) + 0.05 * rng.standard_normal(3), np.full(3, 0.05))
            at = np.log(first_depths(forms, lambda x, n=size: np.full_like(x, n), draws=400, seed=seed))
            low, middle, high = np.quantile(at, (0.16, 0.5, 0.84), method="nearest")
            wider = laws.few_points(3)
            held.append(middle - wider * (middle - low) <= math.log(36.0) <= middle + wider * (high - middle))
    assert 0.58 <= np.mean(held) <= 0.82
    assert laws.few_points(3) > laws.few_points(5) > laws.few_points(9) > 1.0


def test_a_witness_s_curves_are_ordered_and_rise() -> None:
    content = laws.transitions_content(LAW)
    low, middle, high = (np.array(content["log_blocks"][name]) for name in ("low", "middle", "high"))
    assert (low >= middle).all()
    assert (middle >= high).all()
    for curve in (low, middle, high):
        assert (np.diff(curve) >= 0).all()
