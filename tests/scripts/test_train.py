"""The command that trains a job: one run that can't go on costs no other, and every sentence says what to do."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from commands import sentence_of
from job_server import warm_python
from memorizer_options import RUN as MEMORIZER
from small import small_run
from trained import Stores, checkpoints_of, job_command, record_of

from shapelaw.specs.kinds import AnyRun
from shapelaw.storage import records

FIRST, SECOND = (small_run(seed, steps=10, log_every=5, evaluate_every=10, warmup_steps=0) for seed in (0, 1))
WILD = small_run(learning_rate=1e20, warmup_steps=0)
OTHER_VERSION = {"schema_version": 0, "key": FIRST.key}


def train(stores: Stores, folder: Path, *tasks: list[AnyRun]) -> subprocess.CompletedProcess[str]:
    out = ("--out", str(folder / "job.done"))
    line = [str(warm_python()), *job_command([*tasks], stores, folder, *out)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_a_job_trains_decoders_and_packs_and_says_where_it_is(stores: Stores, tmp_path: Path) -> None:
    pack = [MEMORIZER, replace(MEMORIZER, seed=1)]
    done = train(stores, tmp_path, [FIRST], pack, [WILD])
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "job.done").read_text()) == {"runs": 4}
    begun = [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", "", line) for line in done.stdout.splitlines()]
    assert begun == [
        f"run 1 of 4: {FIRST.key}",
        f"runs 2 to 3 of 4: {MEMORIZER.key} and 1 more",
        f"run 4 of 4: {WILD.key}",
    ]
    *steady, wild = (records.read_record(record_of(tmp_path, run)) for run in (FIRST, *pack, WILD))
    assert not [one for one in steady if "diverged_at_step" in one.summary]
    assert (wild.status, wild.history.num_rows) == ("FINISHED", 0)
    assert wild.summary["diverged_at_step"] in range(2, 10)
    assert not {"test_loss", "train_loss", "bits_per_byte"} & wild.summary.keys()
    assert not any((tmp_path / "checkpoints").iterdir())
    again = train(stores, tmp_path, [FIRST], pack, [WILD])
    assert (again.returncode, again.stdout) == (0, "")


@pytest.mark.parametrize(("of_another_version", "code"), [([FIRST], 1), ([FIRST, SECOND], 2)])
def test_a_run_of_another_version_costs_no_other_and_where_none_can_begin_the_input_is_wrong(
    of_another_version: list[AnyRun], code: int, stores: Stores, tmp_path: Path
) -> None:
    for run in of_another_version:
        records.write_json(checkpoints_of(tmp_path, run) / "spec.json", OTHER_VERSION)
    done = train(stores, tmp_path, [FIRST], [SECOND])
    assert (done.returncode, len(done.stderr.splitlines())) == (code, len(of_another_version))
    assert done.stderr.count("has record schema version 0") == len(of_another_version)
    assert not (tmp_path / "job.done").exists()
    assert (record_of(tmp_path, SECOND) / "summary.json").exists() == (SECOND not in of_another_version)


def test_a_missing_token_store_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps({"tasks": [[FIRST.to_dict()]]}))
    said = sentence_of("train", "--job", tmp_path / "job.json", "--results", tmp_path)
    assert f"{tmp_path}/corpora/prose/V257/train.json" in said


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (None, "The job {job} can't be read (No such file or directory)."),
        ("[{]", 'is not a job, {{"tasks": [[SPEC, ...], ...]}} (JSONDecodeError'),
        ('{"tasks": [[{}]]}', "is not a job, "),
        (
            json.dumps({"tasks": [[run.to_dict() for run in (FIRST, SECOND)]]}),
            "has a task of 2 runs; a dec",
        ),
        ('{"tasks": [[]]}', "has a task of 0 runs"),
    ],
)
def test_a_file_that_is_no_job_is_told(job: str | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    if job is not None:
        path.write_text(job)
    assert sentence.format(job=path) in sentence_of("train", "--job", path)
