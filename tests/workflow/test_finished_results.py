"""Finished results of every kind of run, in which today's code must find nothing to do.

Where a change is meant to schedule old results again, `python tests/finished.py` trains and keeps new ones.
"""

from pathlib import Path

import pytest
from finished import FinishedProject

from shapelaw.storage.records import read_record

TRAINING = {"train_large", "train_medium", "train_pack", "train_packed", "train_small", "take_packed"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> FinishedProject:
    """With nothing changed."""
    return FinishedProject(tmp_path_factory.mktemp("finished"))


def test_nothing_is_trained_again(project: FinishedProject) -> None:
    assert not TRAINING & set(project.planned()), project.reasons()


def test_nothing_is_to_be_done(project: FinishedProject) -> None:
    """A command of a study may change on purpose: then its tables are made anew, and this archive with them."""
    assert project.planned() == [], project.reasons()


def test_every_rule_that_makes_a_file_is_among_them(project: FinishedProject) -> None:
    """Else a changed rule would go unseen."""
    listed = project.snakemake("--list-rules", "--quiet", "all").stdout.split()
    made = {
        row.split("\t")[2] for row in project.snakemake("--summary").stdout.splitlines()[1:] if "\t" in row
    }
    assert set(listed) - made == {"all", "plan", "laptop_runs"}  # the last reads a file of the checkout
    assert made >= TRAINING


def test_old_records_are_read(project: FinishedProject) -> None:
    records = [read_record(path.parent) for path in project.folder.glob("results/runs/*/*/summary.json")]
    assert len(records) == len(list(project.folder.glob("results/runs/*/*")))
    for record in records:
        assert record.status == "FINISHED"
        assert (record.directory.parent.name, record.directory.name) == (record.run.study, record.run.key)
        assert record.summary["spec_digest"] == record.run.digest


def test_one_more_space_in_the_shell_text_of_a_training_rule_is_seen(tmp_path: Path) -> None:
    project = FinishedProject(tmp_path)
    for rules, scripts in {
        "train.smk": ["train.py", "train_pack.py"],
        "packed.smk": ["train_packed.py"],
    }.items():
        path = project.folder / "workflow" / "rules" / rules
        text = path.read_text()
        for script in scripts:
            assert text.count(f"$SCRIPTS/{script} ") == 1
            text = text.replace(f"$SCRIPTS/{script} ", f"$SCRIPTS/{script}  ")
        path.write_text(text)
    assert set(project.planned()) >= TRAINING
