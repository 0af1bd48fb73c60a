"""Read the largest attention weights of trained networks, and draw them as in figure 3 of Mahdavi et al. 2024."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from shapelaw.errors import UserError
from shapelaw.report.plots import INK, MUTED, PAGE, SECOND, new_figure, style
from shapelaw.specs.memorizers import SATURATED_WEIGHT

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
    return sorted(found, key=lambda one: (one.heads, one.examples, one.name))


def saturation_figure(attention: Sequence[Attention]) -> Figure:
    """Figure 3, one row per H at its largest T: the first 20 examples by head, saturated heads, largest weights.

    The map shows the first run by name; the histograms hold all runs of that H and T.
    """
    largest = {one.heads: one.examples for one in attention}  # ordered by growing T
    groups = sorted(largest.items(), reverse=True)
    with style():
        figure, axes = new_figure(
            len(groups), 3, width=PAGE, height=0.4 + 1.95 * len(groups), width_ratios=[1.35, 1.0, 1.0]
        )
        for row, group in zip(axes, groups, strict=True):
            mine = [one for one in attention if (one.heads, one.examples) == group]
            _draw_map(row[0], mine[0])
            _draw_histograms(row[1], row[2], mine)
        for axis, name in zip(axes[-1], ("example", "saturated heads", "largest weight"), strict=True):
            axis.set_xlabel(name)
        figure.legend(
            handles=[
                Patch(color=SECOND, label=f"head saturated: a weight above {SATURATED_WEIGHT}"),
                Patch(facecolor="white", edgecolor=MUTED, label="not saturated"),
                axes[0, 2].get_legend_handles_labels()[0][0],
            ],
            loc="outside lower center",
            ncols=3,
        )
        return figure


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
    counts.set_title(f"{counted(len(mine))}, mean {per_example.mean():.2f}", fontsize=7)
    largest = np.concatenate([one.largest.ravel() for one in mine])
    weights.hist(
        np.minimum(largest, 1.0), bins=[k / BINS for k in range(BINS + 1)], color=SECOND,
        weights=np.full(len(largest), 1.0 / len(largest)),
    )  # fmt: skip
    weights.axvline(
        SATURATED_WEIGHT, color=INK, linewidth=0.7, linestyle="--", label=f"weight of {SATURATED_WEIGHT}"
    )
    weights.set_ylabel("share of H × T")
    weights.set_title(f"{(largest > SATURATED_WEIGHT).mean():.0%} above {SATURATED_WEIGHT}", fontsize=7)
