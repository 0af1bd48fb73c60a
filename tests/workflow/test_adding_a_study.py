"""docs/adding_a_study.md, carried out word by word in a copy of the project with finished results."""

import json
import os
import re
import shutil
import subprocess

import pandas as pd
import pytest
from finished import FinishedProject
from job_server import warm_python
from small import REPOSITORY

pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "adding_a_study.md").read_text(encoding="utf-8")
NEW_FILE = re.compile(r"^`(scripts/[^`]+)`\n\n```(?:python|rst)\n(.*?)```$", re.MULTILINE | re.DOTALL)
DIFF = re.compile(r"^```diff\n(.*?)```$", re.MULTILINE | re.DOTALL)


SECOND = "## An analysis of its own"


def added_lines(part: str) -> int:
    """Lines of the files of a part of the page, and of its diff."""
    files = sum(text.count("\n") for _, text in NEW_FILE.findall(part))
    return files + sum(len(re.findall(r"^\+(?!\+)", text, re.MULTILINE)) for text in DIFF.findall(part))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> FinishedProject:
    project = FinishedProject(tmp_path_factory.mktemp("new"))
    for name, text in NEW_FILE.findall(PAGE):
        path = project.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for text in DIFF.findall(PAGE):
        subprocess.run(["patch", "-p1"], cwd=project.folder, input=text, text=True, check=True)
    project.sections |= {
        "studies": ["depth_width", "seed_spread"],
        "extras": [],
        "seed_spread": {"least_seeds": 2},
    }
    project.configure()
    return project


def test_the_page_keeps_its_word_about_its_length() -> None:
    declared, analysed = PAGE.split(SECOND)
    assert f"costs {added_lines(declared)} lines: a grid, a question, captions" in PAGE
    assert f"the size of the network: {added_lines(analysed)} lines." in PAGE
    assert added_lines(declared) < 60
    assert added_lines(analysed) < 100


def test_only_the_new_study_is_made(project: FinishedProject) -> None:
    assert set(project.planned()) == {"seed_spread", "log_study", "findings"}


def test_it_is_made_planned_and_reported(project: FinishedProject) -> None:
    project.snakemake("results/seed_spread/fit.json", "--quiet", "rules")
    folder = project.folder / "results" / "seed_spread"
    assert {path.name for path in folder.iterdir()} == {
        *("spread.html", "spread.csv", "tables.md", "tables.tex", "spread.svg", "spread.png", "fit.json")
    }
    assert (pd.read_csv(folder / "spread.csv")["size"] >= 2).all()
    assert "seed_spread: nothing trained, from the runs of depth_width" in project.snakemake("plan").stdout
    page = project.folder / "report.html"
    project.snakemake("--report", str(page), "results/seed_spread/fit.json")
    text = page.read_text(encoding="utf-8")
    assert "Spread over seeds" in text
    assert "The same against the parameters of the blocks." in text


def test_its_keys_are_checked_and_documented(project: FinishedProject) -> None:
    grids = {"head_count": {"axes": {"depth": [1], "widht": [4]}}}
    project.configure(seed_spread={"least_sedes": 2}, grids=grids)
    done = project.snakemake("-n", ok=False)
    assert "seed_spread.least_sedes is not a key (did you mean least_seeds?)" in done.stdout + done.stderr
    assert "grids.head_count.axes.widht is not a key (did you mean width?)" in done.stdout + done.stderr
    project.configure(seed_spread={"least_seeds": 3})
    assert "seed_spread" in project.planned()  # another option, another analysis
    project.configure()
    (project.folder / "workflow/schemas").mkdir(parents=True, exist_ok=True)
    shutil.copytree(REPOSITORY / "docs/generators", project.folder / "docs/generators")
    words, paths = [warm_python(), "docs/generators/config_reference.py"], {"PYTHONPATH": "scripts"}
    subprocess.run(words, cwd=project.folder, env=os.environ | paths, check=True)
    reference = (project.folder / "docs/config.md").read_text()
    assert "Seeds that a shape needs to be counted." in reference
    assert '"head_count"' in (project.folder / "workflow/schemas/config.schema.json").read_text()


def test_the_declared_grid_is_planned_as_it_stands(project: FinishedProject) -> None:
    project.configure(studies=["head_count"])
    assert "head_count: 36 runs" in project.snakemake("plan").stdout


def test_another_grid_of_a_declared_study_is_trained_and_reported(project: FinishedProject) -> None:
    grid = {"axes": {"depth": [1], "width": [4, 8], "heads": [1, 2]}, "vocab_size": 300, "context_length": 16}
    repeated = {**grid, "repeated": {1: [8]}, "repeated_seeds": 2}
    project.configure(studies=["head_count"], grids={"head_count": repeated})
    project.snakemake("results/head_count/fit.json", "--quiet", "rules")
    folder = project.folder / "results" / "head_count"
    effects = pd.read_csv(folder / "effects.csv")
    assert set(effects["axis"]) == {"heads"}
    assert effects["low"].notna().any()
    fit = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
    assert fit["answer"]["published"].startswith("hardly")
    assert fit["answer"]["sentence"].startswith("heads: ")


def test_plan_names_the_line_of_a_slip_in_its_code(project: FinishedProject) -> None:
    path = project.folder / "scripts/shapelaw/studies/head_count/study.py"
    written = path.read_text(encoding="utf-8")
    path.write_text(f"{written}\nundefined_name\n", encoding="utf-8")
    said = project.snakemake("plan", ok=False).stderr
    path.write_text(written, encoding="utf-8")
    assert "name 'undefined_name' is not defined" in said
    assert f'"{path}", line {written.count(chr(10)) + 2}' in said
