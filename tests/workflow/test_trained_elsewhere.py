"""Runs that a machine without Snakemake has trained: brought back, they are the workflow's own."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from job_server import warm_python
from project import ALL_IN_ONE, KEYS, Project, records_of

pytestmark = pytest.mark.slow

STORE = "results/corpora/prose/V300"


def test_records_that_are_brought_back_are_not_trained_again(tmp_path: Path, with_corpus: Path) -> None:
    """Of one that is missing the whole pack is asked for, and takes the others as they are."""
    project = Project(tmp_path, with_corpus, execution=ALL_IN_ONE)

    def run(*command: str) -> None:
        subprocess.run([warm_python(), *command], cwd=tmp_path, check=True, capture_output=True)

    run("scripts/write_specs.py", "--out", "specs")
    run(
        *("scripts/train_in_turn.py", "--specs", "@specs/depth_width-prose-V300.json", "--device", "cpu"),
        *("--train-store", f"{STORE}/train.json", "--test-store", f"{STORE}/test.json", "--threads", "1"),
        *("--checkpoints", "elsewhere", "--out", "elsewhere/pack.json"),
    )
    missing, *brought = sorted(KEYS)
    for key in brought:  # as docs/gpu.md brings them back
        shutil.copytree(
            tmp_path / "elsewhere" / key,
            tmp_path / "results" / "checkpoints" / key,
            ignore=shutil.ignore_patterns("lock"),
        )
    project.snakemake(*records_of(KEYS), "--quiet", "rules")
    results, elsewhere = tmp_path / "results/runs", tmp_path / "elsewhere"
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
