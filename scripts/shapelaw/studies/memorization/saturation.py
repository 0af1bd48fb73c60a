"""Saturated heads (figure 3), the largest T memorized perfectly (Mahdavi et al. 2024, appendix H), and ReLU networks.

A head is saturated for an example if one of its softmax coefficients is above `SATURATED_WEIGHT`. Theorem 1 gives each
head its own examples and saturates it for the others; the paper finds that trained networks look alike: most heads are
saturated, and almost every example has a head that is not.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from shapelaw.errors import UserError
from shapelaw.fits.capacity import CapacityStatus
from shapelaw.fits.inputs import read_table
from shapelaw.fits.line import FitStatus, overall_status
from shapelaw.fits.memorized import CLASSIFICATION, bracket
from shapelaw.fits.significance import mean_of
from shapelaw.report.charts import Across, Chart, Panel, Span
from shapelaw.report.plots import INK, MUTED, PAGE, SECOND, key
from shapelaw.report.tables import Columns, frame_of, plain_rows, says
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.specs.memorizers import SATURATED_WEIGHT
from shapelaw.studies.memorization.study import RELU, SATURATION
from shapelaw.studies.study import beside_published, published
from shapelaw.theory.memorization import memorizable_examples

LARGEST = "largest T memorized perfectly"
SHOWN_EXAMPLES = 20
BINS = 40


class Attention(NamedTuple):
    """The largest softmax coefficient (T, H) of each head for each example of one trained network."""

    name: str
    largest: npt.NDArray[np.float32]

    @property
    def sizes(self) -> tuple[int, int]:
        """H and T."""
        examples, heads = self.largest.shape
        return heads, examples

    @property
    def saturated(self) -> npt.NDArray[np.bool_]:
        """(T, H), True where the head is saturated for the example."""
        return self.largest > SATURATED_WEIGHT


def read_attention(folder: Path, keys: Collection[str] | None = None) -> list[Attention]:
    """The .npz files in a folder and below, by heads, T and name; a record's `attention.npz` takes its run's name.

    Args:
        keys: only the files of these runs; None takes all.

    Raises:
        UserError: the folder is missing or has no .npz files, or a file lacks an array or has the wrong numbers.
    """
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}.")
    if keys is None:
        paths = sorted(folder.rglob("*.npz"))
    else:  # a pool has records of many other runs
        of_runs = [
            path for key in sorted(keys) for path in (folder / key / "attention.npz", folder / f"{key}.npz")
        ]
        paths = [path for path in of_runs if path.is_file()]
    found = [_read_one(path) for path in paths]
    if not found:
        raise UserError(f"{folder} has no .npz files; give the folder with the runs' attention weights.")
    return sorted(found, key=lambda one: (*one.sizes, one.name))


def saturation_figure(attention: Sequence[Attention]) -> Chart:
    """Figure 3, one row per H at its largest T: the first 20 examples by head, saturated heads, largest weights.

    The map shows the first run by name; the histograms hold all runs of that H and T.
    """
    largest = dict(one.sizes for one in attention)  # ordered by growing T
    panels = [
        panel
        for sizes in sorted(largest.items(), reverse=True)
        for panel in _panels(*sizes, [one for one in attention if one.sizes == sizes])
    ]
    keys = [
        Patch(color=SECOND, label=f"head saturated: a weight above {SATURATED_WEIGHT}"),
        Patch(facecolor="white", edgecolor=MUTED, label="not saturated"),
        key(f"weight of {SATURATED_WEIGHT}", INK, "--", linewidth=0.7),
    ]
    height = 0.4 + 1.95 * len(panels) / 3
    return Chart(panels, 3, PAGE, height, widths=[1.35, 1.0, 1.0], keys=keys)


class Drawing(NamedTuple):
    """A mark that matplotlib draws."""

    draw: Callable[[Axes], Any]


def _bars(places: npt.ArrayLike, heights: npt.ArrayLike, width: float) -> Drawing:
    return Drawing(lambda axes: axes.bar(places, heights, color=SECOND, width=width))


def _panels(heads: int, examples: int, mine: Sequence[Attention]) -> list[Panel]:
    """A row of the figure, of runs of one H and T."""
    shown = mine[0].saturated[:SHOWN_EXAMPLES].T
    ticks = [1, *range(5, shown.shape[1] + 1, 5)]
    places = np.unique(np.linspace(1, heads, min(heads, 8)).round())

    def cells(axes: Axes) -> None:
        edges = [np.arange(size + 1) + 0.5 for size in shown.shape[::-1]]
        look: dict[str, Any] = {"vmin": 0, "vmax": 1, "edgecolors": "#d5d8dc", "linewidth": 0.4}
        axes.pcolormesh(*edges, shown.astype(float), cmap=ListedColormap(["white", SECOND]), **look)
        axes.grid(False)

    x, y = Span("example", ticks=ticks), Span("head", ticks=places)
    saturated = Panel([Drawing(cells)], x, y, f"H = {heads}, T = {examples:,} ({counted(len(mine))})")
    per_example = np.concatenate([_per_example(one) for one in mine])
    share = np.bincount(per_example, minlength=heads + 1) / len(per_example)
    counts = Panel(
        [_bars(np.arange(heads + 1), share, 0.85)],
        Span("saturated heads", ticks=range(heads + 1) if heads < 12 else ()),
        Span("share of examples"),
        f"{per_example.mean():.1f} of {heads} heads saturated",
    )
    largest = np.concatenate([one.largest.ravel() for one in mine])
    binned = np.histogram(np.minimum(largest, 1.0), BINS, (0.0, 1.0))[0] / len(largest)
    weights = Panel(
        [
            _bars((np.arange(BINS) + 0.5) / BINS, binned, 1.0 / BINS),
            Across(SATURATED_WEIGHT, "x", color=INK, line="--", more={"linewidth": 0.7}),
        ],
        Span("largest weight"),
        Span("share of H × T"),
        f"{(largest > SATURATED_WEIGHT).mean():.0%} of weights above {SATURATED_WEIGHT}",
    )
    return [saturated, counts, weights]


def counted(runs: int) -> str:
    """A number of runs in words."""
    return f"{runs} run{'' if runs == 1 else 's'}"


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
    for network, group in runs[runs["task"] == CLASSIFICATION].groupby(sizes, sort=True):
        kept = dict(zip(sizes, network, strict=True))
        of_theory = group[["heads", "context", "head_dim", "width"]].iloc[0]
        heads, context, head_dim, width = of_theory.astype(int).tolist()
        per_size = group.groupby("examples")["share"].agg(["max", "min", "size"])
        some = (per_size["max"] >= 1.0).tolist()
        largest, beyond = bracket(dict(zip(per_size.index.tolist(), some, strict=True)))
        every = per_size.index[(per_size["min"] >= 1.0).cummin()]
        if beyond is None:
            bound = CapacityStatus.AT_LEAST
            message = f"T = {largest} is memorized, and no larger T was tried"
        else:
            bound = CapacityStatus.BELOW if largest is None else CapacityStatus.FOUND
            smaller = ", and no smaller T was tried" if largest is None else ""
            message = f"T = {beyond} is not memorized{smaller}"
        edge = FitStatus.AT_EDGE if len(per_size) > 1 else FitStatus.TOO_FEW_POINTS
        setting = f"{kept['context_type']} context, H = {heads}, n = {context}, d_h = {head_dim}, d = {width}"
        rows.append(
            kept
            | {
                "largest_any": largest,
                "largest_all": None if every.empty else every.max(),
                "not_memorized": beyond,
                "seeds": int(per_size["size"].min()),
                "theory": memorizable_examples(heads, context, head_dim) if context < width else None,
                "published": published(SATURATION, LARGEST, setting).number,
                "bound": bound,
                "status": FitStatus.CONVERGED if bound is CapacityStatus.FOUND else edge,
                "message": message,
            }
        )
    table = pd.DataFrame(rows)
    whole = ("largest_any", "largest_all", "not_memorized", "theory", "published")
    return table.astype({name: "Int64" for name in whole if name in table})


def shares_table(found: Saturation) -> pd.DataFrame:
    """One row per network: the share of saturated (example, head) pairs, and shares of examples by their heads."""
    columns: Columns = {
        "heads": lambda one: one.sizes[0],
        "examples": lambda one: one.sizes[1],
        "saturated": lambda one: float(one.saturated.mean()),
        "majority_saturated": lambda one: float((_per_example(one) > one.sizes[0] / 2).mean()),
        "some_head_not_saturated": lambda one: float((_per_example(one) < one.sizes[0]).mean()),
        "mean_saturated_heads": lambda one: float(_per_example(one).mean()),
        "median_largest_weight": lambda one: float(np.median(one.largest)),
        "run": "name",
    }
    return frame_of(found.attention, columns)


def _per_example(one: Attention) -> npt.NDArray[np.int64]:
    """(T,) saturated heads of each example."""
    return np.asarray(one.saturated.sum(axis=1), dtype=np.int64)


def comparison_table(found: Saturation) -> pd.DataFrame:
    """The paper's two statements per H and T, means over seeds, and the largest T; `agrees` is yes, no or open."""
    rows: list[tuple[Any, ...]] = []
    for (heads, examples), runs in shares_table(found).groupby(["heads", "examples"], sort=True):
        setting = f"H = {heads}, T = {examples:,} ({counted(len(runs))})"
        share, free = runs["saturated"].mean(), runs["some_head_not_saturated"].mean()
        majority, nearly_all = says(True, share > 0.5), says(True, free > 0.9)
        rows.append(("share of saturated heads", setting, share, "", majority))
        rows.append(("examples with a head not saturated", setting, free, "", nearly_all))
    for row in [] if found.perfect is None else found.perfect.to_dict("records"):
        there = not pd.isna(row["published"])
        ours = float("nan") if pd.isna(row["largest_any"]) else float(row["largest_any"])
        reached = there and ours >= 0.9 * row["published"]
        agrees = says(there and (reached or row["bound"] != CapacityStatus.AT_LEAST), reached)
        printed = f"about {row['published']}" if there else ""
        setting = f"H = {row['heads']}, n = {row['context']}, d_h = {row['head_dim']} ({row['bound']})"
        rows.append((LARGEST, setting, ours, printed, agrees))
    table = pd.DataFrame(rows, columns=["quantity", "setting", "ours", "published", "agrees"])
    return beside_published(SATURATION, table)


TABLES = {
    "saturation": TableOf(
        shares_table,
        "Saturated heads of trained networks.",
        dict.fromkeys(
            ("saturated", "majority_saturated", "some_head_not_saturated", "median_largest_weight"), ".3f"
        ),
    ),
    "perfect": TableOf(lambda found: found.perfect, "The largest T memorized perfectly."),
    "comparison": TableOf(comparison_table, "Our findings beside the published ones."),
}


def present(found: Saturation) -> Results:
    """saturation (if there are weights), perfect (if there are runs) and comparison as tables; fit.json; figure 3."""
    left_out = {}
    if not found.attention:
        left_out["saturation"] = "it needs attention weights (--attention)"
    if found.perfect is None:
        left_out["perfect"] = "it needs a table of runs (--input)"
    statuses = [] if found.perfect is None or found.perfect.empty else found.perfect["status"].tolist()
    said = {
        "study": SATURATION,
        "model": "the largest T memorized perfectly, per network",
        "status": overall_status(statuses),
        "threshold": SATURATED_WEIGHT,
        "saturation": plain_rows(shares_table(found)),
    }
    if found.perfect is not None:
        said["perfect"] = plain_rows(found.perfect)
    figures = {"saturation": saturation_figure(found.attention)} if found.attention else {}
    tables = tables_of(TABLES, [name for name in TABLES if name not in left_out], found)
    return Results(tables, figures, said, left_out=left_out)


RELU_COLUMNS = (
    *("task", "context_type", "heads", "context", "head_dim", "examples", "seed", "steps"),
    *("attention_params", "relu_units", "relu_params", "measure", "attention", "relu"),
    *("attention_at_least", "relu_at_most"),
)


def relu_results(path: Path) -> Results:
    """ReLU networks and attention heads of equal parameters on the same examples: one row per network.

    Raises:
        UserError: the table lacks columns or can't be read.
    """
    table = read_table(path)
    if missing := [name for name in RELU_COLUMNS if name not in table]:
        raise UserError(f"{path} has no {', '.join(missing)}; make it again: rm {path} && snakemake relu")
    table = table.sort_values(["task", "context", "heads", "examples", "seed"], ignore_index=True)
    lines, differences = [], []
    for (task, measure), rows in table.groupby(["task", "measure"], sort=True):
        ours, theirs = rows["attention"].mean(), rows["relu"].mean()
        lines.append(
            f"{task}: {measure} {ours:.3f} of attention and {theirs:.3f} of ReLU networks, means over {len(rows)}."
        )
        differences.append((f"{task}: {measure}", mean_of(rows["relu"] - rows["attention"])))
    fit = {"study": RELU, "status": "measured", "networks": len(table), "rows": plain_rows(table)}
    caption = "Attention and ReLU networks of equal parameters on the same examples."
    shown = Table(table, caption, {"attention": ".3f", "relu": ".3f"})
    said = "; ".join(
        f"{what} {mean.value:+.3f} "
        + ("(one network)" if mean.seeds == 1 else f"({mean.low:+.3f} to {mean.high:+.3f})")
        for what, mean in differences
    )
    answer = Answer(
        f"ReLU networks minus attention heads, means over networks with 95% intervals: {said}.",
        any(mean.significant for _, mean in differences),
        "proposition 3 of Mahdavi et al. 2024 bounds both.",
    )
    return Results({RELU: shown}, {}, fit, "\n".join(lines), answer=answer)
