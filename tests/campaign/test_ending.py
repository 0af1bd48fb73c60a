"""The last lines of a workflow."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from shipped import SCALES, shipped

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.campaign.start import cpu_minutes, ending, heading_of
from shapelaw.specs.kinds import AnyRun
from shapelaw.studies.study import Study

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


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, AnyRun]]:
    config = load_config(shipped(), SCALES)
    return {name: runs_of(config, name, Path()) for name in ("depth_width", "memorization_heads")}


def test_three_questions_of_different_titles_decided_ones_first_and_others_runs_last(
    tmp_path: Path, runs: dict[str, dict[str, AnyRun]]
) -> None:
    studies = [
        study_of(tmp_path, "rye", "Bread", of("Hardly.", False)),
        study_of(tmp_path, "wheat", "Bread", of("Yes: by 2 cm.")),
        study_of(tmp_path, "spelt", "Bread", of("No.")),
        study_of(tmp_path, "carrot", "Cake", of("Yes.")),
        study_of(tmp_path, "old", "Cake", None),
        study_of(tmp_path, "soup", "Soup", of("Unsure.", False)),
        replace(study_of(tmp_path, "theirs", "Pie", of("Yes.")), made_elsewhere="Baked last year."),
    ]
    lines = ending(studies, runs, "results/findings.html", 4.26)
    decoders, memorizers = (len(of) for of in runs.values())
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


def test_runs_that_are_left_out_and_parts_that_failed_are_named_below_the_answer(
    tmp_path: Path, runs: dict[str, dict[str, AnyRun]]
) -> None:
    note = "Read from rye: 1 of 3 diverged and are left out: r."
    failed = [{"part": "table crumbs", "reason": "none"}]
    study = study_of(tmp_path, "rye", "Bread", of("Yes."), notes=[note], failed=failed)
    assert ending([study], runs, "page.html")[2:5] == [
        *("  Yes.", f"  {note}"),
        f"In {study.folder} a part failed: table crumbs (none).",
    ]


def test_an_undecided_question_says_so_and_nothing_is_made_up(tmp_path: Path) -> None:
    study = study_of(tmp_path, "rye", "Bread", of("One loaf only.", False))
    trained, question, answer, look = ending([study], {}, "page.html")
    assert (trained, question, answer) == (
        "Nothing was trained.",
        "Does rye rise?",
        "  Undecided: One loaf only.",
    )
    assert look.endswith(" page.html; the runs: make ui.")
    elsewhere = replace(study, subtitle="bread of last year", made_elsewhere="Baked last year.")
    assert ending([elsewhere], {}, "page.html")[2] == "  Bread of last year: Undecided: One loaf only."


def test_a_heading_names_text_block_steps_and_runs(runs: dict[str, dict[str, AnyRun]]) -> None:
    mine = list(runs["depth_width"].values())
    assert heading_of(BREAD, mine) == f"Bread (wiki, Llama's block, 1,200 steps, {len(mine)} runs)"
    assert heading_of(BREAD, mine[:1]) == "Bread (wiki, Llama's block, 1,200 steps, 1 run)"
    both = [mine[0], replace(mine[0], corpus="prose", training=replace(mine[0].training, steps=500))]
    assert heading_of(BREAD, both) == "Bread (wiki and prose, Llama's block, 500 to 1,200 steps, 2 runs)"
    assert heading_of(BREAD, []) == "Bread"


def test_cpu_time_is_of_this_process_and_grows() -> None:
    before = cpu_minutes()
    sum(range(3_000_000))
    assert before < cpu_minutes() < before + 1
