"""Product networks in one pack go the way that they go alone; their targets, checked by quadrature."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss

from shapelaw.jobs.resources import in_packs
from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.training import degree_pack

NETWORK = ProductShape((3, 3), 8, 4, 1)
RUNS = [
    DegreeRun(NETWORK, "separable", rank, 50, seed, 32, rate)
    for rank, seed, rate in ((1, 0, 1e-2), (8, 0, 1e-2), (8, 1, 3e-3), (1, 1, 1e-2))
]


def losses_of(runs: list[DegreeRun]) -> np.ndarray:
    """Training losses of 20 steps, and the held-out ones then: [21, P]."""
    pack, rows = degree_pack.DegreePack(runs, torch.device("cpu")), []
    for _ in range(20):
        pack.step()
        rows.append(pack.take_losses(range(len(runs))))
    return np.array([*rows, [pack.evaluate(model).loss for model in range(len(runs))]])


def test_targets_seeds_and_rates_share_a_pack_and_nothing_else() -> None:
    assert [len(pack) for pack in in_packs(RUNS, 4)] == [4]
    together = losses_of(RUNS)
    for column, run in zip(together.T, RUNS, strict=True):
        np.testing.assert_allclose(column, losses_of([run])[:, 0], rtol=0, atol=1e-5)
    assert abs(together[-1, 0] - together[-1, 1]) > 1e-3  # R tells targets of one seed apart


def values_and_weights(rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A target of two inputs on a grid of Gauss-Hermite points [100, 100], and the points' weights."""
    points, weights = hermegauss(100)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), -1).reshape(-1, 2)
    target = degree_pack.draw_separable(2, rank, seed)
    exact = type(target)(target.directions.double(), target.phases.double(), target.scale)
    return exact(torch.from_numpy(grid)).numpy().reshape(100, 100), weights / weights.sum()


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(0, 1000))
def test_variance_singular_values_and_least_errors_are_those_of_the_function(rank: int, seed: int) -> None:
    """Eckart and Young on a grid of quadrature points: cut the singular value decomposition, and measure."""
    values, weights = values_and_weights(rank, seed)
    joint, target = np.outer(weights, weights), degree_pack.draw_separable(2, rank, seed)
    mean = (joint * values).sum()
    assert (joint * (values - mean) ** 2).sum() == pytest.approx(1, abs=1e-5)
    left, middle, right = np.linalg.svd(np.sqrt(joint) * values)
    np.testing.assert_allclose(degree_pack.singular_values(target), middle[:rank], atol=2e-4)
    for place, error in enumerate(degree_pack.least_errors(target)):
        approximation = (left[:, :place] * middle[:place]) @ right[:place]
        assert ((np.sqrt(joint) * values - approximation) ** 2).sum() == pytest.approx(error, abs=2e-4)


def run(seed: int, degree: int, target: str = "separable") -> DegreeRun:
    """A small run."""
    sizes = (64, 10, 0) if target == "digits" else (6, 1, 2)
    network = ProductShape((degree,), 4, *sizes[:2])
    return DegreeRun(network, target, sizes[2], 10, seed, batch_size=5)


def until_converged(steps: int = 4000) -> DegreeRun:
    network = ProductShape((1,), 2, 4, 1)  # too small for its target
    return DegreeRun(network, "separable", 8, steps, 0, 32, 1e-2, evaluate_every=20, until_converged=True)


def trained(pack: degree_pack.DegreePack, steps: int | None = None) -> tuple[list[float], dict[str, Any]]:
    """The rates of a pack of one, and its record at its end or after some steps."""
    rates, ended = [], []
    while not ended and (steps is None or len(rates) < steps):
        pack.step()
        rates.append(pack.rates[0])
        ended = pack.ended()
    return rates, ended[0].numbers if ended else {}


def test_a_network_trains_until_half_of_its_steps_gain_little_and_then_lets_its_rate_fall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(degree_pack, "LEAST", 1 / 16)  # with more this network gains to its last step
    whole = degree_pack.DegreePack([until_converged()], torch.device("cpu"))
    rates, record = trained(whole)
    done, begin = len(rates), degree_pack.converged_at(whole.rows[0], 250)
    assert record["converged"]
    assert record["steps_done"] == done < 2500
    assert begin is not None
    assert rates[70 : begin + 1] == [1e-2] * (begin - 69)
    assert rates[-1] == pytest.approx(1e-2 / (done - begin))
    assert done == pytest.approx(1.25 * begin, abs=20)
    # stopped and resumed, bit for bit
    first, second = (degree_pack.DegreePack([until_converged()], torch.device("cpu")) for _ in range(2))
    begun, _ = trained(first, begin + 25)
    second.load(copy.deepcopy(first.state()))
    rest, again = trained(second)
    assert begun + rest == rates
    assert again["final_loss"] == record["final_loss"]


def test_a_network_that_gains_to_its_last_step_has_not_converged() -> None:
    def rows(falls: float) -> list[list[float]]:
        return [[20.0 * place, 1.0, 1e-2, falls**place, math.nan] for place in range(1, 17)]

    assert degree_pack.converged_at(rows(0.96), 0) == 40
    assert (
        degree_pack.converged_at(rows(0.96), 50) is None
    )  # from then on half of the steps are two evaluations
    assert degree_pack.converged_at(rows(0.9), 0) is None
    _, record = trained(degree_pack.DegreePack([until_converged(60)], torch.device("cpu")))
    assert record["steps_done"] == 60
    assert not record["converged"]


def test_signs_are_classes_of_the_same_inputs_and_numbers_have_errors() -> None:
    numbers = DegreeRun(ProductShape((2,), 8, 4, 1), "separable", 4, 20, 0, 32)
    signs = DegreeRun(ProductShape((2,), 8, 4, 2), "signs", 4, 20, 0, 32)
    one, other = (degree_pack.draw_batch(run, degree_pack.make_task(run), 3) for run in (numbers, signs))
    assert torch.equal(one.inputs, other.inputs)
    assert torch.equal((one.labels > 0).long(), other.labels)
    _, of_numbers = trained(degree_pack.DegreePack([numbers], torch.device("cpu")))
    _, of_signs = trained(degree_pack.DegreePack([signs], torch.device("cpu")))
    assert 0 < of_numbers["mean_error"] < of_numbers["final_loss"] ** 0.5 < of_numbers["largest_error"]
    assert 0.4 < of_signs["final_accuracy"] < 1
    assert "mean_error" not in of_signs


@pytest.mark.parametrize("target", ["separable", "digits"])
def test_batches_are_functions_of_seed_and_step(target: str) -> None:
    def batch(seed: int, degree: int, step: int) -> torch.Tensor:
        chosen = run(seed, degree, target)
        return degree_pack.draw_batch(chosen, degree_pack.make_task(chosen), step).inputs

    assert batch(0, 2, 3).shape == (5, 64 if target == "digits" else 6)
    assert torch.equal(batch(0, 2, 3), batch(0, 3, 3))
    assert not torch.equal(batch(0, 2, 3), batch(0, 2, 4))
    assert not torch.equal(batch(0, 2, 3), batch(1, 2, 3))
    one, other = run(0, 2, target), run(0, 3, target)
    assert torch.equal(
        degree_pack.held_out(one, degree_pack.make_task(one)).labels,
        degree_pack.held_out(other, degree_pack.make_task(other)).labels,
    )


def test_no_image_is_in_both_halves_and_all_are_in_one() -> None:
    digits = degree_pack.load_digits(0)
    rows = [{tuple(row) for row in half.inputs.tolist()} for half in (digits.train, digits.test)]
    assert not rows[0] & rows[1]
    assert len(digits.train.labels) + len(digits.test.labels) == 1797
    assert digits.train.inputs.std().item() == pytest.approx(1, abs=1e-3)
    assert set(digits.test.labels.tolist()) == set(range(10))
