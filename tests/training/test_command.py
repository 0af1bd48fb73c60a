"""The command line of training: what it imports, one sentence for wrong input, and its exit codes."""

import errno
import signal
import subprocess
from pathlib import Path

import pytest
from small import PYTHON, small_run
from trained import Stores, checkpoints_of, command, start_warm

from shapelaw.errors import UserError
from shapelaw.storage.files import WriteFailed
from shapelaw.training import checkpoint
from shapelaw.training.driver import Stopped, exit_code_of, say_failure
from shapelaw.training.trainer import Runtime, TrainingFailed, memory_errors
from train import runtime_of, training_parser


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
