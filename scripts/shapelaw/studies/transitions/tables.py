"""The tables of transitions: projection, fits, seed noise, best depth, and all numbers beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapelaw.fits import projection
from shapelaw.fits.crossing import smooth_loss
from shapelaw.fits.curves import Curve, TransitionStatus, adjacent_pairs, gaps_of, status_sentence
from shapelaw.fits.line import Floats, LineFit
from shapelaw.fits.noise import INTERVAL, Noise, group_means
from shapelaw.fits.projection import Form
from shapelaw.specs.sizes import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.studies.study import DEPTH_WIDTH, Published, published, published_log_width, published_of
from shapelaw.studies.transitions.analysis import (
    GPT3_VOCABULARY,
    PUBLISHED,
    TOKENS_PER_PARAM,
    WIDTH,
    Runs,
    TransitionAnalysis,
    crossings,
    published_projection,
)

SIZES_PER_DECADE = 100
FORM_DEPTHS = (48, 80, 96)
GAPS = [
    *("depth", "deeper_depth", "width", "deeper_width", "unit", "loss", "deeper_loss"),
    *("deeper_by", "deeper_by_err", "better"),
]
SILENT = (TransitionStatus.TOO_FEW_SIZES, TransitionStatus.NO_NOISE)  # no result
LOSS_DIFFERENCE = "loss difference, deeper minus shallower"
BETTER = {1: "deeper", -1: "shallower", 0: "neither"}
SEED_STD = "std of the loss over 3 seeds"
COMPARED = (
    *("ours", "ours_err", "published", "published_err"),
    *("reportable_low", "reportable_high", "forms_low", "forms_high"),
)
SPREAD_COLUMNS = tuple(projection.Spread.__dataclass_fields__)


def mean_losses(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each shape of checked runs: mean test loss, number of seeds, and the sizes that the runs have."""
    sizes = [name for name in SIZE_COLUMNS.values() if name in runs]
    return group_means(runs, ["depth", "width"], sizes).rename(columns={"loss": "test_loss"})


def told_by_pair(transitions: pd.DataFrame) -> pd.DataFrame:
    """Transitions with the `mid_depth` of their pair, the geometric mean, and its `depth_ratio`; widths also as logs.

    Where L and L' tie the best depth lies between them, so pairs of several ratios compare at their middle.
    `log_width` and its error, `width_err / width`, are what the line is fitted to (Levine et al. 2020, table 4b).
    """
    depth, deeper = (transitions[name].astype("Float64") for name in ("depth", "deeper_depth"))
    width, err = (transitions[name].astype("float64") for name in ("width", "width_err"))
    told = transitions.copy()
    for after, name, column in (
        ("deeper_depth", "mid_depth", (depth * deeper) ** 0.5),
        ("mid_depth", "depth_ratio", deeper / depth),
        ("width_err", "log_width", np.log(width)),
        ("log_width", "log_width_err", err / width),
    ):
        told.insert([*told].index(after) + 1, name, column)
    return told


def gaps_table(runs: Runs) -> pd.DataFrame:
    """How much better the deeper network is at each size of the shallower: `deeper_by`, with its standard error.

    No curve is fitted: the deeper loss is on the line through the two neighbours in size, `deeper_width` the width of
    the nearest. `better` is the significantly better of the two (95%, noise between seeds) or "neither", empty
    without a noise estimate.
    """
    tables = [pd.DataFrame(columns=GAPS)]
    for shallow, deep in adjacent_pairs(runs.curves):
        gaps = gaps_of(shallow, deep)
        signs = gaps.better(runs.noise).tolist()
        made = {"depth": shallow.depth, "deeper_depth": deep.depth, "unit": runs.unit, **asdict(gaps)}
        made |= {"deeper_by": gaps.deeper_by, "deeper_by_err": gaps.err}
        better = None if runs.noise is None else [BETTER[sign] for sign in signs]
        tables.append(pd.DataFrame({**made, "better": better})[GAPS])
    return stacked(tables)


def read_transitions(transitions: pd.DataFrame) -> pd.DataFrame:
    """A table of transitions as it is read: the width with its interval, or what else was found in words."""
    left_out = (
        *("width_err", "log_width", "log_width_err", "bound", "bound_err", "side"),
        *("reportable_low", "reportable_high"),
        *("noise_scale", "caution", "correlation", "lag", TOKENS_PER_PARAM),
    )
    shown = transitions.drop(columns=[*left_out], errors="ignore")
    rows = transitions.to_dict("records")
    shown["result"] = [_result(row) for row in rows]
    shown["status"] = [row["status"] if row["status"] in SILENT else None for row in rows]
    if "size_axis" in shown:
        shown["size_axis"] = [SIZE_LABELS[SizeAxis(axis)] for axis in shown["size_axis"]]
    return shown


def _result(row: Mapping[Hashable, Any]) -> str:
    """What was found but for a width, and what makes it doubtful."""
    found = "" if row["status"] == TransitionStatus.CROSSING else status_sentence(row)
    caution = row.get("caution")
    return "; ".join(filter(None, [found, caution if isinstance(caution, str) else ""]))


def read_gaps(gaps: pd.DataFrame) -> pd.DataFrame:
    """Gaps as they are read: the loss of the deeper network minus that of the shallower one, with its unit."""
    shown = gaps.drop(columns=["deeper_width", "loss", "deeper_loss"])
    by, err = -shown.pop("deeper_by").astype("float64"), shown.pop("deeper_by_err")
    name, better, units = LOSS_DIFFERENCE, shown.pop("better"), shown["unit"].unique()
    if len(units) == 1:
        name, shown = f"{name} ({units[0]})", shown.drop(columns="unit")
    return shown.assign(**{name: by, f"{name}_err": err, "better": better})


def stacked(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Tables below each other; those without rows, whose columns have no types, are left out unless all are."""
    given = list(tables)
    return pd.concat([table for table in given if len(table)] or given, ignore_index=True)


def projection_table(fit: LineFit, forms: Sequence[Form] = ()) -> pd.DataFrame:
    """The best shape for each size of the paper's table 1: ours, the published one and the trained one.

    Embeddings are not counted: `non_embedding_params` is `params` less 50257 times the trained width (nothing is
    subtracted for the 1T network, which nobody trained). Depth and width are NaN, and `status` says why, where
    there is no projection. Their errors are conditional on the line, as the published ones are, and widened where the
    points scatter more than their errors; `depth_low` to `width_high` are 68% intervals over several `forms`, with no
    upper depth (inf) where too many of their draws never reach the size, a share of `unreached`.
    """
    table = published_projection()
    embedding = GPT3_VOCABULARY * table["trained_width"].fillna(0)
    sizes = (table["params"] - embedding).to_numpy(dtype=np.float64)
    reason, line = projection.why_no_projection(fit), projection.widened(fit)
    nothing = dict.fromkeys(("depth", "depth_err", "width", "width_err"), float("nan"))
    shapes = pd.DataFrame([nothing if reason else asdict(projection.project(line, size)) for size in sizes])
    spreads = [projection.spread(forms, size) if forms else None for size in sizes]
    return pd.DataFrame(
        {
            "model": table["model"],
            "params": table["params"],
            "non_embedding_params": sizes,
            **{str(name): column for name, column in shapes.items()},
            **{name: [asdict(s)[name] if s else float("nan") for s in spreads] for name in SPREAD_COLUMNS},
            "published_depth": table["optimal_depth"],
            "published_width": table["optimal_width"],
            "trained_depth": table["trained_depth"].astype("Int64"),
            "trained_width": table["trained_width"].astype("Int64"),
            "status": reason or "projected",
        }
    )


def forms_table(forms: Sequence[Form]) -> pd.DataFrame:
    """One row for each form of log width, by weight, with its slope and its `N_transition` at depths 48, 80 and 96.

    `N_80_err` is the relative error: of log N. A size beyond any number is infinite.
    """
    rows = []
    for form in forms:
        row: dict[str, object] = {"form": f"log d = {projection.FORMS[form.name][0]}", "weight": form.weight}
        row |= {"b": form.coefficients[1], "b_err": math.sqrt(form.covariance[1, 1])}
        row |= {"chi2": form.chi2, "dof": form.dof, "p_value": form.p_value, "log_density": form.log_density}
        for depth in FORM_DEPTHS:
            log_width, err = (float(value[0]) for value in projection.log_width_of(form, [depth]))
            with np.errstate(over="ignore"):
                row[f"N_{depth}"] = float(projection.standard_params(depth, np.exp(log_width)))
            row[f"N_{depth}_err"] = 2.0 * err
        rows.append(row)
    columns = ["form", "weight", "b", "b_err", "chi2", "dof", "p_value", "log_density"]
    columns += [f"N_{depth}{end}" for depth in FORM_DEPTHS for end in ("", "_err")]
    return pd.DataFrame(rows, columns=columns)


def read_forms(forms: pd.DataFrame) -> pd.DataFrame:
    """The forms as they are read: `N_80` with its own error, not its logarithm's, where that is below a factor e."""
    shown = forms[["form", "weight", "p_value"]].copy()
    told = forms["N_80_err"] < 1.0
    shown["N_80"] = forms["N_80"].where(told)
    return shown.assign(N_80_err=shown["N_80"] * forms["N_80_err"])


def fit_table(analysis: TransitionAnalysis) -> pd.DataFrame:
    """One row for each method, the main one first, and the published fit last."""
    methods = sorted(analysis.fits, key=lambda method: method != analysis.method)
    rows = [{"method": method, **analysis.fits[method].to_dict()} for method in methods]
    names = [str(name) for name in rows[0]]
    theirs = {name: published(DEPTH_WIDTH, name.removesuffix("_err")) for name in names}
    numbers = {name: one.err if name.endswith("_err") else one.number for name, one in theirs.items()}
    printed = {"method": PUBLISHED, "status": "as printed", "message": theirs["a"].source}
    rows.append({**numbers, **printed})
    return pd.DataFrame(rows).convert_dtypes()


def comparison_table(analysis: TransitionAnalysis) -> pd.DataFrame:
    """The numbers of the paper's analysis, ours beside the published: `quantity, ours, ours_err, published, ...`.

    `reportable_low` and `reportable_high` bound the crossings that our sizes could have found: agreement within them
    confirms nothing. `N_transition` and its error are conditional on the line, as published; `forms_low` to
    `forms_high` is the 68% interval over several forms.
    """
    rows = [*_compared_widths(analysis), *_compared_line(analysis)]
    table = pd.DataFrame(rows, columns=["quantity", *COMPARED])
    return table.astype(dict.fromkeys(COMPARED, "float64"))


def _beside(theirs: Published) -> dict[Any, Any]:
    return {"published": theirs.number, "published_err": theirs.err}


def _compared_widths(analysis: TransitionAnalysis) -> Iterator[dict[Any, Any]]:
    """The transition widths, at the depths of ours and of the published ones."""
    table = analysis.transitions[analysis.transitions["method"] == analysis.method].set_index("depth")
    used = crossings(analysis.transitions, analysis.method).set_index("depth")[["width", "width_err"]]
    known = {int(depth): one for depth, one in published_of(DEPTH_WIDTH, WIDTH).items()}
    places = [*table.index.difference([*known]), *known]
    ours = table[["reportable_low", "reportable_high"]].join(used.set_axis(["ours", "ours_err"], axis=1))
    for depth, row in zip(places, ours.reindex(places).to_dict("records"), strict=True):
        name = f"{WIDTH} {depth:.0f}"
        if depth in known:
            yield {**row, "quantity": name, **_beside(known[depth])}
        else:
            by_line = math.exp(published_log_width(depth))
            yield {**row, "quantity": f"{name} (published: by the line)", "published": by_line}


def _compared_line(analysis: TransitionAnalysis) -> Iterator[dict[Any, Any]]:
    """The line's numbers, and the sizes of the transitions to which it extrapolates."""
    fit, forms, nothing = projection.widened(analysis.fit), analysis.forms, (math.nan, math.nan)
    for name in ("a", "b", "cov_aa", "cov_ab", "cov_bb", "chi2_reduced", "r_squared"):
        ours = {"ours": getattr(fit, name), "ours_err": getattr(fit, f"{name}_err", math.nan)}
        yield {"quantity": name, **ours, **_beside(published(DEPTH_WIDTH, name))}
    for name in ("N_transition", "relative error of N_transition"):
        for depth, theirs in published_of(DEPTH_WIDTH, name).items():
            size, err = projection.transition_size(fit, float(depth)) if fit.usable else nothing
            row = {"quantity": f"{name}({depth})", **_beside(theirs)}
            if name.startswith("relative"):
                yield {**row, "ours": err / size}
                continue
            ends = projection.sizes_between(forms, [float(depth)], INTERVAL)[:, 0] if forms else nothing
            yield {**row, "ours": size, "ours_err": err, "forms_low": ends[0], "forms_high": ends[1]}


def seed_noise_table(runs: Runs) -> pd.DataFrame:
    """Loss mean and std of every repeated shape beside the published std, and the pooled one (Levine, table 3)."""
    repeated = runs.seed_noise[runs.seed_noise["seeds"] > 1]
    shapes = zip(repeated["depth"], repeated["width"], strict=True)
    theirs = [published(DEPTH_WIDTH, SEED_STD, f"L = {depth}, d = {width}").number for depth, width in shapes]
    table = repeated.assign(published_std=theirs).astype({"depth": object, "width": object})
    pooled = fmean(one.number**2 for one in published_of(DEPTH_WIDTH, SEED_STD).values()) ** 0.5
    names = {"depth": "pooled", "width": "", "published_std": pooled}
    return pd.concat([table, pooled_row(repeated, runs.noise, **names)], ignore_index=True)


def pooled_row(repeated: pd.DataFrame, noise: Noise | None, **names: object) -> pd.DataFrame:
    """The row below repeated shapes that has the noise pooled over them."""
    std = math.nan if noise is None else noise.std
    seeds = int(repeated["seeds"].sum())
    return pd.DataFrame([{**names, "seeds": seeds, "loss_mean": math.nan, "loss_std": std}])


@dataclass(frozen=True)
class Ranking:
    """A comparison of k depths on m sizes, from small to large.

    `excess` (k, m) is the loss over that of the best depth, NaN where a depth has no such size; `worse` (k, m) says
    where it is significantly above, at 95% by the noise of seeds and residuals (nowhere without a noise estimate).
    """

    size: Floats
    depths: tuple[int, ...]
    excess: Floats
    worse: npt.NDArray[np.bool_]

    @property
    def best(self) -> npt.NDArray[np.intp]:
        """(m,) index of the best depth."""
        return np.asarray(np.nanargmin(self.excess, axis=0))

    @property
    def certain(self) -> npt.NDArray[np.bool_]:
        """(m,) True where all other depths have that size and are significantly worse."""
        return np.asarray(
            np.isfinite(self.excess).all(axis=0) & (self.worse.sum(axis=0) == len(self.depths) - 1)
        )


def rank_depths(curves: Mapping[int, Curve], noise: Noise | None) -> Ranking:
    """Compare the smoothed losses (`smooth_loss`) of all depths, each where at least four of its own sizes reach.

    Sizes that fewer than two depths have are left out.
    """
    low, high = min(c.size[0] for c in curves.values()), max(c.size[-1] for c in curves.values())
    sizes = np.geomspace(low, high, 2 + int(SIZES_PER_DECADE * np.log10(high / low)))
    depths = tuple(sorted(curves))
    loss, err = (
        np.stack(values)
        for values in zip(*(smooth_loss(curves[d], sizes, noise) for d in depths), strict=True)
    )
    covered = np.isfinite(loss).sum(axis=0) > 1
    loss, err, sizes = loss[:, covered], err[:, covered], sizes[covered]
    best, column = np.nanargmin(loss, axis=0), np.arange(len(sizes))
    excess = loss - loss[best, column]
    threshold: Floats | float = np.inf
    if noise is not None:
        widths = np.stack([curves[depth].width_at(np.log(sizes)) for depth in depths])
        threshold = noise.threshold_at(widths, np.broadcast_to(widths[best, column], widths.shape))
    return Ranking(sizes, depths, excess, excess > threshold * np.hypot(err, err[best, column]))


def stretches(*states: npt.NDArray[Any]) -> list[npt.NDArray[np.intp]]:
    """Groups of consecutive indices in which all states (m,) stay the same."""
    state = np.stack(states)
    changes = np.flatnonzero((np.diff(state, axis=1) != 0).any(axis=0)) + 1
    return np.split(np.arange(state.shape[1]), changes) if state.shape[1] else []


def best_depth_table(ranking: Ranking) -> pd.DataFrame:
    """The best depth of each range of sizes (figure 3c): `size_low, size_high, best_depth, also_best, certain`.

    `also_best`: the depths that are not significantly worse somewhere in the range. `certain`: the share of the
    range (in log size) in which every other depth has such sizes and is significantly worse.
    """
    rows = []
    best, tied = ranking.best, np.isfinite(ranking.excess) & ~ranking.worse
    for at in stretches(best):
        winner = best[at[0]]
        also = [d for k, d in enumerate(ranking.depths) if k != winner and tied[k, at].any()]
        certain = float(ranking.certain[at].mean())
        ends = ranking.size[at[0]], ranking.size[at[-1]]
        rows.append((*ends, ranking.depths[winner], " ".join(map(str, also)), certain))
    return pd.DataFrame(rows, columns=["size_low", "size_high", "best_depth", "also_best", "certain"])
