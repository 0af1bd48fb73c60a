"""What one run of a process leaves to the next."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
import torch

from shapelaw.training.hardware import start_afresh


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
