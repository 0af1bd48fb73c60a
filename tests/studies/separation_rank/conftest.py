"""What is measured of a small grid."""

from pathlib import Path

import pytest
from measured_grids import GRIDS

from shapelaw.studies.separation_rank.results import Frames, analyse
from shapelaw.studies.separation_rank.study import RankGrids, asked_of
from shapelaw.studies.separation_rank.tables import measure_all, write_measurements


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for reading: `measured.json`, and the ranks `kept` one by one."""
    folder = tmp_path_factory.mktemp("ranks")
    found = list(measure_all(asked_of(RankGrids(**GRIDS)), folder / "kept"))
    write_measurements(found, folder / "measured.json")
    return folder


@pytest.fixture(scope="session")
def frames(measured: Path) -> Frames:
    """All tables."""
    return analyse(measured / "measured.json")
