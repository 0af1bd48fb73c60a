"""What an attacker could use: code in model files, open ports, paths that lead out, secrets in records and logs."""

import ast
import json
import os
import pickle
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import torch
from project import ColdProject, Project, key_of, records_of
from small import PYTHON, SCRIPTS, small_run
from trained_here import Stores, checkpoints_of, train
from training_processes import command

from shapelaw.training import checkpoint

SOURCES = sorted(SCRIPTS.rglob("*.py"))

# --- no code in data

_PICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
_CALLS = {
    **dict.fromkeys(("eval", "exec"), "runs text as code"),
    **dict.fromkeys(("os.system", "os.popen"), "runs a shell"),
    **dict.fromkeys(("pandas.read_pickle", "pd.read_pickle"), "unpickles"),
    **dict.fromkeys(("yaml.load", "yaml.full_load", "yaml.unsafe_load"), "may build any object"),
}
_COLLECTIVES = re.compile(
    r"\w*object(_list)?"
)  # of torch.distributed: they unpickle what comes from the network
_OPTIONS = {
    "allow_pickle": "unpickles",
    "trust_remote_code": "runs code of a download",
    "shell": "runs a shell",
}


def dangers(code: str) -> Iterator[str]:
    """What in a source could run code that comes as data, with its line."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] in _PICKLES]
            yield from (f"{node.lineno}: import {name}" for name in names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _PICKLES:
            names = [alias.name for alias in node.names if alias.name != "UnpicklingError"]
            yield from (f"{node.lineno}: from {node.module} import {name}" for name in names)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in _CALLS:
                yield f"{node.lineno}: {called} {_CALLS[called]}"
            if _COLLECTIVES.fullmatch(called.rpartition(".")[2]):
                yield f"{node.lineno}: {called} unpickles what comes from the network"
            options = {option.arg: option.value for option in node.keywords}
            for option, why in _OPTIONS.items():
                value = options.get(option)
                if value is not None and not (isinstance(value, ast.Constant) and value.value is False):
                    yield f"{node.lineno}: {called}({option}=...) {why}"
            if called in ("torch.load", "torch.jit.load"):
                value = options.get("weights_only")
                if not (isinstance(value, ast.Constant) and value.value is True):
                    yield f"{node.lineno}: {called} without weights_only=True unpickles"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_no_source_runs_code_that_comes_as_data(path: Path) -> None:
    assert not list(dangers(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "torch.load(path, weights_only=flag)",
        "numpy.load(path, allow_pickle=True)",
        "yaml.load(text, Loader=yaml.SafeLoader)",
        "yaml.unsafe_load(text)",
        "pd.read_pickle(path)",
        "dist.broadcast_object_list(box)",
        "eval(text)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "datasets.load_dataset(name, trust_remote_code=True)",
    ],
)
def test_the_search_finds_what_it_is_for(code: str) -> None:
    assert len(list(dangers(code))) == 1


def test_the_search_lets_the_rest_pass() -> None:
    code = "from pickle import UnpicklingError\ntorch.load(p, weights_only=True)\nyaml.safe_load(t)\nmodel.eval()"
    assert not list(dangers(code))


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


@pytest.mark.parametrize("form", [as_torch_saves, with_a_right_sum, in_the_old_format, as_a_bare_pickle])
def test_code_in_a_checkpoint_is_refused_and_never_run(
    form: Callable[[dict[str, object], Path], None],
    stores: Stores,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is set aside, the one before is tried, and the run goes its way."""
    mark, path = tmp_path / "it ran", checkpoints_of(tmp_path, small_run()) / "step-0000000030.pt"
    path.parent.mkdir(parents=True)
    form({"identity": Bomb(mark), "step": 30}, path)
    train(small_run(), stores, tmp_path)
    assert not mark.exists()
    said = capsys.readouterr().err
    assert f"checkpoint {path} can't be read (" in said
    assert "training begins again at the first step" in said


def test_the_bomb_is_a_live_one(tmp_path: Path) -> None:
    as_torch_saves({"identity": Bomb(tmp_path / "it ran")}, tmp_path / "x.pt")
    torch.load(tmp_path / "x.pt", weights_only=False)
    assert (tmp_path / "it ran").is_dir()


def test_a_run_leaves_json_and_parquet(stores: Stores, tmp_path: Path) -> None:
    train(small_run(), stores, tmp_path)
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"spec.json", "history.parquet", "summary.json"}
    for path in tmp_path.rglob("*.json"):
        assert json.loads(path.read_text())
    for path in tmp_path.rglob("*.parquet"):
        assert path.read_bytes()[:4] == path.read_bytes()[-4:] == b"PAR1"


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
