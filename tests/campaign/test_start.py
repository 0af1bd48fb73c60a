"""The start of a workflow: what can be known to be wrong is told before the first job; and its last lines."""

import json
import shutil
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign import start as starts
from shapelaw.campaign.config import load_config
from shapelaw.campaign.findings import findings_page
from shapelaw.campaign.submission import submission_of, write_submission
from shapelaw.errors import UserError
from shapelaw.specs.kinds import AnyRun
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import Study

CONFIG = load_config(shipped(), SCALES)
RUNS = submission_of(CONFIG, REPOSITORY, REPOSITORY).runs
KEY, RUN = next(iter(RUNS["depth_width"].items()))
NUMBER = len({key for runs in RUNS.values() for key in runs})

TARGETS = yaml.safe_load(Path(__file__).with_name("targets.yaml").read_text(encoding="utf-8"))


def said(
    folder: Path,
    *targets: str,
    environment: Mapping[str, str] | None = None,
    cores: int | None = 1,
    jobs: int | None = None,
    runs: Mapping[str, Mapping[str, AnyRun]] = RUNS,
) -> str:
    """The sentences about such a start; empty where it is right."""
    try:
        starts.check_start(
            starts.Start(targets, folder, folder, environment or {}, cores, jobs), CONFIG, runs
        )
    except UserError as error:
        return str(error)
    return ""


def test_what_there_is_can_be_asked_for(tmp_path: Path) -> None:
    targets = [f"results/runs/{KEY}/summary.json", "results/corpora/wiki/documents.parquet"]
    for name in (*CONFIG.studies, "committed_runs", "assumptions"):
        study = STUDIES[name]
        targets += [study.target, study.analysed, *study.artifacts, f"results/{name}/keys.txt"]
    assert said(tmp_path, *targets) == ""


def filled(text: str) -> str:
    return text.replace("KEY", KEY).replace("LABEL", RUN.label).replace("NUMBER", str(NUMBER))


@pytest.mark.parametrize(("target", "sentence"), TARGETS.items())
def test_a_target_that_the_config_cannot_make(tmp_path: Path, target: str, sentence: str) -> None:
    told = said(tmp_path, filled(target))
    assert filled(sentence) in told
    assert len(told.splitlines()) == 1
    nothing = said(tmp_path, "results/runs/any/summary.json", runs={})
    assert nothing == "The config trains nothing, so it has no run any."


def test_targets_are_read_off_the_command_line() -> None:
    line = "results/a/fit.json -n results/b/c.csv plan --report results/depth/x.zip --cores 1"
    assert starts.targets_of(line.split()) == {"results/a/fit.json", "results/b/c.csv"}


@pytest.mark.parametrize(
    ("line", "file", "alone"),
    [
        ("--report results/report.html", "results/report.html", True),
        ("--cores 1 --report", "report.html", True),
        ("--report --quiet all", "report.html", True),
        ("--report=a.zip", "a.zip", True),
        ("--report a.html --config scale=laptop", "a.html", False),
        ("--configfile=own.yaml --report a.html", "a.html", False),
        ("--report a.html --report-after-run", "a.html", False),
        ("results/a/fit.json", None, False),
        ("", None, False),
    ],
)
def test_a_report_without_a_config_is_of_what_was_submitted(line: str, file: str | None, alone: bool) -> None:
    assert starts.report_of(line.split()) == file
    assert starts.reports_alone(line.split()) == alone


def test_files_of_another_config_are_refused_in_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    submission, study, page = submission_of(CONFIG, REPOSITORY, REPOSITORY), STUDIES["depth_width"], Path("p")
    keys = Path(study.folder, "keys.txt")
    keys.parent.mkdir(parents=True)
    keys.write_text("\n".join(RUNS["depth_width"]))
    page.write_text(findings_page([], submission.results_digest))
    assert list(starts.report_problems(submission, STUDIES.values(), page)) == []
    page.write_text(findings_page([], "0123"))
    (told,) = starts.report_problems(submission, STUDIES.values(), page)
    assert told.startswith(
        "p tells what another config found; make it anew, then the report: snakemake --forcerun"
    )
    assert list(starts.report_problems(submission, [study], None)) == []
    keys.write_text(KEY)
    write_submission(submission, tmp_path)
    (told,) = starts.report_problems(submission, [study], None)
    assert told == (
        "results/depth_width is of other runs than this config's; make it anew, then the report: "
        f"snakemake --forcerun list_runs --config submitted={submission.path}"
    )


def test_results_that_are_a_file_or_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "results"
    results.touch()
    assert (
        said(tmp_path) == f"{results} is a file, and the results go into a folder of that name; move it away."
    )
    results.unlink()
    results.mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: path != results)  # root may write all else
    assert said(tmp_path).startswith(f"{results} can't be written to; make it writable")


@pytest.mark.parametrize("uri", ["banana", "http//host:5000", "http://[::1"])
def test_a_tracker_of_the_environment_that_is_no_uri(tmp_path: Path, uri: str) -> None:
    told = said(tmp_path, environment={"MLFLOW_TRACKING_URI": uri})
    assert told.startswith("MLFLOW_TRACKING_URI is not a URI, such as sqlite:///")


def test_nothing_runs_on_no_core(tmp_path: Path) -> None:
    assert said(tmp_path, cores=0) == "--cores is 0, with which nothing can run; give 1 or more, or `all`."
    assert said(tmp_path, cores=None, jobs=0).startswith("--jobs is 0")


def test_checkpoints_go_to_the_scratch_disk(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "results" / "checkpoints").mkdir(parents=True)  # empty, as a start without scratch leaves it
    for _ in range(2):
        starts.link_scratch("../scratch", project)
    link = project / "results" / "checkpoints"
    assert link.resolve().parent == tmp_path / "scratch"
    (link / "depth_width").mkdir()
    assert [path.name for path in (tmp_path / "scratch").glob("project-*/*")] == ["depth_width"]
    with pytest.raises(UserError, match=r"there are checkpoints in .*scratch.* already; move them: cp -a "):
        starts.link_scratch("../other", project)
    shutil.rmtree(tmp_path / "scratch")  # as scratch disks are swept
    starts.link_scratch("../other", project)
    assert link.resolve().parent == tmp_path / "other"


def test_checkpoints_that_are_there_are_not_left_behind(tmp_path: Path) -> None:
    starts.link_scratch(None, tmp_path)
    assert not (tmp_path / "results").exists()
    (tmp_path / "results" / "checkpoints" / "depth_width").mkdir(parents=True)
    with pytest.raises(UserError, match="there are checkpoints in"):
        starts.link_scratch("scratch", tmp_path)
    (tmp_path / "file").touch()
    unwritable = r"execution\.scratch is file, where .* can't be made \(Not a directory\)"
    with pytest.raises(UserError, match=unwritable):
        starts.link_scratch("file", tmp_path)


def test_a_server_that_does_not_answer_is_told_at_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        uri = f"http://ada:hunter2@127.0.0.1:{server.getsockname()[1]}"
        assert starts.tracker_warnings(CONFIG, {"MLFLOW_TRACKING_URI": uri}) == []
    (said,) = starts.tracker_warnings(CONFIG, {"MLFLOW_TRACKING_URI": uri})
    assert said.startswith(
        "the tracker http://127.0.0.1 does not answer ([Errno 111] Connection refused); training goes"
    )
    assert "hunter2" not in said
    assert starts.tracker_warnings(CONFIG, {"MLFLOW_TRACKING_URI": "sqlite:///x.db"}) == []
    assert starts.tracker_warnings(CONFIG, {}) == []


TRAINED = {name: RUNS[name] for name in ("depth_width", "memorization_heads")}
BREAD = Study("bread", "Bread", Path("/rooms/bread"), (), {}, "bread.results", "Does it rise?")


def study_of(
    folder: Path, name: str, title: str, answer: Mapping[str, object] | None, **more: object
) -> Study:
    study = replace(BREAD, name=name, title=title, question=f"Does {name} rise?", place=str(folder))
    if answer is not None:
        (folder / name).mkdir()
        (folder / name / "fit.json").write_text(json.dumps({"answer": answer, **more}))
    return study


def of(sentence: str, decided: bool = True) -> dict[str, object]:
    return {"sentence": sentence, "decided": decided, "published": "", "more": "A long story."}


def test_three_questions_of_different_titles_decided_ones_first_and_others_runs_last(tmp_path: Path) -> None:
    studies = [
        study_of(tmp_path, "rye", "Bread", of("Hardly.", False)),
        study_of(tmp_path, "wheat", "Bread", of("Yes: by 2 cm.")),
        study_of(tmp_path, "spelt", "Bread", of("No.")),
        study_of(tmp_path, "carrot", "Cake", of("Yes.")),
        study_of(tmp_path, "old", "Cake", None),
        study_of(tmp_path, "soup", "Soup", of("Unsure.", False)),
        replace(study_of(tmp_path, "theirs", "Pie", of("Yes.")), made_elsewhere="Baked last year."),
    ]
    lines = starts.ending(studies, TRAINED, "results/findings.html", 4.26)
    decoders, memorizers = (len(of) for of in TRAINED.values())
    assert lines[0] == (
        f"Trained: {decoders} decoders (wiki, Llama's block, 1,200 steps) and {memorizers} memorizers (random "
        "examples, one layer of attention, 1,500 steps)."
    )
    assert lines[1:7] == [
        *("Does wheat rise?", "  Yes: by 2 cm."),
        *("Does carrot rise?", "  Yes."),
        *("Does soup rise?", "  Undecided: Unsure."),
    ]
    assert lines[7].endswith(
        " results/findings.html (questions left: 3); the runs: make ui. It took 4.3 CPU-minutes."
    )
    assert len(lines) == 8


def test_runs_that_are_left_out_and_parts_that_failed_are_named_below_the_answer(tmp_path: Path) -> None:
    note = "Read from rye: 1 of 3 diverged and are left out: r."
    failed = [{"part": "table crumbs", "reason": "none"}]
    study = study_of(tmp_path, "rye", "Bread", of("Yes."), notes=[note], failed=failed)
    assert starts.ending([study], TRAINED, "page.html")[2:5] == [
        *("  Yes.", f"  {note}"),
        f"In {study.folder} a part failed: table crumbs (none).",
    ]


def test_an_undecided_question_says_so_and_nothing_is_made_up(tmp_path: Path) -> None:
    study = study_of(tmp_path, "rye", "Bread", of("One loaf only.", False))
    trained, question, answer, look = starts.ending([study], {}, "page.html")
    assert (trained, question, answer) == (
        "Nothing was trained.",
        "Does rye rise?",
        "  Undecided: One loaf only.",
    )
    assert look.endswith(" page.html; the runs: make ui.")
    elsewhere = replace(study, subtitle="bread of last year", made_elsewhere="Baked last year.")
    assert starts.ending([elsewhere], {}, "page.html")[2] == "  Bread of last year: Undecided: One loaf only."


def test_a_heading_names_text_block_steps_and_runs() -> None:
    mine = list(RUNS["depth_width"].values())
    assert starts.heading_of(BREAD, mine) == f"Bread (wiki, Llama's block, 1,200 steps, {len(mine)} runs)"
    assert starts.heading_of(BREAD, mine[:1]) == "Bread (wiki, Llama's block, 1,200 steps, 1 run)"
    both = [mine[0], replace(mine[0], corpus="prose", training=replace(mine[0].training, steps=500))]
    assert (
        starts.heading_of(BREAD, both) == "Bread (wiki and prose, Llama's block, 500 to 1,200 steps, 2 runs)"
    )
    assert starts.heading_of(BREAD, []) == "Bread"


def test_cpu_time_is_of_this_process_and_grows() -> None:
    before = starts.cpu_minutes()
    sum(range(3_000_000))
    assert before < starts.cpu_minutes() < before + 1
