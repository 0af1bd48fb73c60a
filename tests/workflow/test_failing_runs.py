"""The real Snakemake where runs fail: what is said, what is kept, and that no other run suffers."""

from pathlib import Path

import pytest
from project import CONFIG, TWO_A_JOB, Project, key_of, records_of

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


def test_a_run_that_diverges_is_named_and_costs_no_other(tmp_path: Path, with_corpus: Path) -> None:
    project, two = (
        Project(tmp_path, with_corpus),
        {**CONFIG["depth_width"], "widths": {1: [4], 2: [4]}, "repeated": {}},
    )
    wild = {**CONFIG["training"], "learning_rate": 1e20, "warmup_steps": 0}
    project.configure(depth_width=two, training=wild)
    done = project.snakemake("--keep-going", "--quiet", "rules", ok=False)
    assert f"The loss of {key_of(1, 4, training=wild)} is nan at step" in done.stderr
    assert "lower training.learning_rate" in done.stderr
    assert len({line for line in done.stderr.splitlines() if line.startswith("The loss of")}) == 2
    project.configure(depth_width=two)
    keys = {key_of(1, 4), key_of(2, 4)}
    project.snakemake(*records_of(keys), "--quiet", "rules")
    assert set(project.trained()) == keys


@pytest.mark.parametrize(("runs_per_job", "rule"), [(1, "train"), (2, "train_in_turn")])
def test_the_log_has_every_attempt(tmp_path: Path, with_corpus: Path, runs_per_job: int, rule: str) -> None:
    """Snakemake deletes a job's log before it tries again; the first failure's reason is wanted most."""
    project = Project(tmp_path, with_corpus)
    project.configure(
        training=(wild := {**CONFIG["training"], "learning_rate": 1e20, "warmup_steps": 0}),
        execution={"runs_per_job": runs_per_job},
    )
    key = key_of(1, 4, training=wild)
    target = f"results/runs/{key}/summary.json"
    attempts = {1: 3, 2: 1}[runs_per_job]  # a pack notes what became of its runs and is done
    project.snakemake(target, "--retries", str(attempts - 1), "--quiet", "rules", ok=False)
    if attempts == 1:  # as after the pack's deletion
        project.snakemake(target, "--forcerun", "train_in_turn", "--quiet", "rules", ok=False)
        attempts = 2
    (log,) = [
        path.read_text()
        for path in (project.folder / "results/logs" / rule).glob("*.log")
        if f"The loss of {key}" in path.read_text()
    ]
    assert log.count("\n== ") + log.startswith("== ") == attempts
    said = [line for line in log.splitlines() if line.startswith(f"The loss of {key}")]
    assert ["It is not tried again" in line for line in said] == [False, *[True] * (attempts - 1)]


def test_what_a_job_says_is_seen(tmp_path: Path, with_corpus: Path) -> None:
    project = Project(tmp_path, with_corpus)
    project.configure(training=(many := {**CONFIG["training"], "test_sequences": 10**6}))
    done = project.snakemake(*records_of([key_of(1, 4, training=many)]), "--quiet", "rules", ok=False)
    assert "test_sequences" in done.stderr
    assert "1,000,000" in done.stderr or "1000000" in done.stderr


def test_a_run_that_fails_for_good_costs_no_other_of_its_pack(tmp_path: Path, with_corpus: Path) -> None:
    """At this rate width 512 overflows at step 4; width 12 gets through its 8 steps."""
    project = Project(tmp_path, with_corpus)
    project.configure(
        training={**CONFIG["training"], "steps": 8, "learning_rate": 3e3, "warmup_steps": 0},
        depth_width={**CONFIG["depth_width"], "widths": {1: [512, 12]}, "repeated": {}},
        execution=TWO_A_JOB,
    )
    done = project.snakemake("--keep-going", "--quiet", "rules", ok=False)
    named = {line for line in done.stderr.splitlines() if line.startswith("The loss of")}
    assert len(named) == 1
    assert "-L1-d512-" in named.pop()
    assert {key.split("-")[3] for key in project.trained()} == {"d12"}
