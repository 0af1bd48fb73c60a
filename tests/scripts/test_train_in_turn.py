"""The commands of a pack: one run that can't be trained costs no other, and every sentence says what to do."""

import fcntl
import json
import subprocess
import sys
from pathlib import Path

import pytest
from disks import fill, small_disk
from job_server import warm_python
from small import SCRIPTS, small_run

import train_in_turn
from shapelaw.corpora.token_store import TokenStore
from shapelaw.specs.runs import Run, run_to_dict
from shapelaw.storage import records

Stores = tuple[TokenStore, TokenStore]
FIRST, SECOND = (small_run(seed, steps=10, log_every=5, evaluate_every=10, warmup_steps=0) for seed in (0, 1))
OTHER_VERSION = {"schema_version": 0, "key": FIRST.key}


def checkpoints_of(folder: Path, run: Run) -> Path:
    path = folder / "checkpoints" / run.key
    path.mkdir(parents=True, exist_ok=True)
    return path


def train(
    stores: Stores, folder: Path, *runs: Run, store: Path | None = None
) -> subprocess.CompletedProcess[str]:
    specs = json.dumps([run_to_dict(run) for run in runs])
    command = [
        *(
            str(warm_python()),
            str(SCRIPTS / "train_in_turn.py"),
            "--specs",
            specs,
            "--device",
            "cpu",
            "--threads",
            "1",
        ),
        *("--train-store", str(store or stores[0].path), "--test-store", str(stores[1].path)),
        *("--checkpoints", str(folder / "checkpoints"), "--out", str(folder / "pack.json")),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def take(folder: Path, run: Run, out: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [
        *(
            str(warm_python()),
            str(SCRIPTS / "take_record.py"),
            "--checkpoints",
            str(checkpoints_of(folder, run)),
        ),
        *("--pack", str(folder / "pack.json"), "--out", str(out or folder / "runs" / run.key)),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_of_another_version_costs_no_other_of_its_pack(stores: Stores, tmp_path: Path) -> None:
    records.write_json(checkpoints_of(tmp_path, FIRST) / "spec.json", OTHER_VERSION)
    done = train(stores, tmp_path, FIRST, SECOND)
    assert done.returncode == 0, done.stderr
    assert "has record schema version 0" in done.stderr
    assert take(tmp_path, SECOND).returncode == 0
    assert records.read_record(tmp_path / "runs" / SECOND.key).status == records.FINISHED
    refused = take(tmp_path, FIRST)
    assert refused.returncode == 1
    sentence, command = refused.stderr.splitlines()
    assert "has record schema version 0" in sentence
    assert command.endswith(
        f": rm -f {tmp_path}/pack.json && snakemake {tmp_path}/runs/{FIRST.key}/summary.json"
    )


def test_a_run_that_another_process_trains_costs_no_other_of_its_pack(stores: Stores, tmp_path: Path) -> None:
    with (checkpoints_of(tmp_path, FIRST) / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = train(stores, tmp_path, FIRST, SECOND)
    assert done.returncode == 0, done.stderr
    assert "Another process is training the run of" in done.stderr
    outcomes = json.loads((tmp_path / "pack.json").read_text())
    assert outcomes[SECOND.key] == "FINISHED"
    assert "Another process is training" in take(tmp_path, FIRST).stderr


def test_where_no_run_can_be_trained_the_job_fails(stores: Stores, tmp_path: Path) -> None:
    for run in (FIRST, SECOND):
        records.write_json(checkpoints_of(tmp_path, run) / "spec.json", OTHER_VERSION)
    done = train(stores, tmp_path, FIRST, SECOND)
    assert done.returncode == 2
    assert done.stderr.count("has record schema version 0") == 2
    assert not (tmp_path / "pack.json").exists()


def test_stores_that_can_not_be_read_are_told_once(stores: Stores, tmp_path: Path) -> None:
    done = train(stores, tmp_path, FIRST, SECOND, store=tmp_path / "nowhere.json")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "nowhere.json" in done.stderr


def test_a_disk_that_is_full_before_a_run_begins_ends_the_pack(stores: Stores, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        done = train(stores, disk, FIRST, SECOND)
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_record_that_can_not_be_written_is_a_sentence(stores: Stores, tmp_path: Path) -> None:
    assert train(stores, tmp_path, FIRST).returncode == 0
    (tmp_path / "file").write_text("")
    done = take(tmp_path, FIRST, tmp_path / "file" / FIRST.key)
    assert done.returncode == 1
    assert done.stderr.endswith("make its folder one that you can write to and start again.\n")
    assert len(done.stderr.splitlines()) == 1


def test_a_run_under_way_has_no_sentence_of_its_own(tmp_path: Path) -> None:
    """Its live record has a message, which is null."""
    live = {"status": "RUNNING", "message": None}
    records.write_live(checkpoints_of(tmp_path, FIRST), live)
    done = take(tmp_path, FIRST)
    assert done.returncode == 1
    assert "None" not in done.stderr
    assert f"{FIRST.key} has no finished record of this run." in done.stderr


@pytest.mark.parametrize(
    ("specs", "sentence"),
    [
        ("@nothing.json", "--specs @nothing.json: the file can't be read (No such file or directory)."),
        ("[{]", "--specs [{] is not a JSON list of specs of runs"),
    ],
)
def test_specs_that_cannot_be_read_are_told_from_those_that_are_none(
    specs: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--specs", specs, "--checkpoints", "c", "--out", "o.json")
    monkeypatch.setattr(
        sys, "argv", ["train_in_turn.py", *options, "--train-store", "a", "--test-store", "b"]
    )
    assert train_in_turn.main() == 2
    assert sentence in capsys.readouterr().err
