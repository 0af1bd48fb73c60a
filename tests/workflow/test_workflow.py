"""The real Snakemake on a real, small corpus: what runs, what does not run again, what is said."""

import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from job_server import run_snakemake, warm_python
from project import CONFIG, GRID, KEYS, Project, key_of, records_of, write_gpt2_files


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_corpus: Path) -> Project:
    """After a whole run."""
    project = Project(tmp_path_factory.mktemp("project"), with_corpus)
    done = project.snakemake("--quiet", "rules")
    (project.folder / "said.txt").write_text(done.stdout)
    return project


def test_a_whole_run_ends_in_a_question_its_answer_and_the_page(project: Project) -> None:
    trained, question, answer, look = (project.folder / "said.txt").read_text().splitlines()[-4:]
    assert trained == "Trained: 6 decoders (prose, GPT-2's block, 30 steps)."
    assert question.endswith("from which width on does a deeper network win?")
    assert answer.startswith("  Undecided: Depth 1 against 2: ")
    assert re.fullmatch(
        r"Look: \S+ results/findings.html; the runs: make ui. It took \d+\.\d CPU-minutes.", look
    )
    page = (project.folder / "results" / "findings.html").read_text()
    assert "Depth and width (prose, GPT-2&#x27;s block, 30 steps, 6 runs)" in page


def test_a_run_in_another_folder_ends_in_its_answer_too(project: Project, tmp_path: Path) -> None:
    target = "results/depth_width/fit.json"
    (project.folder / target).unlink()
    options = (target, "--snakefile", str(project.folder / "Snakefile"), "--directory", str(project.folder))
    done = run_snakemake((*options, "--cores", "1", "--quiet", "rules"), tmp_path, os.environ, warm_python())
    assert done.returncode == 0, done.stderr
    trained, question, answer, look = done.stdout.splitlines()[-4:]
    assert trained == "Trained: 6 decoders (prose, GPT-2's block, 30 steps); none of them now."
    assert question.endswith("from which width on does a deeper network win?")
    assert answer.startswith("  Undecided: Depth 1 against 2: ")
    (page,) = re.findall(r"Look: \S+ (\S+); the runs", look)
    assert (tmp_path / page).is_file()


def test_a_whole_run_ends_in_tables_figures_and_mlflow(project: Project) -> None:
    results = project.folder / "results" / "depth_width"
    assert set(project.trained()) == KEYS
    runs = pd.read_parquet(results / "runs.parquet")
    assert set(runs["key"]) == KEYS
    assert (runs["status"] == "FINISHED").all()
    assert runs["test_loss"].between(2, 6.5).all()
    assert {"depth", "deeper_depth", "width", "width_err", "method", "status"} <= set(
        pd.read_csv(results / "transitions.csv").columns
    )
    assert json.loads((results / "fit.json").read_text())["status"] == "too few points"
    assert (results / "loss_adjacent.svg").stat().st_size > 1000
    assert (project.folder / "results" / "mlflow.db").exists()


@pytest.mark.slow
def test_the_report_opens_with_what_was_found_and_its_panels_have_something_to_show(project: Project) -> None:
    said = project.snakemake("plan", "--quiet", "rules", "--config", "studies=[memorization_heads]")
    assert "Trained: " not in said.stdout  # and what was submitted last is the run before
    said = project.snakemake("--report", "results/report.html")
    assert said.stdout.rstrip().endswith(" results/report.html; the runs: make ui.")
    text = (project.folder / "results" / "report.html").read_text(encoding="utf-8")
    assert "max-width: 22rem" in text  # of the menu, which took more than half of the page
    (first,) = re.findall(r"^\s*var workflow_desc = (.*);$", text, re.MULTILINE)
    page = json.loads(first)
    for said in ("from which width on does a deeper network win?", "undecided", "log d = 5.039 + 0.0555 L"):
        assert said in page
    assert (
        'href="http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning&amp;viewState' in page
    )
    (spec,) = re.findall(r"^\s*var runtimes_spec = (.*);$", text, re.MULTILINE)
    runtimes = json.loads(spec)["data"]["values"]
    assert len(runtimes) > 10
    assert min(one["runtime"] for one in runtimes) > 0  # the axis is logarithmic
    (results,) = re.findall(r"^\s*var results = (\{.*\});$", text, re.MULTILINE)
    shown = {Path(name).name for name in json.loads(results)}
    assert {"findings.html", "transitions.html", "loss_adjacent.svg"} <= shown
    assert not {name for name in shown if name.endswith(".csv")}  # which would be downloaded


@pytest.mark.slow
def test_a_report_of_files_of_another_config_is_refused(project: Project) -> None:
    (project.folder / "other.yaml").write_text(
        yaml.safe_dump({"grids": {"depth_width": {"widths": {1: [4]}}}})
    )
    report = ("--report", "other.html", "--configfile", "other.yaml", "--quiet", "all")
    for target in ((), ("results/depth_width/fit.json",)):
        assert (
            "make it anew, then the report: snakemake" in project.snakemake(*target, *report, ok=False).stderr
        )
    assert not (project.folder / "other.html").exists()


def test_a_second_run_does_nothing(project: Project) -> None:
    assert "Nothing to be done" in project.snakemake("--quiet", "rules").stderr


def test_a_start_is_repeated_by_its_file_whatever_the_config_says_by_now(project: Project) -> None:
    page = (project.folder / "results" / "findings.html").read_text()
    (again,) = re.findall(r"<code>snakemake (--config submitted=\S+) --forcerun depth_width", page)
    project.configure(grids={"depth_width": {**GRID, "widths": {1: [4, 8, 12], 2: [4, 10]}}})
    assert "Nothing to be done" in project.snakemake(*again.split(), "--quiet", "rules").stderr
    done = project.snakemake(*again.split(), "scale=laptop", ok=False)
    assert "nothing can be set beside it; leave out scale." in done.stderr
    project.configure()


def test_a_changed_comment_in_a_script_and_how_jobs_are_executed_train_nothing(project: Project) -> None:
    for script in (project.folder / "scripts").rglob("*.py"):
        script.write_text(script.read_text() + "# a comment\n")
    project.configure(execution={"checkpoint_minutes": 3.0})
    assert project.planned() == []
    project.configure()


def test_a_new_text_in_the_folder_makes_a_new_corpus(project: Project) -> None:
    new = project.folder / "texts" / "new.txt"
    new.write_text("A text that was not there before.")
    assert {"prepare_corpus", "encode", "train_small"} <= set(project.planned())
    plan = project.snakemake("plan")
    assert (
        f"files, have changed since {len(KEYS)} runs trained on it: unless the text is the same, "
        in plan.stderr
    )
    assert f"depth_width: {len(KEYS)} runs to train; " in plan.stdout
    new.unlink()
    assert project.planned() == []


def test_other_steps_train_every_run_again(project: Project) -> None:
    project.configure(training={**CONFIG["training"], "steps": 31})
    assert project.planned().count("train_small") == len(KEYS)
    project.configure()


@pytest.mark.slow
def test_one_run_is_a_target_of_its_own(tmp_path: Path, with_corpus: Path) -> None:
    project = Project(tmp_path, with_corpus)
    (target,) = records_of([key_of(2, 4)])
    assert project.planned(target) == ["train_small", "record"]  # the corpus was made for all tests
    project.snakemake(target, "--quiet", "rules")
    assert set(project.trained()) == {key_of(2, 4)}


def test_a_dry_run_ends_in_the_warnings_of_a_real_one(tmp_path: Path) -> None:
    project = Project(tmp_path)
    real = project.snakemake("plan", "--quiet", "rules").stderr.splitlines()
    dry = project.snakemake("-n", "plan", "--quiet", "rules").stderr.splitlines()
    warnings = [line for line in real if line.startswith("Warning: ")]
    assert "at the sizes that depths 1 and 2 both cover, they have" in warnings[0]
    assert dry[-len(warnings) - 1 : -1] == warnings
    assert dry[-1] == f"{len(KEYS)} runs to train."


def test_plan_says_what_it_would_cost(project: Project) -> None:
    """Its lines alone, Snakemake's own are left out."""
    plan = project.snakemake("plan")
    said = plan.stdout
    assert said.splitlines()[0] == f"depth_width: {len(KEYS)} runs, all in the pool"
    assert said.splitlines()[-1] == f"Together {len(KEYS)} runs, all in the pool"
    assert "Building DAG" not in plan.stderr


@pytest.mark.slow
def test_a_start_without_gpt2s_tokenizer_says_how_to_give_it(
    tmp_path: Path, with_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a job would need it: another target starts, and so does a plan."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    project = Project(tmp_path, with_corpus)
    project.configure(grids={"depth_width": {**GRID, "vocab_size": 50257}})
    store = "results/corpora/prose/V50257/test.json"
    refused = project.snakemake(store, "--quiet", "all", ok=False).stderr
    assert not (project.folder / store).parent.exists()
    assert (
        refused.count("depth_width has a vocabulary of 50,257, which is GPT-2's own, and its files are not")
        == 1
    )
    assert "Warning: depth_width has a vocabulary of 50,257" in project.snakemake("-n", store).stderr
    assert "Error" not in refused
    plan = project.snakemake("plan")
    assert "depth_width: " in plan.stdout
    assert "Warning: depth_width has a vocabulary of 50,257" in plan.stderr
    folder = project.folder / "files"
    write_gpt2_files(folder)
    project.configure(
        corpus={**CONFIG["corpus"], "gpt2_files": "files"},
        grids={"depth_width": {**GRID, "vocab_size": 50257}},
    )
    project.snakemake(store)
    assert (project.folder / store).exists()


@pytest.mark.slow
def test_small_runs_can_share_a_job(tmp_path: Path, with_corpus: Path, project: Project) -> None:
    """The same numbers as those of runs that have a job each."""
    packed = Project(tmp_path, with_corpus)
    packed.configure(execution={"job_minutes": 0.011})
    assert packed.planned().count("train_small") == 2
    packed.snakemake(*records_of(KEYS), "results/depth_width/runs.parquet", "--quiet", "rules")
    assert set(packed.trained()) == KEYS
    for key in KEYS:
        histories = [p.folder / f"results/runs/{key}/history.parquet" for p in (project, packed)]
        assert histories[0].read_bytes() == histories[1].read_bytes()
