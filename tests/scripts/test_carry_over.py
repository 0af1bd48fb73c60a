"""Runs of before the pool in it: the same losses under today's keys, and what was under way goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import script
from memorizer_options import RUN as MEMORIZER
from memorizer_options import varied
from small import REPOSITORY, small_run
from trained_here import CPU, Stores

from shapelaw.specs.kinds import AnyRun, spec_to_dict
from shapelaw.specs.runs import Run, digest_of
from shapelaw.storage import records
from shapelaw.storage.files import COPY, FILES, content, fold, has
from shapelaw.storage.pool import read_asked
from shapelaw.training import checkpoint, loop
from shapelaw.training.memorizer_pack import MemorizerPack
from shapelaw.training.pack_runs import train_packs
from shapelaw.training.trainer import Runtime, Trainer

STUDY = "depth_width"
RUN = small_run(steps=30, evaluate_every=15)
EACH_STEP = replace(CPU, checkpoint_seconds=0.0)
PACK = [replace(run, stop_when_memorized=False) for run in varied(replace(MEMORIZER, keep_attention=True))]


# --- as things lay before


def old_key(run: AnyRun) -> str:
    """Without digits of the digest, and with the rank of every embedding."""
    if not isinstance(run, Run):
        return run.label
    return run.label.replace(f"-d{run.shape.width}-", f"-d{run.shape.width}-r{run.shape.width}-")


def old_spec(run: AnyRun, study: str, *varied: str) -> dict[str, Any]:
    """The study was a part of the spec, and so was what its keys had to say of the recipe."""
    return {**spec_to_dict(run), "study": study, **({"varied": list(varied)} if varied else {})}


def move_back(results: Path, old: Path, study: str, *varied: str) -> Path:
    """Bring all runs of a pool into a results folder of before, as runs of one study; returns that folder."""
    digests = {}
    for place in ("runs", "checkpoints"):
        for folder in sorted(path for path in (results / place).glob("*/") if has(path, "spec.json")):
            run = records.read_record(folder).run
            spec = old_spec(run, study, *varied)
            digests[run.key] = (old_key(run), digest_of(spec))
            move_run(folder, old / place / study / old_key(run), run.key, spec)
    for number, members in enumerate(sorted((results / "checkpoints").glob("pack-*/members.json"))):
        target, mark = old / "checkpoints" / study / f"pack-{number:016}", f"{number:016}"
        of_pack = dict(digests[key] for key in json.loads(members.read_text()))
        for path in reversed(checkpoint.checkpoint_paths(members.parent)):
            state = checkpoint.read_checkpoint(path)
            keys = [digests[key][0] for key in state["keys"]]
            checkpoint.save_checkpoint(target, int(path.stem[5:]), state | {"identity": mark, "keys": keys})
        records.write_json(target / "members.json", of_pack)
        shutil.rmtree(members.parent)
    return old


def move_run(folder: Path, target: Path, key: str, spec: Mapping[str, Any]) -> None:
    """One run's folder."""
    target.mkdir(parents=True)
    copied = (folder / COPY).exists()
    if copied:
        for name in FILES:
            (folder / name).write_bytes(content(folder, name))
        (folder / COPY).unlink()

    def before(values: Mapping[str, Any]) -> dict[str, Any]:
        """What a summary or a live state said of its run."""
        identity = "-".join([digest_of(spec), *values["identity"].split("-")[1:]])
        own = {"key": target.name, "study": spec["study"], "spec_digest": digest_of(spec)}
        return {**values, **own, "identity": identity}

    for path in sorted(folder.iterdir()):
        if path.name == "spec.json":
            records.write_json(target / path.name, {"schema_version": 1, "key": target.name, **spec})
        elif path.name == "summary.json":
            records.write_summary(target, before(json.loads(path.read_text())))
        elif path.name == "live.json":
            records.write_live(target, before(json.loads(path.read_text())))
        elif path.suffix == ".pt":
            state = before(checkpoint.read_checkpoint(path))
            checkpoint.save_checkpoint(target, int(path.stem[5:]), state)
        else:
            shutil.copy(path, target)
    if copied:
        fold(target)
    shutil.rmtree(folder)


# --- what is compared


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder but locks, which are empty or say who held them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def carry(folder: Path, *old: Path, code: int = 0) -> list[str]:
    """Carry over into the folder's `pool`; returns what was said."""
    done = script("carry_over", *old, "--into", folder / "pool", cwd=folder)
    assert done.returncode == code, done.stderr
    return done.stderr.splitlines()


def train(run: Run, stores: Stores, results: Path, runtime: Runtime = CPU) -> None:
    """As a job of the workflow, which leaves the copy of the record in one file."""
    loop.train(run, *stores, results / "runs" / run.key, results / "checkpoints" / run.key, runtime)
    fold(results / "checkpoints" / run.key)


def stop_at(step: int, run: Run, stores: Stores, results: Path) -> None:
    """Train until the process is told to stop after a step."""
    one_step = Trainer.step

    def stepping(trainer: Trainer) -> float:
        loss = one_step(trainer)
        if trainer.progress.step == step:
            signal.raise_signal(signal.SIGTERM)
        return loss

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "step", stepping)
        with pytest.raises(loop.Stopped):
            train(run, stores, results, EACH_STEP)


@pytest.fixture(scope="module")
def finished(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool with one finished run."""
    results = tmp_path_factory.mktemp("finished")
    train(RUN, stores, results)
    return results


@pytest.fixture
def old(finished: Path, tmp_path: Path) -> Path:
    """The same run in a results folder of before."""
    return move_back(copy_of(finished, tmp_path / "before"), tmp_path / "old", STUDY)


def copy_of(folder: Path, target: Path) -> Path:
    return Path(shutil.copytree(folder, target))


# --- finished records


def test_a_finished_record_and_its_copy_are_as_the_pool_would_have_them(
    finished: Path, old: Path, tmp_path: Path
) -> None:
    """The folder of before stays as it was; carried over again, nothing changes."""
    before = files(old)
    assert f"checkpoints/{STUDY}/{old_key(RUN)}/record.zip" in before
    (said,) = carry(tmp_path, old)
    assert said == f"{old}: 1 runs; carried over 1 finished ones, 0 under way and 0 packs."
    pool = files(tmp_path / "pool")
    assert json.loads(pool.pop("runs/studies.json")) == {STUDY: [RUN.key]}
    assert pool == files(finished)
    assert files(old) == before
    (said,) = carry(tmp_path, old)
    assert said == f"{old}: 1 runs; carried over 0 finished ones, 0 under way and 0 packs."
    assert files(tmp_path / "pool").items() >= pool.items()


def test_other_losses_of_the_same_run_are_told_and_those_of_the_pool_stay(
    finished: Path, old: Path, tmp_path: Path
) -> None:
    """As of two machines. A record of each study is compared, and so is its copy."""
    again = copy_of(finished, tmp_path / "again")
    for place in ("runs", "checkpoints"):
        change_losses(again / place / RUN.key)
    move_back(again, old, "vocabulary")
    said = carry(tmp_path, old, code=1)
    pool = tmp_path / "pool"
    for place in ("runs", "checkpoints"):
        theirs = old / place / "vocabulary" / old_key(RUN)
        assert f"{theirs} has other losses than {pool / place / RUN.key}, which stays." in said
    assert files(pool).items() >= files(finished).items()
    assert read_asked(pool) == {STUDY: [RUN.key], "vocabulary": [RUN.key]}


def test_a_run_under_way_in_the_pool_has_no_other_losses_than_its_finished_record(
    stores: Stores, finished: Path, old: Path, tmp_path: Path
) -> None:
    pool = tmp_path / "pool"
    stop_at(17, RUN, stores, pool)
    under_way = files(pool)
    carry(tmp_path, old)
    assert files(pool / "runs" / RUN.key) == files(finished / "runs" / RUN.key)
    assert files(pool).items() >= under_way.items()


def change_losses(folder: Path) -> None:
    """In a finished record, in one file or three."""
    folded = (folder / COPY).exists()
    rows = [list(row.values()) for row in records.read_record(folder).history.to_pylist()]
    rows = [[float("nan") if value is None else value for value in row] for row in rows]
    rows[0][1] += 1e-9
    summary = records.read_record(folder).summary
    (folder / COPY).unlink(missing_ok=True)
    records.write_spec(folder, RUN)
    records.write_history(folder, rows)
    records.write_summary(
        folder, {name: value for name, value in summary.items() if name != "history_sha256"}
    )
    if folded:
        fold(folder)


def test_a_damaged_record_and_one_of_an_earlier_training_are_told_and_the_others_are_carried(
    stores: Stores, finished: Path, tmp_path: Path
) -> None:
    results, other = copy_of(finished, tmp_path / "before"), replace(RUN, seed=1)
    train(other, stores, results)
    old = move_back(results, tmp_path / "old", STUDY)
    shutil.rmtree(old / "checkpoints")
    mine, damaged = (old / "runs" / STUDY / old_key(run) for run in (RUN, other))
    (damaged / "history.parquet").write_bytes(b"PAR1")
    carried, told = carry(tmp_path, old, code=1)
    assert "1 runs; carried over 1 finished ones" in carried
    assert told.startswith(f"The record {damaged} is damaged or half written: history.parquet")
    assert [path.name for path in (tmp_path / "pool" / "runs").glob("*/")] == [RUN.key]
    spec = json.loads((mine / "spec.json").read_text())
    (mine / "spec.json").write_text(json.dumps({**spec, "training_version": 1}))
    assert (
        f"{mine} was trained by version 1 of the training, and today's is 2: its losses are another run's."
        in carry(tmp_path, old, code=1)
    )


def test_a_folder_without_runs_of_before_is_a_sentence(finished: Path, tmp_path: Path) -> None:
    """An empty one, none at all, and a pool."""
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "none", finished):
        (said,) = carry(tmp_path, folder, code=2)
        assert said == (
            f"{folder} has no runs of before the pool: no runs/<study>/<key> and no checkpoints/<study>/<key>."
        )
    assert not (tmp_path / "pool").exists()


# --- runs under way


def test_a_run_under_way_goes_on_in_the_pool_to_the_same_history(
    stores: Stores, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From its newest checkpoint that is whole."""
    stop_at(17, RUN, stores, tmp_path / "before")
    old = move_back(tmp_path / "before", tmp_path / "old", STUDY)
    newest, before = checkpoint.checkpoint_paths(old / "checkpoints" / STUDY / old_key(RUN))
    assert [newest.stem, before.stem] == ["step-0000000017", "step-0000000016"]
    newest.write_bytes(newest.read_bytes()[:-100])
    told, said = carry(tmp_path, old)
    assert told.startswith(f"checkpoint {newest} can't be read (it is not whole)")
    assert said == f"{old}: 1 runs; carried over 0 finished ones, 1 under way and 0 packs."
    pool = tmp_path / "pool"
    live = records.read_record(pool / "checkpoints" / RUN.key)
    assert (live.status, live.live["step"], live.live["key"]) == ("KILLED", 17, RUN.key)
    assert "study" not in live.live
    capsys.readouterr()
    train(RUN, stores, pool)
    assert f"resumed {RUN.key} at step 16 of 30" in capsys.readouterr().err
    history = Path("runs") / RUN.key / "history.parquet"
    assert (pool / history).read_bytes() == (finished / history).read_bytes()
    assert records.read_record(pool / "runs" / RUN.key).summary["attempts"] == 2
    carry(tmp_path, old)  # what is finished meanwhile stays finished
    assert not (pool / "checkpoints" / RUN.key / "live.json").exists()


def test_checkpoints_of_another_recipe_of_that_key_are_left_behind(
    stores: Stores, finished: Path, tmp_path: Path
) -> None:
    """A key did not say the whole recipe, so that a folder could have those of the one before."""
    other = replace(RUN, training=replace(RUN.training, warmup_steps=7))
    assert other.label == RUN.label
    for run, step in ((other, 20), (RUN, 10)):
        stop_at(step, run, stores, tmp_path / run.key)
        move_back(tmp_path / run.key, tmp_path / f"old-{run.key}", STUDY)
    theirs, mine = (
        tmp_path / f"old-{run.key}" / "checkpoints" / STUDY / old_key(run) for run in (other, RUN)
    )
    for path in theirs.glob("*.pt"):
        shutil.copy(path, mine)
    carry(tmp_path, tmp_path / f"old-{RUN.key}")
    checkpoints = checkpoint.checkpoint_paths(tmp_path / "pool" / "checkpoints" / RUN.key)
    assert [path.stem for path in checkpoints] == ["step-0000000010", "step-0000000009"]
    train(RUN, stores, tmp_path / "pool")
    history = Path("runs") / RUN.key / "history.parquet"
    assert (tmp_path / "pool" / history).read_bytes() == (finished / history).read_bytes()
    # where the process ended just after it had begun with another recipe
    shutil.copy(theirs / "live.json", mine)
    _, told = carry(tmp_path, tmp_path / f"old-{RUN.key}", code=1)
    assert told == f"{mine} says in its spec.json another run than in its other files; train it again."


# --- packs


@pytest.fixture
def model_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of models of each step of a pack in this process, which is told to stop after the 120th."""
    done, original = list[int](), MemorizerPack.step

    def step(pack: MemorizerPack) -> None:
        original(pack)
        done.append(len(pack.runs))
        if len(done) == 120:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(MemorizerPack, "step", step)
    return done


@pytest.mark.usefixtures("one_thread")
def test_a_pack_under_way_goes_on_in_the_pool_to_the_same_histories(
    tmp_path: Path, model_steps: list[int]
) -> None:
    """Models of 300 and 700 steps."""

    def train_pack(results: Path) -> None:
        runtime = Runtime("cpu", checkpoint_seconds=1e9)
        train_packs([PACK], results / "runs", results / "checkpoints", runtime)

    with pytest.raises(loop.Stopped):
        train_pack(tmp_path / "before")
    train_pack(tmp_path / "undisturbed")
    undisturbed = [len(model_steps) - 120, sum(model_steps[120:])]
    assert undisturbed == [700, 2 * 300 + 700]
    old = move_back(tmp_path / "before", tmp_path / "old", "memorization_heads")
    assert len(list(old.glob("checkpoints/memorization_heads/pack-*/step-*.pt"))) == 1
    (said,) = carry(tmp_path, old)
    assert said == f"{old}: 3 runs; carried over 0 finished ones, 3 under way and 1 packs."
    pool = tmp_path / "pool"
    assert [path.name for path in pool.glob("checkpoints/*/members.json")] == ["members.json"]
    model_steps.extend([0] * 120)  # no further stop
    before = sum(model_steps)
    train_pack(pool)
    assert sum(model_steps) - before == undisturbed[1] - 3 * 120
    for run in PACK:
        for name in ("history.parquet", "attention.npz"):
            theirs, mine = (
                (tmp_path / place / "runs" / run.key / name).read_bytes() for place in ("undisturbed", "pool")
            )
            assert mine == theirs
    (said,) = carry(tmp_path, old)  # the pack is done meanwhile
    assert said.endswith("carried over 0 finished ones, 0 under way and 0 packs.")


@pytest.mark.usefixtures("one_thread")
def test_memorizers_bring_their_attention_and_the_networks_beside_them(tmp_path: Path) -> None:
    results = tmp_path / "before"
    train_packs([PACK[:2]], results / "runs", results / "checkpoints", CPU)
    for run in PACK[:2]:
        fold(results / "checkpoints" / run.key)
        relu = {"accuracy": 0.5, "spec_digest": run.digest}
        records.write_json(results / "checkpoints" / run.key / "relu.json", relu)
    whole = files(results)
    old = move_back(results, tmp_path / "old", "memorization_heads")
    for path in old.rglob("relu.json"):
        path.write_text('{"accuracy": 0.5, "spec_digest": "of before"}')
    carry(tmp_path, old)
    pool = files(tmp_path / "pool")
    assert pool.pop("runs/studies.json")
    assert pool == whole
    assert len([name for name in pool if name.endswith("attention.npz")]) == 4


def test_a_pack_whose_models_are_of_another_recipe_is_left_behind(
    tmp_path: Path, model_steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime("cpu", checkpoint_seconds=1e9)
    with pytest.raises(loop.Stopped):
        train_packs([PACK], tmp_path / "before/runs", tmp_path / "before/checkpoints", runtime)
    old = move_back(tmp_path / "before", tmp_path / "old", "memorization_heads")
    (path,) = old.glob("checkpoints/*/pack-*/members.json")
    members = json.loads(path.read_text())
    path.write_text(json.dumps(dict.fromkeys(members, "0123456789abcdef")))
    (said,) = carry(tmp_path, old)
    assert said.endswith("3 under way and 0 packs.")
    path.write_text("{")
    told, said = carry(tmp_path, old)
    assert told.startswith(f"{path} can't be read")
    assert said.endswith("0 under way and 0 packs.")


# --- archives


def archive_of(folder: Path, path: Path) -> Path:
    with tarfile.open(path, "w:xz") as archive:
        for place in sorted(folder.iterdir()):
            archive.add(place, place.name)
    return path


def test_what_is_no_archive_is_a_sentence(old: Path, tmp_path: Path) -> None:
    path = archive_of(old, tmp_path / "old.tar.xz")
    for damaged in (b"no archive", path.read_bytes()[:-500], b""):
        path.write_bytes(damaged)
        (said,) = carry(tmp_path, path, code=2)
        assert said.startswith(f"{path} can't be read as an archive (")
    assert not (tmp_path / "pool").exists()


def test_the_committed_records_come_back_from_the_layout_of_before(tmp_path: Path) -> None:
    """Byte for byte, with the losses that they had; and as equal archives, whatever and whenever they are made of."""
    with tarfile.open(REPOSITORY / "docs/results/records/undertraining.tar.xz") as archive:
        archive.extractall(tmp_path / "committed", filter="data")
    committed = files(tmp_path / "committed")
    assert len(committed) == 66
    old = move_back(tmp_path / "committed", tmp_path / "old", "undertraining", "learning_rate")
    packed = archive_of(old, tmp_path / "old.tar.xz")
    (said,) = carry(tmp_path, packed)
    assert said == f"{packed}: 66 runs; carried over 66 finished ones, 0 under way and 0 packs."
    pool = files(tmp_path / "pool")
    assert len(json.loads(pool.pop("runs/studies.json"))["undertraining"]) == 66
    assert pool == committed
    made = [tmp_path / "1.tar.xz", tmp_path / "2.tar.xz"]
    for source, out in zip((packed, old), made, strict=True):
        assert script("carry_over", source, "--archive", out).returncode == 0
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as archive:
        archive.extractall(tmp_path / "again", filter="data")
    assert files(tmp_path / "again") == committed
