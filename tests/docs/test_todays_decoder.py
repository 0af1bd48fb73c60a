"""The page's tables, made again from the committed losses."""

from __future__ import annotations

import pandas as pd
import pytest
from small import REPOSITORY

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.inputs import read_table
from shapelaw.studies.grid.rates import OWN_LOSS, RatesAnalysis
from shapelaw.studies.grid.results import cell_tables
from shapelaw.studies.todays_decoder.analysis import analyse_cells, named
from shapelaw.studies.transitions.analysis import Options

RESULTS = REPOSITORY / "docs" / "results"
PAGE = (RESULTS / "todays_decoder.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
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
def analysis() -> RatesAnalysis:
    return analyse_cells(read_table(TABLE), str(TABLE), Options(size=SizeAxis.BLOCK))


def transitions_of(analysis: RatesAnalysis) -> pd.DataFrame:
    """The study's table of transitions."""
    return cell_tables(analysis.cells, named)["transitions"].frame


def crossing(found: pd.Series) -> str:
    """A transition as a cell of the page."""
    if found["status"] == "crossing":
        return f"**{found['width']:.0f} ± {found['width_err']:.0f}**"
    bound = "" if pd.isna(found["bound"]) else f", {found['side']} {found['bound']:.0f}"
    return f"{found['status']}{bound}"


def crossing_lines(analysis: RatesAnalysis) -> list[str]:
    """The page's table of crossings: a line a block, budget and rate, by the bootstrap and by the paper's rule."""
    table = transitions_of(analysis)
    cells = ["block", "budget", "learning_rate"]
    rule = table[table["method"] == "paper rule"].set_index(cells)
    rows = {}
    for row in table[table["method"] == "bootstrap"].to_dict("records"):
        key = tuple(str(row[name]) for name in cells)
        steps, rate = row["budget"].removesuffix(" steps"), RATES[key[2]]
        found = f"{crossing(pd.Series(row))} | {crossing(rule.loc[key])}"
        rows[list(BLOCKS).index(key[0]), len(steps), list(RATES).index(key[2])] = (
            f"| {BLOCKS[key[0]]} | {steps} | {rate} | {found} |"
        )
    return [rows[place] for place in sorted(rows)]


def test_the_crossings_are_those_that_the_study_finds(analysis: RatesAnalysis) -> None:
    lines = crossing_lines(analysis)
    assert len(lines) == 16
    assert "\n".join(lines) in PAGE, lines


def gaps_of_all(analysis: RatesAnalysis, block: str = "llama") -> pd.DataFrame:
    """How much better two layers are at equal size: no curve is drawn for it."""
    table = cell_tables(analysis.cells, named)["gaps"].frame
    return table[table["block"] == block].set_index(["budget", "learning_rate", "width"]).sort_index()


def test_from_which_width_on_two_layers_are_significantly_better(analysis: RatesAnalysis) -> None:
    llama = gaps_of_all(analysis)
    wide = llama[llama.index.get_level_values("width") >= 48]
    assert (wide["better"] == "deeper").all()
    low, high = wide["deeper_by"].min(), wide["deeper_by"].max()
    assert (
        "From width 48 on two layers are significantly better at every rate and both numbers of steps"
        in WORDS
    )
    assert f"by {low:.3f} to {high:.3f} nats at equal size" in WORDS
    same = [
        gaps_of_all(analysis, block).loc[("4,000 steps", "0.004", 64.0)]["deeper_by"]
        for block in ("llama", "gpt2")
    ]
    assert (
        f"at 50,000 parameters they lead by {same[0]:.3f} nats with Llama's block and trail by {-same[1]:.3f}"
        in WORDS
    )
    lost = llama[llama["better"] == "shallower"]["deeper_by"]
    assert list(lost.index) == [("4,000 steps", "0.004", 12.0), ("4,000 steps", "0.004", 16.0)]
    assert "one layer only at 12 and 16, after 4,000 steps at 4e-3, where there are six seeds" in WORDS
    assert f"one layer ahead by {-lost.iloc[0]:.3f} and {-lost.iloc[1]:.3f} nats at widths 12 and 16" in WORDS
    later = llama.loc["16,000 steps"].query("width >= 32 and learning_rate != 'best rates'")["deeper_by"]
    assert f"Llama's two layers lead by {later.min():.3f} to {later.max():.3f} nats from 32 on" in WORDS


def test_where_the_papers_rule_puts_the_crossings(analysis: RatesAnalysis) -> None:
    table = transitions_of(analysis).query("method == 'paper rule' and status == 'crossing'")
    blocks = table.groupby("block")
    low, high, number = blocks["width_low"].min(), blocks["width_high"].max(), blocks.size()
    said = f"lies between {low['llama']:.0f} and {high['llama']:.0f} in all eight rows, with GPT-2's block between "
    said += f"{low['gpt2']:.0f} and {high['gpt2']:.0f} in six of eight"
    assert said in WORDS
    assert number.to_dict() == {"gpt2": 6, "llama": 8}


def test_the_bootstrap_bounds_what_it_does_not_find_with_llamas_block(analysis: RatesAnalysis) -> None:
    table = transitions_of(analysis).query("method == 'bootstrap' and block == 'llama'")
    bounds = table[table["status"] != "crossing"]
    assert len(bounds) == 7
    assert set(bounds["side"]) == {"below"}
    assert f"gives upper bounds, {bounds['bound'].min():.0f} to {bounds['bound'].max():.0f}," in WORDS


def test_a_row_of_gpt2_rests_on_one_size(analysis: RatesAnalysis) -> None:
    better = gaps_of_all(analysis, "gpt2").loc[("4,000 steps", "0.008")]["better"]
    assert list(better[better == "deeper"].index) == [96.0]
    assert set(better[better.index > 96]) == {"neither"}


def loss_line(gaps: dict[str, pd.DataFrame], llama: tuple[int, int], gpt2: tuple[int, int] | None) -> str:
    """A line of the page's table of losses: those of a pair, and the gap at equal size with its error."""
    row = []
    for block, pair in (("llama", llama), ("gpt2", gpt2)):
        if pair is None:
            row += ["–"] * 4
            continue
        losses = [MEANS[4000, 0.004, block, depth, width] for depth, width in zip((1, 2), pair, strict=True)]
        gap = gaps[block].loc[("4,000 steps", "0.004", pair[0])]
        row += [f"{pair[0]} / {pair[1]}", *(f"{loss:.3f}" for loss in losses)]
        row.append(f"{gap['deeper_by']:+.3f} ± {gap['deeper_by_err']:.3f}")
    return f"| {' | '.join(row)} |"


def test_the_losses_are_those_of_the_runs(analysis: RatesAnalysis) -> None:
    gaps = {block: gaps_of_all(analysis, block) for block in BLOCKS}
    lines = [loss_line(gaps, llama, gpt2) for llama, gpt2 in PAIRS]
    assert "\n".join(lines) in PAGE, lines


def test_how_many_runs_seeds_and_rates_stand_behind_it(analysis: RatesAnalysis) -> None:
    llama = RUNS[RUNS["block"] == "llama"]
    seeds = llama.groupby(["steps", "learning_rate", "depth", "width"]).size()
    assert f"{len(llama)} decoders of Llama's block beside {len(RUNS) - len(llama)} of GPT-2's" in PAGE
    assert f"{(seeds == 1).sum()} of {len(seeds)} cells of Llama's block have one seed" in PAGE
    best = analysis.best_rates
    edge, own = int(best["at_edge"].astype(bool).sum()), int((best["picked_on"] == OWN_LOSS).sum())
    assert f"{edge} of {len(best)} best rates are at the edge of the three" in PAGE
    assert f"{own} are picked by the loss that is then compared" in PAGE
