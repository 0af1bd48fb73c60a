"""Each network against degree 3 over several targets at once: one interval instead of one per target.

Seeds are the independent draws: for each seed, the networks of both degrees learn the same targets from the same
inputs. So the log ratios of losses are averaged over the targets within each seed, and Student's interval is over the
seeds. It covers other seeds on these targets, not other targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from shapelaw.fits.equal_sizes import holm
from shapelaw.fits.noise import chance_words
from shapelaw.fits.paired import Mean, mean_of
from shapelaw.report.tables import Columns, frame_of, interval_columns
from shapelaw.studies.block_degree.analysis import ALL_SEEDS, OTHER_SEEDS, Tuned, references, tune

TARGETS = {  # by name: whether R = 1 and digits are among the targets
    "R > 1": (False, False),
    "all R": (True, False),
    "R > 1 and digits": (False, True),
    "all R and digits": (True, True),
}
COLUMNS: Columns = {
    "targets": "targets",
    "rates_chosen_on": "rates",
    **{name: f"first.task.{name}" for name in ("width", "matrices")},
    "network": "first.name",
    "target_ranks": lambda one: tuple(each.task.target_rank for each in one.tuned if each.task.target_rank),
    **interval_columns("log_ratio", "ratio", change=math.exp),
    "p_value": "log_ratio.p_value",
    "p_value_holm": lambda _: math.nan,
    "cells": "cells",
    "cells_worse": "worse",
    **{name: f"log_ratio.{name}" for name in ("seeds", "verdict")},
}


@dataclass(frozen=True)
class Pooled:
    """The comparison of a network with that of degree 3, over targets and seeds.

    Attributes:
        targets: a name in `TARGETS`.
        rates: the seeds that chose the learning rates, `ALL_SEEDS` or `OTHER_SEEDS`.
        tuned: the network, on one task for each target.
        log_ratio: mean over seeds of the mean over targets of the log loss minus that of degree 3.
        cells: number of targets times seeds.
        worse: number of cells in which the loss is above that of degree 3.
    """

    targets: str
    rates: str
    tuned: tuple[Tuned, ...]
    log_ratio: Mean
    cells: int
    worse: int

    @property
    def first(self) -> Tuned:
        """The network on its first target."""
        return self.tuned[0]

    @property
    def is_whole_degree(self) -> bool:
        """True if all layers have the same degree, and none is learned."""
        return not self.first.mixture and len(set(self.first.layers)) == 1


def pooled(runs: pd.DataFrame) -> list[Pooled]:
    """Every network at every budget against degree 3, for all `TARGETS` and both ways to choose rates.

    A network has a row if it was trained on R = 1 and digits wherever the row includes them; it is compared on the
    targets and seeds that it shares with degree 3. If a run diverged, there is no row.

    Args:
        runs: checked runs.
    """
    found = []
    for rates in (ALL_SEEDS, OTHER_SEEDS):
        tuned = tune(runs, rates)
        of_degree_3 = references(tuned)
        for mine in _by_network(tuned):
            compared = [one for one in mine if of_degree_3.get(one.task, one) is not one]
            for name, (with_one, with_digits) in TARGETS.items():
                chosen = [one for one in compared if _in(one, with_one, with_digits)]
                if not _has_all(chosen, with_one, with_digits):
                    continue
                one = _compared(name, rates, chosen, [of_degree_3[one.task] for one in chosen])
                found += [one] if one is not None else []
    return found


def pooled_table(found: Sequence[Pooled]) -> pd.DataFrame:
    """One row per set of targets, way to choose rates, budget and network.

    `p_value_holm` has Holm's correction over the whole degrees that share targets, rates and budget.
    """
    table = frame_of(found, COLUMNS)
    whole = pd.Series([one.is_whole_degree for one in found], index=table.index, dtype=bool)
    for _, group in table[whole].groupby(["targets", "rates_chosen_on", "width", "matrices"]):
        table.loc[group.index, "p_value_holm"] = holm(group["p_value"].to_numpy())
    order = {name: place for place, name in enumerate(TARGETS)}
    return table.sort_values(
        ["width", "matrices", "rates_chosen_on", "targets"],
        ascending=[False, False, True, True],
        key=lambda values: values.map(order) if values.name == "targets" else values,
        kind="stable",
        ignore_index=True,
    )


def summary(found: Sequence[Pooled]) -> list[str]:
    """A sentence for each whole degree and budget: targets of R > 1, rates chosen on all seeds."""
    return [
        f"{one.first.task.matrices} matrices of {one.first.task.width} x {one.first.task.width}, R > 1, "
        f"{one.cells} cells: {one.first.name} against 3: loss times {math.exp(one.log_ratio.value):.3g} "
        f"({math.exp(one.log_ratio.low):.3g} to {math.exp(one.log_ratio.high):.3g}, "
        f"{chance_words(one.log_ratio.p_value)}), {one.log_ratio.verdict}."
        for one in found
        if one.is_whole_degree
        and one.targets == "R > 1"
        and one.rates == ALL_SEEDS
        and one.log_ratio.seeds > 1
    ]


def _by_network(tuned: Sequence[Tuned]) -> Iterable[list[Tuned]]:
    """The tasks of each network, by budget."""
    found: dict[tuple[int, int, str, bool, float], list[Tuned]] = {}
    for one in tuned:
        name = (one.task.width, one.task.matrices, one.degrees, one.mixture, one.initial_share)
        found.setdefault(name, []).append(one)
    return found.values()


def _in(one: Tuned, with_one: bool, with_digits: bool) -> bool:
    rank = one.task.target_rank
    return rank > 1 or (rank == 1 and with_one) or (rank == 0 and with_digits)


def _has_all(chosen: Sequence[Tuned], with_one: bool, with_digits: bool) -> bool:
    ranks = {one.task.target_rank for one in chosen}
    return max(ranks, default=0) > 1 and (1 in ranks) == with_one and (0 in ranks) == with_digits


def _compared(name: str, rates: str, chosen: Sequence[Tuned], against: Sequence[Tuned]) -> Pooled | None:
    """The comparison; None if a run diverged, or the targets don't share their seeds."""
    seeds = {tuple(sorted(one.losses)) for one in (*chosen, *against)}
    if len(seeds) > 1 or any(len(one.log_losses) < len(one.losses) for one in (*chosen, *against)):
        return None
    log_ratios_TS = np.array(  # (targets, seeds)
        [
            [one.log_losses[seed] - other.log_losses[seed] for seed in sorted(one.losses)]
            for one, other in zip(chosen, against, strict=True)
        ]
    )
    mean = mean_of(log_ratios_TS.mean(axis=0))
    return Pooled(name, rates, tuple(chosen), mean, log_ratios_TS.size, int((log_ratios_TS > 0).sum()))
