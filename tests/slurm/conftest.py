"""A real Slurm of one node, for the tests of this folder: started where it can be, else they are skipped."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from small import COMMANDS

NODE = Path(__file__).parent / "slurm-node.sh"
LAB = Path(
    "/var/lib/slurm-lab"
)  # everything of it; another Slurm of this machine is never asked for anything
NOT_HERE = 3  # exit code


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slurm)


def is_up() -> bool:
    """Whether it runs already, as after `slurm-node.sh up`."""
    return (
        "slurmctld running"
        in subprocess.run(["bash", NODE, "status"], capture_output=True, text=True, check=True).stdout
    )


@pytest.fixture(scope="session", autouse=True)
def slurm() -> Iterator[None]:
    """One node with 16 CPUs and two GPUs of its own imagination; partitions `gpu` and `preempt`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_LAB", str(LAB))
        patch.setenv("SLURM_CONF", str(LAB / "etc/slurm.conf"))
        others = [folder for folder in os.environ["PATH"].split(os.pathsep) if folder != str(COMMANDS)]
        patch.setenv("PATH", os.pathsep.join([str(LAB / "bin"), *others]))
        if is_up():
            yield
            return
        done = subprocess.run(
            ["bash", NODE, "up"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "KILLWAIT": "5"},
        )
        if done.returncode == NOT_HERE:
            pytest.skip(done.stderr.strip())
        try:
            assert done.returncode == 0, f"Slurm does not start:\n{done.stdout}{done.stderr}"
            yield
        finally:
            subprocess.run(["bash", NODE, "down"], check=True, capture_output=True)
