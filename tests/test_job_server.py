"""A command that forks of a warm process run is what Python makes of it."""

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from job_server import WarmProcess, warm_python
from small import PYTHON

SCRIPT = """
import os
import signal
import sys
import time

from elsewhere import OTHER
from shapelaw.errors import PLACE

print(PLACE, OTHER, sys.argv[1:], os.getcwd(), os.environ["SEASON"], sys.stdin.read(), __name__, flush=True)
print("and this", file=sys.stderr)
how = sys.argv[1]
if how == "a code":
    sys.exit(3)
elif how == "a sentence":
    sys.exit("A sentence.")
elif how == "a signal":
    os.kill(os.getpid(), signal.SIGKILL)
elif how == "an error":
    raise ValueError("of value")
"""
WAITS = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(600)"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    package = tmp_path / "scripts" / "shapelaw"
    package.mkdir(parents=True)
    (package / "errors.py").write_text("PLACE = 'here'\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "elsewhere.py").write_text("OTHER = 'and there'\n")
    (tmp_path / "scripts" / "command.py").write_text(SCRIPT)
    return tmp_path / "scripts" / "command.py"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["nothing", "a code", "a sentence", "a signal", "an error"])
def test_a_command_says_and_ends_as_with_its_own_start(script: Path, tmp_path: Path, how: str) -> None:
    found = []
    for python in (PYTHON, str(warm_python())):
        done = subprocess.run(
            [python, script, how, "a b"],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "SEASON": "winter", "PYTHONPATH": "more"},
            input="given",
            capture_output=True,
            text=True,
            check=False,
        )
        said = [line for line in done.stderr.splitlines() if not line.startswith(" ")]  # no traceback's lines
        found.append((done.returncode, done.stdout, said))
    assert found[0] == found[1]
    assert f"here and there ['{how}', 'a b'] {tmp_path} winter given __main__" in found[1][1]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_command_is_one_to_its_process(tmp_path: Path, number: signal.Signals) -> None:
    """When its end is known the process is gone."""
    (tmp_path / "waits.py").write_text(WAITS)
    started = WarmProcess([warm_python(), tmp_path / "waits.py"], stderr=subprocess.PIPE, text=True)
    assert started.stderr is not None
    process = int(started.stderr.readline())
    started.send_signal(number)
    assert started.wait(60) == -number
    assert not psutil.pid_exists(process)


@pytest.mark.slow
def test_where_the_command_is_killed_outright_its_process_is_too(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    command = [warm_python(), tmp_path / "waits.py"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        process = int(started.stderr.readline())
        started.kill()
    end = time.monotonic() + 60
    while psutil.pid_exists(process):
        assert time.monotonic() < end
        time.sleep(0.05)
