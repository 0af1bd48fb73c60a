"""Learning rates, data order and windows as functions of the step."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from memorizer_options import RUN

from shapelaw.corpora.token_store import TokenStore, gather_windows
from shapelaw.specs.runs import Training
from shapelaw.training.optimizer import Batches, dropout_seed, learning_rate, packed_rate, window_starts


def test_the_learning_rate_is_that_of_torch_schedulers() -> None:
    run = replace(RUN, steps=400, learning_rate=1e-3)
    optimizer = torch.optim.Adam([torch.zeros(1)], lr=1e-3)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=20)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=380)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[20])
    for step in range(400):
        assert packed_rate(run, step) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9, abs=1e-12)
        optimizer.step()
        schedule.step()


def test_the_rate_of_a_language_model_warms_up_and_falls_to_zero() -> None:
    training = Training(steps=110, batch_size=8, learning_rate=2e-3, warmup_steps=10)
    assert [learning_rate(training, step) for step in (1, 5, 10)] == pytest.approx([2e-4, 1e-3, 2e-3])
    assert learning_rate(training, 60) == pytest.approx(1e-3)  # half-way down a cosine
    assert learning_rate(training, 35) == pytest.approx(2e-3 * (1 + 2**-0.5) / 2)
    assert learning_rate(training, 110) == pytest.approx(0, abs=1e-12)
    constant = Training(steps=110, batch_size=8, learning_rate=2e-3, warmup_steps=10, schedule="constant")
    rates = [learning_rate(constant, step) for step in (5, 10, 60, 110)]
    assert rates == pytest.approx([1e-3, 2e-3, 2e-3, 2e-3])
    at_once = Training(steps=100, batch_size=8, learning_rate=2e-3, warmup_steps=0)
    assert 0.999 * 2e-3 < learning_rate(at_once, 1) < 2e-3


def test_a_redecayed_rate_is_zero_at_every_test_loss_and_back_after_it() -> None:
    training = Training(
        steps=250, batch_size=8, learning_rate=1.0, warmup_steps=10, schedule="redecayed", evaluate_every=100
    )
    rates = {step: learning_rate(training, step) for step in range(1, 251)}
    assert [step for step, rate in rates.items() if rate == 0] == [100, 200, 250]
    assert [rates[step] for step in (11, 80, 90, 101, 180, 190, 201, 240, 245)] == pytest.approx(
        [1.0, 1.0, 0.5, 1.0, 1.0, 0.5, 1.0, 1.0, 0.5]
    )


def test_windows_are_a_function_of_seed_and_step_and_spread_evenly() -> None:
    starts = window_starts(3, 7, 1000, 5000)
    assert np.array_equal(starts, window_starts(3, 7, 1000, 5000))
    assert np.array_equal(starts[:100], window_starts(3, 7, 1000, 100))
    assert not np.array_equal(starts, window_starts(3, 8, 1000, 5000))
    assert not np.array_equal(starts, window_starts(4, 7, 1000, 5000))
    assert starts.min() >= 0
    tenths = np.bincount(starts // 100, minlength=10)
    assert len(tenths) == 10
    assert abs(tenths - 500).max() < 5 * 500**0.5


def test_every_part_of_every_step_has_its_own_dropout() -> None:
    seeds = {dropout_seed(seed, step, part) for seed in range(3) for step in range(50) for part in range(4)}
    assert len(seeds) == 600
    assert max(seeds) < 2**63  # as PyTorch's generators take it
    assert dropout_seed(1, 2, 3) == dropout_seed(1, 2, 3)


CPU = torch.device("cpu")


def test_a_window_may_begin_anywhere_up_to_the_last_that_fits(stores: tuple[TokenStore, TokenStore]) -> None:
    batches = Batches(stores[0], 32, CPU)
    assert batches.windows == len(stores[0].tokens) - 32
    (last,) = batches.gather(np.array([batches.windows - 1])).tolist()
    assert last == stores[0].tokens[-33:].tolist()


def test_tokens_on_the_device_give_the_windows_of_the_memory_map(
    stores: tuple[TokenStore, TokenStore],
) -> None:
    store = stores[0]
    mapped, resident = (Batches(store, 32, CPU, here) for here in (False, True))
    starts = np.array([0, 5, 5, mapped.windows - 1])
    expected = torch.from_numpy(gather_windows(store, starts, 32))
    for batches in (mapped, resident):
        found = batches.gather(starts)
        assert found.dtype == torch.int64
        assert torch.equal(found, expected)
