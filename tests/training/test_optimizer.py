"""Our optimizer against torch.optim's Adam and Muon, bit for bit; rates, data order and windows by the step."""

import copy
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch
from memorizer_options import RUN

from shapelaw.corpora.token_store import TokenStore, gather_windows
from shapelaw.models.decoder import Decoder, ParameterGroup, initialise
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Training
from shapelaw.training.optimizer import (
    Batches,
    Optimizer,
    dropout_seed,
    learning_rate,
    packed_rate,
    window_starts,
)
from shapelaw.training.trainer import make_optimizer

SHAPES = [(7, 5), (33,), (4, 3, 2), (64, 16)]
BETAS = (0.8, 0.95)
DECAY = 0.1
FACTOR = 0.3  # of the second group's learning rate
OF_EPS = 1e5  # of its epsilon


def drawn() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in SHAPES]


def ours_of(parameters: list[torch.Tensor], decoupled: bool) -> Optimizer:
    groups = [ParameterGroup(parameters[:2], DECAY), ParameterGroup(parameters[2:], 0.0, FACTOR, OF_EPS)]
    return Optimizer(groups, decoupled, 1e-2, BETAS)


def theirs_of(parameters: list[torch.Tensor], decoupled: bool) -> torch.optim.Optimizer:
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    groups = [
        {"params": parameters[:2], "weight_decay": DECAY},
        {"params": parameters[2:], "weight_decay": 0.0, "eps": OF_EPS * 1e-8},
    ]
    return kind(groups, lr=1e-2, betas=BETAS, fused=True)


def take_gradients(parameters: list[torch.Tensor], step: int) -> None:
    generator = torch.Generator().manual_seed(100 + step)
    for p in parameters:
        p.grad = torch.randn(p.shape, generator=generator)


@pytest.mark.parametrize("decoupled", [False, True])
def test_it_is_torchs_to_the_last_bit_with_its_state(decoupled: bool) -> None:
    mine, others = drawn(), drawn()
    ours, theirs = ours_of(mine, decoupled), theirs_of(others, decoupled)
    for step in range(20):
        ours.learning_rate = 1e-2 / (step + 1)
        for group, factor in zip(theirs.param_groups, (1.0, FACTOR), strict=True):
            group["lr"] = factor * (1e-2 / (step + 1))
        for parameters in (mine, others):
            take_gradients(parameters, step)
        ours.step()
        theirs.step()
        if step in (1, 10):  # what one has saved the other goes on from
            one, other = copy.deepcopy(ours.state_dict()), copy.deepcopy(theirs.state_dict())
            ours, theirs = ours_of(mine, decoupled), theirs_of(others, decoupled)
            ours.load_state_dict(other)
            theirs.load_state_dict(one | {"param_groups": theirs.state_dict()["param_groups"]})
    for place, (p, q) in enumerate(zip(mine, others, strict=True)):
        assert torch.equal(p, q)
        kept = ours.state_dict()["state"][place]
        assert all(torch.equal(kept[name], value) for name, value in theirs.state[q].items())


def test_the_state_of_other_parameters_is_refused() -> None:
    parameters = drawn()
    take_gradients(parameters, 5)
    ours = ours_of(parameters, True)
    ours.step()
    fewer = Optimizer([ParameterGroup(parameters[:2], DECAY)], True, 1e-2, BETAS)
    reversed_ = Optimizer([ParameterGroup(parameters[::-1], DECAY)], True, 1e-2, BETAS)
    for other in (fewer, reversed_):
        with pytest.raises(ValueError, match="belongs to other parameters"):
            other.load_state_dict(ours.state_dict())


def test_muon_steps_every_map_of_the_blocks_as_torchs_does_and_adamw_the_rest() -> None:
    training = Training(100, 8, optimizer="muon", learning_rate=1e-2, weight_decay=DECAY)
    shape = make_shape(2, 16, 4, 53, 8, block="llama", kv_heads=2)
    mine, other = Decoder(shape), Decoder(shape)
    for model in (mine, other):
        initialise(model, 0)
    ours = make_optimizer(mine, training)
    parts = {  # queries, keys and values as parameters of their own
        parameter: [
            torch.nn.Parameter(part.clone())
            for part in parameter.detach().split([16, 8, 8] if "qkv" in name else len(parameter))
        ]
        for name, parameter in other.blocks.named_parameters()
        if parameter.ndim == 2
    }
    rest = [p for p in other.parameters() if p not in parts]
    vectors = {"params": [p for p in rest if p.ndim == 1], "weight_decay": 0.0}
    options = {"lr": training.learning_rate, "weight_decay": DECAY}
    theirs = (
        torch.optim.Muon([*chain(*parts.values())], adjust_lr_fn="match_rms_adamw", **options),
        torch.optim.AdamW([{"params": [p for p in rest if p.ndim == 2]}, vectors], fused=True, **options),
    )
    generator = torch.Generator().manual_seed(0)
    for step in range(5):
        for p, q in zip(mine.parameters(), other.parameters(), strict=True):
            p.grad = q.grad = torch.randn(p.shape, generator=generator)
            row = 0
            for part in parts.get(q, []):
                part.grad = q.grad[row : row + len(part)]
                row += len(part)
        if step == 2:  # a stopped run goes on from its checkpoint
            kept = copy.deepcopy(ours.state_dict())
            ours = make_optimizer(mine, training)
            ours.load_state_dict(kept)
        for optimizer in (ours, *theirs):
            optimizer.step()
    for p, q in zip(mine.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, torch.cat(parts[q]) if q in parts else q)


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


def test_tokens_on_the_device_give_the_windows_of_the_memory_map_up_to_the_last_that_fits(
    stores: tuple[TokenStore, TokenStore],
) -> None:
    store = stores[0]
    mapped, resident = (Batches(store, 32, CPU, here) for here in (False, True))
    assert mapped.windows == len(store.tokens) - 32
    starts = np.array([0, 5, 5, mapped.windows - 1])
    expected = torch.from_numpy(gather_windows(store, starts, 32))
    for batches in (mapped, resident):
        found = batches.gather(starts)
        assert found.dtype == torch.int64
        assert torch.equal(found, expected)
