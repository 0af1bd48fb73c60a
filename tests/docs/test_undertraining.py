"""The page's table of learning rates, made again from the committed losses."""

import pandas as pd
from small import REPOSITORY

RESULTS = REPOSITORY / "docs" / "results"
PAGE = (RESULTS / "depth_width.md").read_text(encoding="utf-8")
RATES = (0.002, 0.004, 0.008)
PAIRS = ((96, 68), (128, 90), (160, 112), (192, 136))
NOT_RUN = "not run"


def mean_losses() -> pd.Series:
    """Mean test loss over seeds by depth, width and learning rate; at 2e-3 that of the grid."""
    grid = pd.read_parquet(RESULTS / "laptop_depth_width.parquet").assign(learning_rate=0.002)
    begun = pd.read_csv(RESULTS / "undertraining_begun.csv")
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


def test_the_gains_and_seeds_are_those_of_the_runs() -> None:
    losses = mean_losses()
    for depth, width, gain in ((2, 68, "0.104"), (1, 96, "0.028")):
        assert f"{losses[depth, width, 0.002] - losses[depth, width, 0.008]:.3f}" == gain
        assert gain in PAGE
    begun = pd.read_csv(RESULTS / "undertraining_begun.csv")
    repeated = begun[begun["learning_rate"] == 0.004].groupby(["depth", "width"])["test_loss"]
    assert f"differ by up to {(repeated.max() - repeated.min()).max():.3f}" in PAGE
    assert f"of which {(begun['learning_rate'] > 0.002).sum()} are done" in PAGE
