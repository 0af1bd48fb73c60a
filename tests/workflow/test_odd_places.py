"""The real Snakemake where a checkout, a text, a disk or its users are not what a developer has."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from disks import fill, small_disk
from project import CONFIG, GRID, TWO_A_JOB, ColdProject, Project
from small import PYTHON

pytestmark = pytest.mark.slow

ODD = """it's a "checkout", $HOME `x` \\ & ü; #1 *[z]~ %41 (=)"""
TEXTS = "letters, poems"


def started(project: ColdProject, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Snakemake as a user of a group starts it, whose files the others are to change too."""
    return subprocess.run(
        [PYTHON, "-m", "snakemake", *arguments],
        cwd=project.folder,
        env={**os.environ, **environment},
        umask=0o002,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_store: Path) -> ColdProject:
    """A whole run in an odd place, of texts with odd names; the page of all answers is there, and no MLflow store."""
    folder = tmp_path_factory.mktemp("odd") / ODD
    folder.mkdir()
    project = ColdProject(folder, with_store)
    for name in ("mlflow.db", "mlflow.lock"):
        (folder / "results" / name).unlink(missing_ok=True)
    for path in (folder / "results", *(folder / "results").rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWGRP)
    project.configure(
        corpus={**CONFIG["corpus"], "sources": [f"folder:{TEXTS}"]},
        grids={"depth_width": {**GRID, "widths": {1: [4, 8]}, "repeated": {}}},
        execution=TWO_A_JOB,
    )
    (folder / "texts").rename(folder / TEXTS)
    (folder / TEXTS / os.fsdecode(b"t\xe9xt.txt")).write_text("A text whose file's name is not UTF-8.")
    folder.chmod(0o2775)
    with small_disk(folder.parent / "tmp", "64k") as disk:
        fill(disk)
        done = started(project, "--quiet", "rules", TMPDIR=str(disk))
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return project


def test_a_whole_run_in_an_odd_place_with_a_full_temporary_folder(project: ColdProject) -> None:
    assert len(project.trained()) == 2
    for name in ("depth_width/fit.json", "depth_width/logged", "findings.html", "mlflow.db"):
        assert (project.folder / "results" / name).is_file()
    assert sorted(path.name for path in project.folder.parent.iterdir()) == [
        ODD,
        "tmp",
    ]  # nothing fell beside it
    assert project.planned() == []


def test_a_group_may_write_what_one_of_it_made(project: ColdProject) -> None:
    closed = [
        path.relative_to(project.folder)
        for path in (project.folder / "results").rglob("*")
        if not path.is_symlink() and not path.stat().st_mode & stat.S_IWGRP
    ]
    assert closed == []


def test_snakemakes_own_reason_is_told_where_it_fails_a_job(project: ColdProject) -> None:
    """Clocks that differ, as on a network disk: the job's log tells of no failure, and no guess is made."""
    runs = project.folder / "results/depth_width/runs.parquet"
    made = runs.stat()
    (project.folder / "results/depth_width/fit.json").unlink()
    os.utime(runs, (made.st_mtime + 86400,) * 2)
    done = started(project, "results/depth_width/fit.json")
    os.utime(runs, ns=(made.st_mtime_ns,) * 2)
    assert done.returncode != 0
    end = done.stderr[done.stderr.rindex("depth_width failed (results/logs/depth_width.log):") :].splitlines()
    assert end[1].startswith("Output results/depth_width/fit.json has older modification time")
    assert "This could indicate a clock skew problem" in end[1]
    assert "without a word" not in done.stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "br{a}ces",
            "br{a}ces' has braces in its name, and Snakemake takes them for wildcards; rename the folder",
        ),
        ("why?", "why?' has a question mark in its name, and the URI of MLflow's store ends there"),
        ("two\nlines", "two\\nlines' has a line end in its name"),
        (os.fsdecode(b"t\xe9xt"), "t\\udce9xt' has letters that are not UTF-8 in its name"),
    ],
)
def test_what_snakemake_cannot_have_in_a_path_is_told_before_the_first_job(
    name: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / name).mkdir()
    done = Project(tmp_path / name).snakemake("-n", "results/depth_width/fit.json", ok=False)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) < 5
