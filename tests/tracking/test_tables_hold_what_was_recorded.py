"""runs.parquet: what the fits read, from MLflow alone."""

import math
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import script
from made_records import ask, make_rows, make_run, write_finished, write_live
from places import Place

from shapelaw.errors import UserError
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.tracking.entities import read_runs, table_schema


def test_the_table_has_a_row_a_run_with_its_numbers(any_place: Place) -> None:
    low_rank = make_run(1, embedding_rank=8, positional_rank=4)
    full = make_run(0, depth=12)
    failed, llama = make_run(2), make_run(3, block="llama", kv_heads=1, tied=True)
    write_finished(any_place.results, low_rank, model_flops_utilisation=0.41)
    write_finished(any_place.results, full, test_loss=0.1 + 0.2)
    curve = [*make_rows(llama)[:-1], (60, math.nan, 0.0, math.nan, math.nan)]
    losses = ("test_loss", "train_loss", "bits_per_byte")
    write_finished(any_place.results, llama, curve, **dict.fromkeys(losses))
    write_live(any_place.results, failed, "FAILED", message="The loss is not a number.")
    any_place.import_all()
    table = read_runs(any_place.store(), any_place.study)
    assert table.schema == table_schema(LANGUAGE)
    rows = {row["key"]: row for row in table.to_pylist()}
    assert list(rows) == sorted(run.key for run in (low_rank, full, failed, llama))
    expected = {
        **dict.fromkeys(table.column_names),
        **{name: value for name, value in low_rank.flat().items() if name in table.column_names},
        "key": low_rank.key,
        "status": "FINISHED",
        "study": any_place.study,
        "spec_digest": low_rank.digest,
        "host": socket.gethostname(),
        "git_commit": "0123abc",
        "device": "cpu",
        "torch_version": "2.9.0",
        "test_loss": make_rows(low_rank)[-1][4],
        "train_loss": make_rows(low_rank)[-1][1],
        "bits_per_byte": 1.75,
        "tokens_trained": 15360,
        "tokens_per_second": 170.5,
        "peak_memory_bytes": 123456789,
        "wall_seconds": 90.0,
        "model_flops_utilisation": 0.41,
    }
    row = rows[low_rank.key]
    assert len(row["run_id"]) == 32
    assert row == {**expected, "run_id": row["run_id"]}
    assert rows[full.key]["test_loss"] == 0.1 + 0.2  # to the last bit
    assert rows[full.key]["block_params"] == 12 * 12 * 16**2
    empty = ("embedding_rank", "positional_rank", "model_flops_utilisation")
    assert [rows[full.key][name] for name in empty] == [None] * 3
    assert (rows[failed.key]["status"], rows[failed.key]["test_loss"]) == ("FAILED", None)
    # a loss that is not finite in the curve stays out of the table
    assert [rows[llama.key][name] for name in losses] == [None] * 3
    assert [rows[llama.key][name] for name in ("block", "kv_heads", "tied")] == ["llama", 1, "True"]


def imported(place: Place, out: Path, *options: object) -> tuple[int, str]:
    """The exit code of the command, and what it says of a study's table."""
    given = ("--study", place.study, *options, "--out", out)
    done = script("import_runs", "--results", place.results, *given)
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_the_command_writes_the_wanted_keys_and_names_missing_ones(place: Place, tmp_path: Path) -> None:
    runs = [make_run(seed) for seed in range(3)]
    for run in runs:
        write_finished(place.results, run)
    keys = tmp_path / "keys.txt"
    keys.write_text(f"{runs[2].key}\n\n{runs[0].key}\n")
    code, said = imported(place, tmp_path / "runs.parquet", "--keys", keys)
    assert (code, len(said.splitlines())) == (0, 1)
    assert said.startswith("depth_width: 2 runs written to MLflow, 0 were up to date; 2 rows in ")
    assert pq.read_table(tmp_path / "runs.parquet")["key"].to_pylist() == sorted([runs[0].key, runs[2].key])

    shutil.rmtree(place.results / "runs" / runs[2].key)
    keys.write_text(f"{runs[0].key}\nwiki-V257-L99\nwiki-V257-L98\n")
    code, said = imported(place, tmp_path / "other.parquet", "--keys", keys)
    assert code == 2
    assert "no run of wiki-V257-L98, wiki-V257-L99 in the experiment depth_width" in said
    assert "Traceback" not in said
    assert not (tmp_path / "other.parquet").exists()


def test_without_keys_the_runs_are_those_that_the_study_asked_for(place: Place, tmp_path: Path) -> None:
    """Of which some may not have begun; where nobody noted what was asked for, they are all that there are."""
    runs = [make_run(seed) for seed in range(4)]
    for run in runs[:3]:
        write_finished(place.results, run)
    out = tmp_path / "runs.parquet"
    ask(place.results, place.study, runs[0], runs[3])
    for study, wanted in ((place.study, runs[:1]), ("vocabulary", runs[:3])):
        assert imported(replace(place, study=study), out)[0] == 0
        assert pq.read_table(out)["key"].to_pylist() == sorted(run.key for run in wanted)
        (place.results / "runs" / "studies.json").unlink(missing_ok=True)


def test_a_study_without_records_is_a_sentence(place: Place, tmp_path: Path) -> None:
    write_finished(place.results, make_run(0))
    ask(place.results, place.study, make_run(0))
    ask(place.results, "vocabulary", make_run(1))
    assert imported(replace(place, study="nothing"), tmp_path / "runs.parquet") == (
        2,
        f"--study is nothing, of which {place.results} has no records; there are records of {place.study}.\n",
    )
    assert not (tmp_path / "runs.parquet").exists()


def test_a_study_without_runs(place: Place) -> None:
    assert read_runs(place.store(), "nothing").num_rows == 0
    many = [f"key{number:02}" for number in range(12)]
    with pytest.raises(UserError, match="key09 and 2 more in the experiment nothing"):
        read_runs(place.store(), "nothing", many)


def test_a_broken_record_among_the_wanted_stops_the_table(place: Place, tmp_path: Path) -> None:
    run = make_run()
    (write_finished(place.results, run) / "spec.json").write_text("{")
    code, said = imported(place, tmp_path / "runs.parquet")
    assert (code, "spec.json is not whole JSON" in said) == (2, True)
