"""Runs that a machine without Snakemake has trained: brought back, they are the workflow's own."""

import shutil
import subprocess
from pathlib import Path

from project import KEYS, Project
from small import PYTHON

STORE = "results/corpora/prose/V300"


def test_records_that_are_brought_back_are_not_trained_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.snakemake(f"{STORE}/train.json", f"{STORE}/test.json", "--quiet", "rules")
    assert len([rule for rule in project.planned() if rule == "train_small"]) == len(KEYS)

    def run(*command: str) -> None:
        subprocess.run([PYTHON, *command], cwd=tmp_path, check=True, capture_output=True)

    run("scripts/write_specs.py", "--out", "specs")
    run(
        *("scripts/train_pack.py", "--specs", "@specs/depth_width-prose-V300.json", "--device", "cpu"),
        *("--train-store", f"{STORE}/train.json", "--test-store", f"{STORE}/test.json", "--threads", "1"),
        *("--checkpoints", "elsewhere", "--out", "elsewhere/pack.json"),
    )
    for key in KEYS:  # as docs/gpu.md brings them back
        shutil.copytree(
            tmp_path / "elsewhere" / "depth_width" / key,
            tmp_path / "results" / "runs" / "depth_width" / key,
            ignore=shutil.ignore_patterns("*.pt", "live.json", "lock"),
        )
    assert "train_small" not in project.planned()
    before = project.trained()
    project.snakemake("results/depth_width/transitions.csv", "--quiet", "rules")
    assert project.trained() == before
