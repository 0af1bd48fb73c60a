"""The committed evidence, laws of transitions (published, one's own, a witness), and the answers they give."""

import csv
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shapelaw.advice.answer import laws
from shapelaw.advice.evidence.public import MODELS, shipped_models
from shapelaw.fits.projection import first_depths, fit_forms
from shapelaw.specs.sizes import SizeAxis


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
