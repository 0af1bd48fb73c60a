"""From the runs of the depth-width study to transitions and the line through them (Levine et al. 2020, section 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.fits.crossing import BOOTSTRAP, CrossingDraws, bootstrap_crossing
from shapelaw.fits.curves import Curve, Transition, TransitionStatus, adjacent_pairs, loss_curves
from shapelaw.fits.line import LineFit, fit_line
from shapelaw.fits.noise import Noise, pooled_noise, seed_table
from shapelaw.fits.transitions import PAPER_RULE, paper_rule

GIVEN = "as given"
GPT3_VOCABULARY = 50257
LOSS_LABELS = {"test_loss": "test loss [nats per token]", "bits_per_byte": "bits per byte"}
_REFERENCE = Path(__file__).resolve().parents[3] / "workflow" / "reference"


@dataclass(frozen=True)
class Options:
    """`loss`: the column compared. `noise`: a run's loss std over seeds, in place of the pooled one. `method`:
    whose transitions the main fit uses ("bootstrap" or "paper rule"). `draws`, `seed`: of the bootstrap."""

    loss: str = "test_loss"
    noise: float | None = None
    method: str = BOOTSTRAP
    draws: int = 2000
    seed: int = 0


@dataclass(frozen=True)
class Pair:
    """A shallower and a deeper curve with their transition by both methods; `draws` as `bootstrap_crossing` has it."""

    shallow: Curve
    deep: Curve
    rule: Transition
    bootstrap: Transition
    draws: CrossingDraws | None


@dataclass(frozen=True)
class Runs:
    """What only a table of runs gives: seed noise, curves by depth, and the compared pairs.

    `doubled` pairs are of depths (L, 2L), figure 2 of the paper; they enter no fit.
    """

    loss_label: str
    noise: Noise | None
    seed_noise: pd.DataFrame
    curves: Mapping[int, Curve]
    adjacent: tuple[Pair, ...]
    doubled: tuple[Pair, ...]


@dataclass(frozen=True)
class Analysis:
    """`transitions` has the columns of transitions.csv; `fits` one line per method; `method` names the main one.

    `runs` is None when the transitions were given.
    """

    transitions: pd.DataFrame
    fits: Mapping[str, LineFit]
    method: str
    runs: Runs | None

    @property
    def fit(self) -> LineFit:
        return self.fits[self.method]


def published(name: str) -> pd.DataFrame:
    """The paper's `grid`, `transitions`, `seed_std` or `projection`, each row with its table in `source`."""
    return pd.read_csv(_REFERENCE / f"depth_width_{name}.csv")


def published_fit() -> dict[str, Any]:
    """The paper's fit: eq. 11, its chi2 and R2, and its `n_transition` (depth -> [size, error])."""
    fit: dict[str, Any] = json.loads((_REFERENCE / "depth_width_fit.json").read_text(encoding="utf-8"))
    return fit


def analyse_runs(runs: pd.DataFrame, options: Options = Options()) -> Analysis:
    """From checked runs (`depth, width, seed, loss`, see `check_runs`) to transitions and fits.

    Without repeated seeds and without `options.noise` there is no noise, so nothing is significant: every
    transition then says "no noise estimate".
    """
    noise = pooled_noise(runs) if options.noise is None else Noise(options.noise, float("inf"))
    curves = loss_curves(runs, noise)

    def compare(shallow: Curve, deep: Curve) -> Pair:
        bootstrap, draws = bootstrap_crossing(shallow, deep, noise, draws=options.draws, seed=options.seed)
        return Pair(shallow, deep, paper_rule(shallow, deep, noise), bootstrap, draws)

    adjacent = tuple(compare(*pair) for pair in adjacent_pairs(curves))
    known = {(pair.shallow.depth, pair.deep.depth): pair for pair in adjacent}
    doubled = tuple(
        known.get((depth, 2 * depth)) or compare(curve, curves[2 * depth])
        for depth, curve in curves.items()
        if 2 * depth in curves
    )
    found = [transition for pair in adjacent for transition in (pair.bootstrap, pair.rule)]
    columns = list(Transition.__dataclass_fields__)
    transitions = pd.DataFrame([asdict(one) for one in found], columns=columns).sort_values(
        ["method", "depth"], ignore_index=True
    )
    fits = {method: fit_transitions(transitions, method) for method in (BOOTSTRAP, PAPER_RULE)}
    label = LOSS_LABELS.get(options.loss, options.loss)
    return Analysis(
        transitions, fits, options.method, Runs(label, noise, seed_table(runs), curves, adjacent, doubled)
    )


def analyse_transitions(given: pd.DataFrame, method: str = BOOTSTRAP) -> Analysis:
    """Fit checked transitions (`depth, width, width_err` and more, see `check_transitions`).

    `method` picks the main fit where the table names several methods; else the only one there is used.
    """
    table = given.copy()
    for name, default in (
        ("method", GIVEN),
        ("status", TransitionStatus.CROSSING.value),
        ("deeper_depth", pd.NA),
    ):
        if name not in table:
            table[name] = default
    for name, sign in (("width_low", -1), ("width_high", 1)):
        if name not in table:
            table[name] = table["width"] + sign * table["width_err"]
    table = table.astype({"deeper_depth": "Int64"})[list(Transition.__dataclass_fields__)]
    methods = [str(name) for name in table["method"].unique()]
    fits = {name: fit_transitions(table, name) for name in methods}
    return Analysis(table, fits, method if method in fits else methods[0], runs=None)


def fit_transitions(transitions: pd.DataFrame, method: str) -> LineFit:
    """The line `log d = a + b L` through one method's crossings, weighted by `width / width_err` (appendix D.1).

    Crossings of adjacent pairs share the networks of one depth; like the paper, the fit takes them as independent.
    """
    used = crossings(transitions, method)
    return fit_line(used["depth"], np.log(used["width"]), used["width_err"] / used["width"])


def crossings(transitions: pd.DataFrame, method: str) -> pd.DataFrame:
    """One method's rows that are transitions, with float columns."""
    used = transitions[
        (transitions["method"] == method) & (transitions["status"] == TransitionStatus.CROSSING.value)
    ]
    return used.astype(dict.fromkeys(("depth", "width", "width_err", "width_low", "width_high"), "float64"))
