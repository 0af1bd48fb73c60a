"""What a grid writes, for grids of every size."""

import argparse
from pathlib import Path

import pytest
from grid_runs import grid_runs

from shapelaw.report.write import check_declared, write_results
from shapelaw.studies.grid import results
from shapelaw.studies.grid.study import FIGURES, TABLES

GRIDS = {
    "one seed each": {},
    "several seeds": {"seeds": 2, "noise": 0.01, "vocab_sizes": (257,)},
    "one depth": {"depths": (2,), "ranks": (None,)},
    "one width": {"widths": (32,), "ranks": (None,)},
    "one shape": {"depths": (1,), "widths": (16,), "heads": (1,), "ranks": (8,), "vocab_sizes": (257,)},
}


@pytest.mark.parametrize("name", GRIDS)
def test_everything_declared_is_made_or_left_out_with_its_reason(tmp_path: Path, name: str) -> None:
    grid_runs(**GRIDS[name]).to_parquet(tmp_path / "runs.parquet")
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", type=Path)
    parser.add_argument("--keep", action="store_true")
    results.add_options(parser)
    words = ["--input", str(tmp_path / "runs.parquet"), "--draws", "200"]
    words += ["--axes", "depth", "width", "heads", "embedding_rank", "vocab_size"]
    found = results.results(parser.parse_args(words))
    check_declared(found, TABLES, FIGURES)
    assert found.fit["status"] == "too few points"
    written = {path.name for path in write_results(found, tmp_path / "out", "grid")}
    assert {"effects.csv", "effects_by_size.csv", "best_shapes.csv", "losses.svg", "fit.json"} <= written
    assert "nan" not in found.summary
    if name != "several seeds":
        assert "no network has two seeds, so nothing has an interval" in found.summary
