"""A pack: its models share a family, leave without disturbing the others, and go on from its state."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from memorizer_options import OPTIONS, RUN, losses_of, varied

from shapelaw.training.memorizer_pack import MemorizerPack
from shapelaw.training.schedule import packed_rate

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("one_thread")


def test_models_of_two_families_are_no_pack() -> None:
    with pytest.raises(ValueError, match="one family"):
        MemorizerPack([RUN, OPTIONS["full values"]], CPU, compiled=False)


def test_the_mean_loss_of_a_model_is_that_since_its_last_reading() -> None:
    runs = varied(RUN)
    each, rarely = MemorizerPack(runs, CPU, compiled=False), MemorizerPack(runs, CPU, compiled=False)
    losses = losses_of(each, 6)
    for _ in range(4):
        rarely.step()
    assert rarely.take_losses([2, 0]) == pytest.approx(losses[:4, [2, 0]].mean(0))
    for _ in range(2):
        rarely.step()
    assert rarely.take_losses([0, 1]) == pytest.approx([losses[4:, 0].mean(), losses[:, 1].mean()])
    assert rarely.steps == [6, 6, 6]
    assert rarely.rates == [packed_rate(run, 5) for run in runs]


def test_a_model_that_leaves_changes_nothing_for_the_others() -> None:
    runs = [replace(run, precision="float64") for run in varied(RUN)]
    whole, fewer = MemorizerPack(runs, CPU, compiled=False), MemorizerPack(runs, CPU, compiled=False)
    expected = losses_of(whole, 100)
    losses_of(fewer, 37)  # in the middle of a block of the order
    fewer.keep([0, 2])
    np.testing.assert_allclose(losses_of(fewer, 63), expected[37:, [0, 2]], rtol=0, atol=1e-12)


def test_a_pack_goes_on_from_its_state_bit_for_bit() -> None:
    runs = varied(RUN)
    whole, halved = MemorizerPack(runs, CPU, compiled=False), MemorizerPack(runs, CPU, compiled=False)
    expected = losses_of(whole, 90)
    losses_of(halved, 41)
    later = MemorizerPack(runs, CPU, compiled=False)
    later.load(halved.state())
    assert np.array_equal(losses_of(later, 49), expected[41:])
