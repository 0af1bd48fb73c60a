"""Finished results of every kind of run, in which today's code must find nothing to do.

Where a change is meant to schedule old results again, `python tests/finished.py` trains and keeps new ones.
"""

import json
import re
from pathlib import Path

import pytest
from finished import FinishedProject
from trained import CPU, record_of

from shapelaw.storage.records import RUNS, read_record
from shapelaw.training.driver import driving, stores_in

TRAINING = {"train_large", "train_medium", "train_small"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> FinishedProject:
    """With nothing changed."""
    return FinishedProject(tmp_path_factory.mktemp("finished"))


def test_nothing_is_to_be_done(project: FinishedProject) -> None:
    """A command of a study may change on purpose: then its tables are made anew, and this archive with them."""
    assert project.planned() == [], project.reasons()


def test_every_rule_that_makes_a_file_is_among_them(project: FinishedProject) -> None:
    """Else a changed rule would go unseen."""
    listed = project.snakemake("--list-rules", "--quiet", "all").stdout.split()
    made = {
        row.split("\t")[2] for row in project.snakemake("--summary").stdout.splitlines()[1:] if "\t" in row
    }
    by_name = {"all", "plan", "perplexity", "measure_perplexity", "record"}
    assert set(listed) - made == {*by_name, "committed_runs"}  # the last reads a file of the checkout
    assert made >= TRAINING


def test_old_records_are_read(project: FinishedProject) -> None:
    records = [read_record(path.parent) for path in project.folder.glob("results/runs/*/summary.json")]
    assert len(records) == len([one for one in project.folder.glob("results/runs/*") if one.is_dir()])
    for record in records:
        assert record.status == "FINISHED"
        assert record.directory.name == record.run.key
        assert record.summary["spec_digest"] == record.run.digest


def test_todays_code_trains_to_the_same_losses(project: FinishedProject, tmp_path: Path) -> None:
    """An option's default must be what the code did before the option: no name or digest tells it.

    A change that is meant needs another `TRAINING_VERSION`.
    """
    results = project.folder / "results"
    stores_of = stores_in(results / "corpora")
    paths = sorted(results.glob(f"{RUNS}/prose-*-s0-*"))
    before = [read_record(path) for path in paths]
    found = {}
    with driving(tmp_path, stores_of, CPU) as driver:
        for record in before:
            driver.train([record.run])
            found[record.run.key] = read_record(record_of(tmp_path, record.run)).summary["test_loss"]
    assert found == pytest.approx({one.run.key: one.summary["test_loss"] for one in before}, rel=1e-4)


def test_every_job_took_some_time(project: FinishedProject) -> None:
    """The report's panel of runtimes has a logarithmic axis: one that is zero or below would empty it."""
    noted = [json.loads(path.read_text()) for path in (project.folder / ".snakemake" / "metadata").iterdir()]
    assert len(noted) > 300
    assert {one["rule"] for one in noted if one["endtime"] <= one["starttime"]} == set()


def test_a_command_that_is_written_differently_schedules_nothing(project: FinishedProject) -> None:
    """Whatever a profile of the user's own says. The archive itself was made under other names of rules and scripts."""
    rules = {path: path.read_text() for path in (project.folder / "workflow" / "rules").glob("*.smk")}
    before = project.planned()
    own = project.folder / "own" / "config.yaml"
    own.parent.mkdir()
    own.write_text("rerun-triggers: [mtime, code]\n")
    try:
        for path, text in rules.items():
            path.write_text(text.replace('python "$', 'python  "$'))
        assert sum(text.count('python "$') for text in rules.values()) >= 12
        assert project.planned("--profile", "own") == before, project.reasons()
        assert set(project.planned("--workflow-profile", "none")) & TRAINING
    finally:
        for path, text in rules.items():
            path.write_text(text)


def test_a_new_version_of_the_training_code_trains_every_run_again(tmp_path: Path) -> None:
    project = FinishedProject(tmp_path)
    for module in ("runs", "memorizers", "degrees"):
        path = project.folder / "scripts" / "shapelaw" / "specs" / f"{module}.py"
        text, number = re.subn(r"(?m)^([A-Z]+_VERSION) = (\d+)", r"\1 = 1\2", path.read_text())
        assert number >= 1
        path.write_text(text)
    assert set(project.planned()) >= TRAINING
