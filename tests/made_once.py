"""What several workers of a test session need and one of them makes."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder for reading and copying, which `make` fills once a session: the other workers wait for it.

    A `make` that failed is tried again by the next worker, in a new folder.
    """
    base = temporary.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # of all workers of a session
    done = root / f"{name}.done"
    with (root / f"{name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder = temporary.mktemp(name)
            make(folder)
            done.write_text(str(folder))
    return Path(done.read_text())
