"""The grids of the memorization studies: from their keys to runs, and what is wrong with them."""

import csv
import math
from collections import Counter

from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.specs.kinds import spec_from_dict
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.studies.registry import STUDIES

MEMORIZATION_STUDIES = [name for name in STUDIES if name.startswith("memorization_")]


def test_scale_paper_is_the_memorization_papers_grid() -> None:
    """All 342 points read off its authors' script: six seeds of each but the two that show saturated heads."""
    with (REPOSITORY / "workflow" / "reference" / "memorization_grid.csv").open() as file:
        grid = [tuple(row.values()) for row in csv.DictReader(file)]
    config, points = load_config(shipped(scale="paper"), SCALES), Counter[tuple[str, ...]]()
    for study in MEMORIZATION_STUDIES:
        for run in runs_of(config, study, REPOSITORY).values():
            assert isinstance(run, MemorizationRun)
            m = run.memorizer
            sizes = (m.heads, m.context, m.head_dim, run.examples)
            steps = 300_000 if study.endswith(("head_dim", "saturation")) else 50_000
            epochs = 0 if study == "memorization_saturation" else 500
            assert run.steps == max(steps, epochs * math.ceil(run.examples / 256))
            name = study.removeprefix("memorization_")
            points[(name, run.task, run.context_type, *map(str, sizes), str(steps))] += 1
    assert len(grid) == 342
    assert set(points) == set(grid)
    assert all(count == (1 if point[0] == "saturation" else 6) for point, count in points.items())


def test_a_grids_last_batch_wins_over_the_sections() -> None:
    grids = [
        {"heads": [2], "head_dim": [8], "examples": [300]},
        {"heads": [4], "head_dim": [8], "examples": [300], "last_batch": "filled"},
    ]
    config = load_config(shipped(memorization={"last_batch": "short"}, memorization_heads=grids), SCALES)
    runs = runs_of(config, "memorization_heads", REPOSITORY).values()
    assert [run.last_batch for run in runs if isinstance(run, MemorizationRun)] == ["short", "filled"]
    assert all(spec_from_dict(run.to_dict()) == run for run in runs)
