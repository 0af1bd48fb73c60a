"""Jobs of several runs, in the real Snakemake: a later start asks for the same ones, and trains only what is new."""

import re
import sqlite3
from pathlib import Path

import pytest
from project import CONFIG, GRID, KEYS, TWO_A_JOB, Project, key_of, records_of

from shapelaw.jobs.ledger import read_ledger

pytestmark = pytest.mark.slow

TABLE = "results/depth_width/runs.parquet"
WIDER = {**GRID, "widths": {1: [4, 6, 8, 12], 2: [4, 8]}}


class SharedProject(Project):
    """A project whose runs share jobs two by two."""

    def counted(self) -> str:
        """What the plan says of the pool."""
        (line,) = (one for one in self.snakemake("plan").stdout.splitlines() if one.startswith("Together"))
        return re.sub(r" in \d+ jobs? \(.*", "", line.removeprefix("Together "))

    def times(self) -> dict[str, int]:
        """When each file of every record was written."""
        return {str(path): path.stat().st_mtime_ns for path in self.folder.glob("results/runs/*/*")}

    def in_mlflow(self) -> dict[str, tuple[int, int]]:
        """Start and end of every run in MLflow, by its id; and how many metrics it has."""
        with sqlite3.connect(self.folder / "results/mlflow.db") as store:
            metrics = "(SELECT count(*) FROM metrics WHERE metrics.run_uuid = runs.run_uuid)"
            rows = store.execute(f"SELECT run_uuid, end_time, {metrics} FROM runs")
            return {name: (end, number) for name, end, number in rows}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_corpus: Path) -> SharedProject:
    """With the table of all runs."""
    project = SharedProject(tmp_path_factory.mktemp("shared"), with_corpus, execution=TWO_A_JOB)
    assert "6 runs to train" in project.snakemake("-n").stderr
    assert not (project.folder / "results/jobs").exists()
    said = project.snakemake(TABLE, "--quiet", "rules").stderr
    assert "6 runs to train." in said
    assert "6 of 6 runs; " in said
    return project


def test_a_second_start_trains_nothing(project: SharedProject) -> None:
    assert set(project.trained()) == KEYS
    assert len(list((project.folder / "results/jobs/small").glob("depth_width-V300-*.done"))) == 3
    assert project.planned(TABLE) == []
    assert project.planned(*records_of(KEYS)) == []
    assert "Together 6 runs, all in the pool" in project.snakemake("plan").stdout


def test_a_run_leaves_few_files(project: SharedProject) -> None:
    """Three for its record; and for each job its specs, its end, its log, and Snakemake's note of it."""
    assert len(list(project.folder.glob("results/runs/*/*"))) == 3 * len(KEYS)
    assert list(project.folder.glob("results/checkpoints/*")) == []


def test_an_added_width_makes_one_job_and_touches_no_other_run(project: SharedProject) -> None:
    before, runs = project.times(), project.in_mlflow()
    ends = {path: path.stat().st_mtime_ns for path in project.folder.glob("results/jobs/small/*")}
    project.configure(grids={"depth_width": WIDER})
    assert project.counted() == "7 runs: 6 in the pool, 1 to train"
    assert project.planned(TABLE).count("train_small") == 1
    project.snakemake(TABLE, "--quiet", "rules")
    assert set(project.trained()) - KEYS == {key_of(1, 6)}
    after, now = project.times(), project.in_mlflow()
    assert {path: after[path] for path in before} == before
    assert {path: path.stat().st_mtime_ns for path in ends} == ends
    assert {name: now[name] for name in runs} == runs
    assert len(now) == len(runs) + 1
    project.configure()
    project.snakemake(TABLE, "--quiet", "rules")
    assert project.times() == after


def test_a_changed_text_is_told_before_its_runs_are_trained_again(project: SharedProject) -> None:
    """Also of a start that ended between the documents and the training."""
    before, jobs = project.trained(), read_ledger(project.folder / "results/jobs")
    (project.folder / "texts" / "new.txt").write_text("A text that was not there before.")
    warning = "Warning: the sources of corpus prose, or their files, have changed since 6 runs trained on it"
    for target in ("results/corpora/prose/documents.parquet", TABLE):
        assert project.counted() == "6 runs to train"
        said = project.snakemake(target, "--quiet", "rules").stderr
        assert warning in said
    assert "6 runs to train." in said
    assert "0 of 6 runs; " in said
    assert project.counted() == "6 runs, all in the pool"
    after = project.trained()
    assert {key for key in before if before[key] != after[key]} == KEYS
    assert read_ledger(project.folder / "results/jobs") == jobs
    project.configure(corpus={**CONFIG["corpus"], "sources": ["folder:texts", "bible"]})
    assert project.counted() == "6 runs to train"
