"""Training as a command: killed at random moments, told to stop."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from job_server import warm_python
from small import small_run
from training_processes import Stores, command, newest_step, start_warm, wait_for_step

from shapelaw.storage import records


@pytest.mark.parametrize(("kills", "steps"), [(1, 500), pytest.param(3, 900, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_with_the_undisturbed_history(
    stores: Stores, tmp_path: Path, kills: int, steps: int
) -> None:
    run = small_run(steps=steps, log_every=20, evaluate_every=500, dropout=0.1)
    subprocess.run([warm_python(), *command(run, stores, tmp_path / "undisturbed")], check=True)
    moments = random.Random(0)
    frequent = command(run, stores, tmp_path / "killed", "--checkpoint-minutes", "0.001")
    folder, reached = tmp_path / "killed", [0]
    for _ in range(kills):
        process = start_warm(frequent)
        # this attempt went on from the one before; by steps, so that no machine is too fast to be disturbed so often
        wait_for_step(process, folder, after=reached[-1] + moments.randrange(200))
        time.sleep(0.06 * moments.random())  # anywhere between two checkpoints
        process.kill()
        assert process.wait() == -signal.SIGKILL
        reached.append(newest_step(folder))
    subprocess.run([warm_python(), *command(run, stores, folder)], check=True)
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
    process = start_warm(command(run, stores, tmp_path, "--checkpoint-minutes", "0.001"))
    wait_for_step(process, tmp_path)
    process.send_signal(number)
    _, error = process.communicate(timeout=600)
    assert process.returncode == 128 + number
    assert f"was stopped by signal {int(number)} at step" in error
    live = records.read_record(tmp_path / "checkpoints").live
    assert live["status"] == "KILLED"
    assert (tmp_path / "checkpoints" / f"step-{live['step']:010d}.pt").exists()
