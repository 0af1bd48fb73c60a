"""A real Slurm on this machine, for the tests of this folder: started where it can be, else they are skipped."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

NODE = Path(__file__).parent / "slurm-node.sh"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slurm)


def is_up() -> bool:
    if shutil.which("scontrol") is None:
        return False
    return subprocess.run(["scontrol", "ping"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session", autouse=True)
def slurm() -> Iterator[None]:
    """One node with 16 CPUs and two GPUs of its own imagination; partitions `gpu` and `preempt`."""
    if is_up():
        yield
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip(
            "a Slurm for tests is set up as root on Debian (tests/slurm/slurm-node.sh); none is running"
        )
    environment = {**os.environ, "KILLWAIT": "5"}
    done = subprocess.run(["bash", NODE, "up"], capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        pytest.fail(f"Slurm does not start:\n{done.stdout}{done.stderr}")
    yield
    subprocess.run(["bash", NODE, "down"], check=True, capture_output=True)
