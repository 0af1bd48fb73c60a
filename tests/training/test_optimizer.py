"""Our optimizer against torch.optim's Adam and Muon: the same numbers, bit for bit, and the same state."""

import copy
from itertools import chain

import pytest
import torch

from shapelaw.models.decoder import Decoder, ParameterGroup, initialise
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Training
from shapelaw.training.optimizer import Optimizer
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
