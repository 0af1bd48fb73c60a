"""Transitions between depths and the line through them, from a table of runs (Levine et al. 2020, section 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.errors import Parts
from shapelaw.fits.crossing import BOOTSTRAP, DRAWS, CrossingDraws, bootstrap_crossing
from shapelaw.fits.curves import (
    PAPER_RULE,
    Curve,
    Side,
    Transition,
    TransitionStatus,
    adjacent_pairs,
    curves_by_size,
    paper_rule,
)
from shapelaw.fits.inputs import TOKENS, numbers_of, refuse, require_columns
from shapelaw.fits.line import Floats, Limit, LineFit, fit_line
from shapelaw.fits.noise import Noise, pooled_noise, seed_table
from shapelaw.fits.projection import Form, fit_forms, why_no_projection
from shapelaw.specs.sizes import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.studies.study import DEPTH_WIDTH, REFERENCE, published_of

TRANSITION_COLUMNS = ("depth", "width", "width_err")  # without which there is none
COLUMNS = [one.name for one in fields(Transition)]
TOKENS_PER_PARAM = "tokens_per_param"
GIVEN = "as given"
WITHOUT_LIMITS = ", without limits"
GPT3_VOCABULARY = 50257
PUBLISHED = "published"  # transitions in the place of a file
WIDTH = "transition width at depth"
Attempt = Callable[[str, Callable[[], Any]], Any]  # a part's name and its work
UNITS = {"test_loss": "nats per token", "bits_per_byte": "bits per byte"}


@dataclass(frozen=True)
class Options:
    """`loss`: the column compared. `noise`: a run's loss std over seeds, in place of the pooled one. `method`:
    the transitions that the main fit uses ("bootstrap" or "paper rule"). `draws`, `seed`: of the bootstrap. `size`: the
    size in which compared networks are equal."""

    loss: str = "test_loss"
    noise: float | None = None
    method: str = BOOTSTRAP
    draws: int = DRAWS
    seed: int = 0
    size: SizeAxis = SizeAxis.BLOCK


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
    """The results that need a table of runs: seed noise, curves by depth, and the compared pairs.

    `unit` is that of the loss, or the loss's own name.
    `doubled` pairs are of depths (L, 2L), figure 2 of the paper; they enter no fit. `size_axes` has the bootstrap's
    transitions on every axis that the runs have.
    """

    unit: str
    noise: Noise | None
    seed_noise: pd.DataFrame
    curves: Mapping[int, Curve]
    adjacent: tuple[Pair, ...]
    doubled: tuple[Pair, ...]
    size: SizeAxis
    size_axes: pd.DataFrame

    @property
    def loss_label(self) -> str:
        """What an axis of losses is called."""
        return f"test loss ({self.unit})" if self.unit in UNITS.values() else self.unit


@dataclass(frozen=True)
class TransitionAnalysis:
    """`transitions` has the columns of transitions.csv; `fits` one line for each method; `method` names the main one.

    `runs` is None when the transitions were given; of runs with tokens there is a column `tokens_per_param`.
    """

    transitions: pd.DataFrame
    fits: Mapping[str, LineFit]
    method: str
    runs: Runs | None

    @property
    def fit(self) -> LineFit:
        return self.fits[self.method]

    @property
    def compared(self) -> Runs:
        """The curves of every depth, the compared pairs, and the noise, of an analysis of runs."""
        assert self.runs is not None
        return self.runs

    @cached_property
    def bootstrap_rows(self) -> tuple[Mapping[Hashable, Any], ...]:
        """The bootstrap's transitions, each as a row of transitions.csv."""
        return tuple(self.transitions[self.transitions["method"] == BOOTSTRAP].to_dict("records"))

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms that the main fit's transitions allow, by weight; empty where the line has no projection."""
        if why_no_projection(self.fit):
            return ()
        used = usable(self.transitions, self.method)
        depth, width, _ = points_of(used)
        return fit_forms(depth, np.log(width), covariance_of(used))


def published_transitions() -> pd.DataFrame:
    """The transitions of Levine et al. 2020, table 4a, between depths that are six layers apart (section 5.2.2)."""
    found = published_of(DEPTH_WIDTH, WIDTH).items()
    rows = [(int(depth), one.number, one.err, int(depth) + 6) for depth, one in found]
    return pd.DataFrame(rows, columns=[*TRANSITION_COLUMNS, "deeper_depth"], dtype="int64")


def published_projection() -> pd.DataFrame:
    """The sizes of Levine et al. 2020, table 1, with the projected and the trained shape of each."""
    return pd.read_csv(REFERENCE / "levine2020_projection.csv")


def analyse_runs(
    runs: pd.DataFrame,
    options: Options = Options(),
    noise_of: Callable[[pd.DataFrame], Noise | None] = pooled_noise,
    parts: Parts | None = None,
) -> TransitionAnalysis:
    """Find and fit the transitions of checked runs (`depth, width, seed, loss`, see `check_runs`).

    Without a noise nothing is significant: every transition then says "no noise estimate".

    Args:
        noise_of: the noise between the runs' seeds, where `options` has none; pooled over their own repeated shapes.
        parts: is told the pairs of depths that fail, which are left out then; without it their failure is raised.
    """
    noise = noise_of(runs) if options.noise is None else Noise(options.noise, math.inf)
    sizes = [
        size for size in SizeAxis if size in (options.size, SizeAxis.BLOCK) or SIZE_COLUMNS[size] in runs
    ]
    of_sizes = curves_by_size(runs, noise, sizes)
    curves = of_sizes[options.size]

    find = partial(bootstrap_crossing, noise=noise, draws=options.draws, seed=options.seed)
    attempt: Attempt = (lambda _, work: work()) if parts is None else parts.attempt

    def compare(shallow: Curve, deep: Curve) -> Pair:
        bootstrap, draws = find(shallow, deep)
        return Pair(shallow, deep, paper_rule(shallow, deep, noise), bootstrap, draws)

    def compared(pairs: Iterable[tuple[Curve, Curve]]) -> Iterator[Pair]:
        for shallow, deep in pairs:
            name = f"depth {shallow.depth} against {deep.depth}"
            if (found := attempt(name, partial(compare, shallow, deep))) is not None:
                yield found

    def on_axis(axis: SizeAxis) -> list[Transition]:
        if axis is options.size:
            return [pair.bootstrap for pair in adjacent]
        return [find(*pair)[0] for pair in adjacent_pairs(of_sizes[axis])]

    adjacent = _with_correlations(tuple(compared(adjacent_pairs(curves))))
    known = {(pair.shallow.depth, pair.deep.depth): pair for pair in adjacent}
    twice = {depth: (curve, curves[2 * depth]) for depth, curve in curves.items() if 2 * depth in curves}
    others = compared(pair for depth, pair in twice.items() if (depth, 2 * depth) not in known)
    known |= {(pair.shallow.depth, pair.deep.depth): pair for pair in others}
    doubled = tuple(known[depth, 2 * depth] for depth in twice if (depth, 2 * depth) in known)
    found = [transition for pair in adjacent for transition in (pair.bootstrap, pair.rule)]
    transitions = pd.DataFrame([asdict(one) for one in found], columns=COLUMNS)
    transitions = _with_tokens(transitions.sort_values(["method", "depth"], ignore_index=True), runs)
    fits = _fits(transitions, (BOOTSTRAP, PAPER_RULE))
    rows = list[dict[str, Any]]()
    # a width depends on what counts as equal: two networks with equal blocks have unequal embeddings
    for axis in sizes:
        on_this = attempt(f"transitions at equal {SIZE_LABELS[axis]}", partial(on_axis, axis)) or []
        rows += [{"size_axis": axis.value, **asdict(one)} for one in on_this]
    return TransitionAnalysis(
        transitions,
        fits,
        options.method,
        Runs(
            UNITS.get(options.loss, options.loss),
            noise,
            seed_table(runs),
            curves,
            adjacent,
            doubled,
            options.size,
            _with_tokens(pd.DataFrame(rows, columns=["size_axis", *COLUMNS]), runs),
        ),
    )


def _with_correlations(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Pairs from shallow to deep, each with the correlation of its transition's error with that of the next pair's."""
    made = list(pairs)
    for at, (pair, deeper) in enumerate(pairwise(pairs)):
        if pair.draws is not None and deeper.draws is not None and pair.deep.depth == deeper.shallow.depth:
            correlation = pair.draws.correlation(deeper.draws, len(pair.deep.size))
            made[at] = replace(pair, bootstrap=replace(pair.bootstrap, correlation=correlation))
    return tuple(made)


def _with_tokens(transitions: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Transitions with `tokens_per_param`: training tokens for each parameter of the blocks, where runs have both.

    Those of the shallower network at its transition, on the line in log width through its trained widths.
    """
    if not {TOKENS, SIZE_COLUMNS[SizeAxis.BLOCK]} <= {*runs}:
        return transitions
    ratios = (
        (runs[TOKENS] / runs[SIZE_COLUMNS[SizeAxis.BLOCK]]).groupby([runs["depth"], runs["width"]]).mean()
    )

    def at(depth: int, width: float) -> float:
        trained = ratios.loc[depth]
        return float(np.exp(np.interp(np.log(width), np.log(trained.index), np.log(trained))))

    there = zip(transitions["depth"], transitions["width"], strict=True)
    return transitions.assign(**{TOKENS_PER_PARAM: [at(depth, width) for depth, width in there]})


def check_transitions(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """Transition widths, `depth, width, width_err`, in the columns of `transitions.csv`; what a table lacks is filled.

    A row whose `status` is not "crossing" has no width. Without a `method` column each depth may have one row.

    Raises:
        UserError: a column is missing; a crossing's width or error is not a positive number; or a depth has two rows
            for one method.
    """
    require_columns(table, list(TRANSITION_COLUMNS), source)
    defaults = {one.name: one.default for one in fields(Transition) if one.default is not MISSING}
    defaults |= {"method": GIVEN, "status": TransitionStatus.CROSSING.value, "deeper_depth": pd.NA}
    table = table.assign(**{name: value for name, value in defaults.items() if name not in table})
    table = table.assign(**numbers_of(table, ["depth"], source, whole=["depth"]))
    crossing, side, bounds = table["status"] == "crossing", table["side"], ("bound", "bound_err")
    numbers_of(table[crossing], TRANSITION_COLUMNS, source, positive=TRANSITION_COLUMNS)
    numbers_of(table[side.notna()], bounds, source, positive=bounds)
    known = side.isna() | side.isin([one.value for one in Side])
    refuse(table, ~known, source, f"side must be one of {', '.join(Side)}, or empty")
    key = ["depth", "method"]
    refuse(table, table.duplicated(key, keep=False), source, "a depth must have one row (of each method)")
    for name, sign in (("width_low", -1), ("width_high", 1)):
        if name not in table:
            table[name] = table["width"] + sign * table["width_err"]
    return table.astype({"deeper_depth": "Int64"})[COLUMNS].sort_values(key, ignore_index=True)


def analyse_transitions(table: pd.DataFrame, method: str = BOOTSTRAP) -> TransitionAnalysis:
    """Fit checked transitions (`check_transitions`).

    `method` picks the main fit where the table names several methods; a single method is the main one.
    """
    methods = [str(name) for name in table["method"].unique()]
    fits = _fits(table, methods)
    return TransitionAnalysis(table, fits, method if method in fits else methods[0], runs=None)


def _fits(transitions: pd.DataFrame, methods: Sequence[str]) -> dict[str, LineFit]:
    """A line for each method, with its limits; where it has limits, the line without them stands beside it."""
    fits = {}
    for method in methods:
        fits[method] = fit_transitions(transitions, method)
        if not _bounded(transitions, method, tuple(Side)).empty:
            fits[method + WITHOUT_LIMITS] = fit_transitions(transitions, method, limits=False)
    return fits


def fit_transitions(transitions: pd.DataFrame, method: str, *, limits: bool = True) -> LineFit:
    """The line `log d = a + b L` through one method's crossings, weighted by `width / width_err` (appendix D.1).

    With `limits` those of `limits_of` enter too, and transitions that were estimated at the edge of the grid.
    Crossings of adjacent pairs share the networks of one depth, so their errors have a covariance (`covariance_of`).
    """
    used = usable(transitions, method, edge=limits)
    depth, width, _ = points_of(used)
    known = limits_of(transitions, method) if limits else []
    return fit_line(depth, np.log(width), covariance_of(used), known)


def usable(transitions: pd.DataFrame, method: str, *, edge: bool = True) -> pd.DataFrame:
    """One method's crossings and, with `edge`, what was estimated at the grid's edge, with its bound as its width."""
    mine = transitions[transitions["method"] == method]
    crossing = mine[mine["status"] == TransitionStatus.CROSSING.value]
    at_edge = mine[mine["side"] == Side.AT.value]
    if not edge or at_edge.empty:
        return crossing
    at_edge = at_edge.assign(width=at_edge["bound"], width_err=at_edge["bound_err"])
    return pd.concat([crossing, at_edge], ignore_index=True)


def points_of(used: pd.DataFrame, at: str = "depth") -> tuple[Floats, Floats, Floats]:
    """Places, widths and errors of `usable` transitions; `at` is the column of the places."""
    place, width, err = (used[name].to_numpy(dtype=np.float64) for name in (at, "width", "width_err"))
    return place, width, err


def covariance_of(used: pd.DataFrame) -> Floats:
    """(n, n) covariance of the log widths of `usable` transitions; that of neighbours is known by `correlation`."""
    depth, width, err = points_of(used)
    deeper, correlation = (
        used[name].astype("Float64").fillna(0.0) for name in ("deeper_depth", "correlation")
    )
    next_to = deeper.to_numpy(dtype=np.float64)[:, None] == depth
    with_next = np.where(next_to, correlation.to_numpy(dtype=np.float64)[:, None], 0.0)
    return np.asarray(
        (np.eye(len(err)) + with_next + with_next.T) * np.outer(err / width, err / width), dtype=np.float64
    )


def limits_of(transitions: pd.DataFrame, method: str, *, at: str = "depth") -> list[Limit]:
    """One method's transitions that are known only by a bound, in log width; `at` is the column of their places."""
    bounded = _bounded(transitions, method, (Side.ABOVE, Side.BELOW))
    return [
        Limit(float(place), math.log(bound), float(err / bound), 1 if side == Side.ABOVE else -1)
        for place, bound, err, side in bounded[[at, "bound", "bound_err", "side"]].to_numpy()
    ]


def _bounded(transitions: pd.DataFrame, method: str, sides: Sequence[Side]) -> pd.DataFrame:
    there = (transitions["method"] == method) & transitions["side"].isin([side.value for side in sides])
    return transitions[there]


def crossings(transitions: pd.DataFrame, method: str) -> pd.DataFrame:
    """One method's rows that are transitions, with float columns."""
    numbers = ("depth", "width", "width_err", "width_low", "width_high")
    return usable(transitions, method, edge=False).astype(dict.fromkeys(numbers, "float64"))
