"""The tables of the vocabulary study."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from shapelaw.fits.curves import SIZE_LABELS, Side, TransitionStatus
from shapelaw.fits.equal_sizes import two_sided
from shapelaw.fits.line import FitStatus, LevelFit, LineFit
from shapelaw.fits.noise import chance_words
from shapelaw.report.tables import NO, OPEN, YES
from shapelaw.studies.grid.analysis import CellAnalysis
from shapelaw.studies.grid.cells import Value
from shapelaw.studies.grid.tables import least_dof, seed_noise_table, stack
from shapelaw.studies.study import published_json
from shapelaw.studies.transitions.tables import mean_losses
from shapelaw.studies.vocabulary.analysis import Series, VocabularyAnalysis, name_of, pool_of

# where depth 48 overtakes depth 24, by V and r: read off figures 3 and 5, without an error
PUBLISHED = {(500, None): "V=500", (2000, 500): "V=2000,r=500"}
DEPTHS = (24, 48)
POWER, LEVEL = "power", "level"
LEAST_CHANCE = 0.01  # of points as far from a model: below it the model is wrong


def named(one: CellAnalysis) -> dict[str, Value]:
    """The columns that name a series in a table."""
    patches = one.values["patch_embedding"] == "True"
    return {
        **{name: one.values[name] for name in ("vocab_size", "embedding_rank")},
        "embedding": "patches" if patches else "tokens",
    }


def relation_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """Two models of the transitions of all series, of one matrix and of two factors, with m = min(V, r).

    - `power`: width ~ m^b, with the chance of a b as far from 1 (`p_proportional`) and from 0 (`p_none`), by
      Student's t with the least degrees of freedom of the noises that the transitions' errors come from;
    - `level`: width = min(ratio m, flat_width).

    `p_fit` is the chance of points, or of a limit, as far from the model as the worst of these. Below 1% the model is
    wrong (`curved`), and so are its errors.
    """
    rows, dof = [], least_dof(*(one.losses[1] for one in analysis.series))
    for one in analysis.relations:
        power, level, nan = one.power, one.level, math.nan
        b, err = (power.b, power.b_err) if power.usable and power.b_err > 0 else (nan, nan)
        chances = {"p_proportional": two_sided(b - 1, err, dof), "p_none": two_sided(b, err, dof)}
        ratio, flat = math.exp(level.k), math.exp(level.level)
        levels = {"ratio": ratio, "ratio_err": ratio * level.k_err}
        levels |= {"flat_width": flat, "flat_width_err": flat * level.level_err}
        powers = {"b": b, "b_err": err, **chances}
        rows.append({"of": one.of, "model": POWER, **powers, **_goodness(power, one.power_chance)})
        rows.append({"of": one.of, "model": LEVEL, **levels, **_goodness(level, one.level_chance)})
    models = ("b", "b_err", "p_proportional", "p_none", "ratio", "ratio_err", "flat_width", "flat_width_err")
    quality = ("points", "chi2", "dof", "p_fit", "status", "message")
    return pd.DataFrame(rows, columns=["of", "model", *models, *quality])


def _goodness(fit: LineFit | LevelFit, chance: float) -> dict[str, object]:
    """How well a model fits: the same columns for both."""
    curved = chance < LEAST_CHANCE
    return {
        "points": fit.n_points,
        "chi2": fit.chi2,
        "dof": fit.dof,
        "p_fit": chance,
        "status": (FitStatus.CURVED if curved else fit.status).value,
        "message": f"the transitions are not on it ({chance_words(chance)})" if curved else fit.message,
    }


def losses_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """One row for each network: mean test loss, bits per byte, corpus, and bytes of text seen (by the test tokens)."""

    def losses(one: CellAnalysis) -> pd.DataFrame:
        table = mean_losses(one.runs)
        for name in ("bits_per_byte", "text_bytes"):
            if name in one.runs:
                means = one.runs.groupby(["depth", "width"], as_index=False)[name].mean()
                table = table.merge(means, on=["depth", "width"])
        corpus = one.runs["corpus"].iloc[0] if "corpus" in one.runs else None
        return table.assign(corpus=corpus) if isinstance(corpus, str) else table

    return stack(analysis.series, losses, named)


def spread_of_seeds(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """Loss mean and standard deviation of every repeated shape, and the pooled one of each `noise_kind`.

    The pooled one's rank is empty where it can be of several.
    """

    def of_kind(kin: Sequence[CellAnalysis]) -> dict[str, Value]:
        *_, rank = pool_of(kin[0].cell)
        return {**named(kin[0]), "embedding_rank": rank}

    return seed_noise_table(analysis.series, pool_of, named, of_kind)


def comparison_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """Each series' transition beside min(V, r), where the paper says that it is, and beside its figures.

    `agrees_with_bottleneck`: the 68% interval holds min(V, r), or a bound lies on its side by more than its error;
    open where neither is known. `over_bottleneck` is of the width, or else of the bound. The published widths are of
    depths 24 and 48, and have no errors: `published` is that of the same series and depths,
    `published_over_bottleneck` that of the same kind of embedding, one matrix or two factors, at the paper's V, r and
    depths (`published_setting`). The paper has none of patches.
    """
    rows = []
    for one in analysis.series:
        for row in one.transitions.bootstrap_rows:
            crossing = row["status"] == "crossing"
            depths = row["depth"], row["deeper_depth"]
            rows.append(
                {
                    "setting": f"{one.name}: depth {depths[0]} against {depths[1]}",
                    "bottleneck": one.bottleneck,
                    "ours": row["width"] if crossing else math.nan,
                    "low": row["width_low"] if crossing else math.nan,
                    "high": row["width_high"] if crossing else math.nan,
                    **{name: row[name] for name in ("bound", "bound_err", "side")},
                    "status": row["status"],
                    "at_equal": SIZE_LABELS[one.compared.size],
                    "over_bottleneck": (row["width"] if crossing else row["bound"]) / one.bottleneck,
                    "agrees_with_bottleneck": _agrees(row, one.bottleneck),
                    **_published_beside(one, depths),
                }
            )
    return pd.DataFrame(rows)


def _agrees(row: Mapping[Hashable, Any], bottleneck: int) -> str:
    """Whether a transition can lie at min(V, r): its interval holds it, or its bound does not exclude it."""
    if row["status"] == TransitionStatus.CROSSING:
        return YES if row["width_low"] <= bottleneck <= row["width_high"] else NO
    low, high = row["bound"] - row["bound_err"], row["bound"] + row["bound_err"]
    excluded = {
        Side.AT: not low <= bottleneck <= high,
        Side.ABOVE: bottleneck < low,
        Side.BELOW: bottleneck > high,
    }
    if row["side"] not in excluded:
        return OPEN
    if excluded[row["side"]]:
        return NO
    return YES if row["side"] == Side.AT else OPEN


def _published_beside(one: Series, depths: tuple[int, int]) -> dict[str, object]:
    """The paper's width for a series, and over its bottleneck that for the same kind of embedding."""
    if one.patches:
        return {"published": math.nan, "published_over_bottleneck": math.nan, "published_setting": ""}
    widths = published_json("vocabulary_findings")["depth_efficiency_width_24_vs_48"]
    (theirs,) = [key for key in PUBLISHED if (key[1] is None) == (one.rank is None)]
    vocab_size, rank = theirs
    width = float(widths[PUBLISHED[theirs]])
    same = theirs == (one.vocab_size, one.rank) and depths == DEPTHS
    return {
        "published": width if same else math.nan,
        "published_over_bottleneck": width / (rank or vocab_size),
        "published_setting": f"{name_of(vocab_size, rank)}: depth {DEPTHS[0]} against {DEPTHS[1]}",
    }
