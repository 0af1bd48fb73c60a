"""The best degree of a layer at equal parameters: learning rates, errors, targets together (Navon 2021, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.equal_sizes import holm
from shapelaw.fits.inputs import refuse, require_columns
from shapelaw.fits.line import Floats
from shapelaw.fits.significance import UNKNOWN, Mean, best_on_others, mean_of, paired_mean
from shapelaw.report.tables import Columns, frame_of, grouped, interval_columns
from shapelaw.specs import kinds
from shapelaw.specs.degrees import BLOCK, HALF, MIXER_MATRICES, DegreeRun, ProductShape, block_words

# separable or digits, and the products in a separable target; the layers' degrees, such as 3.3.3.3; whether the last
# factor of a layer has a learned share; ...; the loss on held-out inputs at the end
COLUMNS = (
    *("target", "target_rank", "degrees", "mixture", "inputs", "width"),
    *("steps", "learning_rate", "seed", "loss"),
)
BEGINS = "initial_share"  # of a mixture's last factors
# optional columns of a network and its training, with what they are where missing
OPTIONS: dict[str, Any] = {
    field.name: field.default
    for field in (*fields(ProductShape), *fields(DegreeRun))
    if field.name in (*BLOCK, "until_converged", "mixer_tokens", "mixture", BEGINS)
}
NETWORK = ("degrees", "mixture", "mixer_tokens", BEGINS)  # columns of a network beside its task's
SETTLED = "mean_degree"  # optional column: mean degree of a mixture's layers at the end
AT_END = ("accuracy", "mean_error", "largest_error", "steps_done")  # optional columns of a run's end
DIVERGED = kinds.DIVERGED.name  # optional column: null if the run has a loss
STEPS_TO = "steps_to_"  # optional columns, with the loss: training steps to a held-out loss
EVERY = "evaluate_every"  # optional column: steps before the first held-out loss, and between two
ALL_SEEDS, OTHER_SEEDS = "all seeds", "the other seeds"  # seeds that choose a learning rate
REFERENCE = 3  # the best integer degree by the note's theory


class Task(NamedTuple):
    """A task on which networks are compared: a target, a budget, and a length of training."""

    target: str
    target_rank: int
    inputs: int
    width: int
    matrices: int
    steps: int
    block: str = ""
    until_converged: bool = False


@dataclass(frozen=True)
class Tuned:
    """A network on a task, each seed at the learning rate that is best on the other seeds, or on all seeds.

    Attributes:
        learning_rates: the chosen rates, by seed.
        at_edge: number of seeds whose choice is the largest or the smallest rate tried.
        tried: number of rates tried.
        losses: held-out losses at the end, by seed; infinite where a run diverged.
        steps_to: steps to each threshold, by threshold, then by seed; infinite where it is not reached.
        first_evaluation: steps before the first evaluation; 0 if the table lacks them.
        settled: mean degree at the end, by seed, leaving out seeds that diverged; empty unless a mixture.
        at_end: mean over the seeds of each of `AT_END` that the table has.
        degrees: the layers' degrees, as text.
        mixture: True if the network learns shares.
        mixer_tokens: of an MLP-Mixer; 0 for a network of products.
        initial_share: the shares before training.
    """

    task: Task
    learning_rates: dict[int, float]
    at_edge: int
    tried: int
    losses: dict[int, float]
    steps_to: dict[float, dict[int, float]]
    first_evaluation: int
    settled: dict[int, float]
    at_end: dict[str, float]
    degrees: str
    mixture: bool
    mixer_tokens: int
    initial_share: float

    @property
    def layers(self) -> tuple[int, ...]:
        """The degree of each layer; for a mixture the larger of its two."""
        return tuple(int(part) for part in self.degrees.split("."))

    @property
    def mean_layer(self) -> float:
        """The mean of `layers`."""
        return sum(self.layers) / len(self.layers)

    @property
    def name(self) -> str:
        """`degree 3`, `degrees 2.3.2.3`, `mixture of 2 and 3`, `mixture of 2 and 3, from 2.9`, `Mixer of 4 tokens`."""
        if self.mixer_tokens:
            return f"Mixer of {self.mixer_tokens} tokens"
        parts = self.degrees.split(".")
        if self.mixture:
            begins = "" if self.initial_share == HALF else f", from {self.begins_at:g}"
            return f"mixture of {int(parts[0]) - 1} and {parts[0]}{begins}"
        return f"degree {parts[0]}" if len(set(parts)) == 1 else f"degrees {self.degrees}"

    @property
    def begins_at(self) -> float:
        """The mean degree of a mixture before training."""
        return self.mean_layer - 1 + self.initial_share

    @property
    def log_losses(self) -> dict[int, float]:
        """Natural logarithms of the finite losses."""
        return {seed: math.log(loss) for seed, loss in self.losses.items() if math.isfinite(loss)}

    def log_steps_to(self, threshold: float) -> dict[int, float]:
        """Natural logarithms of the steps to a loss, by seed.

        Empty if a seed doesn't reach the loss, or is below it at its first evaluation, so that its steps are unknown.
        """
        steps = self.steps_to[threshold]
        if not all(self.first_evaluation < value < math.inf for value in steps.values()):
            return {}
        return {seed: math.log(value) for seed, value in steps.items()}

    @property
    def log_loss(self) -> Mean:
        """Mean of the `log_losses`; unknown where every run diverged."""
        return mean_of(list(self.log_losses.values())) if self.log_losses else UNKNOWN

    @property
    def settled_mean(self) -> Mean:
        """Mean of `settled`.

        Raises:
            ValueError: there are none.
        """
        return mean_of(list(self.settled.values()))


def of_task(path: str = "") -> dict[str, str]:
    """The columns that name a network and its task, for `frame_of`.

    Args:
        path: of the network, with its dot, where the rows are of something else.
    """
    return {**{name: f"{path}task.{name}" for name in Task._fields}, "network": f"{path}name"}


def check_runs(runs: pd.DataFrame, source: str) -> pd.DataFrame:
    """Refuse a table that the analysis can't read.

    Raises:
        UserError: a column is missing, the table has no rows, a run is not done, or a loss is not positive.
    """
    require_columns(runs, COLUMNS, source)
    if runs.empty:
        raise UserError(f"{source} has no runs.")
    if (runs["loss"] <= 0).any():
        raise UserError(
            f"{source} has a loss that is not above 0, in row {int((runs['loss'] <= 0).argmax())}."
        )
    if DIVERGED in runs:
        unknown = runs["loss"].isna() & runs[DIVERGED].isna()
        refuse(runs, unknown, source, "the run has no loss and has not diverged; train it to its end")
    checked = runs.copy()
    for name, value in OPTIONS.items():
        given = checked[name].fillna(value) if name in checked else pd.Series(value, checked.index)
        is_flag = isinstance(value, bool)
        checked[name] = given.astype(str).str.lower() == "true" if is_flag else given.astype(type(value))
    checked["block"] = [block_words(*options) for options in checked[list(BLOCK)].itertuples(index=False)]
    layers = [[*map(int, str(text).split("."))] for text in checked["degrees"]]
    products, mixers = checked["heads"] * [*map(sum, layers)], MIXER_MATRICES * np.array([*map(len, layers)])
    checked["matrices"] = np.where(checked["mixer_tokens"] > 0, mixers, products)  # the budget
    checked["loss"] = checked["loss"].fillna(math.inf)  # the run diverged
    return checked.astype(dict.fromkeys(("target_rank", "inputs", "width", "steps", "seed"), "int64"))


def tune(runs: pd.DataFrame, chosen_on: str = OTHER_SEEDS) -> list[Tuned]:
    """One `Tuned` per task and network, from checked runs.

    A seed's rate is the one with the least mean log loss over the other seeds, so that no reported loss helped to
    choose its rate. A single seed chooses by its own loss. With `ALL_SEEDS` every seed has the rate that is best over
    all: one rate per network, which makes losses look a little better than they are.
    """
    names = [*Task._fields, *NETWORK]
    runs = runs.reset_index(drop=True)
    rows = runs.to_dict("records")  # at once: of hundreds of small tables it takes half of the analysis
    networks = (group.index for _, group in runs.groupby(names, sort=True))
    return [_tuned([rows[place] for place in index], chosen_on) for index in networks]


def _tuned(records: Sequence[Mapping[Any, Any]], chosen_on: str) -> Tuned:
    """A network on a task, from its runs at all rates, as rows.

    Raises:
        UserError: no rate was tried with every seed.
    """
    first = records[0]
    rows = {(row["seed"], row["learning_rate"]): row for row in reversed(records)}
    seeds, rates = (sorted(set(values)) for values in zip(*rows, strict=True))
    common = [rate for rate in rates if all((seed, rate) in rows for seed in seeds)]
    if not common:
        raise UserError(
            f"For target {first['target']} and degrees {first['degrees']} no learning rate was tried with every seed; "
            "run the grid to its end, or leave out the seeds that miss one."
        )
    scores_SR = np.log([[rows[seed, rate]["loss"] for rate in common] for seed in seeds])
    if chosen_on == ALL_SEEDS:
        scores_SR = np.tile(scores_SR.mean(axis=0), (len(seeds), 1))
    chosen = {seed: common[place] for seed, place in zip(seeds, best_on_others(scores_SR), strict=True)}
    mine = {seed: rows[seed, rate] for seed, rate in chosen.items()}
    losses = {seed: float(row["loss"]) for seed, row in mine.items()}
    thresholds = [name for name in map(str, first) if name.startswith(STEPS_TO)]
    settled = first["mixture"] and SETTLED in first
    return Tuned(
        Task(*(first[name] for name in Task._fields)),
        chosen,
        sum(rate in (rates[0], rates[-1]) for rate in chosen.values()) if len(rates) > 1 else 0,
        len(rates),
        losses,
        {
            float(name.removeprefix(STEPS_TO)): {
                seed: math.inf if pd.isna(row[name]) else float(row[name]) for seed, row in mine.items()
            }
            for name in thresholds
        },
        int(np.nanmax([row[EVERY] for row in records])) if EVERY in first else 0,
        {
            seed: float(mine[seed][SETTLED])
            for seed, loss in losses.items()
            if settled and math.isfinite(loss)
        },
        {name: float(np.mean([row[name] for row in mine.values()])) for name in AT_END if name in first},
        **{name: first[name] for name in NETWORK},
    )


@dataclass(frozen=True)
class Difference:
    """A network's log loss minus that of degree 3 on the same task, in natural logarithms."""

    tuned: Tuned
    reference: Tuned
    log_ratio: Mean

    @property
    def diverged(self) -> dict[str, int]:
        """The number of diverged seeds by network name, for those of the two with any."""
        counted = {one.name: len(one.losses) - len(one.log_losses) for one in (self.tuned, self.reference)}
        return {name: seeds for name, seeds in counted.items() if seeds}

    @property
    def verdict(self) -> str:
        """The verdict in words, on this comparison alone, one of many."""
        if self.diverged:
            return ", ".join(f"{name} diverged on {seeds} seeds" for name, seeds in self.diverged.items())
        return self.log_ratio.verdict


def references(tuned: Sequence[Tuned]) -> dict[Task, Tuned]:
    """The network of degree 3 on each task that has one."""
    return {one.task: one for one in tuned if not one.mixture and set(one.layers) == {REFERENCE}}


def differences(tuned: Sequence[Tuned]) -> list[Difference]:
    """Compare each network with that of degree 3, seed by seed: both learn the same target from the same inputs."""
    of_degree_3 = references(tuned)
    found = []
    for one in tuned:
        reference = of_degree_3.get(one.task)
        if reference is None or one is reference:
            continue
        mean = paired_mean(one.log_losses, reference.log_losses)
        if mean is not None:
            found.append(Difference(one, reference, mean))
    return found


SIGNS = "signs, R > 1"
# by name: the targets beside those of R > 1 (in numbers): R = 1, and digits, whose R is 0
TARGETS: dict[str, set[int]] = {
    "R > 1": set(),
    "all R": {1},
    "R > 1 and digits": {0},
    "all R and digits": {0, 1},
    SIGNS: set(),
}
POOLED_BY = ("width", "matrices", "block", "until_converged")  # beside targets and rates
POOLED: Columns = {
    "targets": "targets",
    "rates_chosen_on": "rates",
    **{name: f"first.task.{name}" for name in POOLED_BY},
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
    """A network against degree 3 over several targets at once: one interval instead of one per target.

    Seeds are the independent draws: for each seed, the networks of both degrees learn the same targets from the same
    inputs. So the log ratios of losses are averaged over the targets within each seed, and Student's interval is over
    the seeds. It covers other seeds on these targets, not other targets.

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
        """True for products that all have the same degree, and none of them learned."""
        return not (self.first.mixture or self.first.mixer_tokens) and len(set(self.first.layers)) == 1


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
        by_network = grouped(
            ((*(getattr(one.task, name) for name in POOLED_BY), one.name), one) for one in tuned
        )
        for mine in by_network.values():
            compared = [one for one in mine if of_degree_3.get(one.task, one) is not one]
            for name, beside in TARGETS.items():
                tasks = [one for one in compared if (one.task.target == "signs") == (name == SIGNS)]
                chosen = [one for one in tasks if (rank := one.task.target_rank) > 1 or rank in beside]
                ranks = {one.task.target_rank for one in chosen}
                if not (beside < ranks):  # a target of R > 1 and all others
                    continue
                one = _compared(name, rates, chosen, [of_degree_3[one.task] for one in chosen])
                found += [one] if one is not None else []
    return found


def pooled_table(found: Sequence[Pooled]) -> pd.DataFrame:
    """One row per set of targets, way to choose rates, budget and network.

    `p_value_holm` has Holm's correction over the whole degrees that share targets, rates and budget.
    """
    targets = [*TARGETS]

    def place(one: Pooled) -> tuple[Any, ...]:
        task = one.first.task
        size = (-task.width, -task.matrices, task.block, task.until_converged)
        return *size, one.rates, targets.index(one.targets)

    ordered = sorted(found, key=place)
    table = frame_of(ordered, POOLED)
    whole = pd.Series([one.is_whole_degree for one in ordered], index=table.index, dtype=bool)
    for _, group in table[whole].groupby(["targets", "rates_chosen_on", *POOLED_BY]):
        table.loc[group.index, "p_value_holm"] = holm(group["p_value"].to_numpy())
    return table


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


def exp_bars(means: Sequence[Mean]) -> tuple[Floats, Floats]:
    """Means of logarithms as values, (n,), and as lengths of the bars below and above, (2, n); NaN with one seed."""
    value, low, high = np.exp([(mean.value, mean.low, mean.high) for mean in means]).T
    return value, np.array([value - low, high - value])
