"""The cost of a low rank of the embedding, in parameters (Wies et al. 2021, section 5.1 and figure 2).

Input: rows of `depth, width, embedding_rank, positional_rank, seed, test_loss, block_params, total_params, step_flops`;
an empty rank is full. Networks differ in ranks and width alone: they have one vocabulary, text and recipe, where the
table says.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.inputs import refuse, refuse_twice
from shapelaw.fits.noise import Noise, group_means, group_noise, noise_sentence
from shapelaw.fits.redundancy import Needed, Redundancy, redundancy
from shapelaw.report import plots
from shapelaw.report.charts import Chart, Mark, Panel, Points, Span, Words
from shapelaw.report.tables import frame_of
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.specs.sizes import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.studies.decoders import redundancies as shared
from shapelaw.studies.study import published, published_of
from shapelaw.studies.study_runs import study_runs
from shapelaw.studies.transitions.tables import pooled_row, stacked

NAME = "embedding_rank"

FULL, LOW = "full rank", "low rank"
POSITIONS = {True: "of that rank too", False: "of full rank"}
PUBLISHED_SHARE = 16 / 680  # rank over width
SEED_STD = "std of the loss over 5 seeds"
_NETWORK = ["series", "width", "embedding_rank", "positional_rank"]
_NARROWER, _LOWER = "full rank, narrower", "low rank, positions "
_LOOKS = {
    _NARROWER: (plots.INK, "o", "-"),
    _LOWER + POSITIONS[True]: (plots.ACCENT, "s", ""),
    _LOWER + POSITIONS[False]: (plots.SECOND, "D", ""),
}

_FORMATS = {"test_loss": ".4f", **dict.fromkeys(("rank_over_width", "ours", "redundancy"), ".3f")}


class Found(NamedTuple):
    """The redundancy of one network on one size axis: rank of its tokens, and that of its positions in words."""

    rank: int
    width: int
    positions: str
    axis: SizeAxis
    redundancy: Redundancy

    @property
    def over_width(self) -> float:
        """The rank as a share of the width."""
        return self.rank / self.width


@dataclass(frozen=True)
class EmbeddingAnalysis:
    """The networks and their redundancies.

    Attributes:
        networks: one row each: `series, width, embedding_rank, positional_rank`, sizes, `loss`, `seeds`, `loss_std`,
            and `positions`, the rank of the positional embedding in words.
        noise: noise of one run's loss over seeds, pooled; None where nothing is repeated.
        found: for each factored network and each size axis.
        needed: the rank that is enough, by what the positions are; empty without noise or a full-rank network of that
            width.
    """

    networks: pd.DataFrame
    noise: Noise | None
    found: tuple[Found, ...]
    needed: Mapping[tuple[str], Needed]


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    given = study_runs(arguments.input, arguments.keep)
    return present(analyse_runs(check_rank_runs(given.table, given.source))).after(given.notes)


def check_rank_runs(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with `series` and `loss`; an empty rank is full.

    Raises:
        UserError: a column is missing, a value is wrong, runs differ in more than ranks and width, or one has two rows.
    """
    ranks = dict.fromkeys(("embedding_rank", "positional_rank"), "for full rank")
    runs = shared.bottleneck_runs(table, source, ["depth", "width"], ranks, ["depth"])
    refuse_twice(runs, ["width", *ranks, "seed"], source, "a run (width, ranks, seed) must have one row")
    full = runs["embedding_rank"].isna()
    only = "a network with full token embeddings has full positions here; study positional_rank is for those"
    refuse(runs, full & runs["positional_rank"].notna(), source, only)
    return runs.assign(series=np.where(full, FULL, LOW))


def analyse_runs(runs: pd.DataFrame) -> EmbeddingAnalysis:
    """Redundancy of every factored network on every size axis, and the rank that is enough.

    Args:
        runs: of `check_rank_runs`.

    Raises:
        UserError: fewer than two widths have full rank, or no network is factored.
    """
    networks = group_means(runs, _NETWORK, shared.SIZES)
    networks["positions"] = networks["positional_rank"].notna().map(POSITIONS)
    full, low = networks[networks["series"] == FULL], networks[networks["series"] == LOW]
    if len(full) < 2 or low.empty:
        raise UserError(
            "The runs need two widths of full rank, and a network of low rank to compare with them."
        )
    # one number: the draws of a redundancy have one noise for all widths
    noise, found = group_noise(networks, by_width=False), []
    for axis, column in SIZE_COLUMNS.items():
        baseline = shared.baseline_of(full, column)
        for place, (_, row) in enumerate(low.iterrows()):
            rank, width = int(row["embedding_rank"]), int(row["width"])
            wasted = redundancy(baseline, row[column], row["loss"], row["seeds"], noise, place)
            found.append(Found(rank, width, row["positions"], axis, wasted))
    needed = dict[tuple[str], Needed]()
    for words in POSITIONS.values():
        mine = low[low["positions"] == words]
        same = full[full["width"].isin(mine["width"])]
        if len(same) == 1 and noise is not None:
            needed[words,] = shared.needed_of(mine, "embedding_rank", same.iloc[0], noise)
    return EmbeddingAnalysis(networks, noise, tuple(found), needed)


def present(analysis: EmbeddingAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    made = tables_of(_TABLES, _TABLES, analysis)
    drawn = {"losses": losses_figure(analysis)}
    model = "1 - size of the full-rank network of equal loss / size, by monotone interpolation"
    fit = shared.fit_of(NAME, model, analysis.noise, made, ("redundancy", "needed"))
    return Results(made, drawn, fit, noise_sentence(analysis.noise), answer=answer(made))


def answer(tables: Mapping[str, Table]) -> Answer:
    """The redundancy of the lowest rank, in the blocks' parameters.

    Args:
        tables: `redundancy` of the study.
    """
    row = shared.of_blocks(tables).sort_values("rank_over_width", kind="stable").iloc[0]
    return Answer(
        f"At rank {row['embedding_rank']:.0f}, {row['rank_over_width']:.2g} of the width, {shared.wasted_words(row)} "
        f"of the blocks' parameters are wasted (positions {row['positions']}; {row['status']}).",
        row["significant"] == "yes",
    )


def redundancy_table(analysis: EmbeddingAnalysis) -> pd.DataFrame:
    """One row for each factored network and size axis: the redundancy with its 68% interval."""
    names = {"embedding_rank": "rank", "rank_over_width": "over_width", "positions": "positions"}
    return frame_of(analysis.found, {**names, "size_axis": "axis", **shared.REDUNDANCY})


def comparison_table(analysis: EmbeddingAnalysis) -> pd.DataFrame:
    """The paper's statement beside ours at the nearest r / d: r / d = 16 / 680 wastes 25% of about 70M parameters."""
    rows = []
    for setting, theirs in published_of(NAME, shared.REDUNDANT).items():
        for axis in SizeAxis:
            mine = [one for one in analysis.found if one.axis is axis and one.positions == POSITIONS[True]]
            if mine:
                one = min(mine, key=lambda one: abs(one.over_width - PUBLISHED_SHARE))
                quantity, ours = f"redundancy in {SIZE_LABELS[axis]}", f"r = {one.rank} of d = {one.width}"
                row = shared.compared_redundancy(theirs, quantity, ours, one.redundancy)
                rows.append(row | {"published_setting": setting})
    columns = (*shared.COMPARED[:-1], "published_setting", shared.COMPARED[-1])
    return pd.DataFrame(rows, columns=columns)


def seed_noise_table(analysis: EmbeddingAnalysis) -> pd.DataFrame:
    """Mean and std of every repeated network over its seeds beside the published std, and the pooled one (table 2)."""
    repeated = analysis.networks[analysis.networks["seeds"] > 1].rename(columns={"loss": "loss_mean"})
    ranks = repeated["embedding_rank"].fillna(repeated["width"]).astype(int)
    settings = [f"r = {rank} of d = {width}" for rank, width in zip(ranks, repeated["width"], strict=True)]
    names = ["width", "embedding_rank", "positional_rank"]
    table = repeated[[*names, "seeds", "loss_mean", "loss_std"]].astype(dict.fromkeys(names[1:], "Int64"))
    theirs = [published(NAME, SEED_STD, setting).number for setting in settings]
    std = fmean(one.number**2 for one in published_of(NAME, SEED_STD).values()) ** 0.5
    pooled = pooled_row(repeated, analysis.noise, width="pooled", published_std=std)
    return stacked([table.assign(published_std=theirs).astype({"width": object}), pooled])


_TABLES = {
    "losses": TableOf(
        lambda found: shared.networks_table(found.networks, _NETWORK, _NETWORK[2:]),
        "Test loss at full and at low rank, in nats per token.",
        _FORMATS,
    ),
    "redundancy": TableOf(
        redundancy_table,
        "Redundancy: the share of its size that a network of full rank and equal loss saves, with 68% intervals.",
        _FORMATS,
    ),
    "needed": TableOf(
        lambda found: shared.needed_table(found.needed, ["positions"]),
        "The rank from which on no loss is significant.",
    ),
    "seed_noise": TableOf(
        seed_noise_table,
        "Spread of the loss over seeds, beside that of Wies et al. 2021, table 2.",
        dict.fromkeys(("loss_mean", "loss_std", "published_std"), ".4f"),
    ),
    "comparison": TableOf(
        comparison_table, "Our redundancy beside the published one (Wies et al. 2021).", _FORMATS
    ),
}


def losses_figure(analysis: EmbeddingAnalysis) -> Chart:
    """Test loss against size: full rank by narrowing, low rank by lowering r (figure 2 of the vocabulary paper)."""
    panels = [_losses_panel(analysis, size) for size in shared.PANELS]
    return Chart(panels, columns=2, height=2.9, share_y=True, title="numbers: the rank r")


def _losses_panel(analysis: EmbeddingAnalysis, size: SizeAxis) -> Panel:
    column, networks = SIZE_COLUMNS[size], analysis.networks
    full, marks = networks["series"] == FULL, list[Mark]()
    named = np.where(full, _NARROWER, _LOWER + networks["positions"])
    for name, look in _LOOKS.items():
        rows = networks[named == name].sort_values([column, "loss"])
        if not rows.empty:
            err = shared.standard_errors(analysis.noise, rows["seeds"])
            marks.append(Points(rows[column], rows["loss"], name, *look, err))
    low = networks[~full].sort_values("loss").to_dict("records")
    for place, row in enumerate(low):  # left and right in turn, else near losses' labels lie on one another
        x, side = (-4.0, "right") if place % 2 else (4.0, "left")
        more = {"ha": side, "va": "baseline"}
        rank = f"{int(row['embedding_rank'])}"
        marks.append(Words(rank, row[column], row["loss"], (x, 0), plots.MUTED, more))
    return Panel(marks, Span(SIZE_LABELS[size], "log"), Span("test loss (nats per token)"))
