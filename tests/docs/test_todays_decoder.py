"""The page's tables, made again from the committed losses."""

from __future__ import annotations

import pandas as pd
import pytest
from small import REPOSITORY

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.inputs import read_table
from shapelaw.studies.todays_decoder.analysis import OWN_LOSS, TodaysAnalysis, analyse_cells
from shapelaw.studies.todays_decoder.tables import transitions_table
from shapelaw.studies.transitions.analysis import Options

RESULTS = REPOSITORY / "docs" / "results"
PAGE = (RESULTS / "todays_decoder.md").read_text(encoding="utf-8")
TABLE = RESULTS / "laptop_todays_decoder.csv"
RUNS = pd.read_csv(TABLE).fillna({"block": "gpt2"})
MEANS = RUNS.groupby(["steps", "learning_rate", "block", "depth", "width"])["test_loss"].mean()
BLOCKS = {"gpt2": "GPT-2's", "llama": "Llama's"}
RATES = {"0.002": "2e-3", "0.004": "4e-3", "0.008": "8e-3", "best rates": "best of each shape"}
PAIRS = (  # widths of one layer and of two: of Llama's block and of GPT-2's
    *(((12, 8), None), ((16, 12), None), ((24, 16), None), ((28, 20), None), ((32, 24), None)),
    *(((48, 32), (48, 34)), ((64, 44), (64, 46)), ((96, 68), (96, 68)), ((128, 92), (128, 90))),
    ((160, 112), (160, 112)),
)


@pytest.fixture(scope="module")
def analysis() -> TodaysAnalysis:
    return analyse_cells(read_table(TABLE), str(TABLE), Options(size=SizeAxis.BLOCK))


def crossing(found: pd.Series) -> str:
    """A transition as a cell of the page."""
    if found["status"] == "crossing":
        return f"**{found['width']:.0f} ± {found['width_err']:.0f}**"
    bound = "" if pd.isna(found["bound"]) else f", {found['side']} {found['bound']:.0f}"
    return f"{found['status']}{bound}"


def test_the_crossings_are_those_that_the_study_finds(analysis: TodaysAnalysis) -> None:
    table = transitions_table(analysis)
    found = table[table["method"] == "bootstrap"]
    assert len(found) == 16
    for row in found.to_dict("records"):
        steps = row["budget"].removesuffix(" steps")
        line = f"| {BLOCKS[row['block']]} | {steps} | {RATES[str(row['learning_rate'])]} | {crossing(pd.Series(row))} |"
        assert line in PAGE, line


@pytest.mark.parametrize(("llama", "gpt2"), PAIRS)
def test_the_losses_are_those_of_the_runs(llama: tuple[int, int], gpt2: tuple[int, int] | None) -> None:
    row = []
    for block, pair in (("llama", llama), ("gpt2", gpt2)):
        if pair is None:
            row += ["–"] * 4
            continue
        one, two = (
            MEANS[4000, 0.004, block, depth, width] for depth, width in zip((1, 2), pair, strict=True)
        )
        row += [f"{pair[0]} / {pair[1]}", f"{one:.3f}", f"{two:.3f}", f"{one - two:+.3f}"]
    line = f"| {' | '.join(row)} |"
    assert line in PAGE, line


def test_how_many_runs_seeds_and_rates_stand_behind_it(analysis: TodaysAnalysis) -> None:
    llama = RUNS[RUNS["block"] == "llama"]
    seeds = llama.groupby(["steps", "learning_rate", "depth", "width"]).size()
    assert f"{len(llama)} decoders of Llama's block beside {len(RUNS) - len(llama)} of GPT-2's" in PAGE
    assert f"{(seeds == 1).sum()} of {len(seeds)} cells of Llama's block have one seed" in PAGE
    best = analysis.best_rates
    edge, own = int(best["at_edge"].astype(bool).sum()), int((best["picked_on"] == OWN_LOSS).sum())
    assert f"{edge} of {len(best)} best rates are at the edge of the three" in PAGE
    assert f"{own} are picked by the loss that is then compared" in PAGE
