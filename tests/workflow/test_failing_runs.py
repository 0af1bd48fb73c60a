"""The real Snakemake where runs fail: what is said, what is kept, and that no other run suffers."""

from pathlib import Path

import pytest
from project import ALL_IN_ONE, KEYS, Project, key_of, records_of

pytestmark = pytest.mark.slow


def test_why_any_rule_failed_is_the_last_thing_on_the_terminal(tmp_path: Path, with_store: Path) -> None:
    """With the flags of `make demo`, which hide what the job itself says."""
    project = Project(tmp_path, with_store)
    (project.folder / "texts" / "latin.txt").write_bytes("na\u00efve".encode("latin-1"))
    quiet = ("--quiet", "rules", "reason", "host", "--show-failed-logs")
    *_, heading, sentence = project.snakemake(*quiet, ok=False).stderr.splitlines()
    assert heading == "prepare_corpus prose failed (results/logs/prepare_corpus/prose.log):"
    assert sentence.startswith("texts/latin.txt, byte 2: this is not UTF-8")
    # and what no job can make is told without one
    (told,) = project.snakemake("results/depthwidth/fit.json", *quiet, ok=False).stderr.splitlines()[1:]
    assert told.startswith("There is no study depthwidth (did you mean depth_width?)")


def test_a_run_that_ends_in_an_error_of_its_own_costs_no_other_of_its_job(
    tmp_path: Path, with_corpus: Path
) -> None:
    """Its record's folder can't be written; the end names it, and the same start goes on once it can."""
    project = Project(tmp_path, with_corpus, execution=ALL_IN_ONE)
    key = key_of(1, 4)
    folder = project.folder / "results/runs" / key
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file in the place of a folder")
    done = project.snakemake("--quiet", "rules", ok=False)
    assert key in done.stderr[done.stderr.index("failed (results/logs/train/") :]
    assert "6 runs: 5 in the pool" in done.stderr
    assert set(project.trained()) == KEYS - {key}
    folder.unlink()
    before = project.trained()
    project.snakemake(*records_of(KEYS), "--quiet", "rules")
    assert {one: when for one, when in project.trained().items() if one != key} == before
