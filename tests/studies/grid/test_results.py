"""What a grid makes, for grids of every size, and what it says in sentences and in one line."""

import argparse
from pathlib import Path

from grid_runs import AXES, grid_runs

from shapelaw.studies.grid import results

ONE_CELL = {"heads": (1,), "ranks": (8,), "vocab_sizes": (257,)}


def test_a_table_of_runs_is_analysed_by_the_axes_of_a_command_line(tmp_path: Path) -> None:
    grid_runs(**ONE_CELL).to_parquet(tmp_path / "runs.parquet")
    parser = argparse.ArgumentParser()
    results.add_options(parser)
    words = parser.parse_args(["--draws", "200", "--axes", "depth", *AXES])
    found = results.results(argparse.Namespace(input=tmp_path / "runs.parquet", keep=False, **vars(words)))
    assert found.fit["cells"][0]["runs"] == 6
