"""The tables of the vocabulary study."""

from __future__ import annotations

import math

import pandas as pd
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.fits.curves import SIZE_LABELS
from shapelaw.studies.reference import published_json
from shapelaw.studies.transitions.tables import mean_losses
from shapelaw.studies.vocabulary.analysis import Series, VocabularyAnalysis

# where depth 48 overtakes depth 24, by V and r: read off figures 3 and 5, without an error
PUBLISHED = {(500, None): "V=500", (2000, 500): "V=2000,r=500"}
YES, NO, OPEN = "yes", "no", "open"
DEPTHS = (24, 48)


def _named(one: Series, table: pd.DataFrame) -> pd.DataFrame:
    table = table.copy()
    table.insert(0, "vocab_size", one.vocab_size)
    table.insert(1, "embedding_rank", pd.Series(one.rank, index=table.index, dtype="Int64"))
    table.insert(2, "embedding", "patches" if one.patches else "tokens")
    return table


def transitions_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """The transitions of each vocabulary and rank, by the bootstrap and by the paper's rule."""
    return pd.concat([_named(one, one.transitions.transitions) for one in analysis.series], ignore_index=True)


def size_axes_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """The bootstrap's transitions on every size axis: at small widths the embedding decides what is equal."""
    tables = [_named(one, one.transitions.runs.size_axes) for one in analysis.series if one.transitions.runs]
    return pd.concat(tables, ignore_index=True)


def relation_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """log width = a + b log min(V, r): b with its error, and the chance of a slope as far from 1 and from 0."""
    fit = analysis.relation
    usable = fit.usable and fit.b_err > 0
    row = {
        "quantity": "b of log width = a + b log min(V, r)",
        "b": fit.b if usable else math.nan,
        "b_err": fit.b_err if usable else math.nan,
        "p_proportional": float(2 * stats.norm.sf(abs(fit.b - 1) / fit.b_err)) if usable else math.nan,
        "p_none": float(2 * stats.norm.sf(abs(fit.b) / fit.b_err)) if usable else math.nan,
        "points": fit.n_points,
        "chi2": fit.chi2,
        "dof": fit.dof,
        "status": fit.status.value,
        "message": fit.message,
    }
    return pd.DataFrame([row])


def losses_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """One row for each network: mean test loss, bits per byte, and bytes of text seen (by the test set's tokens)."""
    tables = []
    for one in analysis.series:
        table = mean_losses(one.runs)
        for name in ("bits_per_byte", "text_bytes"):
            if name in one.runs:
                means = one.runs.groupby(["depth", "width"], as_index=False)[name].mean()
                table = table.merge(means, on=["depth", "width"])
        tables.append(_named(one, table))
    return pd.concat(tables, ignore_index=True)


def seed_noise_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """Loss mean and standard deviation of every repeated shape, and the pooled one of each series."""
    tables = []
    for one in analysis.series:
        runs = one.transitions.runs
        if runs is None:
            continue
        repeated = runs.seed_noise[runs.seed_noise["seeds"] > 1].astype({"depth": object, "width": object})
        pooled = {
            "depth": "pooled",
            "width": "",
            "seeds": int(repeated["seeds"].sum()),
            "loss_mean": math.nan,
        }
        pooled["loss_std"] = math.nan if runs.noise is None else runs.noise.std
        tables.append(_named(one, pd.concat([repeated, pd.DataFrame([pooled])], ignore_index=True)))
    return pd.concat(tables, ignore_index=True)


def comparison_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """Each series' transition beside min(V, r), where the paper says that it is, and beside its figures.

    `agrees_with_bottleneck`: the 68% interval holds min(V, r); open without an interval. The published widths are of
    depths 24 and 48, and have no errors.
    """
    rows = []
    theirs = published_json("vocabulary_findings")["depth_efficiency_width_24_vs_48"]
    for one in analysis.series:
        for row in one.transitions.bootstrap_rows:
            crossing = row["status"] == "crossing"
            agrees = OPEN
            if crossing:
                agrees = YES if row["width_low"] <= one.bottleneck <= row["width_high"] else NO
            depths = row["depth"], row["deeper_depth"]
            known = (
                PUBLISHED.get((one.vocab_size, one.rank)) if depths == DEPTHS and not one.patches else None
            )
            size = one.transitions.runs.size if one.transitions.runs else None
            rows.append(
                {
                    "setting": f"{one.name}: depth {depths[0]} against {depths[1]}",
                    "bottleneck": one.bottleneck,
                    "ours": row["width"] if crossing else math.nan,
                    "low": row["width_low"] if crossing else math.nan,
                    "high": row["width_high"] if crossing else math.nan,
                    "status": row["status"],
                    "at_equal": "" if size is None else SIZE_LABELS[size],
                    "over_bottleneck": row["width"] / one.bottleneck if crossing else math.nan,
                    "agrees_with_bottleneck": agrees,
                    "published": math.nan if known is None else float(theirs[known]),
                }
            )
    return pd.DataFrame(rows)
