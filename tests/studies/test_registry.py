"""What every study on the list has to keep: its declaration, its room, and the files that it makes."""

import re
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

import pytest
from finished import ARCHIVE, CONFIG
from golden_tables import unpack_archive
from small import REPOSITORY, SCRIPTS

from shapelaw.campaign.config import load_config
from shapelaw.studies.grid.study import RESULTS, TABLES
from shapelaw.studies.registry import ROOMS, STUDIES
from shapelaw.studies.study import Study

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
