"""Runs that a machine without Snakemake has trained: brought back, they are the workflow's own."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from job_server import warm_python
from project import ALL_IN_ONE, KEYS, Project

pytestmark = pytest.mark.slow


def test_records_that_are_brought_back_are_not_trained_again(tmp_path: Path, with_corpus: Path) -> None:
    """The run that is missing is trained, and the others are taken as they are."""
    project = Project(tmp_path, with_corpus, execution=ALL_IN_ONE)

    def run(*command: str) -> None:
        subprocess.run([warm_python(), *command], cwd=tmp_path, check=True, capture_output=True)

    run("scripts/write_specs.py", "--out", "elsewhere")
    run(
        *("scripts/train.py", "--job", "elsewhere/depth_width.json", "--results", "elsewhere"),
        *("--corpora", "results/corpora", "--device", "cpu", "--threads", "1"),
    )
    missing, *brought = sorted(KEYS)
    results, elsewhere = tmp_path / "results/runs", tmp_path / "elsewhere/runs"
    for key in brought:  # as docs/gpu.md brings them back
        shutil.copytree(elsewhere / key, results / key)
    project.snakemake("results/depth_width/runs.parquet", "--quiet", "rules")
    for key in brought:
        assert (results / key / "summary.json").read_bytes() == (
            elsewhere / key / "summary.json"
        ).read_bytes()
    trained = json.loads((results / missing / "summary.json").read_text())
    assert (
        trained["started_at"] > json.loads((elsewhere / missing / "summary.json").read_text())["started_at"]
    )
    history = (results / missing / "history.parquet").read_bytes()
    assert history == (elsewhere / missing / "history.parquet").read_bytes()
