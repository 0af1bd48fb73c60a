"""config.yaml is edited while its workflow runs: what was submitted is what runs, and what was not is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import CONFIG, KEYS, Project, records_of

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
    other = {**CONFIG["depth_width"], "widths": {1: [4, 16]}, "repeated": {}}
    edit_once_started(project, depth_width=other)
    target = "results/depth_width/keys.txt"
    project.snakemake(target, "--quiet", "rules")
    assert yaml.safe_load((project.folder / "config.yaml").read_text())["depth_width"] == other
    assert {line.split()[0] for line in (project.folder / target).read_text().splitlines()} == KEYS
    (submitted,) = (project.folder / "results/submitted").iterdir()
    assert set(json.loads(submitted.read_text())["runs"]["depth_width"]) == KEYS
    # and the next start takes the new one
    project.snakemake(target, "--quiet", "rules")
    assert len((project.folder / target).read_text().splitlines()) == 2
    assert len(list((project.folder / "results/submitted").iterdir())) == 2


def job(project: Project, *options: str, ok: bool = True) -> str:
    """A job as Slurm starts it, of what was submitted last."""
    key = min(KEYS)
    done = project.snakemake(
        f"results/runs/depth_width/{key}/summary.json",
        *("--mode", "remote", "--allowed-rules", "train_small", "--force", "--nolock", "--no-hooks"),
        *("--cores", "1", *options),
        ok=ok,
    )
    return done.stderr


@pytest.mark.slow
def test_a_job_trains_what_was_submitted_and_nothing_else(project: Project) -> None:
    key = min(KEYS)
    project.snakemake("results/depth_width/keys.txt", "--quiet", "rules")
    (submitted,) = (project.folder / "results/submitted").iterdir()
    option = ("--config", f"submitted={submitted.relative_to(project.folder)}")
    (project.folder / "config.yaml").write_text("half: [written")
    job(project, *option)
    spec = json.loads((project.folder / f"results/runs/depth_width/{key}/spec.json").read_text())
    assert spec["training"]["learning_rate"] == pytest.approx(0.003)
    # a file that is not the one submitted, or that is gone
    content = submitted.read_text()
    submitted.write_text(content.replace('"steps": 30', '"steps": 31'))
    assert f"submitted/{submitted.name}, the config that this job was submitted with, was changed" in job(
        project, *option, ok=False
    )
    submitted.unlink()
    assert "can't be read" in job(project, *option, ok=False)
    said = job(project, ok=False)
    assert "Another version of shapelaw submitted this job" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_records_of_other_runs_stay_out_of_the_table(project: Project) -> None:
    """As those of a job of an earlier workflow that ended after its successor, or that were copied from elsewhere."""
    key, table = "prose-V300-L1-d4-r4-H2-t30-s0", "results/depth_width/runs.parquet"
    one = {**CONFIG["depth_width"], "widths": {1: [4]}, "repeated": {}}
    project.configure(depth_width=one, training={**CONFIG["training"], "learning_rate": 1e-4})
    project.snakemake(*records_of([key]), "--quiet", "rules")
    shutil.rmtree(project.folder / ".snakemake/metadata")
    project.configure(depth_width=one)
    said = project.snakemake(table, ok=False).stderr
    assert "1 record is not of the runs that the config asks for, but of others with the same names" in said
    assert f"{key}. To train them anew: rm -r results/runs/depth_width && snakemake\n" in said
    shutil.rmtree(project.folder / "results/runs/depth_width")
    assert sorted(project.planned(table)) == ["import_runs", "train_small"]
