"""Training as a command: killed at random moments, told to stop, on two processes."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from small import PYTHON, SCRIPTS, small_run
from training_processes import Stores, command, newest_step, start, wait_for_step

from shapelaw.storage import records
from shapelaw.training import checkpoint

LAUNCHERS = {
    "launch.py": [PYTHON, str(SCRIPTS / "launch.py"), "--processes", "2"],
    "torchrun": [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
}


def test_a_run_that_compiles_nothing_does_not_import_the_compiler(stores: Stores, tmp_path: Path) -> None:
    """It takes 2 s, more than a small network takes to train; and neither is what only the workflow needs."""
    line = [PYTHON, "-X", "importtime", *command(small_run(), stores, tmp_path)]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stderr
    imported = {row.rpartition("|")[2].strip() for row in said.splitlines() if row.startswith("import time:")}
    assert "torch.optim.adam" in imported
    assert imported.isdisjoint(
        {"torch._dynamo", "torch._inductor", "mlflow", "pandas", "scipy", "matplotlib"}
    )


def test_a_process_that_waits_for_another_one_can_be_stopped(stores: Stores, tmp_path: Path) -> None:
    with checkpoint.only_process(tmp_path / "checkpoints", 0, print, lambda: False):
        process = start(command(small_run(), stores, tmp_path, "--wait-minutes", "10"))
        assert process.stderr is not None
        assert "waiting for another process" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert "was stopped by signal 15 while it waited" in process.communicate(timeout=600)[1]
        assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.slow
def test_all_processes_of_a_run_wait_for_another_one(launcher: str, stores: Stores, tmp_path: Path) -> None:
    line = [*LAUNCHERS[launcher], *command(small_run(), stores, tmp_path, "--wait-minutes", "10")]
    with checkpoint.only_process(tmp_path / "checkpoints", 0, print, lambda: False):
        process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for said in process.stderr:
            if "waiting for another process" in said:
                break
        time.sleep(2)
        assert process.poll() is None
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert records.read_record(tmp_path / "record").status == "FINISHED"


@pytest.mark.parametrize(("kills", "steps"), [(1, 500), pytest.param(5, 1500, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_with_the_undisturbed_history(
    stores: Stores, tmp_path: Path, kills: int, steps: int
) -> None:
    run = small_run(steps=steps, log_every=20, evaluate_every=500, dropout=0.1)
    subprocess.run([PYTHON, *command(run, stores, tmp_path / "undisturbed")], check=True)
    moments = random.Random(0)
    frequent = command(run, stores, tmp_path / "killed", "--checkpoint-minutes", "0.001")
    folder, reached = tmp_path / "killed", [0]
    for _ in range(kills):
        process = start(frequent)
        # this attempt went on from the one before; by steps, so that no machine is too fast to be disturbed so often
        wait_for_step(process, folder, after=reached[-1] + moments.randrange(200))
        time.sleep(0.06 * moments.random())  # anywhere between two checkpoints
        process.kill()
        assert process.wait() == -signal.SIGKILL
        reached.append(newest_step(folder))
    subprocess.run([PYTHON, *command(run, stores, folder)], check=True)
    histories = [
        (tmp_path / name / "record" / "history.parquet").read_bytes() for name in ("undisturbed", "killed")
    ]
    assert histories[0] == histories[1]
    assert records.read_record(tmp_path / "killed" / "record").summary["attempts"] == 1 + kills


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_told_to_stop_it_writes_a_checkpoint_and_leaves_with_a_code(
    stores: Stores, tmp_path: Path, number: signal.Signals
) -> None:
    run = small_run(steps=100_000)
    process = start(command(run, stores, tmp_path, "--checkpoint-minutes", "0.001"))
    wait_for_step(process, tmp_path)
    process.send_signal(number)
    _, error = process.communicate(timeout=600)
    assert process.returncode == 128 + number
    assert f"was stopped by signal {int(number)} at step" in error
    live = records.read_record(tmp_path / "checkpoints").live
    assert live["status"] == "KILLED"
    assert (tmp_path / "checkpoints" / f"step-{live['step']:010d}.pt").exists()


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.slow
def test_two_processes_give_the_loss_curve_of_one(stores: Stores, tmp_path: Path, launcher: str) -> None:
    run = small_run(steps=40)
    subprocess.run([PYTHON, *command(run, stores, tmp_path / "one")], check=True)
    line = [*LAUNCHERS[launcher], *command(run, stores, tmp_path / "two")]
    subprocess.run(line, check=True, capture_output=True)
    one, two = (records.read_record(tmp_path / name / "record") for name in ("one", "two"))
    for column in ("train_loss", "gradient_norm"):
        assert two.history[column].to_pylist() == pytest.approx(one.history[column].to_pylist(), rel=1e-4)
    assert two.summary["test_loss"] == pytest.approx(one.summary["test_loss"], rel=1e-5)
    assert (one.summary["processes"], two.summary["processes"]) == (1, 2)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [("{}", "is not the spec of a run"), ("@nowhere.json", "nowhere.json"), ("{", "--spec {")],
)
def test_a_wrong_spec_is_one_sentence(stores: Stores, tmp_path: Path, spec: str, sentence: str) -> None:
    arguments = command(small_run(), stores, tmp_path)
    arguments[2] = spec
    done = subprocess.run([PYTHON, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
