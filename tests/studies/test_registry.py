"""What every study on the list has to keep: its declaration, its room, its files, its answer and published numbers."""

import csv
import math
import re
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from finished import ARCHIVE, CONFIG
from golden_tables import unpack_archive
from shipped import SCALES
from small import REPOSITORY, SCRIPTS

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.report.write import Table
from shapelaw.specs.kinds import AnyRun
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.specs.runs import Run
from shapelaw.studies.grid.study import RESULTS, TABLES
from shapelaw.studies.registry import ROOMS, STUDIES
from shapelaw.studies.study import (
    ANSWER,
    DEPTH_WIDTH,
    REFERENCE,
    Study,
    published,
    published_log_width,
    published_of,
)

EVERY = pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)

NOT_ANALYSED = {"logged", "keys.txt", "runs.parquet", "measured.json", "measured.csv", "layers"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a real run of every study but committed_runs, on tiny grids."""
    folder = tmp_path_factory.mktemp("finished")
    unpack_archive(ARCHIVE, folder)
    return folder / "results"


@EVERY
def test_a_study_has_its_room(study: Study) -> None:
    assert re.fullmatch("[a-z_]+", study.name)
    room = study.captions.relative_to(SCRIPTS / "shapelaw" / "studies").parts[0]
    assert room in ROOMS
    assert study.results.startswith((f"shapelaw.studies.{room}.", RESULTS))  # its own, or a grid's
    assert study.tables
    assert study.results != RESULTS or study.tables == TABLES
    assert re.fullmatch(r"[A-Z].*\?", study.question)
    assert len({*study.artifacts, *study.copies}) == 2 * len(study.tables) + 2 + 2 * len(study.figures)
    for caption in (study.table_caption, *map(study.figure_caption, study.figures)):
        assert len(caption.read_text(encoding="utf-8")) > 20, caption


@EVERY
def test_its_results_take_the_options_that_the_workflow_gives(study: Study) -> None:
    config = load_config({"scale": "laptop"}, REPOSITORY / "workflow" / "scales", REPOSITORY)
    parser = ArgumentParser()
    getattr(import_module(study.results), "add_options", lambda _: None)(parser)
    parser.parse_args([str(word) for word in study.options(config)])


@EVERY
def test_a_study_makes_exactly_what_it_declares(study: Study, finished: Path) -> None:
    folder = finished / study.name
    if not folder.exists():
        # one that reads a file of the project is made by tests/workflow/test_studies.py
        assert study.input, f"name {study.name} in {CONFIG.name}, and train it: python tests/finished.py"
        return
    made = {path.name for path in folder.iterdir()} - NOT_ANALYSED
    assert made == {Path(name).name for name in (*study.artifacts, *study.copies)} | {"fit.json"}


def test_no_study_is_named_outside_its_room() -> None:
    """`grep -rn depth_width` of all that runs finds, beside the scales' entries, the files of committed runs that the
    pages' tables are made from and the paper's line, nothing outside the studies of decoders.
    """
    places = [REPOSITORY / "Snakefile", REPOSITORY / "Makefile"]
    for folder, endings in ((SCRIPTS, "py cpp h"), (REPOSITORY / "workflow" / "rules", "smk")):
        places += [path for ending in endings.split() for path in folder.rglob(f"*.{ending}")]
    places += [
        path for folder in ("profiles", "slurm", "envs") for path in (REPOSITORY / folder).rglob("*.yaml")
    ]
    studies = SCRIPTS / "shapelaw" / "studies"
    named = [
        path
        for path in set(places) - {studies / "study.py"}  # the line of Levine et al.
        if studies / "decoders" not in path.parents
        and "depth_width" in path.read_text("utf-8").replace("results/depth_width.md", "")  # a verdict's page
    ]
    assert not named


ANSWERS = REPOSITORY / "tests" / "studies" / "answers.yaml"


def cases() -> Iterator[tuple[str, list[str], dict[str, pd.DataFrame], str]]:
    """A module of studies, the name of one where it has several, its tables and the words of its answer."""
    for module, listed in yaml.safe_load(ANSWERS.read_text(encoding="utf-8")).items():
        for case in listed["cases"]:
            tables = {
                name: pd.DataFrame(case.get(name, []), columns=columns.split())
                for name, columns in listed["columns"].items()
            }
            yield module, [case["of"]] if "of" in case else [], tables, case["says"]


@pytest.mark.parametrize(("module", "of", "tables", "says"), [*cases()])
def test_a_study_answers_from_its_tables(
    module: str, of: list[str], tables: dict[str, pd.DataFrame], says: str
) -> None:
    study: Any = import_module(f"shapelaw.studies.{module}")
    assert study.answer(*of, {name: Table(frame, "") for name, frame in tables.items()}).words == says


PAPER = re.compile(r"(Levine|Wies|Mahdavi) et al\. 202\d, (table|figure|section|appendix|eq\.) ")


def test_each_has_a_source_and_stands_once() -> None:
    with (REFERENCE / "published.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["study"] for row in rows} <= {*STUDIES, "perplexity"}
    assert len({(row["study"], row["quantity"], row["setting"]) for row in rows}) == len(rows)
    for row in rows:
        one = published(row["study"], row["quantity"], row["setting"])
        assert one.value
        assert PAPER.match(one.source), one
        assert math.isnan(one.number) or one.low <= one.number <= one.high, one
        assert row["quantity"] != ANSWER or one.value.endswith("."), one


def test_errors_are_half_the_interval_and_open_where_none_was_published() -> None:
    a, chi2 = (published(DEPTH_WIDTH, name) for name in ("a", "chi2_reduced"))
    assert (a.number, a.err) == (5.039, 0.03)
    assert (chi2.low, chi2.high) == (0.854, 0.854)
    assert math.isnan(chi2.err)
    assert published_log_width(12) == 5.039 + 0.0555 * 12


def test_what_was_not_published_has_no_value() -> None:
    nothing = published(DEPTH_WIDTH, "a", "depth 6")
    assert (nothing.value, nothing.source) == ("", "")
    assert math.isnan(nothing.number)
    assert math.isnan(nothing.err)
    assert published_of("relu", ANSWER) == {}


PRINTED = {  # columns that say the networks of a paper's grid, workflow/reference/NAME_grid.csv
    "depth_width": ["depth", "width"],
    "vocabulary": ["vocab_size", "depth", "width", "embedding_rank"],
    "embedding_rank": ["depth", "width", "embedding_rank"],
    "positional_rank": ["series", "depth", "width", "vocab_size", "context", "rank"],
    "attention_ratio": ["attention_to_width_ratio", "depth", "heads", "width"],
    "memorization": ["task", "context_type", "heads", "context", "head_dim", "examples"],
}


def printed_of(run: AnyRun) -> dict[str, object]:
    """What such columns say of a run."""
    if isinstance(run, MemorizationRun):
        return {**vars(run), **vars(run.memorizer)}
    assert isinstance(run, Run)
    series = "vocabulary" if run.shape.positional_rank is None else "positional"
    rank = run.shape.embedding_rank or run.shape.positional_rank
    ratio = {"attention_to_width_ratio": run.shape.attention_ratio, "context": run.shape.context_length}
    return {**asdict(run.shape), **ratio, "series": series, "rank": rank}


@pytest.mark.parametrize("name", PRINTED)
def test_scale_paper_trains_every_network_of_a_printed_grid(name: str) -> None:
    """That it trains no others, and with which seeds, is held by tests/golden/runs-paper.tsv."""
    table = pd.read_csv(REFERENCE / f"{name}_grid.csv")[PRINTED[name]].astype(object)
    studies = [study for study in STUDIES if study.startswith(name)]
    config = load_config({"scale": "paper", "studies": studies}, SCALES, REPOSITORY)
    runs = [run for study in studies for run in runs_of(config, study, REPOSITORY).values()]
    trained = {tuple(printed_of(run)[column] for column in PRINTED[name]) for run in runs}
    assert set(table.where(table.notna(), None).itertuples(index=False, name=None)) <= trained
