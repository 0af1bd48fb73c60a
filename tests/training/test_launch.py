"""Several processes of one command: codes, signals, and the environment that each gets."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from small import PYTHON, SCRIPTS

from shapelaw.training.launch import _wait


def launched(tmp_path: Path, code: str) -> subprocess.Popen[str]:
    """Three processes of a small script."""
    (tmp_path / "script.py").write_text("import os, signal, sys, time\n" + code)
    line = [PYTHON, str(SCRIPTS / "launch.py"), "--processes", "3", str(tmp_path / "script.py")]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


def test_a_process_that_fails_ends_the_others_and_gives_its_code(tmp_path: Path) -> None:
    process = launched(tmp_path, "sys.exit(7) if os.environ['RANK'] == '1' else time.sleep(600)")
    assert process.wait(timeout=600) == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_stop_reaches_every_process_once(tmp_path: Path, number: signal.Signals) -> None:
    """Also those that are still stopping when the first has ended."""
    code = (
        "def stop(number, frame):\n"
        "    os.write(1, b'stopped\\n'); time.sleep(0.3 * int(os.environ['RANK'])); sys.exit(128 + number)\n"
        "for number in (signal.SIGTERM, signal.SIGUSR1): signal.signal(number, stop)\n"
        "os.write(1, b'ready\\n'); time.sleep(600)"
    )
    process = launched(tmp_path, code)
    assert process.stdout is not None
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


def test_processes_that_end_well_end_well(tmp_path: Path) -> None:
    assert launched(tmp_path, "").wait(timeout=600) == 0


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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_process_that_a_signal_ends_gives_128_and_its_number(
    tmp_path: Path, number: signal.Signals
) -> None:
    code = f"os.kill(os.getpid(), {int(number)}) if os.environ['RANK'] == '2' else time.sleep(600)"
    assert launched(tmp_path, code).wait(timeout=600) == 128 + number
