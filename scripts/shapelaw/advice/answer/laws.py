"""Laws and surfaces of transitions and runs, the published one and those of one's own, as witnesses of an answer."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.advice.evidence.public import Transitions, transitions_of
from shapelaw.advice.own_runs.budgets import size_rule
from shapelaw.advice.own_runs.columns import NATS, PER_NAT
from shapelaw.advice.surface.answers import OwnSurface
from shapelaw.advice.surface.average import fit_surface
from shapelaw.advice.surface.forms import Shapes
from shapelaw.errors import UserError
from shapelaw.fits import projection
from shapelaw.fits.inputs import read_table
from shapelaw.fits.noise import INTERVAL, Noise
from shapelaw.specs.sizes import SIZE_COLUMNS, SizeAxis
from shapelaw.studies.transitions import analysis as transitions

PUBLISHED = "published"
PUBLISHED_SOURCE = "Levine et al. 2020, table 4a"
PUBLISHED_BLOCK = "GPT-2, two heads, V = 2,000"
DEPTHS = np.geomspace(1.0, projection.FARTHEST, 121)


@dataclass(frozen=True)
class Law(Transitions):
    """A law with its forms of the log width at which a depth is best.

    Where L and L' tie, the best depth lies between them: at their geometric mean M by curves that are symmetric in log
    depth. So a transition of size N says that M is best at N, with a width of sqrt(N / (12 M)).

    Attributes:
        forms: the forms of that width against M, by weight.
    """

    forms: tuple[projection.Form, ...] = ()


def read_law(fit: str) -> Law:
    """The published law, or that of a folder of results.

    Args:
        fit: `published`, or a folder in which `shapelaw transitions` or its study wrote transitions.csv.

    Raises:
        UserError: the folder has no transitions, or no rising line goes through them.
    """
    if fit == PUBLISHED:
        return _law(transitions.published_transitions(), PUBLISHED_SOURCE, PUBLISHED_BLOCK)
    path = Path(fit) / "transitions.csv"
    if not path.is_file() and has_surface(fit):
        raise UserError(
            f"--fit {fit} has a surface of `shapelaw fit`, which is no law; `shapelaw shape SIZE --fit {fit}` takes it."
        )
    if not path.is_file():
        raise UserError(
            f"--fit {fit} has no transitions.csv; give `{PUBLISHED}`, the folder of `shapelaw transitions` or, to "
            "`shapelaw shape`, that of `shapelaw fit`."
        )
    return _law(read_table(path), str(path), "your own")


def _law(table: pd.DataFrame, source: str, block: str) -> Law:
    """The law of a table of transitions: quantiles of log `N_transition(L)` along depth.

    For each draw they are of the largest `N_transition` up to that depth, so the depth at which a quantile first
    exceeds the size of the blocks is a quantile of the first depths. Few transitions widen them.
    """
    analysis = transitions.analyse_transitions(transitions.check_transitions(table, source))
    reason = projection.why_no_projection(analysis.fit)
    used = transitions.crossings(analysis.transitions, analysis.method)
    forms = () if reason else _of_best_depths(analysis)
    if not forms:
        raise UserError(
            f"{source} gives no law to advise by ({reason or 'too few transitions'}); it takes 3 transitions on a "
            f"rising line. Use --fit {PUBLISHED}, or add depths."
        )
    largest = np.maximum.accumulate(projection.draw_sizes(forms, DEPTHS), axis=1)
    low, middle, high = np.quantile(largest, [INTERVAL[0], 0.5, INTERVAL[1]], axis=0)
    wider = few_points(len(used))
    curves = (  # the largest sizes belong to the shallowest depths
        np.maximum.accumulate(middle + wider * (high - middle)),
        middle,
        np.maximum.accumulate(middle - wider * (middle - low)),
    )
    sizes = projection.standard_params(used["depth"], used["width"])
    depths = int(used["depth"].min()), int(used["depth"].max())
    span = float(sizes.min()), float(sizes.max())
    return Law(np.log(DEPTHS), curves, source, block, depths, span, len(used), forms[0].p_value, forms=forms)


def _of_best_depths(analysis: transitions.TransitionAnalysis) -> tuple[projection.Form, ...]:
    """The forms of `Law`; a transition whose deeper depth isn't known stands for its own depth."""
    rows = analysis.transitions
    deeper = rows["deeper_depth"].astype("Float64").fillna(rows["depth"]).astype(float)
    used = transitions.usable(rows.assign(best=np.sqrt(rows["depth"] * deeper)), analysis.method)
    best, width, _ = transitions.points_of(used, "best")
    depth, *_ = transitions.points_of(used)
    return projection.fit_forms(best, np.log(width * np.sqrt(depth / best)), transitions.covariance_of(used))


def best_depth_at(law: Law, block_params: float) -> float:
    """The median over the law's draws of the first depth that is worth a size; infinite where none is."""
    return float(
        np.median(projection.first_depths(law.forms, lambda depth: np.full_like(depth, block_params)))
    )


def few_points(count: int) -> float:
    """The factor by which few transitions widen an interval: Student's with as many, over a normal's.

    Three transitions: 51 to 64% of their 68% intervals hold the depth at twice theirs without it, 69 to 72% with it
    (lines, roots and power laws drawn with known errors); seven need hardly any.
    """
    return float(stats.t.ppf(INTERVAL[1], max(count - 1, 1)) / stats.norm.ppf(INTERVAL[1]))


def transitions_content(law: Law) -> dict[str, Any]:
    """A law as `transitions_of` reads it."""
    curves = dict(zip(("low", "middle", "high"), law.log_blocks, strict=True))
    return {
        "source": law.source,
        "block": law.block,
        "depths": list(law.depths),
        "block_params": [round(size) for size in law.sizes],
        "count": law.count,
        "p_value": float(f"{law.p_value:.3g}"),
        "forms": {form.name: round(form.weight, 3) for form in law.forms},
        "depth": [round(float(depth), 4) for depth in DEPTHS],
        "log_blocks": {name: [round(float(one), 4) for one in curve] for name, curve in curves.items()},
    }


def has_surface(folder: str) -> bool:
    """Whether `shapelaw fit` wrote a folder."""
    return (Path(folder) / "best_depth.csv").is_file() and not (Path(folder) / "transitions.csv").is_file()


def own_surface(folder: str) -> OwnSurface:
    """The surface of a folder of `shapelaw fit`, fitted again to the losses in its penalty.csv, in nats.

    Raises:
        UserError: its files can't be read, its networks are of several kinds, or no surface goes through its shapes.
    """
    table = read_table(Path(folder) / "penalty.csv")
    try:
        fit = json.loads((Path(folder) / "fit.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UserError(
            f"--fit {folder} has no fit.json that can be read; run `shapelaw fit` again."
        ) from None
    if "cells" in fit:
        raise UserError(
            f"--fit {folder} has networks of several kinds ({', '.join(fit['cells'][0]['cell'])}); fit one kind alone: "
            "`shapelaw fit --only COLUMN=VALUE`."
        )
    axis = SizeAxis(fit["size_axis"])
    columns = ("depth", "width", SIZE_COLUMNS[axis], "loss", "seeds")
    if missing := [name for name in columns if name not in table]:
        raise UserError(f"--fit {folder}: penalty.csv has no column {missing[0]}; run `shapelaw fit` again.")
    per_nat = PER_NAT[fit.get("unit", NATS)]
    table["loss"] /= per_nat
    ladder = ("tokens",) if "tokens" in table else ()
    shapes = Shapes(*(table[name].to_numpy(dtype=np.float64) for name in (*columns, *ladder)))
    std, dof = fit["seed_noise"], fit.get("seed_noise_dof")
    noise = None if std is None else Noise(std / per_nat, math.inf if dof is None else dof)
    surface = fit_surface(shapes, noise)
    if not surface.usable:
        raise UserError(f"--fit {folder} has no surface: {surface.message}.")
    rule = size_rule(shapes.depth, shapes.width, shapes.size)
    tokens = math.nan if fit["tokens"] is None else float(fit["tokens"])
    return OwnSurface(surface, axis, rule, tokens, folder)


def read_own(folder: str) -> Transitions | OwnSurface:
    """What a folder of one's own results has: a surface, or a law of transitions.

    Raises:
        UserError: it has neither.
    """
    return own_surface(folder) if has_surface(folder) else own_law(folder)


def own_law(folder: str) -> Transitions:
    """The law of a folder of one's own transitions, as a witness.

    Raises:
        UserError: the folder has none.
    """
    return replace(transitions_of(transitions_content(read_law(folder))), own=True)
