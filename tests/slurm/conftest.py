"""A real Slurm of one node, for the tests of this folder: started where it can be, else they are skipped."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

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


def end_job_steps(folder: Path) -> None:
    """End the job steps of a folder whose node went down under them, which nobody else ends."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "slurm-jobstep" in words and any(word.startswith(str(folder)) for word in words):
            process.kill()


@pytest.fixture(scope="session", autouse=True)
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One node with 16 CPUs and two GPUs of its own imagination; partitions `gpu` and `preempt`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_LAB", str(LAB))
        patch.setenv("SLURM_CONF", str(LAB / "etc/slurm.conf"))
        patch.setenv("PATH", str(LAB / "bin"), prepend=os.pathsep)
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
            end_job_steps(tmp_path_factory.getbasetemp())
