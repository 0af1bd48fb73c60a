"""The real Snakemake where runs fail: what is said, what is kept, and that no other run suffers."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from project import ALL_IN_ONE, KEYS, Project, key_of, records_of

pytestmark = pytest.mark.slow


def test_why_any_rule_failed_is_the_last_thing_on_the_terminal(tmp_path: Path, with_store: Path) -> None:
    """With the flags of `make demo`, which hide what the job itself says."""
    project = Project(tmp_path, with_store)
    (project.folder / "texts" / "latin.txt").write_bytes("na\u00efve".encode("latin-1"))
    quiet = ("--quiet", "rules", "reason", "host", "--show-failed-logs")
    *_, heading, sentence = project.snakemake(*quiet, ok=False).stderr.splitlines()
    assert heading == "prepare_corpus prose failed (results/logs/prepare_corpus/prose.log):"
    assert sentence.startswith("texts/latin.txt, byte 2: this is not UTF-8")
    # and what no job can make is told without one
    (told,) = project.snakemake("results/depthwidth/fit.json", *quiet, ok=False).stderr.splitlines()[1:]
    assert told.startswith("There is no study depthwidth (did you mean depth_width?)")


def test_runs_that_diverge_are_counted_and_take_no_table_away(tmp_path: Path, with_corpus: Path) -> None:
    """They are finished: no attempt is made again, and all that the others give is there."""
    project = Project(tmp_path, with_corpus, execution=ALL_IN_ONE, studies=["mine"])
    rates = {"learning_rate": [3e-3, 1e20], "depth": [1, 2], "width": [4, 8]}
    shared = {"vocab_size": 300, "context_length": 16, "warmup_steps": 0}
    project.configure(grids={"mine": {**shared, "axes": rates}})
    done = project.snakemake("--retries", "2", "--quiet", "rules")
    assert "Traceback" not in done.stderr
    runs = pq.read_table(project.folder / "results/mine/runs.parquet").to_pylist()
    diverged = {run["key"] for run in runs if run["diverged_at_step"] is not None}
    assert len(diverged) == 4
    assert {run["status"] for run in runs} == {"FINISHED"}
    (log,) = (project.folder / "results/logs/train").glob("*.log")
    assert log.read_text().count("== ") == 1  # one attempt
    found = json.loads((project.folder / "results/mine/fit.json").read_text())
    assert any("4 of 8" in line and "diverged" in line for line in found["findings"]), found["findings"]
    assert len(pd.read_csv(project.folder / "results/mine/losses.csv")) == 4
    assert project.planned() == []


def test_a_run_that_ends_in_an_error_of_its_own_costs_no_other_of_its_job(
    tmp_path: Path, with_corpus: Path
) -> None:
    """Its record's folder can't be written; the end names it, and the same start goes on once it can."""
    project = Project(tmp_path, with_corpus, execution=ALL_IN_ONE)
    key = key_of(1, 4)
    folder = project.folder / "results/runs" / key
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file in the place of a folder")
    done = project.snakemake("--quiet", "rules", ok=False)
    assert key in done.stderr[done.stderr.index("failed (results/logs/train/") :]
    assert "6 runs: 5 in the pool" in done.stderr
    assert set(project.trained()) == KEYS - {key}
    folder.unlink()
    before = project.trained()
    project.snakemake(*records_of(KEYS), "--quiet", "rules")
    assert {one: when for one, when in project.trained().items() if one != key} == before
