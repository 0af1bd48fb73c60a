"""Storage faults, real ones: damaged checkpoints, power cuts, full disks, two processes on one run.

After each, the run is started again and must end with the history of one that nothing happened to.
"""

import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from disks import CutDisk, fill, make_room, small_disk
from job_server import warm_python
from small import SCRIPTS, small_run
from trained import (
    CPU,
    RUN,
    Stores,
    after_step,
    checkpoints_of,
    command,
    history_bytes,
    newest_step,
    start_warm,
    stop,
    train,
    wait_for_step,
)

from shapelaw.errors import UserError
from shapelaw.storage import records
from shapelaw.storage.files import replacing
from shapelaw.training import checkpoint
from shapelaw.training.checkpoint import checkpoint_paths
from shapelaw.training.trainer import Trainer, TrainingFailed

EVERY_STEP = replace(CPU, checkpoint_seconds=0.0)
Finish = Callable[[Path, int | None], str]  # the folder, the step; what was said


@pytest.fixture(scope="module")
def interrupted(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of steps 49 and 50 of the run, which was stopped there."""
    folder = tmp_path_factory.mktemp("interrupted")
    stop(RUN, stores, folder, 50, EVERY_STEP)
    assert [path.name for path in checkpoint_paths(checkpoints_of(folder, RUN))] == [
        "step-0000000050.pt",
        "step-0000000049.pt",
    ]
    return folder


@pytest.fixture
def place(interrupted: Path, tmp_path: Path) -> Path:
    """A copy of that folder, to damage."""
    return Path(shutil.copytree(interrupted, tmp_path / "results"))


@pytest.fixture
def finish(stores: Stores, undisturbed: Path, capsys: pytest.CaptureFixture[str]) -> Finish:
    """Start a folder's run again, to its end: from which step it resumes, and that nothing of it differs."""

    def finish(place: Path, resumed: int | None) -> str:
        capsys.readouterr()
        train(RUN, stores, place)
        said = capsys.readouterr().err
        steps = [int(step) for step in re.findall(r"resumed \S+ at step (\d+) of 60", said)]
        assert steps == ([] if resumed is None else [resumed]), said
        assert history_bytes(place) == history_bytes(undisturbed)
        assert not checkpoints_of(place, RUN).exists()
        return said

    return finish


# --- damaged checkpoints

DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "listed, and gone": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_falls_back_to_the_one_before(damage: str, place: Path, finish: Finish) -> None:
    newest = checkpoints_of(place, RUN) / "step-0000000050.pt"
    DAMAGES[damage](newest)
    said = finish(place, 49)
    assert f"checkpoint {newest} can't be read (" in said
    assert "set aside as step-0000000050.pt.damaged, trying the one before" in said


def test_a_damaged_checkpoint_does_not_take_the_place_of_a_good_one(
    stores: Stores, place: Path, finish: Finish
) -> None:
    """Two good ones are kept after a fall back from step 58 to 49, although 58 is the highest number for a while."""
    checkpoints = checkpoints_of(place, RUN)
    (checkpoints / "step-0000000050.pt").rename(checkpoints / "step-0000000058.pt")
    os.truncate(checkpoints / "step-0000000058.pt", 1000)
    own = checkpoints / "step-best.pt"  # of a user
    own.touch()
    stop(RUN, stores, place, 52, EVERY_STEP)
    assert [path.stem for path in checkpoint_paths(checkpoints)] == ["step-0000000052", "step-0000000051"]
    own.unlink()
    finish(place, 52)


# --- other versions


def test_a_checkpoint_of_a_later_version_is_refused_with_a_command_and_kept(
    stores: Stores, place: Path, finish: Finish
) -> None:
    path = checkpoints_of(place, RUN) / "step-0000000050.pt"
    checkpoint.save_checkpoint(path.parent, 50, {**checkpoint.read_checkpoint(path), "schema_version": 3})
    with pytest.raises(UserError, match="has schema version 3, and this shapelaw reads version 2") as refused:
        train(RUN, stores, place)
    assert path.exists()
    subprocess.run(str(refused.value).rpartition(": ")[2], shell=True, check=True)
    finish(place, None)


def test_a_checkpoint_that_the_model_does_not_fit_is_refused_with_a_command(
    stores: Stores, place: Path
) -> None:
    path = checkpoints_of(place, RUN) / "step-0000000050.pt"
    state = checkpoint.read_checkpoint(path)
    state["model"] = {name.replace("qkv", "kqv"): weights for name, weights in state["model"].items()}
    checkpoint.save_checkpoint(path.parent, 50, state)
    with pytest.raises(UserError, match=rf"{path} doesn't fit this version of the code \(.*: rm -r {place}"):
        train(RUN, stores, place)


# --- power cuts


def test_what_is_written_survives_a_power_cut(tmp_path: Path) -> None:
    with CutDisk(tmp_path) as disk:
        for name, content in (("renamed", b"new" * 2000), ("plain", b"x" * 6000)):
            (disk.folder / "unflushed").write_bytes(content)
            (disk.folder / "unflushed").rename(disk.folder / name)
        with replacing(disk.folder / "a" / "b" / "file") as temporary:
            temporary.write_bytes(b"old" * 2000)
        disk.cut_power(tmp_path / "first")
        with replacing(disk.folder / "a" / "b" / "file") as temporary:
            temporary.write_bytes(b"new" * 3000)
            disk.cut_power(tmp_path / "second")
        disk.cut_power(tmp_path / "third")
    found = [(tmp_path / name / "a" / "b" / "file").read_bytes() for name in ("first", "second", "third")]
    assert found == [b"old" * 2000, b"old" * 2000, b"new" * 3000]
    # the cut is a real one: what nothing flushed is lost
    assert [(tmp_path / "third" / name).read_bytes() for name in ("renamed", "plain")] != [
        b"new" * 2000,
        b"x" * 6000,
    ]


# --- full disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as folder:
        yield folder


def test_a_disk_that_fills_up_stops_the_run_with_a_sentence_and_a_checkpoint(
    stores: Stores, disk: Path, finish: Finish
) -> None:
    """What the failed attempt took is given back, so that the status says why the run ended."""
    with after_step(20, lambda: fill(disk, leave=100_000)), pytest.raises(TrainingFailed) as failed:
        train(RUN, stores, disk, EVERY_STEP)
    assert str(failed.value) == (
        f"{checkpoints_of(disk, RUN) / 'step-0000000020.pt'} can't be written (No space left on device); "
        "free some space and start again: the run resumes at step 19."
    )
    assert not [path for path in checkpoints_of(disk, RUN).iterdir() if path.name.endswith(".tmp")]
    found = records.read_record(checkpoints_of(disk, RUN))
    assert (found.status, found.live["step"], found.live["message"]) == ("FAILED", 20, str(failed.value))
    make_room(disk)
    finish(disk, 19)


def test_a_status_that_can_not_be_written_ends_no_run(
    stores: Stores, disk: Path, undisturbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the notes for people fail; there is space again before the next checkpoint."""
    with after_step(20, lambda: fill(disk)), after_step(25, lambda: make_room(disk)):
        train(RUN, stores, disk, replace(CPU, live_seconds=0.0))
    assert capsys.readouterr().err.count("can't be written (No space left on device)") == 1  # said once
    assert history_bytes(disk) == history_bytes(undisturbed)


def test_a_disk_that_fills_up_before_the_record_costs_nothing_where_a_checkpoint_can_make_room(
    stores: Stores, disk: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = Trainer.summary
    monkeypatch.setattr(Trainer, "summary", lambda trainer: (fill(disk), summary(trainer))[1])
    train(RUN, stores, disk, EVERY_STEP)
    assert history_bytes(disk) == history_bytes(undisturbed)


def test_a_disk_that_fills_up_before_the_record_loses_no_checkpoint(
    stores: Stores, disk: Path, monkeypatch: pytest.MonkeyPatch, finish: Finish
) -> None:
    """Another process takes what the older checkpoint gave."""
    keep_newest = checkpoint.keep_newest

    def at_once_taken(folder: Path, number: int) -> bool:
        freed = keep_newest(folder, number)
        if number == 1:
            fill(disk)
        return freed

    summary = Trainer.summary
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "summary", lambda trainer: (fill(disk), summary(trainer))[1])
        patch.setattr(checkpoint, "keep_newest", at_once_taken)
        with pytest.raises(TrainingFailed) as failed:
            train(RUN, stores, disk, EVERY_STEP)
    assert re.fullmatch(
        rf"{disk}/runs/\S+ can't be written \(No space left on device\); free some space and start again: "
        r"the run resumes at step 59\.",
        str(failed.value),
    )
    make_room(disk)
    finish(disk, 59)


def test_a_run_is_not_started_on_a_full_disk(stores: Stores, disk: Path) -> None:
    fill(disk)
    with pytest.raises(
        (TrainingFailed, UserError), match=r"can't be written \(No space left on device\); free"
    ):
        train(RUN, stores, disk)


def test_a_full_disk_that_has_the_log_too_leaves_an_exit_code(stores: Stores, disk: Path) -> None:
    line = command(RUN, stores, disk)
    log = disk / "log"
    log.touch()
    fill(disk)
    with log.open("w") as file:
        done = subprocess.run([warm_python(), *line], stdout=file, stderr=subprocess.STDOUT, check=False)
    assert done.returncode in (1, 2)
    assert log.read_text() == ""


def test_the_corpus_commands_say_that_the_disk_is_full(disk: Path, tmp_path: Path) -> None:
    """Each of the three writers, as a process; what it began is gone, and with space it works."""
    texts = tmp_path / "texts"
    texts.mkdir()
    letters = random.Random(0)  # which document is of which split follows from its text
    for number in range(40):
        (texts / f"{number}.txt").write_text(f"document {number}: " + letters.randbytes(5000).hex())
    documents, tokenizer, store = (
        disk / name for name in ("documents.parquet", "tokenizer.json", "train.json")
    )
    commands = {
        documents: ["prepare_corpus.py", "--source", f"folder:{texts}"],
        tokenizer: ["train_tokenizer.py", "--documents", str(documents), "--vocab-size", "257"],
        store: [
            *("encode_corpus.py", "--documents", str(documents), "--tokenizer", str(tokenizer)),
            *("--split", "train", "--workers", "1"),
        ],
    }
    for out, (script, *options) in commands.items():
        line = [str(warm_python()), str(SCRIPTS / script), *options, "--out", str(out)]
        there = set(os.listdir(disk))
        fill(disk, leave=4096)
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "can't be written (No space left on device); free some space and start again." in done.stderr
        assert set(os.listdir(disk)) == there | {"ballast"}
        make_room(disk)
        subprocess.run(line, check=True)


# --- leftovers and rivals


@pytest.mark.slow
def test_a_process_that_waits_goes_on_where_the_one_before_was_killed(stores: Stores, tmp_path: Path) -> None:
    run = small_run(steps=50_000)  # so that it does not end before the other begins
    line = command(run, stores, tmp_path, "--checkpoint-minutes", "0.001")
    first = start_warm(line)
    wait_for_step(first, tmp_path)
    other = start_warm([*line, "--wait-minutes", "5"])
    said = other.stderr.readline()
    assert (
        f"waiting for another process that trains the run of {checkpoints_of(tmp_path, run)} (process" in said
    )
    reached = newest_step(tmp_path)
    first.kill()
    first.communicate()
    resumed = re.match(rf"resumed {run.key} at step (\d+) of 50000", other.stderr.readline())
    assert resumed is not None
    assert int(resumed[1]) >= reached
    other.send_signal(signal.SIGTERM)
    other.communicate(timeout=600)
    assert other.returncode == 128 + signal.SIGTERM
