"""The cost of a low rank of the positional embedding (Wies et al. 2021, appendix C.4 and figure 7).

Input: rows of `depth, width, vocab_size, context_length, embedding_rank, positional_rank, seed, test_loss,
block_params, total_params, step_flops`; an empty rank is a plain embedding, and one of the two must be. Networks
differ in ranks alone: they have one text and recipe, where the table says.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.inputs import refuse, refuse_twice
from shapelaw.fits.noise import Noise, group_means, group_noise, noise_sentence
from shapelaw.fits.redundancy import Baseline, Needed, RedundancyStatus, redundancy
from shapelaw.report import plots
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span
from shapelaw.report.tables import Columns, frame_of, yes_or_no
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.studies.decoders import redundancies as shared
from shapelaw.studies.study import published
from shapelaw.studies.study_runs import study_runs

NAME = "positional_rank"

PLAIN, POSITIONAL, VOCABULARY = "plain", "positional", "vocabulary"
FACTORED = "factored at full rank"
LOST = "positional rank from which nothing is lost"
EQUIVALENT = "vocabulary rank that costs as much as positional rank 1"
_ONE = ("depth", "width", "vocab_size", "context_length")  # for all networks
_MAPPED = {"positional_rank": "context_length", "embedding_rank": "vocab_size"}  # what each rank is of
BELOW, ABOVE = "below the ranks trained", "costs less than every vocabulary rank"
_SERIES = {
    POSITIONAL: (plots.ACCENT, "o", "positions factored"),
    VOCABULARY: (plots.SECOND, "s", "tokens factored"),
}
_FORMATS = {"test_loss": ".4f", "cost": ".4f", "ours": ".3g", "vocabulary_rank": ".3g", "over_full": ".3f"}
_STATUS = {RedundancyStatus.AT_LEAST: BELOW, RedundancyStatus.AT_MOST: ABOVE}


class Equivalent(NamedTuple):
    """The vocabulary rank that costs as much as a positional rank.

    Attributes:
        positional_rank: the rank of the positional embedding, that of tokens being plain.
        vocabulary_rank: the one of equal loss; the bound where `status` is one.
        low, high: the 68% interval; 0 or infinite where it leaves the vocabulary ranks that were trained.
        over_full: the vocabulary rank over the full one.
        worse, better: the largest vocabulary rank that is significantly worse, and the smallest that is significantly
            better, whatever the curve between them; None where there is none.
        status: measured; below the ranks trained (even the smallest costs less); costs less than every vocabulary rank.
    """

    positional_rank: int
    vocabulary_rank: float
    low: float
    high: float
    over_full: float
    worse: int | None
    better: int | None
    status: str


@dataclass(frozen=True)
class PositionalAnalysis:
    """The networks and what was found of them.

    Attributes:
        networks: one row each: `series, rank` (NaN where both embeddings are plain), `width`, sizes, `loss`, `seeds`,
            `loss_std`.
        noise: noise of one run's loss over seeds, pooled; None where nothing is repeated.
        full_ranks: the full rank of each series' embedding.
    """

    networks: pd.DataFrame
    noise: Noise | None
    full_ranks: Mapping[str, int]

    def series(self, name: str) -> pd.DataFrame:
        """The networks of a series by growing rank."""
        return self.networks[self.networks["series"] == name].sort_values("rank")

    @property
    def plain(self) -> pd.Series:
        """The network with plain embeddings."""
        return self.series(PLAIN).iloc[0]

    @cached_property
    def needed(self) -> dict[tuple[str, str], Needed]:
        """The rank that is enough in each series, against plain embeddings and against this one factored at full rank.

        The second only where there is such a network; empty without noise.
        """
        noise, found = self.noise, dict[tuple[str, str], Needed]()
        if noise is None:
            return found
        for name in (POSITIONAL, VOCABULARY):
            full = self.series(name)["rank"] == self.full_ranks[name]
            lower, factored = self.series(name)[~full], self.series(name)[full]
            if len(lower) + len(factored):
                found[name, PLAIN] = shared.needed_of(self.series(name), "rank", self.plain, noise)
            if len(lower) and len(factored):
                found[name, FACTORED] = shared.needed_of(lower, "rank", factored.iloc[0], noise)
        return found

    @cached_property
    def equivalents(self) -> tuple[Equivalent, ...]:
        """For each positional rank the vocabulary rank that costs as much, by monotone interpolation in log rank.

        Where no token embedding is factored at full rank, plain embeddings end the series. Empty without vocabulary
        ranks.
        """
        mine, most = self.series(VOCABULARY), self.full_ranks[VOCABULARY]
        if mine.empty:
            return ()
        if most not in set(mine["rank"]):
            mine = pd.concat([mine, self.plain.to_frame().T.assign(rank=float(most))])
        curve = shared.baseline_of(mine, "rank")
        found = []
        for place, (_, row) in enumerate(self.series(POSITIONAL).iterrows()):
            # 1 - rank of equal loss / full rank, which is a redundancy in ranks
            shares = redundancy(curve, most, row["loss"], row["seeds"], self.noise, place)
            rank, low, high = (most * (1 - share) for share in (shares.value, shares.high, shares.low))
            status = _STATUS.get(shares.status, shares.status.value)
            worse, better = _neighbours(curve, row, self.noise)
            found.append(Equivalent(int(row["rank"]), rank, low, high, rank / most, worse, better, status))
        return tuple(found)


def check_positional_runs(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with `series`, `rank` and `loss`; an empty rank is a plain embedding.

    Raises:
        UserError: a column is missing, a value is wrong, the runs differ in more than ranks, or a run has two rows.
    """
    ranked = dict.fromkeys(_MAPPED, "for a plain embedding")
    runs = shared.bottleneck_runs(table, source, _ONE, ranked, ["depth", "width"])
    for name, entries in _MAPPED.items():
        most = runs[["width", entries]].min(axis=1)
        above = (runs[name] > most).fillna(False)
        refuse(runs, above, source, f"{name} must not be above width or {entries}")
    positional, vocabulary = (runs[name].notna() for name in ranked)
    one_of_them = "one of embedding_rank and positional_rank must be empty (plain)"
    refuse(runs, positional & vocabulary, source, one_of_them)
    refuse_twice(runs, [*ranked, "seed"], source, "a run (ranks, seed) must have one row")
    return runs.assign(
        series=np.select([positional, vocabulary], [POSITIONAL, VOCABULARY], PLAIN),
        rank=runs["positional_rank"].fillna(runs["embedding_rank"]).astype("float64"),
    )


def analyse_runs(runs: pd.DataFrame) -> PositionalAnalysis:
    """Costs, needed ranks and equivalents.

    Args:
        runs: of `check_positional_runs`.

    Raises:
        UserError: no network has plain embeddings, or none a factored positional embedding.
    """
    networks = group_means(runs, ["series", "rank", "width"], shared.SIZES)
    if not {PLAIN, POSITIONAL} <= set(networks["series"]):
        raise UserError(
            "The runs need a network with plain embeddings (both ranks empty), and one with a positional rank."
        )
    full = (int(runs.iloc[0][["width", name]].min()) for name in _MAPPED.values())
    return PositionalAnalysis(
        networks, group_noise(networks), dict(zip((POSITIONAL, VOCABULARY), full, strict=True))
    )


def _neighbours(curve: Baseline, network: pd.Series, noise: Noise | None) -> tuple[int | None, int | None]:
    """The largest rank that is significantly worse than a network, and the smallest that is significantly better."""
    if noise is None:
        return None, None
    err = noise.threshold() * noise.std * np.sqrt(1 / curve.seeds + 1 / float(network["seeds"]))
    cost = curve.loss - float(network["loss"])
    worse, better = curve.size[cost > err], curve.size[-cost > err]
    return int(worse.max()) if len(worse) else None, int(better.min()) if len(better) else None


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    given = study_runs(arguments.input, arguments.keep)
    return present(analyse_runs(check_positional_runs(given.table, given.source))).after(given.notes)


def present(analysis: PositionalAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    made = tables_of(_TABLES, _TABLES, analysis)
    drawn = {"losses": losses_figure(analysis)}
    model = "rank of the vocabulary series with equal loss, by monotone interpolation in log rank"
    fit = shared.fit_of(NAME, model, analysis.noise, made, ("needed", "equivalents"))
    return Results(made, drawn, fit, noise_sentence(analysis.noise), answer=answer(made))


def answer(tables: Mapping[str, Table]) -> Answer:
    """The rank from which nothing is lost, with the largest rank that is too small.

    Args:
        tables: `needed` of the study.
    """
    needed = tables["needed"].frame
    mine = needed[needed["series"] == POSITIONAL]
    if mine.empty:
        return Answer("No positional rank can be compared.", False)
    row = mine.iloc[0]
    unseen = "" if pd.isna(row["unseen"]) else f"; a cost below {row['unseen']:.2g} nats would not be seen"
    if pd.isna(row["too_small"]):
        return Answer(f"No rank tried is significantly worse than full rank{unseen}.", False)
    if pd.isna(row["enough"]):
        return Answer(
            f"More than {row['too_small']:.0f}: every rank tried is significantly worse than full rank.", True
        )
    return Answer(
        f"{row['enough']:.0f} is enough, {row['too_small']:.0f} too small, of {row['full_rank']:.0f}{unseen}.",
        True,
    )


def losses_table(analysis: PositionalAnalysis) -> pd.DataFrame:
    """One row for each network: its rank (empty: both plain), test loss, and its cost with the 95% interval.

    The cost is the loss less that of plain embeddings.
    """
    networks, noise, plain = analysis.networks, analysis.noise, analysis.plain
    least, std = (math.nan, math.nan) if noise is None else (noise.threshold(), noise.std)
    half = least * (std * np.sqrt(1 / networks["seeds"] + 1 / plain["seeds"]))
    cost = networks["loss"] - plain["loss"]
    costs = networks.assign(cost=cost, cost_low=cost - half, cost_high=cost + half)
    of_others = ["cost", "cost_low", "cost_high"]
    costs.loc[costs["series"] == PLAIN, of_others] = math.nan  # against itself
    table = shared.networks_table(costs, ["series", "rank"], ["rank"], ["total_params"])
    return table.join(costs[of_others])


def comparison_table(analysis: PositionalAnalysis) -> pd.DataFrame:
    """The paper's statements beside ours.

    `agrees`: for the rank from which nothing is lost, ours is at most theirs (no if theirs is too small here); for the
    equivalent of positional rank 1, the ranks that are significantly worse and better leave room for theirs, as shares
    of the full rank. Open where ours can't tell.
    """
    theirs, rows = published(NAME, EQUIVALENT), [_lost(analysis)]
    full, most = published(NAME, "full rank").number, analysis.full_ranks[VOCABULARY]
    for one in analysis.equivalents:
        if one.positional_rank == 1:
            above, below = (one.worse or 0) / most, (one.better or math.inf) / most
            known = one.worse is not None or one.better is not None
            agrees = above <= theirs.high / full and theirs.low / full <= below if known else None
            numbers, setting = (one.vocabulary_rank, one.low, one.high), f"full rank {most}"
            rows.append(shared.compared(theirs, setting, numbers, one.status, yes_or_no(agrees)))
    return pd.DataFrame(rows)


def _lost(analysis: PositionalAnalysis) -> dict[str, object]:
    """The rank from which nothing is lost: above the largest that is too small, at most the one that is enough."""
    against = FACTORED if (POSITIONAL, FACTORED) in analysis.needed else PLAIN
    found, most = analysis.needed.get((POSITIONAL, against)), analysis.full_ranks[POSITIONAL]
    ours, low, status, agrees = math.nan, math.nan, shared.NO_NOISE, None
    theirs = published(NAME, LOST)
    if found is not None:
        ours, status = float(found.enough or most), "no rank is significantly worse"
        if found.too_small is not None:
            low = float(found.too_small)
            status = "measured" if found.enough is not None else "every rank is worse"
            agrees = False if low >= theirs.high else True if ours <= theirs.high else None
    setting = f"full rank {most}, against {against}"
    return shared.compared(theirs, setting, (ours, low, ours), status, yes_or_no(agrees))


def needed_table(analysis: PositionalAnalysis) -> pd.DataFrame:
    """For each series and each network that it is held against the rank that is enough."""
    needed = {(*key, analysis.full_ranks[key[0]]): one for key, one in analysis.needed.items()}
    return shared.needed_table(needed, ["series", "against", "full_rank"])


_EQUIVALENTS: Columns = {name: name for name in Equivalent._fields}
_TABLES = {
    "losses": TableOf(
        losses_table,
        "Test loss in nats per token; cost: against plain embeddings, with 95% intervals.",
        _FORMATS,
    ),
    "needed": TableOf(needed_table, "The rank from which nothing is lost."),
    "equivalents": TableOf(
        lambda found: frame_of(found.equivalents, _EQUIVALENTS, ("worse", "better")),
        "The vocabulary rank that costs as much as a positional rank, with 68% intervals.",
        _FORMATS,
    ),
    "comparison": TableOf(
        comparison_table, "Ours beside the published statements (Wies et al. 2021).", _FORMATS
    ),
}


def losses_figure(analysis: PositionalAnalysis) -> Chart:
    """Test loss against the rank of either factored embedding, the other plain (figure 7 of the vocabulary paper)."""
    marks, ranks = list[Mark](), set[float]()
    for name, (color, marker, label) in _SERIES.items():
        mine = analysis.series(name)
        if not mine.empty:
            errs = shared.standard_errors(analysis.noise, mine["seeds"])
            marks.append(Points(mine["rank"], mine["loss"], label, color, marker, "-", errs))
            ranks |= set(mine["rank"])
    plain = float(analysis.plain["loss"])
    err = float(shared.standard_errors(analysis.noise, analysis.plain["seeds"]))
    said = "plain embeddings ± one standard error"
    marks.append(Across(plain, "y", said, plots.INK, low=plain - err, high=plain + err, alpha=0.15))
    across, up = Span("rank of the embedding", "values", ranks), Span("test loss (nats per token)")
    return Chart([Panel(marks, across, up)], legend=2)
