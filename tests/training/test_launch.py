"""The command line of training, and several processes of one command: imports, sentences, codes, signals."""

import errno
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small import PYTHON, SCRIPTS, small_llama, small_run
from trained import Stores, checkpoints_of, command, record_of, start_warm, train

from shapelaw.errors import UserError
from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.storage.files import WriteFailed
from shapelaw.training import checkpoint
from shapelaw.training.driver import Stopped, exit_code_of, say_failure
from shapelaw.training.hardware import Ranks, join_ranks
from shapelaw.training.launch import WATCHED, StopRequest, _wait
from shapelaw.training.trainer import Runtime, TrainingFailed, memory_errors
from train import runtime_of, training_parser


def launched(tmp_path: Path, code: str) -> subprocess.Popen[str]:
    """Three processes of a small script."""
    (tmp_path / "script.py").write_text("import os, signal, sys, time\n" + code)
    line = [PYTHON, str(SCRIPTS / "launch.py"), "--processes", "3", str(tmp_path / "script.py")]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("", 0),
        ("sys.exit(7) if os.environ['RANK'] == '1' else time.sleep(600)", 7),
        ("os.kill(os.getpid(), 9) if os.environ['RANK'] == '2' else time.sleep(600)", 128 + signal.SIGKILL),
    ],
    ids=["none fails", "one fails", "one is killed"],
)
def test_a_process_that_fails_ends_the_others_and_gives_its_code(
    code: str, given: int, tmp_path: Path
) -> None:
    assert launched(tmp_path, code).wait(timeout=600) == given


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_stop_reaches_every_process_once(tmp_path: Path, number: signal.Signals) -> None:
    """Also those that are still stopping when the first has ended."""
    code = (
        "def stop(number, frame):\n"
        "    os.write(1, b'stopped\\n'); time.sleep(0.3 * int(os.environ['RANK'])); sys.exit(128 + number)\n"
        "for number in (signal.SIGTERM, signal.SIGUSR1): signal.signal(number, stop)\n"
        # not one long sleep: a signal just before its system call would wait for its end
        "os.write(1, b'ready\\n')\nfor _ in range(6000): time.sleep(0.1)"
    )
    process = launched(tmp_path, code)
    assert [process.stdout.readline() for _ in range(3)] == ["ready\n"] * 3
    process.send_signal(number)
    assert process.communicate(timeout=600)[0] == "stopped\n" * 3
    assert process.returncode == 128 + number


def test_a_process_that_was_started_after_the_signal_is_asked_too() -> None:
    failed = subprocess.Popen([PYTHON, "-c", "raise SystemExit(3)"])
    late = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(600)"])
    try:
        assert _wait([failed, late], {failed.pid}) == 3
        assert late.returncode == -signal.SIGTERM
    finally:
        late.kill()
        late.wait()


def test_each_process_knows_its_place_and_meets_the_others_in_a_private_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "ib0")  # the user's own
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    names = (
        "('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'GLOO_SOCKET_IFNAME', 'NCCL_SOCKET_IFNAME', 'SHAPELAW_STORE')"
    )
    output = launched(
        tmp_path, f"os.write(1, (' '.join(os.environ[name] for name in {names}) + '\\n').encode())"
    ).communicate(timeout=600)[0]
    rows = sorted(line.split() for line in output.splitlines())
    assert [row[:3] for row in rows] == [[str(rank), str(rank), "3"] for rank in range(3)]
    assert {tuple(row[3:5]) for row in rows} == {("lo" if sys.platform == "linux" else "lo0", "ib0")}
    (store,) = {row[5] for row in rows}
    assert not Path(store).parent.exists()  # it is gone with the launcher


def test_afterwards_every_signal_does_what_it_did_before() -> None:
    before = {number: signal.getsignal(number) for number in WATCHED}
    with StopRequest():
        assert all(signal.getsignal(number) is not handler for number, handler in before.items())
    assert {number: signal.getsignal(number) for number in WATCHED} == before
    with pytest.raises(ZeroDivisionError), StopRequest():
        raise ZeroDivisionError
    assert {number: signal.getsignal(number) for number in WATCHED} == before


def test_a_process_alone_is_the_first_and_its_own_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with join_ranks("cpu", 0.0) as ranks:
        assert ranks == Ranks(0, 1, torch.device("cpu"))
    assert ranks.first
    assert (ranks.sum(2.5), ranks.max(3)) == (2.5, 3)
    assert not torch.distributed.is_initialized()


LAUNCHERS = {
    "launch.py": [PYTHON, str(SCRIPTS / "launch.py"), "--processes", "2"],
    "torchrun": [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
}


@pytest.mark.parametrize(("launcher", "small"), [("launch.py", small_llama), ("torchrun", small_run)])
@pytest.mark.slow
def test_two_processes_wait_for_another_one_and_give_the_loss_curve_of_one(
    launcher: str, small: Callable[..., Run], stores: Stores, tmp_path: Path
) -> None:
    run, folder = small(steps=20), tmp_path / "two"
    line = [*LAUNCHERS[launcher], *command(run, stores, folder, "--wait-minutes", "10")]
    with checkpoint.only_process(checkpoints_of(folder, run), 0, print, lambda: None):
        process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
        for said in process.stderr:
            if "waiting for another process" in said:
                break
        time.sleep(2)
        assert process.poll() is None
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    one, two = train(run, stores, tmp_path / "one"), records.read_record(record_of(folder, run))
    for column in ("train_loss", "gradient_norm"):
        assert two.history[column].to_pylist() == pytest.approx(one.history[column].to_pylist(), rel=1e-4)
    assert two.summary["test_loss"] == pytest.approx(one.summary["test_loss"], rel=1e-5)
    assert (one.summary["processes"], two.summary["processes"]) == (1, 2)


def test_a_run_that_compiles_nothing_does_not_import_the_compiler(stores: Stores, tmp_path: Path) -> None:
    """It takes 2 s, more than a small network takes to train. Nor what only the workflow needs: training runs where
    torch, NumPy and PyArrow alone are installed.
    """
    line = [PYTHON, "-X", "importtime", *command(small_run(steps=1), stores, tmp_path)]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stderr
    imported = {row.rpartition("|")[2].strip() for row in said.splitlines() if row.startswith("import time:")}
    assert "torch.optim.adam" in imported
    heavy = {"mlflow", "pandas", "scipy", "matplotlib", "lmfit", "pydantic", "tokenizers", "yaml"}
    assert imported.isdisjoint(heavy | {"torch._dynamo", "torch._inductor"})


def test_a_process_that_waits_for_another_one_can_be_stopped(stores: Stores, tmp_path: Path) -> None:
    with checkpoint.only_process(checkpoints_of(tmp_path, small_run()), 0, print, lambda: None):
        process = start_warm(command(small_run(), stores, tmp_path, "--wait-minutes", "10"))
        assert "waiting for another process" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert "was stopped by signal 15 while it waited" in process.communicate(timeout=600)[1]
        assert process.returncode == 128 + signal.SIGTERM


def test_options_become_a_runtime() -> None:
    least = ["--job", "job.json"]
    assert runtime_of(training_parser().parse_args(least)) == Runtime()
    chosen = [*least, "--device", "cuda:1", "--threads", "3", "--micro-batch", "5", "--no-compile"]
    chosen += ["--compiled-part", "blocks", "--checkpoint-minutes", "0.5", "--wait-minutes", "2"]
    chosen += ["--tag", "job=17", "--tag", "note=a=b"]
    assert runtime_of(training_parser().parse_args(chosen)) == Runtime(
        "cuda:1", 3, 5, False, "blocks", 30, wait_seconds=120, tags={"job": "17", "note": "a=b"}
    )
    kept = runtime_of(training_parser().parse_args([*least, "--keep-weights-of", "one two"]))
    assert kept.keep_weights_of == {"one", "two"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (TrainingFailed("The disk is full."), 1),
        (WriteFailed(Path("x"), errno.ENOSPC), 1),
        (UserError("Too wide."), 2),
        (Stopped("Stopped.", signal.SIGUSR1), 138),
        (Stopped("Stopped.", signal.SIGTERM), 143),
    ],
)
def test_what_ends_it_is_told_in_a_sentence_and_a_code(
    error: Exception | None, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def action() -> None:
        if error is not None:
            raise error

    assert exit_code_of(action, linger_seconds=0.0) == code
    assert capsys.readouterr().err == (f"{error}\n" if error else "")


def test_only_the_first_process_tells_what_all_of_them_meet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    say_failure(Stopped("Stopped.", signal.SIGTERM))
    assert capsys.readouterr().err == ""
    say_failure(UserError("This one has no GPU."))
    assert capsys.readouterr().err == "This one has no GPU.\n"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("out of memory."),
    ],
)
def test_memory_that_runs_out_is_a_sentence(error: Exception) -> None:
    with (
        pytest.raises(TrainingFailed, match=r"^There is not enough memory \(.*take a smaller width"),
        memory_errors(),
    ):
        raise error


def test_another_error_of_the_library_is_no_mistake_of_the_user() -> None:
    with pytest.raises(RuntimeError, match="multiplied"), memory_errors():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
