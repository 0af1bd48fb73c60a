"""The command that fits a cost model to finished runs."""

import subprocess
from pathlib import Path

import pandas as pd
import pytest
from small import PYTHON, REPOSITORY, SCRIPTS

from shapelaw.specs.cost import read_cost_model

LAPTOP = REPOSITORY / "docs" / "results" / "laptop_depth_width.parquet"


@pytest.mark.slow
def test_the_command_writes_a_model_that_it_reads_and_refuses_another_name(tmp_path: Path) -> None:
    def run(out: str) -> "subprocess.CompletedProcess[str]":
        command = [PYTHON, str(SCRIPTS / "fit_cost.py"), "--runs", str(LAPTOP), "--out", str(tmp_path / out)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run("cost.json")
    assert done.returncode == 0, done.stderr
    assert "46 runs took 10.4 hours" in done.stdout
    assert read_cost_model(tmp_path / "cost.json").factor > 1
    assert len(pd.read_csv(tmp_path / "cost.csv")) == 46
    refused = run("cost.txt")
    assert refused.returncode == 2
    assert "must end in .json" in refused.stderr
