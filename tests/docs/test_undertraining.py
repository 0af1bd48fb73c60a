"""The page's table of learning rates, made again from the committed losses."""

from pathlib import Path

import pandas as pd
from small import REPOSITORY

from shapelaw.studies.undertraining.results import analyse
from shapelaw.studies.undertraining.tables import transitions_table

RESULTS = REPOSITORY / "docs" / "results"
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGE = (RESULTS / "undertraining.md").read_text(encoding="utf-8")
RATES = (0.002, 0.004, 0.008)
PAIRS = ((96, 68), (128, 90), (160, 112), (192, 136))
NOT_RUN = "not run"
SHOWN = {"0.002": "2e-3", "0.004": "4e-3", "0.008": "8e-3", "best rates": "best of each shape"}
BEGUN = pd.read_csv(RESULTS / "undertraining_begun.csv")


def mean_losses() -> pd.Series:
    """Mean test loss over seeds by depth, width and learning rate, after 4,000 steps; at 2e-3 that of the grid."""
    grid = pd.read_parquet(RESULTS / "laptop_depth_width.parquet").assign(learning_rate=0.002)
    begun = BEGUN[BEGUN["steps"] == 4000]
    both = pd.concat([grid, begun[begun["learning_rate"] > 0.002]])
    return both.groupby(["depth", "width", "learning_rate"])["test_loss"].mean()


def test_the_table_is_that_of_the_runs() -> None:
    losses = mean_losses()
    for one_layer, two_layers in PAIRS:
        best, cells = [], [f"{one_layer} / {two_layers}"]
        for depth, width in ((1, one_layer), (2, two_layers)):
            found = [losses.get((depth, width, rate)) for rate in RATES]
            cells += [NOT_RUN if loss is None else f"{loss:.3f}" for loss in found]
            best.append(min(loss for loss in found if loss is not None))
        assert best[0] > best[1]
        assert f"| {' | '.join(cells)} | {best[0] - best[1]:.3f} |" in PAGE


def test_the_table_of_16_000_steps_is_that_of_the_runs() -> None:
    long = BEGUN[BEGUN["steps"] == 16000].set_index(["depth", "width", "learning_rate"])["test_loss"]
    leads = []
    for one_layer, two_layers in (PAIRS[0], PAIRS[1], PAIRS[3]):
        one, two = (
            [long.get((depth, width, rate)) for rate in RATES]
            for depth, width in ((1, one_layer), (2, two_layers))
        )
        better = [None if None in pair else pair[0] - pair[1] for pair in zip(one, two, strict=True)]
        leads += [lead for lead in better if lead is not None]
        cells = [NOT_RUN if number is None else f"{number:.3f}" for number in (*one, *two, *better)]
        assert f"| {one_layer} / {two_layers} | {' | '.join(cells)} |" in PAGE
    assert f"by {min(leads):.2f} to {max(leads):.2f} nats" in README
    behind = mean_losses()[2, 68, 0.002] - mean_losses()[1, 96, 0.002]
    assert f"ahead by {behind:.3f} after 4,000 steps, and behind by {leads[0]:.3f} after 16,000" in PAGE


def test_the_crossings_of_the_cells_are_those_that_the_study_finds(tmp_path: Path) -> None:
    grid = pd.read_parquet(RESULTS / "laptop_depth_width.parquet").assign(steps=4000, learning_rate=0.002)
    shapes = [*((1, one) for one, _ in PAIRS), *((2, two) for _, two in PAIRS)]
    own = BEGUN[(BEGUN["learning_rate"] > 0.002) | (BEGUN["steps"] == 16000)]
    both = pd.concat([grid[[pair in shapes for pair in zip(grid["depth"], grid["width"], strict=True)]], own])
    both[["steps", "learning_rate", "depth", "width", "seed", "test_loss"]].to_csv(tmp_path / "runs.csv")
    found = transitions_table(analyse(tmp_path / "runs.csv"))
    for (steps, rate), rows in found.groupby(["steps", "learning_rate"]):
        by_method = rows.set_index("method")
        told = by_method.loc["bootstrap"]
        status = str(told["status"])
        crossing = {
            "crossing": f"{told['width']:.0f} ± {told['width_err']:.0f}",
            "at the edge": f"at the edge, at {told['bound']:.0f}",
        }.get(status, status)
        row = f"| {steps:,} | {SHOWN[str(rate)]} | {crossing} | {by_method.loc['paper rule', 'status']} |"
        assert row in PAGE, row


def test_the_gains_and_seeds_are_those_of_the_runs() -> None:
    losses = mean_losses()
    for depth, width, gain in ((2, 68, "0.104"), (1, 96, "0.028")):
        assert f"{losses[depth, width, 0.002] - losses[depth, width, 0.008]:.3f}" == gain
        assert gain in PAGE
    short = BEGUN[(BEGUN["steps"] == 4000) & (BEGUN["learning_rate"] > 0.002)]
    repeated = short.groupby(["depth", "width", "learning_rate"])["test_loss"]
    assert f"differ by up to {(repeated.max() - repeated.min()).max():.3f}" in PAGE
    done = (BEGUN["learning_rate"] > 0.002) | (BEGUN["steps"] == 16000)
    assert f"of which {done.sum()} are done" in PAGE
