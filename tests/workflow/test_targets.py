"""The real Snakemake asked for a plan, for perplexity, for runs that were trained elsewhere, and where runs fail."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest
from job_server import warm_python
from project import ALL_IN_ONE, CONFIG, GRID, KEYS, Project, key_of, records_of, write_gpt2_files

pytestmark = pytest.mark.slow


def test_a_grid_has_its_line_its_targets_and_its_sentences(tmp_path: Path) -> None:
    project = Project(tmp_path)
    axes = {"depth": [1, 2], "width": [8, 16], "heads": [1, 2], "embedding_rank": [4, None]}
    axes["corpus"] = [project.sections["corpus"]["name"], "other"]
    mine = {"grids": {"mine": {"axes": axes, "vocab_size": 257}}, "studies": ["mine"]}
    project.configure(**mine, corpora={"other": {"sources": ["gcide"]}})
    said = project.snakemake("plan", "--quiet", "rules")
    assert "mine: 32 runs to train; networks up to" in said.stdout
    assert "grids.mine: every network has one seed" in said.stderr
    planned = project.planned()
    made = [planned.count(rule) for rule in ("prepare_corpus", "train_tokenizer", "encode", "mine")]
    assert made == [2, 2, 4, 1]
    said = project.snakemake("-n", "results/mine/efects.csv", ok=False)
    assert "The study mine makes no file efects.csv (did you mean effects.csv?)." in said.stderr + said.stdout


def test_weights_are_kept_and_measured(tmp_path: Path, with_corpus: Path) -> None:
    """Of runs in turn; asked twice, nothing is done again."""
    project = Project(tmp_path, with_corpus)
    folder = project.folder / "gpt2"
    write_gpt2_files(folder)
    project.configure(
        grids={"depth_width": {**GRID, "widths": {1: [4, 8]}, "repeated": {}}},
        corpus={**CONFIG["corpus"], "gpt2_files": "gpt2"},
        execution={"job_minutes": 1.0},
        perplexity={"of": ["depth_width"], "documents": 3},
    )
    project.snakemake("perplexity")
    results = sorted((project.folder / "results/perplexity").glob("*.json"))
    keys = [path.stem for path in results]
    assert keys == sorted(project.trained())
    assert len(keys) == 2
    for path in results:
        found = json.loads(path.read_text())
        assert found["documents"] == 3
        assert found["context"] == GRID["context_length"]
        assert 2 < found["perplexity"]["value"] < 400
        nats = found["tokens"] * math.log(found["perplexity"]["value"])
        assert found["gpt2_tokens"] * math.log(found["gpt2_perplexity"]["value"]) == pytest.approx(nats)
    kept = {path.parent.name for path in (project.folder / "results/checkpoints").glob("*/step-*.pt")}
    assert kept == set(keys)
    assert project.planned("perplexity") == []


def test_records_that_are_brought_back_are_not_trained_again(tmp_path: Path, with_corpus: Path) -> None:
    """The run that is missing is trained, and the others are taken as they are."""
    project = Project(tmp_path, with_corpus, execution=ALL_IN_ONE)

    def run(*command: str) -> None:
        subprocess.run([warm_python(), *command], cwd=tmp_path, check=True, capture_output=True)

    run("scripts/write_specs.py", "--out", "elsewhere")
    run(
        *("scripts/train.py", "--job", "elsewhere/depth_width.json", "--results", "elsewhere"),
        *("--corpora", "results/corpora", "--device", "cpu", "--threads", "1"),
    )
    missing, *brought = sorted(KEYS)
    results, elsewhere = tmp_path / "results/runs", tmp_path / "elsewhere/runs"
    for key in brought:  # as docs/gpu.md brings them back
        shutil.copytree(elsewhere / key, results / key)
    project.snakemake("results/depth_width/runs.parquet", "--quiet", "rules")
    for key in brought:
        assert (results / key / "summary.json").read_bytes() == (
            elsewhere / key / "summary.json"
        ).read_bytes()
    trained = json.loads((results / missing / "summary.json").read_text())
    assert (
        trained["started_at"] > json.loads((elsewhere / missing / "summary.json").read_text())["started_at"]
    )
    history = (results / missing / "history.parquet").read_bytes()
    assert history == (elsewhere / missing / "history.parquet").read_bytes()


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
