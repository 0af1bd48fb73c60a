"""What one run of a process leaves to the next."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
import torch

from shapelaw.specs.shapes import make_shape
from shapelaw.training.hardware import micro_batch_size, start_afresh


class Held:
    """Something that holds itself, as an optimizer and its hooks do."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    """The collector as it was."""
    yield
    gc.unfreeze()


def test_what_a_run_has_left_goes_when_the_next_one_starts() -> None:
    gc.disable()  # nobody else collects it
    try:
        start_afresh(torch.device("cpu"))
        left = weakref.ref(Held())
        assert left() is not None
        start_afresh(torch.device("cpu"))
        assert left() is None
    finally:
        gc.enable()


def test_a_further_start_does_not_look_through_all_modules_again() -> None:
    start_afresh(torch.device("cpu"))
    assert len(gc.get_objects()) < gc.get_freeze_count() / 10


@pytest.mark.parametrize(("batch_size", "size"), [(16, 16), (32, 16), (24, 12), (512, 16), (1, 1)])
def test_on_a_cpu_at_most_2048_tokens_go_through_the_network_at_once(batch_size: int, size: int) -> None:
    shape = make_shape(2, 64, 2, 257, 128)
    assert micro_batch_size(shape, batch_size, torch.device("cpu"), "float32") == size


def test_large_activations_go_in_smaller_parts() -> None:
    shape = make_shape(48, 4096, 2, 50257, 256)
    size = micro_batch_size(shape, 64, torch.device("cpu"), "float32")
    assert shape.activation_bytes(size, 4) <= 4 * 2**30 < shape.activation_bytes(2 * size, 4)
