"""The fit of the cost model: it finds constants that it knows, tells its error, and what is wrong with its input."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import LAPTOP, listed

from shapelaw.errors import UserError
from shapelaw.fits.cost import fit_cost
from shapelaw.fits.inputs import read_table
from shapelaw.specs.cost import CostModel, run_seconds
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run, Training

GRID = [(1, 64), (2, 352), (4, 48), (4, 352), (8, 32), (8, 248), (16, 32), (16, 176)]


def runs_of(model: CostModel, noise: float = 0.0, seeds: int = 1) -> pd.DataFrame:
    """Runs of a grid that take what the model says, with errors of that standard deviation of the log."""
    random = np.random.default_rng(0)
    rows = []
    for depth, width in GRID:
        shape = make_shape(depth, width, 2, 2000, 128)
        for seed in range(seeds):
            seconds = model.step_seconds(shape, 128) * math.exp(noise * random.standard_normal())
            rows.append(
                {"depth": depth, "width": width, "heads": 2, "vocab_size": 2000, "context_length": 128}
                | {"batch_size": 128, "steps": 3000, "seed": seed}
                | {"tokens_per_second": 128 * 128 / seconds, "wall_seconds": 3000 * seconds + 7}
            )
    return pd.DataFrame(rows)


models = st.builds(
    CostModel,
    overhead=st.floats(5e-4, 5e-3),
    per_layer=st.floats(1e-4, 1e-3),
    per_number=st.floats(1e-12, 1e-11),
    per_flop=st.floats(1e-15, 1e-13),
    extra_seconds=st.just(7.0),
    factor=st.just(1.0),
)


@settings(max_examples=8)
@given(models)
def test_times_that_follow_the_model_give_its_constants(model: CostModel) -> None:
    fit = fit_cost(runs_of(model), "made")
    assert fit.model.extra_seconds == pytest.approx(7.0, rel=1e-6)
    assert fit.errors["total_ratio"] == pytest.approx(1.0, abs=1e-4)
    assert fit.errors["worst_error"] < 1e-3
    for depth, width in [(3, 100), (32, 128), (12, 500)]:  # shapes that it has not seen
        shape = make_shape(depth, width, 2, 2000, 128)
        assert fit.model.step_seconds(shape, 128) == pytest.approx(model.step_seconds(shape, 128), rel=2e-3)


def test_noise_gives_an_error_of_its_size_and_one_slow_run_hardly_matters() -> None:
    model = CostModel(1e-3, 3e-4, 4e-12, 4e-15, 7.0, 1.0)
    fit = fit_cost(runs_of(model, 0.1, seeds=3), "made")
    assert 1.05 < fit.model.factor < 1.35
    assert fit.errors["total_ratio"] == pytest.approx(1.0, abs=0.2)
    table = runs_of(model)
    table.loc[3, "tokens_per_second"] /= 10  # someone else was at the machine
    shape = make_shape(8, 128, 2, 2000, 128)
    slowed = fit_cost(pd.concat([runs_of(model), table]), "made").model
    assert slowed.step_seconds(shape, 128) == pytest.approx(model.step_seconds(shape, 128), rel=0.1)


def test_the_laptops_runs_give_a_plausible_machine() -> None:
    """They were stopped and slowed by other work: the model must tell the undisturbed majority."""
    fit = fit_cost(read_table(LAPTOP), str(LAPTOP))
    assert len(fit.runs) == 46
    assert fit.errors["typical_error"] < 0.5
    assert fit.errors["total_ratio"] < 0.8  # of the hours that others took too
    # of (2, 136): three runs in 450 to 570 s, by two cores
    run = Run("wiki", make_shape(2, 136, 2, 257, 128), Training(4000, 16), 0)
    assert 350 < run_seconds(run, fit.model) < 700


@pytest.mark.parametrize(("change", "sentence"), listed("fits/mistakes.yaml", "costs"))
def test_what_is_wrong_with_the_runs_is_told(change: dict[str, float], sentence: str) -> None:
    table = runs_of(CostModel(1e-3, 3e-4, 4e-12, 4e-15, 0.0, 1.0)).assign(**change)
    with pytest.raises(UserError, match=sentence):
        fit_cost(table, "t.csv")


def test_too_few_shapes_and_missing_columns_are_told() -> None:
    table = runs_of(CostModel(1e-3, 3e-4, 4e-12, 4e-15, 0.0, 1.0))
    with pytest.raises(UserError, match="runs of 4 shapes; the fit of 4 constants needs at least 5"):
        fit_cost(table[:4], "t.csv")
    with pytest.raises(UserError, match="lacks tokens_per_second"):
        fit_cost(table.drop(columns="tokens_per_second"), "t.csv")
