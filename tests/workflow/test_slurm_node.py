"""The Slurm of tests/slurm leaves the machine's own alone: its packages, its configuration, its ports."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from small import REPOSITORY

NODE = REPOSITORY / "tests/slurm/slurm-node.sh"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="the node script refuses another user than root first")


def node(path: Path, *arguments: str, lab: Path) -> subprocess.CompletedProcess[str]:
    """The script where only the programs of a folder are."""
    return subprocess.run(
        [shutil.which("bash") or "bash", NODE, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(path), "SLURM_LAB": str(lab)},
    )


def programs(folder: Path, *more: str) -> Path:
    """A folder with the few programs that the script begins with, and others that say that they were called."""
    folder.mkdir()
    for name in ("hostname", "id", "cat", "basename", "grep", "mkdir"):
        (folder / name).symlink_to(shutil.which(name) or name)
    for name in more:
        (folder / name).write_text(f"#!/bin/sh\n: > {folder}/{name}.called\n")
        (folder / name).chmod(0o755)
    return folder


@as_root
def test_without_its_programs_it_says_so_and_installs_nothing(tmp_path: Path) -> None:
    path = programs(tmp_path / "bin", "apt-get", "munged")
    done = node(path, "up", lab=tmp_path / "lab")
    assert done.returncode == 3
    assert done.stderr == (
        "The Slurm of the tests needs slurmctld, which is not installed; on Debian: "
        "bash tests/slurm/slurm-node.sh install\n"
    )
    assert not list(path.glob("*.called"))
    assert not (tmp_path / "lab").exists()


def test_another_user_than_root_is_refused(tmp_path: Path) -> None:
    path = programs(tmp_path / "bin", "munged")
    (path / "id").unlink()
    (path / "id").write_text("#!/bin/sh\necho 1000\n")
    (path / "id").chmod(0o755)
    done = node(path, "up", lab=tmp_path / "lab")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "The Slurm of the tests needs root: its node changes users and makes devices.\n"
    assert not list(path.glob("*.called"))


def test_status_and_down_touch_no_slurm_that_is_not_theirs(tmp_path: Path) -> None:
    """A cluster that this machine belongs to answers scancel and sinfo too."""
    path = programs(tmp_path / "bin", "scancel", "sinfo", "kill")
    (path / "rm").symlink_to(shutil.which("rm") or "rm")
    run = tmp_path / "lab" / "run"
    run.mkdir(parents=True)
    (run / "slurmctld.pid").write_text(str(os.getpid()))  # after a restart of the machine, another process
    assert "slurmctld -" in node(path, "status", lab=tmp_path / "lab").stdout
    assert node(path, "down", lab=tmp_path / "lab").returncode == 0
    assert not list(path.glob("*.called"))


@pytest.mark.skipif(shutil.which("srun") is None, reason="Slurm is not installed")
def test_its_configuration_names_no_place_of_the_machines_slurm(tmp_path: Path) -> None:
    """What the daemons are told: files of the private folder, and no port of Slurm's own."""
    lab = tmp_path / "lab"
    environment = {**os.environ, "SLURM_LAB": str(lab), "GPUS": "0"}
    subprocess.run(["bash", NODE, "configure"], check=True, env=environment)
    for name in ("slurm.conf", "slurmdbd.conf", "gres.conf"):
        for line in (lab / "etc" / name).read_text().splitlines():
            value = line.partition("=")[2].removeprefix("socket=")
            assert not value.startswith("/") or Path(value).is_relative_to(lab), line
    told = (lab / "etc/slurm.conf").read_text() + (lab / "etc/slurmdbd.conf").read_text()
    ports = {line.partition("=")[2] for line in told.splitlines() if "Port=" in line}
    assert len(ports) == 3
    assert not ports & {"6817", "6818", "6819"}
    assert str(lab / "etc/slurm.conf") in (lab / "bin/srun").read_text()
    assert subprocess.run(["bash", NODE, "env"], capture_output=True, text=True, env=environment).stdout == (
        f'export SLURM_CONF={lab}/etc/slurm.conf PATH={lab}/bin:"$PATH"\n'
    )
