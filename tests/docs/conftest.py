"""Tables made from the committed runs, once for all tests of the pages."""

from pathlib import Path

import pytest
from job_server import warm_python
from made_once import made_once
from page_numbers import MADE, make_tables


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tables for each command of `MADE`, and what it said as `<folder>.txt`: 15 s of CPU."""
    return made_once(
        tmp_path_factory, "tables", lambda folder: make_tables(folder, set(MADE), str(warm_python()))
    )
