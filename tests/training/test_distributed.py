"""One run on two processes, started by either launcher."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small import PYTHON, SCRIPTS, small_llama, small_run
from training_processes import Stores, command

from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.training import checkpoint
from shapelaw.training.distributed import Ranks, is_first, join_ranks

LAUNCHERS = {
    "launch.py": [PYTHON, str(SCRIPTS / "launch.py"), "--processes", "2"],
    "torchrun": [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
}


def test_a_process_alone_is_the_first_and_its_own_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with join_ranks(torch.device("cpu"), 0.0) as ranks:
        assert ranks == Ranks(0, 1, torch.device("cpu"))
    assert ranks.first
    assert is_first()
    assert (ranks.sum(2.5), ranks.max(3)) == (2.5, 3)
    assert not torch.distributed.is_initialized()
    monkeypatch.setenv("RANK", "1")
    assert not is_first()


@pytest.mark.slow
def test_processes_add_up_what_each_of_them_has(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "import torch\n"
        "from shapelaw.training.distributed import join_ranks\n"
        "with join_ranks(torch.device('cpu'), 0.0) as ranks:\n"
        "    found = ranks.sum(0.5 + ranks.rank), ranks.max(10 * ranks.rank)\n"
        f"    open({str(tmp_path)!r} + f'/{{ranks.rank}}', 'w').write(f'{{ranks.world}} {{ranks.first}} {{found}}')\n"
    )
    line = [*LAUNCHERS["launch.py"], str(tmp_path / "script.py")]
    subprocess.run(line, check=True, timeout=600)
    assert (tmp_path / "0").read_text() == "2 True (2.0, 10)"
    assert (tmp_path / "1").read_text() == "2 False (2.0, 10)"


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


@pytest.mark.parametrize(
    ("launcher", "small"),
    [*((launcher, small_run) for launcher in LAUNCHERS), ("launch.py", small_llama)],
)
@pytest.mark.slow
def test_two_processes_give_the_loss_curve_of_one(
    stores: Stores, tmp_path: Path, launcher: str, small: Callable[..., Run]
) -> None:
    run = small(steps=40)
    subprocess.run([PYTHON, *command(run, stores, tmp_path / "one")], check=True)
    line = [*LAUNCHERS[launcher], *command(run, stores, tmp_path / "two")]
    subprocess.run(line, check=True, capture_output=True)
    one, two = (records.read_record(tmp_path / name / "record") for name in ("one", "two"))
    for column in ("train_loss", "gradient_norm"):
        assert two.history[column].to_pylist() == pytest.approx(one.history[column].to_pylist(), rel=1e-4)
    assert two.summary["test_loss"] == pytest.approx(one.summary["test_loss"], rel=1e-5)
    assert (one.summary["processes"], two.summary["processes"]) == (1, 2)
