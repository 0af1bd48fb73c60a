"""Advice from the published law, against the paper's projections and by its properties."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import REPOSITORY

from shapelaw.errors import UserError
from shapelaw.fits.advice import Budget, advise, params_of, rounded_shape
from shapelaw.fits.projection import Form, fit_forms, standard_params

REFERENCE = REPOSITORY / "workflow" / "reference"


def published_forms() -> tuple[Form, ...]:
    table = pd.read_csv(REFERENCE / "levine2020_transitions.csv")
    return fit_forms(table["depth"], np.log(table["width"]), table["width_err"] / table["width"])


FORMS = published_forms()
budgets = st.builds(
    Budget,
    st.floats(1e6, 1e12),
    st.sampled_from([257, 2000]),
    st.sampled_from([0, 128, 2048]),
    st.booleans(),
    st.none() | st.integers(8, 256),
)


def test_gpt_3_s_sizes_get_the_depths_and_widths_of_table_1() -> None:
    """Of Levine et al. 2020, who take the embedding of the trained width off the size, where we take the advised."""
    for row in pd.read_csv(REFERENCE / "levine2020_projection.csv").itertuples():
        found = advise(FORMS, Budget(row.params, 50257, tied=True))
        assert found.depth == pytest.approx(row.optimal_depth, abs=1.0)
        assert found.width == pytest.approx(row.optimal_width, rel=0.05)
        assert found.depth_low <= found.depth <= found.depth_high
        assert found.width_low <= found.width <= found.width_high


@given(budgets, st.floats(1, 200))
@settings(max_examples=50, deadline=None)
def test_the_width_at_a_depth_spends_the_budget(budget: Budget, depth: float) -> None:
    width = float(budget.width_at(depth))
    spent = budget.fixed + budget.per_width * width + standard_params(depth, width)
    assert spent == pytest.approx(budget.params, rel=1e-9)


@given(budgets)
@settings(max_examples=30, deadline=None)
def test_the_rounded_shape_is_near_the_budget_and_has_whole_heads(budget: Budget) -> None:
    found = advise(FORMS, budget, draws=200)
    shape = rounded_shape(budget, found.depth)
    assert shape.width == shape.heads * shape.attention_dim
    assert shape.width % (128 if shape.width > 1100 else 8) == 0
    assert abs(math.log(params_of(shape, budget) / budget.params)) < (0.06 if shape.depth > 8 else 0.5)
    assert abs(math.log(shape.width / found.width)) < 0.3


def test_a_larger_budget_is_never_advised_to_be_shallower() -> None:
    depths = [advise(FORMS, Budget(size, 50257), draws=400).depth for size in np.geomspace(2e8, 1e12, 12)]
    assert depths == sorted(depths)


def test_a_large_vocabulary_takes_from_the_blocks_and_so_from_the_depth() -> None:
    few, many = (advise(FORMS, Budget(1e8, vocab), draws=400) for vocab in (257, 50257))
    assert many.block_params < few.block_params
    assert many.depth < few.depth


def test_below_the_law_s_first_size_one_layer_is_advised() -> None:
    found = advise(FORMS, Budget(1e5, 257), draws=200)
    assert (found.depth, found.depth_low, found.depth_high) == (1.0, 1.0, 1.0)


def test_a_factored_embedding_that_is_tied_has_a_map_back() -> None:
    """OPT-350M: V x 512 for the tokens and the classifier, maps of 512 x 1,024 to and from blocks, 2,050 positions."""
    budget = Budget(331_196_416, 50272, 2050, tied=True, rank=512)
    embedding = budget.fixed + budget.per_width * 1024
    assert embedding == 50272 * 512 + 2 * 512 * 1024 + 2050 * 1024
    assert embedding + 12 * 24 * 1024**2 == pytest.approx(331_196_416, rel=0.001)
    shape = rounded_shape(budget, 24.0)
    assert params_of(shape, budget) == pytest.approx(331_196_416, rel=0.03)


def test_a_tied_classifier_is_not_counted_twice() -> None:
    budget, untied = Budget(1e9, 50257, 1024, tied=True), Budget(1e9, 50257, 1024)
    shape = rounded_shape(budget, 24)
    assert params_of(shape, untied) - params_of(shape, budget) == shape.width * 50257
    gpt2 = Budget(124.4e6, 50257, 1024, tied=True)
    assert params_of(rounded_shape(gpt2, 12), gpt2) == 124_439_808  # 12 layers, width 768: GPT-2 itself


def test_what_can_t_be_advised_is_a_sentence() -> None:
    with pytest.raises(UserError, match="has 51,463,168 parameters, and the budget is 1,000,000"):
        advise(FORMS, Budget(1e6, 50257, rank=1024))
    with pytest.raises(UserError, match="needs at least 3 transitions"):
        advise((), Budget(1e9, 50257))
