"""The page's tables, made again from the committed losses."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pandas as pd
import pytest
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.studies.grid.results import cell_tables
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.undertraining.results import analyse_cells, named

RESULTS = REPOSITORY / "docs" / "results"
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGE = (RESULTS / "undertraining.md").read_text(encoding="utf-8")
RATES = (0.002, 0.004, 0.008)
PAIRS = {  # widths of one layer and of two, of equal parameters
    4_000: ((48, 34), (64, 46), (96, 68), (128, 90), (160, 112), (192, 136)),
    16_000: ((32, 22), (48, 34), (64, 46), (96, 68), (128, 90), (192, 136)),
}
SHOWN = {"0.002": "2e-3", "0.004": "4e-3", "0.008": "8e-3", "best rates": "best of each shape"}
TABLE = RESULTS / "laptop_undertraining.csv"
RUNS = pd.read_csv(TABLE)
SCALES = REPOSITORY / "workflow" / "scales"
MEANS = RUNS.groupby(["steps", "depth", "width", "learning_rate"])["test_loss"].mean()


def losses(steps: int, depth: int, width: int) -> list[float]:
    """Of all rates, nats per byte, means over seeds."""
    return [MEANS[steps, depth, width, rate] for rate in RATES]


@pytest.mark.parametrize(("steps", "pairs"), PAIRS.items())
def test_the_losses_are_those_of_the_runs(steps: int, pairs: tuple[tuple[int, int], ...]) -> None:
    for one_layer, two_layers in pairs:
        one, two = losses(steps, 1, one_layer), losses(steps, 2, two_layers)
        better = [a - b for a, b in zip(one, two, strict=True)]
        cells = [f"{number:.3f}" for number in (*one, *two)]
        cells += [f"{number:+.3f}" for number in (*better, min(one) - min(two))]
        assert f"| {one_layer} / {two_layers} | {' | '.join(cells)} |" in PAGE


def test_the_crossings_are_those_that_the_study_finds() -> None:
    analysis = analyse_cells(RUNS, str(TABLE), Options())
    found = cell_tables(analysis.cells, named)["transitions"].frame
    for (steps, rate), rows in found.groupby(["steps", "learning_rate"]):
        by_method = rows.set_index("method")
        cells = [crossing(by_method.loc[method]) for method in ("bootstrap", "paper rule")]
        row = f"| {steps:,} | {SHOWN[str(rate)]} | {cells[0]} | {cells[1]} |"
        assert row in PAGE, row


def crossing(found: pd.Series) -> str:
    """A transition as a cell of the page."""
    if found["status"] == "crossing":
        return f"**{found['width']:.0f} ± {found['width_err']:.0f}**"
    bound = "" if pd.isna(found["bound"]) else f", {found['side']} {found['bound']:.0f}"
    return f"{found['status']}{bound}"


def test_the_gains_by_the_rate_are_those_of_the_runs() -> None:
    for depth, width, gain in ((2, 68, "0.104"), (1, 96, "0.028")):
        slow, _, fast = losses(4_000, depth, width)
        assert f"{slow - fast:.3f}" == gain
        assert gain in PAGE


def test_the_spread_of_seeds_is_that_of_the_runs() -> None:
    spread = RUNS.groupby(["steps", "depth", "width", "learning_rate"])["test_loss"].agg(["min", "max"])
    assert f"differ by up to {(spread['max'] - spread['min']).max():.3f}" in PAGE


def test_the_runs_are_those_of_the_scale() -> None:
    """Those that are not in the archive are depth_width's, in the table all the same."""
    config = load_config({"scale": "laptop", "studies": ["undertraining"]}, SCALES, REPOSITORY)
    planned = runs_of(config, "undertraining", REPOSITORY)
    with tarfile.open(REPOSITORY / "docs/results/records/undertraining.tar.xz") as archive:
        kept = {Path(name).parent.name for name in archive.getnames()}
    assert f"{len(kept & set(planned))} of {len(planned)} runs" in PAGE
    assert len(RUNS) >= len(planned)
