"""The figures of the study of the embedding's rank."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.curves import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.report.plots import (
    ACCENT,
    INK,
    MUTED,
    PAGE,
    SECOND,
    explain,
    legend_below,
    new_figure,
    size_axis,
    style,
    value_axis,
)
from shapelaw.studies.embedding_rank.analysis import FULL, POSITIONS, EmbeddingAnalysis, Found

_COLORS = {POSITIONS[True]: ACCENT, POSITIONS[False]: SECOND}
_SHAPES = {POSITIONS[True]: "s", POSITIONS[False]: "D"}


def losses_figure(analysis: EmbeddingAnalysis) -> Figure:
    """Test loss against size: full rank by narrowing, low rank by lowering r (figure 2 of the vocabulary paper)."""
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=2.9, sharey=True)
        for axis, size in zip(axes[0], (SizeAxis.BLOCK, SizeAxis.TOTAL), strict=True):
            _draw_losses(axis, analysis, size)
        axes[0, 0].set_ylabel("test loss (nats per token)")
        axes[0, 0].set_title("numbers: the rank r", fontsize=7)
        legend_below(figure, 3)
        return figure


def _draw_losses(axis: Axes, analysis: EmbeddingAnalysis, size: SizeAxis) -> None:
    column, std = SIZE_COLUMNS[size], np.nan if analysis.noise is None else analysis.noise.std
    full = analysis.networks["series"] == FULL
    for rows, label, color in (
        (analysis.networks[full], "full rank, narrower", INK),
        *(
            (
                analysis.networks[~full & (analysis.networks["positional_rank"].notna() == factored)],
                f"low rank, positions {words}",
                _COLORS[words],
            )
            for factored, words in POSITIONS.items()
        ),
    ):
        if not rows.empty:
            ordered = rows.sort_values([column, "loss"])
            err = np.nan_to_num(std / np.sqrt(ordered["seeds"].to_numpy(np.float64)))
            style_ = "o-" if label.startswith("full") else _SHAPES[label.removeprefix("low rank, positions ")]
            axis.errorbar(ordered[column], ordered["loss"], err, fmt=style_, color=color, label=label)
    for place, row in enumerate(analysis.networks[~full].sort_values("loss").to_dict("records")):
        left = place % 2 == 1  # else near losses' labels lie on one another
        axis.annotate(
            f"{int(row['embedding_rank'])}",
            (row[column], row["loss"]),
            xytext=(-4 if left else 4, 0),
            ha="right" if left else "left",
            textcoords="offset points",
            fontsize=6,
            color=MUTED,
        )
    size_axis(axis)
    axis.set_xlabel(SIZE_LABELS[size])


def redundancy_figure(analysis: EmbeddingAnalysis) -> Figure:
    """Redundancy against r, a panel for each of blocks and all parameters, with 68% intervals and bounds."""
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=2.9, sharey=True)
        for axis, size in zip(axes[0], (SizeAxis.BLOCK, SizeAxis.TOTAL), strict=True):
            mine = [one for one in analysis.found if one.axis is size]
            _draw_redundancy(axis, mine)
            axis.set_title(f"in {SIZE_LABELS[size]}")
            axis.set_xlabel("rank r of the embedding")
        axes[0, 0].set_ylabel("redundancy")
        if analysis.noise is None:
            explain(axes[0, 0], "No network has two seeds: no intervals.", (0.5, 0.1))
        legend_below(figure, 3)
        return figure


def _draw_redundancy(axis: Axes, found: list[Found]) -> None:
    axis.axhline(0, color=MUTED, linewidth=0.8, label="no redundancy")
    for factored, words in POSITIONS.items():
        mine = [one for one in found if bool(pd.notna(one.row["positional_rank"])) == factored]
        for status, marker in (
            (RedundancyStatus.AT_LEAST, "^"),
            (RedundancyStatus.AT_MOST, "v"),
            (None, _SHAPES[words]),
        ):
            some = [one for one in mine if _marked(one) == status]
            if some:
                value = np.array([one.redundancy.value for one in some])
                low = np.array([max(one.redundancy.low, -1.0) for one in some])
                high = np.array([one.redundancy.high for one in some])
                err = np.nan_to_num(np.clip([value - low, high - value], 0, None))
                ranks = [int(one.row["embedding_rank"]) for one in some]
                axis.errorbar(
                    ranks, value, err, fmt=marker, color=_COLORS[words],
                    label=f"positions {words}, " + (status or "68% interval"),
                )  # fmt: skip
    value_axis(axis, [int(one.row["embedding_rank"]) for one in found])


def _marked(one: Found) -> RedundancyStatus | None:
    status = one.redundancy.status
    return status if status in (RedundancyStatus.AT_LEAST, RedundancyStatus.AT_MOST) else None
