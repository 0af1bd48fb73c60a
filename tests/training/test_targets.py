"""Targets of known separation rank, checked by quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss

from shapelaw.degrees import DegreeRun, ProductShape
from shapelaw.training.targets import (
    draw_inputs,
    draw_separable,
    held_out_inputs,
    rank_within,
    singular_values,
)


def values_and_weights(rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A target of two inputs on a grid of Gauss-Hermite points [100, 100], and the points' weights."""
    points, weights = hermegauss(100)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), -1).reshape(-1, 2)
    target = draw_separable(2, rank, seed)
    exact = type(target)(target.directions.double(), target.phases.double(), target.scale)
    return exact(torch.from_numpy(grid)).numpy().reshape(100, 100), weights / weights.sum()


@given(st.integers(1, 6), st.integers(0, 1000))
def test_variance_and_singular_values_are_those_of_the_function(rank: int, seed: int) -> None:
    values, weights = values_and_weights(rank, seed)
    joint = np.outer(weights, weights)
    mean = (joint * values).sum()
    assert (joint * (values - mean) ** 2).sum() == pytest.approx(1, abs=1e-5)
    found = np.linalg.svd(np.sqrt(joint) * values, compute_uv=False)[:rank]
    np.testing.assert_allclose(singular_values(draw_separable(2, rank, seed)), found, atol=2e-4)


@given(st.integers(1, 40), st.integers(0, 100))
def test_the_rank_within_an_error_falls_from_r_to_none(rank: int, seed: int) -> None:
    target = draw_separable(16, rank, seed)
    ranks = [rank_within(target, error) for error in (1e-9, 0.01, 0.1, 0.5, 1e6)]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] == rank
    assert ranks[-1] == 0


def test_inputs_are_functions_of_seed_and_step() -> None:
    def run(seed: int, degree: int) -> DegreeRun:
        network = ProductShape((degree,), 4, 6, 1)
        return DegreeRun("block_degree", network, "separable", 2, 10, seed, batch_size=5)

    assert draw_inputs(run(0, 2), 3).shape == (5, 6)
    assert torch.equal(draw_inputs(run(0, 2), 3), draw_inputs(run(0, 3), 3))
    assert not torch.equal(draw_inputs(run(0, 2), 3), draw_inputs(run(0, 2), 4))
    assert not torch.equal(draw_inputs(run(0, 2), 3), draw_inputs(run(1, 2), 3))
    assert torch.equal(held_out_inputs(run(0, 2)), held_out_inputs(run(0, 3)))
