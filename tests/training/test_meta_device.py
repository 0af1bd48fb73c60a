"""A training step of each kind of model, along the way that a GPU takes, on PyTorch's device without numbers.

A tensor made on the host is found without a card.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from memorizer_options import OPTIONS, of_other_shapes, varied
from small import small_completep, small_llama, small_run
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from trained import Stores

from shapelaw.models import functions
from shapelaw.specs.degrees import DegreeRun, ProductShape, Target
from shapelaw.specs.making import make_shape
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.specs.runs import Run
from shapelaw.training import memorizer_pack
from shapelaw.training.degree_pack import DegreePack
from shapelaw.training.hardware import Ranks
from shapelaw.training.memorizer_pack import MemorizerPack
from shapelaw.training.optimizer import Batches
from shapelaw.training.trainer import Runtime, Trainer

META = torch.device("meta")
COPIES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}


class MixedDevices(Exception):
    """An operation has tensors of two devices; the message names it and them."""


class OneDevice(TorchDispatchMode):
    """While it is on, an operation whose tensors lie on two devices raises `MixedDevices`; copies may.

    It is stricter than a GPU in numbers of no dimension and in indices, which may lie on the host: each makes the
    host and the device wait for one another.

    Attributes:
        operations: how many operations had a tensor on the meta device, to show that there were some.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = [part for part in tree_leaves((args, kwargs)) if isinstance(part, torch.Tensor)]
        devices = {part.device.type for part in given}
        if len(devices) > 1 and func not in COPIES:
            found = ", ".join(f"{part.device.type} {list(part.shape)}" for part in given)
            raise MixedDevices(f"{func} of {found}")
        self.operations += META.type in devices
        return func(*args, **(kwargs or {}))


RECIPE = {"log_every": 1000, "evaluate_every": 1000, "steps": 1000, "gradient_clip": 0.5, "dropout": 0.1}


def decoder_of(small: Callable[..., Run], **options: Any) -> Run:
    """A run whose first steps nothing reads: there are no numbers to read."""
    run = small(**RECIPE)
    return replace(run, shape=make_shape(2, 16, 2, 257, 32, **options)) if options else run


DECODERS = {
    "gpt2": decoder_of(small_run),
    "low ranks": decoder_of(small_run, embedding_rank=5, positional_rank=3),
    "patches": decoder_of(small_run, patch_embedding=True),
    **{f"linear attention of degree {k}": decoder_of(small_run, attention_degree=k) for k in (2, 3)},
    "llama": decoder_of(small_llama),
    "completep": decoder_of(small_completep),
}


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be compiled on a GPU runs as it is written; losses are not read, and autocast is unknown there."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(functions, "_compiled", lambda: functions.loss_and_gradient_unscattered)
    monkeypatch.setattr(Trainer, "_read_losses", lambda _: None)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)


def train_decoder(run: Run, stores: Stores, folder: Path, compiled: bool = True) -> None:
    """Two steps of two micro-batches, with tokens that stay on the device, then one without."""
    runtime = Runtime("meta", micro_batch=run.training.batch_size // 2, compile=compiled)
    trainer = Trainer(run, stores, folder, runtime, Ranks(0, 1, META))
    assert all(p.device == META for p in trainer.model.parameters())
    for resident in (True, True, False):
        trainer.batches = Batches(stores[0], run.shape.context_length, META, resident)
        trainer.step()


def train_pack(pack: MemorizerPack | DegreePack) -> None:
    """Two steps, and one after a model has left."""
    assert all(p.device == META for p in pack.parameters.values())
    pack.step()
    pack.step()
    pack.keep([1])
    pack.step()


def train_memorizers(runs: list[MemorizationRun]) -> None:
    train_pack(MemorizerPack(runs, META, compiled=True))


@pytest.mark.parametrize(
    ("name", "compiled"), [*((name, True) for name in DECODERS), ("gpt2", False), ("llama", False)]
)
def test_a_decoder_makes_nothing_on_the_host(
    name: str, compiled: bool, stores: Stores, tmp_path: Path
) -> None:
    with OneDevice() as seen:
        train_decoder(DECODERS[name], stores, tmp_path, compiled)
    assert seen.operations > 100


@pytest.mark.parametrize("name", OPTIONS)
def test_a_pack_of_memorizers_makes_nothing_on_the_host(name: str) -> None:
    with OneDevice() as seen:
        train_memorizers(of_other_shapes(OPTIONS[name]))
    assert seen.operations > 100


@pytest.mark.parametrize(
    ("target", "rank", "outputs", "mixture"), [("separable", 8, 1, True), ("digits", 0, 10, False)]
)
def test_a_pack_of_product_networks_makes_nothing_on_the_host(
    target: Target, rank: int, outputs: int, mixture: bool
) -> None:
    network = ProductShape((2, 3), 8, 64 if target == "digits" else 4, outputs, mixture=mixture)
    runs = [DegreeRun(network, target, rank, 50, seed, 32, 1e-2) for seed in (0, 1)]
    with OneDevice() as seen:
        train_pack(DegreePack(runs, META))
    assert seen.operations > 100


def test_a_tensor_on_the_host_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch's rows are picked by places on the host, which the meta device alone lets pass."""
    rows = memorizer_pack._rows

    def picked(table: Tensor, at_PB: Tensor) -> Tensor:
        return rows(table, torch.zeros(at_PB.shape, dtype=torch.long))

    monkeypatch.setattr(memorizer_pack, "_rows", picked)
    runs = varied(OPTIONS["a context each"])
    train_memorizers(runs)
    with OneDevice(), pytest.raises(MixedDevices, match=r"aten\.index_select"):
        train_memorizers(runs)
