"""Shared by the training tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trained import RUN, Stores, train


@pytest.fixture(scope="session")
def undisturbed(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with dropout when nothing happens to it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train(RUN, stores, folder)
    return folder


@pytest.fixture
def traced() -> Iterator[None]:
    """torch.compile without its C++, which the compiled loss has a test with: it traces and differentiates."""
    import torch

    from shapelaw.models import functions

    def choose(backend: object) -> None:
        torch.compiler.set_default_backend(backend)
        functions._compiled.cache_clear()
        torch.compiler.reset()

    before = torch.compiler.get_default_backend()
    choose("aot_eager")
    yield
    choose(before)
