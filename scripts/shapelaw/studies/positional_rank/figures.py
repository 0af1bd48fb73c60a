"""The figures of the study of the positional embedding's rank."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from shapelaw.report.plots import (
    ACCENT,
    COLUMN,
    INK,
    MUTED,
    SECOND,
    explain,
    legend_below,
    new_figure,
    style,
    value_axis,
)
from shapelaw.studies.positional_rank.analysis import ABOVE, BELOW, POSITIONAL, VOCABULARY, PositionalAnalysis

_SERIES = {
    POSITIONAL: (ACCENT, "o", "positions factored"),
    VOCABULARY: (SECOND, "s", "tokens factored"),
}
_BOUNDS = {BELOW: "v", ABOVE: "^"}


def losses_figure(analysis: PositionalAnalysis) -> Figure:
    """Test loss against the rank of either factored embedding, the other plain (figure 7 of the vocabulary paper)."""
    std = np.nan if analysis.noise is None else analysis.noise.std
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis, ranks = axes[0, 0], set[float]()
        for name, (color, shape, label) in _SERIES.items():
            mine = analysis.series(name)
            if not mine.empty:
                err = np.nan_to_num(std / np.sqrt(mine["seeds"].to_numpy(np.float64)))
                axis.errorbar(mine["rank"], mine["loss"], err, fmt=f"{shape}-", color=color, label=label)
                ranks |= set(mine["rank"])
        plain = float(analysis.plain["loss"])
        err_plain = float(np.nan_to_num(std / np.sqrt(float(analysis.plain["seeds"]))))
        axis.axhline(plain, color=INK, linewidth=0.9, label="plain embeddings ± one σ")
        axis.axhspan(plain - err_plain, plain + err_plain, color=INK, alpha=0.15, linewidth=0)
        value_axis(axis, ranks)
        axis.set(xlabel="rank of the embedding", ylabel="test loss (nats per token)")
        legend_below(figure, 2)
        return figure


def equivalents_figure(analysis: PositionalAnalysis) -> Figure | str:
    """The vocabulary rank that costs as much as each positional rank, with 68% intervals; or why there is none."""
    found = analysis.equivalents
    if not found:
        return "no network has factored token embeddings"
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis, named = axes[0, 0], set[str]()
        trained = sorted({*analysis.series(VOCABULARY)["rank"], float(analysis.full_ranks[VOCABULARY])})
        least, most = min(trained), max(trained)
        for one in found:
            low, high = (
                float(np.clip(np.nan_to_num(end, nan=one.rank), least, most)) for end in (one.low, one.high)
            )
            marker = _BOUNDS.get(one.status, "o")
            words = f"a bound: {one.status}" if one.status in _BOUNDS else "equal loss, 68% interval"
            label = None if words in named else words
            named.add(words)
            axis.errorbar(
                [one.positional_rank],
                [one.rank],
                [[max(one.rank - low, 0)], [max(high - one.rank, 0)]],
                fmt=marker,
                color=ACCENT,
                label=label,
            )
        axis.axhline(most, color=MUTED, linewidth=0.8, linestyle="--", label="full vocabulary rank")
        value_axis(axis, [one.positional_rank for one in found])
        axis.set_yscale("log")
        axis.set_yticks(trained, [f"{rank:g}" for rank in trained])
        axis.minorticks_off()
        axis.set(xlabel="positional rank", ylabel="vocabulary rank of equal loss")
        legend_below(figure, 1)
        if analysis.noise is None:
            explain(axis, "No network has two seeds: no intervals.", (0.5, 0.1))
        return figure
