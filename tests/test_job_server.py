"""A signal to a command that a fork of a warm process runs."""

import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from job_server import WarmProcess, warm_python

WAITS = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(600)"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_command_is_one_to_its_process(tmp_path: Path, number: signal.Signals) -> None:
    """When its end is known the process is gone."""
    (tmp_path / "waits.py").write_text(WAITS)
    started = WarmProcess([warm_python(), tmp_path / "waits.py"], stderr=subprocess.PIPE, text=True)
    process = int(started.stderr.readline())
    started.send_signal(number)
    assert started.wait(60) == -number
    assert not psutil.pid_exists(process)


@pytest.mark.slow
def test_where_the_command_is_killed_outright_its_process_is_too(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    command = [warm_python(), tmp_path / "waits.py"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        process = int(started.stderr.readline())
        started.kill()
    end = time.monotonic() + 60
    while psutil.pid_exists(process):
        assert time.monotonic() < end
        time.sleep(0.05)
