"""Small runs that share jobs, in the real Snakemake: the same results, and only what changes is trained again."""

import json
import shutil
from pathlib import Path

import pytest
from project import CONFIG, KEYS, TWO_A_JOB, Project, key_of, records_of

pytestmark = pytest.mark.slow

CHANGED = key_of(2, 8)


class PackedProject(Project):
    """A project whose runs share jobs two by two."""

    def train(self, keys: set[str]) -> None:
        """The records of some runs alone."""
        self.snakemake(*records_of(keys), "--quiet", "rules")

    def read(self, name: str) -> dict[str, bytes]:
        """A file of every record, by key."""
        folder = self.folder / "results/runs"
        return {path.parent.name: path.read_bytes() for path in folder.glob(f"*/{name}")}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_corpus: Path) -> PackedProject:
    """With the records of all runs."""
    project = PackedProject(tmp_path_factory.mktemp("packed"), with_corpus, execution=TWO_A_JOB)
    project.train(KEYS)
    return project


def test_a_second_run_trains_nothing(project: PackedProject) -> None:
    assert set(project.trained()) == KEYS
    assert len(list((project.folder / "results/packs").glob("*.json"))) == 3
    assert project.planned(*records_of(KEYS)) == []


def test_an_added_width_trains_one_run(project: PackedProject) -> None:
    """In the middle of the grid, so that every later run is in another pack."""
    before = project.read("summary.json")  # with the clock of when each was trained
    project.configure(depth_width={**CONFIG["depth_width"], "widths": {1: [4, 6, 8, 12], 2: [4, 8]}})
    project.train({key := key_of(1, 6)})
    after = project.read("summary.json")
    assert set(after) - set(before) == {key}
    assert {key: after[key] for key in before} == before
    project.configure()
    project.train(KEYS)
    assert {key: project.read("summary.json")[key] for key in KEYS} == {key: before[key] for key in KEYS}


def test_a_run_is_trained_again_by_the_command_that_it_says(project: PackedProject) -> None:
    before = project.read("summary.json")
    for place in ("runs", "checkpoints"):
        shutil.rmtree(project.folder / "results" / place / CHANGED)
    target = f"results/runs/{CHANGED}/summary.json"
    said = project.snakemake(target, "--quiet", "rules", ok=False).stderr
    assert f"results/checkpoints/{CHANGED} has no finished record of this run" in said
    command = next(line.partition(": ")[2] for line in said.splitlines() if " && snakemake" in line)
    assert command.startswith("rm -f results/packs/")
    project.carry_out(command)
    project.train(KEYS)
    after = project.read("summary.json")
    assert {key for key in KEYS if after[key] != before[key]} == {CHANGED}
    assert project.planned(*records_of(KEYS)) == []


def test_a_new_text_trains_every_run_again(project: PackedProject) -> None:
    before = project.read("summary.json")
    (project.folder / "texts" / "new.txt").write_text("A text that was not there before. " * 50)
    project.train(KEYS)
    after = project.read("summary.json")
    for key in KEYS:
        stores = [json.loads(summaries[key])["train_store"] for summaries in (before, after)]
        assert stores[0]["sha256"] != stores[1]["sha256"]


def test_a_new_recipe_makes_new_runs_and_keeps_the_others(project: PackedProject) -> None:
    before = project.read("history.parquet")
    project.configure(training=(slower := {**CONFIG["training"], "learning_rate": 2e-3}))
    planned = project.planned()
    assert (planned.count("train_in_turn"), planned.count("train_small")) == (3, len(KEYS))
    one = key_of(1, 4, training=slower)
    project.train({one})
    after = project.read("history.parquet")
    assert after[one] not in before.values()
    assert {key: after[key] for key in before} == before  # those of before stay in the pool
    project.configure()
    assert project.planned(*records_of(KEYS)) == []


def test_a_job_that_the_config_has_not_is_a_sentence(project: PackedProject) -> None:
    for name in ("0", "0123456789abcdef"):
        said = project.snakemake(f"results/packs/{name}.json", ok=False).stderr
        assert f"The config has no job {name}; it has 3 jobs, such as " in said
        assert "KeyError" not in said
