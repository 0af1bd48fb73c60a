"""Which heads are saturated for which examples, and the largest T memorized perfectly (Mahdavi et al. 2024, H).

A head is saturated for an example if one of its softmax coefficients is above 0.99. Theorem 1 gives each head its own
examples and saturates it for the others; the paper finds that trained networks look alike: most heads are saturated,
and almost every example has a head that is not.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from shapelaw.errors import UserError
from shapelaw.fits.memorized import CLASSIFICATION
from shapelaw.plots import INK, MUTED, PAGE, SECOND, new_figure, save_figure, style
from shapelaw.studies.memorization_analysis import published
from shapelaw.tables import write_table
from shapelaw.theory.memorization import memorizable_examples

SATURATION = "memorization_saturation"
SATURATED_WEIGHT = 0.99
SHOWN_EXAMPLES = 20
BINS = 40


@dataclass(frozen=True)
class Attention:
    """The largest softmax coefficient (T, H) of each head for each example of one trained network."""

    name: str
    largest: npt.NDArray[np.float32]

    @property
    def examples(self) -> int:
        return int(self.largest.shape[0])

    @property
    def heads(self) -> int:
        return int(self.largest.shape[1])

    @property
    def saturated(self) -> npt.NDArray[np.bool_]:
        """(T, H) whether the head is saturated for the example."""
        return self.largest > SATURATED_WEIGHT


@dataclass(frozen=True)
class Saturation:
    """The attention of the runs there are, by heads and T; and `perfect`, the largest T memorized per network."""

    attention: tuple[Attention, ...]
    perfect: pd.DataFrame | None


def analyse_saturation(
    runs: pd.DataFrame | None, attention: Path | None, keys: Container[str] | None = None
) -> Saturation:
    """From checked runs (`check_memorization_runs`), a folder of attention weights, or both.

    Args:
        keys: the runs whose attention is wanted (None: all): a folder of records may have those of other grids too.

    Raises:
        UserError: neither is given, or a file of the folder can't be used.
    """
    if runs is None and attention is None:
        raise UserError(f"{SATURATION} needs a table of runs, a folder of attention weights, or both.")
    return Saturation(
        ()
        if attention is None
        else tuple(a for a in read_attention(attention) if keys is None or a.name in keys),
        None if runs is None else perfect_table(runs),
    )


def read_attention(folder: Path) -> list[Attention]:
    """All .npz files of a folder and below, by heads, T and name; the `attention.npz` of a record has its run's name.

    Raises:
        UserError: there is no such folder, no .npz in it, or one lacks an array, or its numbers do not fit.
    """
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}.")
    found = [_read_one(path) for path in sorted(folder.rglob("*.npz"))]
    if not found:
        raise UserError(f"{folder} has no .npz files; give the folder with the runs' attention weights.")
    return sorted(found, key=lambda one: (one.heads, one.examples, one.name))


def perfect_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The search for the largest T: one row per network, from the runs that reached accuracy 1 and that did not.

    `largest_any` is the largest T that some seed memorized perfectly, `largest_all` the one up to which all seeds
    of all smaller T did too; `not_memorized` the smallest T above `largest_any`. `status` is "at least" if no
    larger T was tried, "below" if none was memorized.
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
        status = "below" if largest is None else "found" if len(beyond) else "at least"
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
                "status": status,
            }
        )
    table = pd.DataFrame(rows)
    whole = ("largest_any", "largest_all", "not_memorized", "theory", "published")
    return table.astype({name: "Int64" for name in whole if name in table})


def shares_table(found: Saturation) -> pd.DataFrame:
    """One row per network: the share of (example, head) pairs that are saturated, and of examples by their heads."""
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
        setting = f"H = {heads}, T = {examples:,} ({_counted(len(runs))})"
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
            if not there or (row["status"] == "at least" and not reached)
            else "yes"
            if reached
            else "no"
        )
        setting = f"H = {row['heads']}, n = {row['context']}, d_h = {row['head_dim']} ({row['status']})"
        printed = f"about {row['published']}" if there else "–"
        rows.append(("largest T memorized perfectly", setting, ours, printed, agrees))
    return pd.DataFrame(rows, columns=["quantity", "setting", "ours", "published", "agrees"])


def saturation_figure(found: Saturation) -> Figure:
    """Figure 3, a row per H at its largest T: the first 20 examples by head, heads saturated, largest weights.

    The map is that of the first run by name; the histograms hold all runs of that H and T.
    """
    largest = {one.heads: one.examples for one in found.attention}  # they come by growing T
    groups = sorted(largest.items(), reverse=True)
    with style():
        figure, axes = new_figure(
            len(groups), 3, width=PAGE, height=0.4 + 1.95 * len(groups), width_ratios=[1.35, 1.0, 1.0]
        )
        for row, group in zip(axes, groups, strict=True):
            mine = [one for one in found.attention if (one.heads, one.examples) == group]
            _draw_map(row[0], mine[0])
            _draw_histograms(row[1], row[2], mine)
        for axis, name in zip(axes[-1], ("example", "saturated heads", "largest weight"), strict=True):
            axis.set_xlabel(name)
        figure.legend(
            handles=[
                Patch(color=SECOND, label="head saturated: a weight above 0.99"),
                Patch(facecolor="white", edgecolor=MUTED, label="not saturated"),
            ],
            loc="outside lower center",
            ncols=2,
        )
        return figure


def write(found: Saturation, out: Path) -> list[Path]:
    """saturation (if there are weights), perfect (if there are runs) and comparison as tables; fit.json; figure 3."""
    files = []
    if found.attention:
        files += write_table(
            shares_table(found), out / "saturation", formats=dict.fromkeys(_SHARES, ".3f"),
            caption="Saturated heads of trained networks.", label="tab:memorization-saturation",
        )  # fmt: skip
        files += save_figure(saturation_figure(found), out / "saturation")
    if found.perfect is not None:
        files += write_table(
            found.perfect, out / "perfect", caption="The largest T memorized perfectly.",
            label="tab:memorization-perfect",
        )  # fmt: skip
    comparison = comparison_table(found)
    files += write_table(
        comparison, out / "comparison", caption="Ours beside the published findings.",
        label="tab:memorization-saturation-comparison",
    )  # fmt: skip
    said = {"study": SATURATION, "threshold": SATURATED_WEIGHT}
    tables = {"saturation": shares_table(found), "perfect": found.perfect}
    for name, table in tables.items():
        if table is not None:
            said[name] = json.loads(table.to_json(orient="records"))
    path = out / "fit.json"
    path.write_text(json.dumps(said, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return [*files, path]


def summary(found: Saturation) -> str:
    """One sentence per H and T, and one per H for the largest T."""
    lines = [
        f"H = {heads}, T = {examples}: {runs['saturated'].mean():.0%} of heads saturated, "
        f"{runs['some_head_not_saturated'].mean():.0%} of examples have a head that is not ({_counted(len(runs))})."
        for heads, examples, runs in _groups(found)
    ]
    for row in [] if found.perfect is None else found.perfect.to_dict("records"):
        what = "none of the T tried" if pd.isna(row["largest_any"]) else f"T = {row['largest_any']}"
        bound = " (no larger one was tried)" if row["status"] == "at least" else ""
        lines.append(
            f"H = {row['heads']}, n = {row['context']}, d_h = {row['head_dim']}: {what} memorized perfectly{bound}."
        )
    return "\n".join(lines)


def _groups(found: Saturation) -> Iterator[tuple[int, int, pd.DataFrame]]:
    """H, T and the rows of `shares_table` of each."""
    table = shares_table(found)
    if not table.empty:
        for key, runs in table.groupby(["heads", "examples"], sort=True):
            heads, examples = (int(str(size)) for size in key)
            yield heads, examples, runs


def _counted(runs: int) -> str:
    return f"{runs} run{'' if runs == 1 else 's'}"


_SHARES = ("saturated", "majority_saturated", "some_head_not_saturated", "median_largest_weight")


def _read_one(path: Path) -> Attention:
    try:
        with np.load(path) as arrays:
            missing = [name for name in ("largest_weight", "heads", "examples") if name not in arrays]
            if missing:
                raise UserError(f"{path} lacks {', '.join(missing)}.")
            largest = np.asarray(arrays["largest_weight"], dtype=np.float32)
            sizes = (int(arrays["examples"]), int(arrays["heads"]))
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} can't be read as .npz ({str(error).splitlines()[0]}).") from error
    if largest.shape != sizes:
        raise UserError(
            f"{path}: largest_weight has the shape {largest.shape}; (examples, heads) is {sizes}."
        )
    if not ((largest > 0) & (largest <= 1 + 1e-5)).all():
        raise UserError(f"{path}: largest_weight must be in (0, 1], as a softmax coefficient is.")
    return Attention(path.parent.name if path.stem == "attention" else path.stem, largest)


def _draw_map(axis: Axes, one: Attention) -> None:
    shown = one.saturated[:SHOWN_EXAMPLES].T
    axis.pcolormesh(
        np.arange(shown.shape[1] + 1) + 0.5, np.arange(one.heads + 1) + 0.5, shown.astype(float),
        cmap=ListedColormap(["white", SECOND]), vmin=0, vmax=1, edgecolors="#d5d8dc", linewidth=0.4,
    )  # fmt: skip
    axis.set_yticks(np.unique(np.linspace(1, one.heads, min(one.heads, 8)).round()))
    axis.set_xticks([1, *range(5, shown.shape[1] + 1, 5)])
    axis.set_ylabel("head")
    axis.grid(False)
    axis.set_title(f"H = {one.heads}, T = {one.examples:,}", fontsize=7)


def _draw_histograms(counts: Axes, weights: Axes, mine: list[Attention]) -> None:
    per_example = np.concatenate([one.saturated.sum(axis=1) for one in mine])
    places = np.arange(mine[0].heads + 1)
    share = np.bincount(per_example, minlength=len(places)) / len(per_example)
    counts.bar(places, share, color=SECOND, width=0.85)
    counts.set_ylabel("share of examples")
    if len(places) <= 12:
        counts.set_xticks(places)
    counts.set_title(f"{_counted(len(mine))}, mean {per_example.mean():.2f}", fontsize=7)
    largest = np.concatenate([one.largest.ravel() for one in mine])
    weights.hist(
        np.minimum(largest, 1.0), bins=[k / BINS for k in range(BINS + 1)], color=SECOND,
        weights=np.full(len(largest), 1.0 / len(largest)),
    )  # fmt: skip
    weights.axvline(SATURATED_WEIGHT, color=INK, linewidth=0.7, linestyle="--")
    weights.set_ylabel("share of H × T")
    weights.set_title(f"{(largest > SATURATED_WEIGHT).mean():.0%} above 0.99", fontsize=7)
