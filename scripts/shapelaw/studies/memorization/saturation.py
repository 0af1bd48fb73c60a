"""The heads saturated for each example, and the largest T memorized perfectly (Mahdavi et al. 2024, H).

A head is saturated for an example if one of its softmax coefficients is above `SATURATED_WEIGHT`. Theorem 1 gives each
head its own examples and saturates it for the others; the paper finds that trained networks look alike: most heads are
saturated, and almost every example has a head that is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.capacity import CapacityStatus
from shapelaw.fits.line import FitStatus, overall_status
from shapelaw.fits.memorized import CLASSIFICATION
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Results, Table
from shapelaw.specs.memorizers import SATURATED_WEIGHT
from shapelaw.studies.memorization.analysis import published
from shapelaw.studies.memorization.answer import answer
from shapelaw.studies.memorization.attention import Attention, counted, read_attention, saturation_figure
from shapelaw.studies.memorization.study import SATURATION
from shapelaw.theory.memorization import memorizable_examples


@dataclass(frozen=True)
class Saturation:
    """The attention of the runs, by heads and T; and `perfect`, the largest T memorized per network."""

    attention: tuple[Attention, ...]
    perfect: pd.DataFrame | None


def analyse_saturation(
    runs: pd.DataFrame | None, attention: Path | None, keys: Collection[str] | None = None
) -> Saturation:
    """Analyse checked runs (`check_memorization_runs`), a folder of attention weights, or both.

    Args:
        keys: the runs whose attention is read (None: all); a folder of records may have runs of other grids too.

    Raises:
        UserError: neither is given, or a file of the folder is wrong.
    """
    if runs is None and attention is None:
        raise UserError(f"{SATURATION} needs a table of runs, a folder of attention weights, or both.")
    return Saturation(
        () if attention is None else tuple(read_attention(attention, keys)),
        None if runs is None else perfect_table(runs),
    )


def perfect_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The search for the largest T: one row per network, from the runs that reached accuracy 1 and those that did not.

    `largest_any` is the largest T that some seed memorized perfectly, `largest_all` the largest up to which every seed
    memorized every T; `not_memorized` the smallest T above `largest_any`. `bound` is "at least" if no larger T was
    tried, "below" if none was memorized; `status` is then "at the edge". A single T is too few.
    """
    sizes = ["context_type", "width", "variant", "context", "head_dim", "heads"]
    rows = []
    for key, group in runs[runs["task"] == CLASSIFICATION].groupby(sizes, sort=True):
        per_size = group.groupby("examples")["share"].agg(["max", "min", "size"])
        some, every = per_size["max"] >= 1.0, per_size["min"] >= 1.0
        largest = int(per_size.index[some].max()) if some.any() else None
        unbroken = per_size.index[every.cummin()]
        beyond = per_size.index[per_size.index > (largest or 0)]
        kept = dict(zip(sizes, key, strict=True))
        heads, context, head_dim, width = (
            int(str(kept[n])) for n in ("heads", "context", "head_dim", "width")
        )
        bound, status, message = _worth(largest, beyond, per_size.index)
        alike = context == published()["saturation"]["n"] and head_dim == width == 64
        same = alike and kept["context_type"] == "shared"
        rows.append(
            kept
            | {
                "largest_any": largest,
                "largest_all": int(unbroken.max()) if len(unbroken) else None,
                "not_memorized": int(beyond.min()) if len(beyond) else None,
                "seeds": int(per_size["size"].min()),
                "theory": memorizable_examples(heads, context, head_dim) if context < width else None,
                "published": published()["saturation"]["max_T"].get(f"H={heads}") if same else None,
                "bound": bound.value,
                "status": status.value,
                "message": message,
            }
        )
    table = pd.DataFrame(rows)
    whole = ("largest_any", "largest_all", "not_memorized", "theory", "published")
    return table.astype({name: "Int64" for name in whole if name in table})


def _worth(
    largest: int | None, beyond: pd.Index[int], tried: pd.Index[int]
) -> tuple[CapacityStatus, FitStatus, str]:
    """The kind of a largest T, found or a bound, its status, and the reason in a sentence.

    Args:
        beyond: the T that were tried above it.
        tried: all T that were tried.
    """
    if largest is None:
        bound, message = (
            CapacityStatus.BELOW,
            f"T = {tried.min()} is not memorized, and no smaller T was tried",
        )
    elif len(beyond):
        return CapacityStatus.FOUND, FitStatus.CONVERGED, f"T = {beyond.min()} is not memorized"
    else:
        bound, message = CapacityStatus.AT_LEAST, f"T = {largest} is memorized, and no larger T was tried"
    return bound, FitStatus.AT_EDGE if len(tried) > 1 else FitStatus.TOO_FEW_POINTS, message


def shares_table(found: Saturation) -> pd.DataFrame:
    """One row per network: the share of saturated (example, head) pairs, and shares of examples by their heads."""
    rows = []
    for one in found.attention:
        per_example = one.saturated.sum(axis=1)
        rows.append(
            {
                "heads": one.heads,
                "examples": one.examples,
                "saturated": float(one.saturated.mean()),
                "majority_saturated": float((per_example > one.heads / 2).mean()),
                "some_head_not_saturated": float((per_example < one.heads).mean()),
                "mean_saturated_heads": float(per_example.mean()),
                "median_largest_weight": float(np.median(one.largest)),
                "run": one.name,
            }
        )
    return pd.DataFrame(rows)


def comparison_table(found: Saturation) -> pd.DataFrame:
    """The paper's two statements per H and T, means over seeds, and the largest T; `agrees` is yes, no or open."""
    rows: list[tuple[Any, ...]] = []
    for heads, examples, runs in _groups(found):
        setting = f"H = {heads}, T = {examples:,} ({counted(len(runs))})"
        share, free = runs["saturated"].mean(), runs["some_head_not_saturated"].mean()
        rows.append(
            ("share of saturated heads", setting, share, "the majority", "yes" if share > 0.5 else "no")
        )
        rows.append(
            ("examples with a head not saturated", setting, free, "almost all", "yes" if free > 0.9 else "no")
        )
    for row in [] if found.perfect is None else found.perfect.to_dict("records"):
        there = not pd.isna(row["published"])
        ours = float("nan") if pd.isna(row["largest_any"]) else float(row["largest_any"])
        reached = ours >= 0.9 * row["published"] if there else False
        agrees = (
            "open"
            if not there or (row["bound"] == CapacityStatus.AT_LEAST and not reached)
            else "yes"
            if reached
            else "no"
        )
        setting = f"H = {row['heads']}, n = {row['context']}, d_h = {row['head_dim']} ({row['bound']})"
        printed = f"about {row['published']}" if there else "–"
        rows.append(("largest T memorized perfectly", setting, ours, printed, agrees))
    return pd.DataFrame(rows, columns=["quantity", "setting", "ours", "published", "agrees"])


def present(found: Saturation) -> Results:
    """saturation (if there are weights), perfect (if there are runs) and comparison as tables; fit.json; figure 3."""
    tables, figures, left_out = {}, {}, {}
    if found.attention:
        shares = shares_table(found)
        tables["saturation"] = Table(
            shares, "Saturated heads of trained networks.", dict.fromkeys(_SHARES, ".3f")
        )
        figures["saturation"] = saturation_figure(found.attention)
    else:
        left_out["saturation"] = "it needs attention weights (--attention)"
    if found.perfect is not None:
        tables["perfect"] = Table(found.perfect, "The largest T memorized perfectly.")
    else:
        left_out["perfect"] = "it needs a table of runs (--input)"
    tables["comparison"] = Table(comparison_table(found), "Our findings beside the published ones.")
    statuses = [] if found.perfect is None or found.perfect.empty else found.perfect["status"].tolist()
    said: dict[str, Any] = {
        "study": SATURATION,
        "model": "the largest T memorized perfectly, per network",
        "status": overall_status(statuses),
        "threshold": SATURATED_WEIGHT,
    }
    for name, table in {"saturation": shares_table(found), "perfect": found.perfect}.items():
        if table is not None:
            said[name] = plain_rows(table)
    return Results(tables, figures, said, summary(found), left_out, answer(SATURATION, tables))


def summary(found: Saturation) -> str:
    """One sentence per H and T, and one per H for the largest T."""
    lines = [
        f"H = {heads}, T = {examples}: {runs['saturated'].mean():.0%} of heads saturated, "
        f"{runs['some_head_not_saturated'].mean():.0%} of examples have a head that is not ({counted(len(runs))})."
        for heads, examples, runs in _groups(found)
    ]
    for row in [] if found.perfect is None else found.perfect.to_dict("records"):
        what = "none of the T tried" if pd.isna(row["largest_any"]) else f"T = {row['largest_any']}"
        bound = " (no larger one was tried)" if row["bound"] == CapacityStatus.AT_LEAST else ""
        lines.append(
            f"H = {row['heads']}, n = {row['context']}, d_h = {row['head_dim']}: {what} memorized perfectly{bound}."
        )
    return "\n".join(lines)


def _groups(found: Saturation) -> Iterator[tuple[int, int, pd.DataFrame]]:
    """Each H and T, with its rows of `shares_table`."""
    table = shares_table(found)
    if not table.empty:
        for key, runs in table.groupby(["heads", "examples"], sort=True):
            heads, examples = (int(str(size)) for size in key)
            yield heads, examples, runs


_SHARES = ("saturated", "majority_saturated", "some_head_not_saturated", "median_largest_weight")
