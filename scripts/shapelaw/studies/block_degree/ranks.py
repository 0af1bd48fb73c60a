"""The trained error of product networks beside their exact separation rank (Navon 2021, section 3.4).

The trained network has a linear embedding, layers with biases, norms and a residual sum, and a linear read-out. Its
counterpart in theory is the polynomial with the same embedding (a first layer of degree 1), the same degrees and width
and the same read-out (a last layer of degree 1), but without biases, norms and residual sums. Biases and residual sums
add terms of lower degree; norms divide by a square root, so the trained function is not a polynomial and can have any
separation rank. The exact rank is that of the polynomial, for almost all weights. Where it takes too long to measure,
the upper bound from the dimensions of the function spaces replaces it; the total degree, the note's proxy, is given
beside both.

The floor is exact for any function, trained or not: the least mean squared error that a function of a given
separation rank can have on the target (Eckart and Young). A network whose polynomial has rank r and whose loss is
clearly below the floor of r owes that to its norms, biases and residual sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from shapelaw.fits.noise import SIGNIFICANT
from shapelaw.fits.significance import RankCorrelation, rank_correlation
from shapelaw.report import plots
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span
from shapelaw.report.tables import Columns, grouped, interval_columns
from shapelaw.studies.block_degree.analysis import Task, Tuned, exp_bars, of_task
from shapelaw.theory.networks import ProductNetwork
from shapelaw.theory.separation_rank import SPARE, estimate, separation_rank
from shapelaw.training.degree_pack import draw_separable, least_errors

CLEARLY = 0.9  # share of the floor: a loss over 4,096 held-out inputs is known to a few percent
SECONDS = 10.0  # seconds of one core for the exact rank of a network
EXACT, BOUND, DEGREE, FLOOR = "exact rank", "upper bound", "total degree", "floor at the exact rank"


def _words(setting: Task) -> str:
    """`16 inputs, 12 matrices of 32 x 32`."""
    words = f"{setting.inputs} inputs, {setting.matrices} matrices of {setting.width} x {setting.width}"
    converged = "to convergence" if setting.until_converged else ""
    return ", ".join(filter(None, [words, setting.block, converged]))


@dataclass(frozen=True)
class Ranked:
    """A network on a separable target, beside the separation rank of its polynomial.

    Attributes:
        tuned: the network and its losses.
        rank: the exact rank; None if measuring it would take too long.
        upper_bound: the bound on the rank for all weights.
        total_degree: the product of the layers' degrees.
        least_errors: by seed, the least error on its target of rank 0, 1, ..., R.
    """

    tuned: Tuned
    rank: int | None
    upper_bound: int
    total_degree: int
    least_errors: dict[int, list[float]]

    @property
    def setting(self) -> Task:
        """What it shares with the networks that it is compared with: its task without the target."""
        return self.tuned.task._replace(target="", target_rank=0)

    @property
    def floors(self) -> dict[int, float]:
        """By seed the least error of any function of the exact rank on its target; empty if the rank is unknown."""
        if self.rank is None:
            return {}
        return {seed: errors[min(self.rank, len(errors) - 1)] for seed, errors in self.least_errors.items()}

    @property
    def mean_floor(self) -> float:
        """The floor's geometric mean over seeds, 0 if the rank reaches the target's; NaN if it is unknown."""
        return _geometric_mean(list(self.floors.values())) if self.floors else math.nan


@dataclass(frozen=True)
class Correlation:
    """The rank correlation of some networks' log losses with a number from theory.

    Attributes:
        setting: the networks' common task, without its target.
        target_rank: R of the target, or None for all targets together.
        against: name of the number.
        found: Spearman's correlation.
    """

    setting: Task
    target_rank: int | None
    against: str
    found: RankCorrelation


def polynomial(degrees: Sequence[int], width: int, inputs: int) -> ProductNetwork:
    """The polynomial of a network: embedding, layers and read-out, without biases, norms and residual sums."""
    layers = (1, *degrees, 1)
    return ProductNetwork(layers, len(layers), width, 2, token_dim=inputs // 2)


def rank_networks(tuned: Sequence[Tuned], seconds: float = SECONDS) -> list[Ranked]:
    """Each network of products on a separable target, except mixtures, with the rank of its polynomial.

    Args:
        seconds: time of one core; a rank that is estimated to take longer is not measured.
    """

    @cache
    def ranks(degrees: tuple[int, ...], width: int, inputs: int) -> tuple[int | None, int, int]:
        network = polynomial(degrees, width, inputs)
        return _exact(network, seconds), network.rank_bound(), network.total_degree

    @cache
    def errors(inputs: int, target_rank: int, seed: int) -> list[float]:
        return list(least_errors(draw_separable(inputs, target_rank, seed)).tolist())

    found = []
    for one in tuned:
        task = one.task
        if task.target == "separable" and not (one.mixture or one.mixer_tokens):
            least = {seed: errors(task.inputs, task.target_rank, seed) for seed in one.losses}
            found.append(Ranked(one, *ranks(one.layers, task.width, task.inputs), least))
    return found


def _exact(network: ProductNetwork, seconds: float) -> int | None:
    if estimate(network, network.rank_bound() + SPARE).seconds > seconds:
        return None
    measured = separation_rank(network)
    return measured.rank if measured.exact else None


def correlations(ranked: Sequence[Ranked]) -> list[Correlation]:
    """The correlations of log loss with theory's numbers, for each target and over all targets of a setting."""
    found = []
    for setting, group in grouped((one.setting, one) for one in ranked).items():
        targets = dict.fromkeys(one.tuned.task.target_rank for one in group)
        for target in targets:
            mine = [one for one in group if one.tuned.task.target_rank == target]
            found += _correlated(setting, target, mine)
        if len(targets) > 1:
            found += _correlated(setting, None, group)
    return found


def _correlated(setting: Task, target_rank: int | None, networks: Sequence[Ranked]) -> list[Correlation]:
    exact = all(one.rank is not None for one in networks)
    values: dict[str, list[float]] = {
        EXACT if exact else BOUND: [
            float(one.rank or 0) if exact else math.log(one.upper_bound) for one in networks
        ],
        DEGREE: [math.log(one.total_degree) for one in networks],
    }
    if exact and target_rank is None:
        values[FLOOR] = [one.mean_floor for one in networks]
    seeds = sorted({seed for one in networks for seed in one.tuned.losses})
    losses = pd.DataFrame([one.tuned.log_losses for one in networks], columns=seeds).to_numpy(np.float64)
    names = [one.tuned.degrees for one in networks]
    return [
        Correlation(setting, target_rank, against, rank_correlation(numbers, losses, names))
        for against, numbers in values.items()
    ]


# of each network on a task: the rank of its polynomial, its loss, and the least error that this rank allows
LOSSES: Columns = {
    **of_task("tuned."),
    "rank": "rank",
    "status": lambda one: "not measured" if one.rank is None else "exact",
    "upper_bound": lambda one: float(one.upper_bound) if math.log(one.upper_bound) < 690 else math.inf,
    "total_degree": "total_degree",
    "loss": lambda one: math.exp(one.tuned.log_loss.value),
    "floor": "mean_floor",
    "below_floor": lambda one: sum(
        one.tuned.losses[seed] < CLEARLY * floor for seed, floor in one.floors.items()
    ),
    "seeds": lambda one: len(one.tuned.losses),
}
# of each setting, target and number of theory; target_rank is empty for all targets together
CORRELATIONS: Columns = {
    **{name: f"setting.{name}" for name in Task._fields[2:]},
    **{name: name for name in ("target_rank", "against")},
    **interval_columns("found", "spearman"),
    **{name: f"found.{name}" for name in ("p_value", "networks", "seeds", "verdict")},
}


def rank_figure(ranked: Sequence[Ranked], correlated: Sequence[Correlation]) -> Chart | str:
    """Held-out loss against exact rank, a line at R, and the floor below; or why there is none.

    Args:
        correlated: of `correlations`; the title has the one with the exact rank over the most targets.
    """
    known = [one for one in ranked if one.rank is not None and one.tuned.log_losses]
    panels = [
        _panel(setting, group, correlated)
        for setting, group in grouped((one.setting, one) for one in known).items()
        if len({one.rank for one in group}) > 1
    ]
    if not panels:
        return "no two networks of a budget whose exact ranks are known differ in them"
    return Chart(panels, columns=len(panels), width=plots.PAGE, height=3.5, legend=6)


def _panel(setting: Task, group: Sequence[Ranked], correlated: Sequence[Correlation]) -> Panel:
    targets = sorted({one.tuned.task.target_rank for one in group})
    looks, marks, thin = plots.ordered_looks(targets), list[Mark](), {"linewidth": 1}
    for place, target_rank in enumerate(targets):
        color, beside = looks[target_rank].color, plots.side_by_side(place, len(targets), 1.03)
        here = sorted(
            (one for one in group if one.tuned.task.target_rank == target_rank), key=lambda one: one.rank or 0
        )
        value, err = exp_bars([one.tuned.log_loss for one in here])
        x = [(one.rank or 0) * beside for one in here]
        marks.append(Points(x, value, f"R = {target_rank}", color, looks[target_rank].marker, err=err))
        marks.append(Across(target_rank, "x", "", color, ":", more=thin))
        errors = [_geometric_mean(column) for column in zip(*here[0].least_errors.values(), strict=True)]
        marks.append(Points(range(1, target_rank), errors[1:target_rank], "", color, line="--", more=thin))
    marks.append(Points([], [], "rank R", plots.MUTED, line=":"))
    if max(targets) > 1:
        marks.append(Points([], [], "least loss of each rank, by R", plots.MUTED, line="--"))
    lowest = min(math.exp(one.tuned.log_loss.value) for one in group)
    ranks = {1, *(one.rank or 0 for one in group)}
    across = Span("exact separation rank of the polynomial", "values", ranks)
    up = Span("held-out loss (share of the variance)", "log", limits=(lowest / 10, None))
    mine = [one for one in correlated if one.setting == setting and one.against == EXACT]
    widest = max(mine, key=lambda one: one.target_rank is None, default=None)
    return Panel(
        marks, across, up, f"{rank_title(None if widest is None else widest.found)}\n{_words(setting)}"
    )


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if min(values) > 0 else 0.0


def rank_title(found: RankCorrelation | None) -> str:
    """Whether the loss falls as the rank rises."""
    if found is None or math.isnan(found.value):
        return "Can't tell whether the loss follows the rank"
    numbers = f"correlation {found.value:.2f} (95%: {found.low:.2f} to {found.high:.2f})"
    if not found.p_value < SIGNIFICANT:
        return f"Can't tell whether the loss follows the rank: {numbers}"
    return f"The loss {'falls' if found.value < 0 else 'rises'} as the rank rises: {numbers}"
