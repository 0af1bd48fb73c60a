"""The command line of training: what it imports, one sentence for wrong input, and its exit codes."""

import errno
import signal
import subprocess
from pathlib import Path

import pytest
from job_server import warm_python
from shapelaw.training.loop import Stopped
from small import PYTHON, small_run
from training_processes import Stores, command, start_warm

from shapelaw.errors import UserError
from shapelaw.storage.files import WriteFailed
from shapelaw.training import checkpoint
from shapelaw.training.command import exit_code_of, read_specs, runtime_of, say_failure, training_parser
from shapelaw.training.trainer import NotWritten, Runtime


def test_a_run_that_compiles_nothing_does_not_import_the_compiler(stores: Stores, tmp_path: Path) -> None:
    """It takes 2 s, more than a small network takes to train; and neither is what only the workflow needs."""
    line = [PYTHON, "-X", "importtime", *command(small_run(steps=1), stores, tmp_path)]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stderr
    imported = {row.rpartition("|")[2].strip() for row in said.splitlines() if row.startswith("import time:")}
    assert "torch.optim.adam" in imported
    assert imported.isdisjoint(
        {"torch._dynamo", "torch._inductor", "mlflow", "pandas", "scipy", "matplotlib"}
    )


def test_a_process_that_waits_for_another_one_can_be_stopped(stores: Stores, tmp_path: Path) -> None:
    with checkpoint.only_process(tmp_path / "checkpoints", 0, print, lambda: False):
        process = start_warm(command(small_run(), stores, tmp_path, "--wait-minutes", "10"))
        assert process.stderr is not None
        assert "waiting for another process" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert "was stopped by signal 15 while it waited" in process.communicate(timeout=600)[1]
        assert process.returncode == 128 + signal.SIGTERM


def test_a_wrong_spec_is_one_sentence_and_a_code(stores: Stores, tmp_path: Path) -> None:
    arguments = command(small_run(), stores, tmp_path)
    arguments[2] = "{}"
    done = subprocess.run([warm_python(), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not the spec of a run" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_options_become_a_runtime() -> None:
    least = ["--train-store", "a.json", "--test-store", "b.json"]
    assert runtime_of(training_parser(None).parse_args(least)) == Runtime()
    chosen = [*least, "--device", "cuda:1", "--threads", "3", "--micro-batch", "5", "--no-compile"]
    chosen += ["--compiled-part", "blocks", "--checkpoint-minutes", "0.5", "--wait-minutes", "2"]
    chosen += ["--tag", "job=17", "--tag", "note=a=b"]
    assert runtime_of(training_parser(None).parse_args(chosen)) == Runtime(
        "cuda:1", 3, 5, False, "blocks", 30, wait_seconds=120, tags={"job": "17", "note": "a=b"}
    )
    for more, kept in (([], ()), (["--keep-weights-of", "one two"], ("one", "two"))):
        given = training_parser(None).parse_args([*least, *more])
        assert [key for key in ("one", "two", "three", None) if runtime_of(given, key).keep_weights] == [
            *kept
        ]
    assert runtime_of(training_parser(None).parse_args([*least, "--keep-weights"]), "one").keep_weights


def test_specs_are_given_in_the_option_or_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('"é"', encoding="utf-8")
    assert read_specs("--spec", f"@{tmp_path / 'spec.json'}", str, "a text") == "é"
    assert read_specs("--spec", '"a@b"', str, "a text") == "a@b"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("@nothing.json", "--spec @nothing.json: the file can't be read (No such file or directory)."),
        ("[{]", "--spec [{] is not the steps of a run (JSONDecodeError("),
        ("[]", "--spec [] is not the steps of a run (TypeError("),
    ],
)
def test_specs_that_cannot_be_read_are_told_from_those_that_are_none(given: str, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        read_specs("--spec", given, lambda spec: spec["steps"], "the steps of a run")
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (NotWritten("The disk is full."), 1),
        (WriteFailed(Path("x"), errno.ENOSPC), 1),
        (UserError("Too wide."), 2),
        (Stopped("Stopped.", 128 + signal.SIGUSR1), 138),
        (Stopped("Stopped.", 128 + signal.SIGTERM), 143),
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
    say_failure(Stopped("Stopped.", 143))
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
def test_memory_that_runs_out_is_a_sentence(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def action() -> None:
        raise error

    assert exit_code_of(action, linger_seconds=0.0) == 1
    said = capsys.readouterr().err
    assert said.startswith("There is not enough memory (")
    assert "take a smaller width" in said
    assert len(said.splitlines()) == 1


def test_another_error_of_the_library_is_no_mistake_of_the_user() -> None:
    def action() -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError):
        exit_code_of(action, linger_seconds=0.0)
