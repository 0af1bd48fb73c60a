"""config.yaml is edited while its workflow runs: what was submitted is what runs, and what was not is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import GRID, KEYS, Project, records_of

from shapelaw.jobs.ledger import done_path, read_ledger

EDIT = """
if workflow.is_main_process:
    Path("config.yaml").write_bytes(Path("edited.yaml").read_bytes())
"""


@pytest.fixture
def project(tmp_path: Path, with_corpus: Path) -> Project:
    return Project(tmp_path, with_corpus)


def edit_once_started(project: Project, **changes: Any) -> None:
    """Once Snakemake has read config.yaml, and before its first job, somebody saves another one."""
    path = project.folder / "config.yaml"
    submitted = path.read_bytes()
    project.configure(**changes)
    path.rename(project.folder / "edited.yaml")
    path.write_bytes(submitted)
    with (project.folder / "Snakefile").open("a") as snakefile:
        snakefile.write(EDIT)


def test_every_job_reads_the_config_of_the_start(project: Project) -> None:
    other = {**GRID, "widths": {1: [4, 16]}, "repeated": {}}
    edit_once_started(project, grids={"depth_width": other})
    target = "results/depth_width/keys.txt"
    project.snakemake(target, "--quiet", "rules")
    assert yaml.safe_load((project.folder / "config.yaml").read_text())["grids"]["depth_width"] == other
    assert {line.split()[0] for line in (project.folder / target).read_text().splitlines()} == KEYS
    (submitted,) = (project.folder / "results/submitted").glob("*.json")
    (runs,) = (project.folder / "results/submitted/runs").glob("*.json")
    assert json.loads(submitted.read_text())["runs"] == runs.stem
    assert set(json.loads(runs.read_text())["depth_width"]) == KEYS
    # and the next start takes the new one
    project.snakemake(target, "--quiet", "rules")
    assert len((project.folder / target).read_text().splitlines()) == 2
    assert len(list((project.folder / "results/submitted").glob("*.json"))) == 2


def test_runs_that_no_start_listed_are_told(project: Project) -> None:
    target = "results/depth_width/keys.txt"
    shutil.rmtree(project.folder / "results/submitted")
    said = project.snakemake(target, "--no-hooks", ok=False).stderr
    assert (
        "No start listed the runs of depth_width; Snakemake does when it starts (without --no-hooks)." in said
    )
    assert not (project.folder / target).exists()


def job(project: Project, submitted: str | None, ok: bool = True) -> str:
    """A job as Slurm starts it, of what was submitted: that reaches it by the environment."""
    alone = ("--mode", "remote", "--allowed-rules", "train_small", "--force", "--nolock", "--no-hooks")
    ledger = read_ledger(project.folder / "results/jobs")
    (target,) = (done_path(name, one) for name, one in ledger.items() if min(KEYS) in one.keys)
    with pytest.MonkeyPatch.context() as patch:
        if submitted is not None:
            patch.setenv("SUBMITTED", submitted)
        done = project.snakemake(target, *alone, "--cores", "1", ok=ok)
    return done.stderr


def test_a_start_ignores_what_another_workflow_submitted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As inside of an interactive job that inherited its environment."""
    monkeypatch.setenv("SUBMITTED", "results/submitted/0123456789abcdef.json")
    assert project.planned("results/depth_width/keys.txt") == ["list_runs"]


def test_what_configfile_and_config_say_stands_on_top_of_the_config(project: Project) -> None:
    """Also where a job starts: Snakemake hands both on to it, and it reads what was submitted."""
    more = project.folder / "more.yaml"
    more.write_text(yaml.safe_dump({"grids": {"depth_width": {"widths": {1: [4], 2: [8]}}}}))
    target = "results/depth_width/keys.txt"
    options = ("--configfile", str(more), "--config", "grids={depth_width: {widths: {1: [16]}}}")
    project.snakemake(target, *options, "--quiet", "rules")
    keys = (project.folder / target).read_text().splitlines()
    assert sorted(key.split("-")[2:4] for key in keys) == [["L1", "d16"], ["L2", "d8"]]
    (project.folder / target).unlink()
    more.write_text("training: {steps: 0}")
    assert "training.steps" in project.snakemake(target, *options[:2], ok=False).stderr
    replaced = project.snakemake(
        target, "--configfile", str(project.folder / "config.yaml"), "--replace-workflow-config"
    )
    assert "Finished jobid" in replaced.stderr
    assert {line.split()[0] for line in (project.folder / target).read_text().splitlines()} == KEYS


def test_a_profile_may_replace_the_config_too(project: Project) -> None:
    config, alone, profile = (project.folder / name for name in ("config.yaml", "alone.yaml", "mine"))
    config.rename(alone)
    config.write_text("half: written")
    profile.mkdir()
    asked = ("results/depth_width/keys.txt", "-n", "--profile", str(profile))
    for replaces in (True, False):
        options = {"configfile": str(alone), "replace-workflow-config": replaces}
        (profile / "config.yaml").write_text(yaml.safe_dump(options))
        assert ("half" in project.snakemake(*asked, ok=replaces).stderr) is not replaces


@pytest.mark.slow
def test_a_job_trains_what_was_submitted_and_nothing_else(project: Project) -> None:
    key = min(KEYS)
    project.snakemake(*records_of([key]), "--quiet", "rules")
    shutil.rmtree(project.folder / f"results/runs/{key}")
    (submitted,) = (project.folder / "results/submitted").glob("*.json")
    path = str(submitted.relative_to(project.folder))
    (project.folder / "config.yaml").write_text("half: [written")
    job(project, path)
    spec = json.loads((project.folder / f"results/runs/{key}/spec.json").read_text())
    assert spec["training"]["learning_rate"] == pytest.approx(0.003)
    said = job(project, None, ok=False)
    assert "Another version of shapelaw submitted this job" in said
    assert "Traceback" not in said
