"""Which runs the studies ask for, and why runs and jobs could not go on."""

import json
import logging
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import make_run, write_finished

from shapelaw.errors import UserError
from shapelaw.storage import pool


def test_the_studies_of_a_run_are_noted_beside_those_of_before(tmp_path: Path) -> None:
    assert pool.read_asked(tmp_path) == {}
    pool.add_asked(tmp_path, {"depth_width": ["b", "a"]})
    pool.add_asked(tmp_path, {"vocabulary": ["b"], "depth_width": ["c"]})
    asked = {"depth_width": ["a", "b", "c"], "vocabulary": ["b"]}
    assert pool.read_asked(tmp_path) == asked
    assert pool.studies_by_key(asked) == {
        "a": ["depth_width"],
        "b": ["depth_width", "vocabulary"],
        "c": ["depth_width"],
    }
    # what was noted already is not written again
    path = tmp_path / "runs" / "studies.json"
    before = path.stat()
    pool.add_asked(tmp_path, {"depth_width": ["b"]})
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("content", ["{", "[1]", '{"depth_width": 5}', "\x80"])
def test_a_damaged_list_of_the_studies_is_a_sentence_with_the_command_that_mends_it(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "runs" / "studies.json"
    path.parent.mkdir()
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(
        UserError, match=rf"^{path}, .* can't be read .*; the next start writes it anew: rm {path}$"
    ):
        pool.read_asked(tmp_path)
    with pytest.raises(UserError, match="can't be read"):
        pool.add_asked(tmp_path, {"depth_width": ["a"]})


def test_a_file_of_keys_has_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("one\n\n two \n")
    assert pool.read_keys(path) == ["one", "two"]
    path.write_text("\n")
    with pytest.raises(UserError, match="names no run"):
        pool.read_keys(path)
    with pytest.raises(UserError, match="can't be read"):
        pool.read_keys(tmp_path / "none.txt")


def test_a_record_of_another_text_than_the_token_stores_is_outdated(tmp_path: Path) -> None:
    run = make_run()
    other = replace(run, shape=replace(run.shape, vocab_size=300))
    record = write_finished(tmp_path, run, identity=f"{run.digest}-{'a' * 16}-{'b' * 16}") / "summary.json"
    write_finished(tmp_path, other)
    folder = tmp_path / "corpora" / "wiki"

    def outdated(replaced: Collection[str] = ()) -> set[str]:
        return pool.outdated_of(tmp_path, [run, other, make_run(seed=1)], replaced)

    def written(name: str, after: int, content: str = "") -> None:
        """Written so many seconds after the record."""
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
        os.utime(folder / name, ns=(0, record.stat().st_mtime_ns + after * 10**9))

    assert outdated() == set()  # without the text, as where only records are kept
    assert outdated({"wiki"}) == {run.key, other.key}
    assert outdated({"prose"}) == set()
    written("documents.parquet", -20)
    for split, sha256 in (("train", "a" * 64), ("test", "c" * 64)):
        assert outdated() == set()
        written(f"V257/{split}.json", -10, json.dumps({"sha256": sha256}))
    assert outdated() == set()  # a record that is younger is not read
    written("V257/test.json", 10, json.dumps({"sha256": "c" * 64}))
    assert outdated() == {run.key}
    written("V257/test.json", 20, json.dumps({"sha256": "b" * 64}))
    assert outdated() == set()
    written("documents.parquet", 30)  # collected again and not yet encoded
    assert outdated() == {run.key, other.key}
    all_runs = {one.key: one for one in (run, other)}
    assert pool.counts_of(tmp_path, all_runs, ()).words == "2 runs to train"
    written("documents.parquet", -20)
    assert pool.counts_of(tmp_path, all_runs, ()).words == "2 runs, all in the pool"


def note(folder: Path, key: str, **live: str) -> Path:
    path = folder / key / "live.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"status": "FAILED", "message": f"{key} fell.", **live}))
    return path


def test_runs_that_failed_are_told_and_no_others(tmp_path: Path) -> None:
    note(tmp_path, "a")
    note(tmp_path, "b", status="RUNNING")
    note(tmp_path, "c")
    note(tmp_path, "d")
    note(tmp_path / "depth_width", "a")  # as runs lay before they belonged to a pool
    assert list(pool.failures(tmp_path, {"a", "b", "d"})) == ["a fell.", "d fell."]
    assert list(pool.failures(tmp_path / "nowhere", {"a"})) == []
    gone, broken = note(tmp_path, "e"), note(tmp_path, "f")
    broken.write_text("{")
    sentences = pool.failures(tmp_path, {"a", "e", "f"})
    assert next(sentences) == "a fell."
    gone.unlink()  # after it was listed
    (sentence,) = sentences
    assert sentence.startswith(f"{broken} can't be read")


def test_what_a_job_said_last_is_that_of_its_last_attempt(tmp_path: Path) -> None:
    log = tmp_path / "key.log"
    log.write_text(
        "== 2026-11-23 04:00:00 on node1\nThe first reason.\n"
        "== 2026-11-23 04:01:00 on node2\nresumed key at step 3 of 9\n\nThe second reason.\n"
    )
    assert pool.last_words(log) == "resumed key at step 3 of 9\nThe second reason."
    assert pool.last_words(tmp_path / "none.log") == ""
    log.write_text('Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: no number\n')
    assert pool.last_words(log).startswith("ValueError: no number (an error of shapelaw")


def test_jobs_that_say_the_same_are_told_once(tmp_path: Path) -> None:
    logs = [tmp_path / f"{name}.log" for name in "abcd"]
    for log, reason in zip(
        logs, ("The disk is full.", "The disk is full.", "The loss of c is nan.", ""), strict=True
    ):
        log.write_text(reason)
    jobs = [pool.FailedJob(f"train {log.stem}", log) for log in logs]
    told = pool.told_again([*jobs, pool.FailedJob("plan", None)], ["The loss of c is nan."])
    assert told[0] == f"train a and 1 more job failed ({logs[0]}):\nThe disk is full."
    assert told[1].startswith(
        f"train d failed ({logs[3]}):\nIt ended without a word (its log {logs[3]} is empty)"
    )
    assert told[2].startswith("plan failed:\nIt ended without a word (it left no log)")
    assert len(told) == 3


SKEW = (
    "Output a.json has older modification time (1) than input b (2). This could indicate a clock skew problem"
)
MISSING = "Job 3 completed successfully, but some output files are missing. Missing files after 5 seconds"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (f'WorkflowError in rule train in file "/a b/train.smk", line 13:\n{SKEW}\n', SKEW),
        (f"Building DAG of jobs...\nWorkflowError:\n{SKEW}\n[Thu Nov 26]\nFinished\n", SKEW),
        (
            f"MissingOutputException in rule encode in file x, line 5:\n{MISSING}:\nresults/a.bin\n\nMore.",
            f"{MISSING}: results/a.bin",
        ),
        ("RuleException:\nCalledProcessError in file x, line 3:\nCommand 'set -e; false' returned.\n", ""),
        ("WorkflowError:\nAt least one job did not complete.\nsrun: error: n1: task 0: Exited\n", ""),
        ("Error in rule train:\n    jobid: 0\n", ""),
        ("", ""),
    ],
)
def test_snakemakes_own_reason_is_what_it_says_beyond_a_command_that_failed(said: str, reason: str) -> None:
    assert pool.snakemake_reason(said) == reason


def test_an_error_of_snakemake_is_the_reason_of_the_job_whose_file_it_names(tmp_path: Path) -> None:
    errors = pool.SnakemakeErrors()
    logger = logging.getLogger("snakemake of a test")
    logger.addHandler(errors)
    logger.error(f"WorkflowError in rule train in file x, line 3:\n{SKEW}")
    logger.error("Error in rule other:\n    output: b.json")
    assert errors.reason_of(["c.json", "a.json"]) == SKEW
    assert errors.reason_of(["b.json"]) == errors.reason_of([]) == ""
    log = tmp_path / "a.log"
    for words, said in (("", SKEW), ("Trained in 3 s.", f"{SKEW}\nTrained in 3 s.")):
        log.write_text(words)
        assert pool.told_again([pool.FailedJob("train a", log, SKEW)]) == [f"train a failed ({log}):\n{said}"]
