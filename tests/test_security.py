"""What an attacker could use: code in model files, open ports, paths that lead out, secrets in records and logs."""

import json
import os
import pickle
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch
from project import ColdProject, Project, key_of, records_of
from small import PYTHON, SCRIPTS, small_run
from trained import Stores, checkpoints_of, command, train

from shapelaw.training import checkpoint

# --- no code in data

# what of ruff's rules from flake8-bandit could run code that comes as data: eval, pickles, YAML's objects, shells;
# beside them torch.distributed unpickles objects that come from the network
RULES = "S102,S301,S302,S307,S506,S602,S604,S605"
OTHERS = re.compile(
    r"(?<!safetensors\.)torch\.(jit\.)?load\((?!.*weights_only=True)|(allow_pickle|trust_remote_code)=(?!False)"
    r"|(unsafe|full)_load(_all)?\(|\w+_object(_list)?\(|import (joblib|cloudpickle)"
)
CALLS = """
    pickle.loads(x) marshal.loads(x) pd.read_pickle(path) yaml.load(text,yaml.Loader) yaml.unsafe_load(text) eval(text)
    exec(text) os.system(text) subprocess.run(text,shell=True) torch.load(path) torch.load(path,weights_only=False)
    torch.load(path,weights_only=flag) numpy.load(path,allow_pickle=True) dist.broadcast_object_list(box)
    datasets.load_dataset(name,trust_remote_code=True)
"""


def dangers(folder: Path) -> list[str]:
    """The lines of sources below a folder that could run code which comes as data."""
    line = f"ruff check --isolated --select {RULES} --ignore-noqa --output-format concise".split()
    done = subprocess.run([PYTHON, "-m", *line, folder], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = [one for one in done.stdout.splitlines() if ".py:" in one]
    for path in folder.rglob("*.py"):
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        found += [f"{path}:{number}: {text}" for number, text in lines if OTHERS.search(text)]
    return found


def test_no_source_runs_code_that_comes_as_data(tmp_path: Path) -> None:
    assert dangers(SCRIPTS) == []
    calls = CALLS.split()
    imports = "import pickle, marshal, os, subprocess, datasets, yaml, torch, numpy, pandas as pd"
    (tmp_path / "code.py").write_text("\n".join([imports, *calls]))
    assert {int(one.split(":")[1]) for one in dangers(tmp_path)} == set(range(2, 2 + len(calls)))


class Bomb:
    """An object whose unpickling makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, int]]:
        return os.mkdir, (str(self.mark), 0o700)


def as_torch_saves(state: dict[str, object], path: Path) -> None:
    torch.save(state, path)


def with_a_right_sum(state: dict[str, object], path: Path) -> None:
    checkpoint.save_checkpoint(path.parent, int(path.stem[5:]), state)


def in_the_old_format(state: dict[str, object], path: Path) -> None:
    torch.save(state, path, _use_new_zipfile_serialization=False)


def as_a_bare_pickle(state: dict[str, object], path: Path) -> None:
    path.write_bytes(pickle.dumps(state))


def test_code_in_a_checkpoint_is_refused_and_never_run(
    stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is set aside, the one before is tried, and the run goes its way; it leaves JSON and Parquet."""
    mark, run = tmp_path / "it ran", small_run(steps=10, warmup_steps=0, evaluate_every=10)
    folder, forms = (
        tmp_path / "results",
        (as_torch_saves, with_a_right_sum, in_the_old_format, as_a_bare_pickle),
    )
    checkpoints = checkpoints_of(folder, run)
    checkpoints.mkdir(parents=True)
    paths = [checkpoints / f"step-{step:010}.pt" for step in range(1, 5)]
    for form, path in zip(forms, paths, strict=True):
        form({"identity": Bomb(mark)}, path)
    train(run, stores, folder)
    assert not mark.exists()
    said = capsys.readouterr().err
    assert all(f"checkpoint {path} can't be read (" in said for path in paths)
    assert "training begins again at the first step" in said
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {
        *("spec.json", "history.parquet", "summary.json")
    }
    # the bomb is a live one
    as_torch_saves({"identity": Bomb(mark)}, tmp_path / "x.pt")
    torch.load(tmp_path / "x.pt", weights_only=False)
    assert mark.is_dir()


# --- no open ports


def listening(process: psutil.Process) -> set[str]:
    """The addresses on which a process and all below it listen."""
    found = set()
    for each in [process, *process.children(recursive=True)]:
        connections = each.net_connections(kind="inet")
        found |= {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}
    return found


@pytest.mark.slow
def test_training_on_several_devices_listens_on_the_loopback_alone(stores: Stores, tmp_path: Path) -> None:
    """Two processes, on CPUs here. And they stop, with a checkpoint, when their launcher is killed."""
    run = small_run(steps=100_000)
    training = command(run, stores, tmp_path, "--checkpoint-minutes", "0.001")
    folder = checkpoints_of(tmp_path, run)
    line = [PYTHON, str(SCRIPTS / "launch.py"), "--processes", "2", *training]
    started = subprocess.Popen(line, stderr=subprocess.DEVNULL)
    process, seen = psutil.Process(started.pid), set()
    try:
        while not list(folder.glob("step-*.pt")):
            assert started.poll() is None
            seen |= listening(process)
            time.sleep(0.2)
        seen |= listening(process)
        children = process.children(recursive=True)
    finally:
        started.kill()
        started.wait()
    assert seen == {"127.0.0.1"}  # gloo's; the launcher has none
    assert len(children) == 2
    assert not psutil.wait_procs(children, timeout=600)[1]
    live = json.loads((folder / "live.json").read_text())
    assert live["status"] == "KILLED"
    assert checkpoint.checkpoint_path(folder, live["step"]).exists()


# --- the whole workflow: secrets and paths

SECRETS = {
    "MLFLOW_TRACKING_USERNAME": "ada-7f3b2c",
    "MLFLOW_TRACKING_PASSWORD": "pass-91d0aa",
    "MLFLOW_TRACKING_TOKEN": "token-55e1f0",
    "MLFLOW_TRACKING_URI": "http://grace-2b7c41:pass-c0ffee@127.0.0.1:9",
    "AWS_SECRET_ACCESS_KEY": "aws-8844cc",
    "PGPASSWORD": "pg-31bb7e",
    "HF_TOKEN": "hf-6a6a01",
}
PARTS = [*SECRETS.values(), "grace-2b7c41", "pass-c0ffee"]


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the environment, Snakemake's too."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("secrets")
@pytest.mark.slow
def test_no_secret_of_the_environment_is_in_any_file_or_output(tmp_path: Path) -> None:
    """Records, logs, Snakemake's own notes: everything that a run leaves, as talkative as it can be."""
    (target,) = records_of([key_of(1, 4)])
    done = ColdProject(tmp_path).snakemake(target, "--printshellcmds", "--verbose", "--cores", "2")
    assert (tmp_path / target).exists()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(".snakemake/log" in str(path) for path in files)
    written = {str(path): path.read_bytes() for path in files} | {
        "output": (done.stdout + done.stderr).encode()
    }
    assert not [name for name, content in written.items() for part in PARTS if part.encode() in content]


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("corpus={name: ../../escaped}", "corpus.name is '../../escaped': use lower-case letters"),
        ("tracking={uri: 'http://ada:hunter2@example.org'}", "tracking.uri holds a password or a token"),
    ],
)
def test_a_config_of_the_command_line_is_held_to_the_same(tmp_path: Path, option: str, sentence: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    done = Project(folder).snakemake("--config", option, "--cores", "1", ok=False)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"project"}
    written = [path for path in folder.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    assert not [path for path in written if "scripts" not in path.parts]
    assert "hunter2" not in done.stdout + done.stderr
