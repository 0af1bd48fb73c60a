"""The commands of a pack: one run that can't be trained costs no other, and every sentence says what to do."""

import fcntl
import json
import subprocess
from pathlib import Path

import pytest
from commands import script, sentence_of
from disks import fill, small_disk
from small import small_run

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
    return script(
        *("train_in_turn", "--specs", specs, "--device", "cpu", "--threads", 1),
        *("--train-store", store or stores[0].path, "--test-store", stores[1].path),
        *("--checkpoints", folder / "checkpoints", "--out", folder / "pack.json"),
    )


def take(folder: Path, run: Run, out: Path | None = None) -> subprocess.CompletedProcess[str]:
    given = ("--checkpoints", checkpoints_of(folder, run), "--pack", folder / "pack.json")
    return script("take_record", *given, "--out", out or folder / "runs" / run.key)


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
    # a record that has no place
    (tmp_path / "file").write_text("")
    refused = take(tmp_path, SECOND, tmp_path / "file" / SECOND.key)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
    assert refused.stderr.endswith("make its folder one that you can write to and start again.\n")


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
    nowhere = train(stores, tmp_path, FIRST, SECOND, store=tmp_path / "nowhere.json")
    assert (nowhere.returncode, len(nowhere.stderr.splitlines())) == (2, 1)
    assert "nowhere.json" in nowhere.stderr


def test_a_disk_that_is_full_before_a_run_begins_ends_the_pack(stores: Stores, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        done = train(stores, disk, FIRST, SECOND)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "No space left on device" in done.stderr


def test_a_run_under_way_has_no_sentence_of_its_own(tmp_path: Path) -> None:
    """Its live record has a message, which is null."""
    records.write_live(checkpoints_of(tmp_path, FIRST), {"status": "RUNNING", "message": None})
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
def test_specs_that_cannot_be_read_are_told_from_those_that_are_none(specs: str, sentence: str) -> None:
    options = ("--checkpoints", "c", "--out", "o.json", "--train-store", "a", "--test-store", "b")
    assert sentence in sentence_of("train_in_turn", "--specs", specs, *options)
