"""Records read back: whole, damaged in any way, of another schema version."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import small_run

from shapelaw.errors import UserError
from shapelaw.storage import records

RUN = small_run()
ROWS = [(10 * (i + 1), 5 - i / 100, 1e-3, 0.5, float("nan") if i % 3 else 4.0) for i in range(100)]


def write(directory: Path) -> Path:
    """A finished record."""
    records.write_spec(directory, RUN)
    records.write_history(directory, ROWS)
    content = (directory / "history.parquet").read_bytes()
    records.write_summary(
        directory, {"test_loss": 4.0, "history_sha256": hashlib.sha256(content).hexdigest()}
    )
    return directory


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """Where the workflow puts it."""
    return write(tmp_path / "my results" / "runs" / RUN.key)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("records") / "runs" / RUN.key)


def sentence_of(directory: Path, damaged: dict[str, bytes]) -> str | None:
    """What is said of a record with other content in some files; None of a whole one."""
    whole = {name: (directory / name).read_bytes() for name in damaged}
    for name, content in damaged.items():
        (directory / name).write_bytes(content)
    try:
        records.read_record(directory)
    except UserError as error:
        return str(error)
    finally:
        for name, content in whole.items():
            (directory / name).write_bytes(content)
    return None


def test_a_column_that_came_later_is_null(finished: Path) -> None:
    """A finished record lacks it, and so do rows of a run that is under way."""
    schema = records.LANGUAGE_SCHEMA.append(pa.field("test_accuracy", pa.float64()))
    for table in (records._read_history(finished, None, schema), records.history_table(ROWS, schema)):
        assert table.schema == schema
        assert table["test_accuracy"].null_count == len(ROWS)
    with pytest.raises(UserError, match="damaged"):
        records._read_history(finished, None, schema.set(5, schema.field(5).with_nullable(False)))


def test_a_record_is_read_as_it_was_written(finished: Path) -> None:
    record = records.read_record(finished)
    assert (record.run, record.status, record.history.num_rows) == (RUN, "FINISHED", 100)
    assert record.history.equals(records.history_table(ROWS))
    for name in ("history.parquet", "spec.json", "summary.json"):
        content = (finished / name).read_bytes()
        (finished / name).unlink()
        with pytest.raises(UserError, match=r"damaged or half written: .*rm -r '.*' && snakemake$"):
            records.read_record(finished)
        (finished / name).write_bytes(content)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(["history.parquet", "summary.json", "spec.json"]),
    part=st.floats(0, 1, exclude_max=True),
    zeros=st.booleans(),
)
def test_a_file_cut_short_or_zero_filled_anywhere_is_a_sentence(
    shared: Path, name: str, part: float, zeros: bool
) -> None:
    whole = (shared / name).read_bytes()
    at = int(part * len(whole))
    changed = whole[:at] + bytes(len(whole) - at if zeros else 0)
    said = sentence_of(shared, {name: changed})
    if said is None:
        assert changed.strip() == whole.strip()  # all but the last line end
    else:
        assert said.startswith(f"The record {shared} is damaged or half written: {name}")
        assert said.endswith(f"train the run again: rm -r {shared} && snakemake")


@settings(max_examples=50, deadline=None, derandomize=True)
@given(part=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_of_a_history_is_noticed(shared: Path, part: float, bit: int) -> None:
    changed = bytearray((shared / "history.parquet").read_bytes())
    changed[int(part * len(changed))] ^= 1 << bit
    said = sentence_of(shared, {"history.parquet": bytes(changed)})
    assert "history.parquet can't be read (it is not the file that summary" in str(said)


def test_an_edited_summary_is_noticed(finished: Path) -> None:
    path = finished / "summary.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "final_test_loss": 1.0}))
    with pytest.raises(
        UserError, match=r"summary\.json was changed since it was written; train the run again"
    ):
        records.read_record(finished)
    path.write_text(json.dumps(values))  # other white space
    assert records.read_record(finished).summary == values
    del values["content_sha256"], values["history_sha256"]  # as records of before they had these
    path.write_text(json.dumps({**values, "final_test_loss": 1.0}))
    assert records.read_record(finished).summary["final_test_loss"] == 1.0


def test_a_damaged_status_costs_no_checkpoint(finished: Path) -> None:
    """The command to mend it is another one, where checkpoints are."""
    live = finished.parents[1] / "checkpoints" / RUN.key
    records.write_spec(live, RUN)
    (live / "live.json").write_text("{")
    with pytest.raises(
        UserError, match=r"it goes on from its checkpoints and writes its record anew: snakemake$"
    ):
        records.read_record(live)


@pytest.mark.parametrize(
    "change", [{"shape": None}, {"seed": None}, {"training": {"sleps": 3}}, {"shape": 5}]
)
def test_a_spec_that_is_none_is_a_sentence(finished: Path, change: dict[str, Any]) -> None:
    spec = json.loads((finished / "spec.json").read_text())
    spec |= {name: value for name, value in change.items() if value is not None}
    spec = {name: value for name, value in spec.items() if change.get(name, 0) is not None}
    (finished / "spec.json").write_text(json.dumps(spec))
    with pytest.raises(UserError, match=r"spec\.json is not a run's spec"):
        records.read_record(finished)


@pytest.mark.parametrize("version", [0, 2, None])
def test_another_schema_version_is_refused_with_the_command_to_run(finished: Path, version: object) -> None:
    """The command is copied from the sentence and run, but for Snakemake itself."""
    copy = finished.parents[1] / "checkpoints" / RUN.key
    shutil.copytree(finished, copy)
    other = finished.parent / "other"
    shutil.copytree(finished, other)
    summary = json.loads((finished / "summary.json").read_text())
    (finished / "summary.json").write_text(json.dumps(summary | {"schema_version": version}))
    with pytest.raises(records.OtherSchema) as refused:
        records.read_record(finished)
    said = str(refused.value)
    assert said.startswith(
        f"{finished / 'summary.json'} has record schema version {version}, and this shapelaw reads version 1; check "
        "out the version of shapelaw that wrote it, or train the run again: rm -rf "
    )
    assert said.endswith(" && snakemake")
    subprocess.run(said.rpartition(": ")[2].removesuffix(" && snakemake"), shell=True, check=True)
    assert (finished.exists(), copy.exists(), other.exists()) == (False, False, True)
