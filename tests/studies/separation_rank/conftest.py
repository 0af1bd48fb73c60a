"""What the commands of the study leave for a small grid."""

import json
import subprocess
from pathlib import Path

import pytest
from job_server import warm_python
from made_once import made_once
from measured_grids import GRIDS
from small import SCRIPTS


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for reading: `measured.json`, the ranks `kept` one by one, and tables and figures in `out`."""

    def make(folder: Path) -> None:
        for script, *arguments in (
            (
                "measure_separation_ranks.py",
                "--grids",
                json.dumps(GRIDS),
                "--kept",
                "kept",
                "--out",
                "measured.json",
            ),
            ("analyse.py", "separation_rank", "--input", "measured.json", "--out", "out"),
        ):
            command = [warm_python(), SCRIPTS / script, *arguments]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "separation_ranks", make)
