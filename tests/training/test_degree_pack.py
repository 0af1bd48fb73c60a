"""Product networks of several targets in one pack: each goes the way that it goes alone."""

import numpy as np
import torch

from shapelaw.scheduling.jobs import in_packs
from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.training.degree_pack import DegreePack

NETWORK = ProductShape((3, 3), 8, 4, 1)
RUNS = [
    DegreeRun(NETWORK, "separable", rank, 50, seed, 32, rate)
    for rank, seed, rate in ((1, 0, 1e-2), (8, 0, 1e-2), (8, 1, 3e-3), (1, 1, 1e-2))
]


def losses_of(runs: list[DegreeRun]) -> np.ndarray:
    """Training losses of 20 steps, and the held-out ones then: [21, P]."""
    pack, rows = DegreePack(runs, torch.device("cpu")), []
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
