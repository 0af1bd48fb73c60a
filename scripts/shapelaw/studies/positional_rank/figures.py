"""The figures of the study of the positional embedding's rank."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from shapelaw.report.plots import ACCENT, COLUMN, INK, MUTED, SECOND, explain, new_figure, style, value_axis
from shapelaw.studies.positional_rank.analysis import ABOVE, BELOW, POSITIONAL, VOCABULARY, PositionalAnalysis

_SERIES = {
    POSITIONAL: (ACCENT, "positions factored"),
    VOCABULARY: (SECOND, "tokens factored"),
}
_BOUNDS = {BELOW: "v", ABOVE: "^"}


def losses_figure(analysis: PositionalAnalysis) -> Figure:
    """Test loss against the rank of either factored embedding, the other plain (figure 7 of the vocabulary paper)."""
    std = np.nan if analysis.noise is None else analysis.noise.std
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis, ranks = axes[0, 0], set[float]()
        for name, (color, label) in _SERIES.items():
            mine = analysis.series(name)
            if not mine.empty:
                err = np.nan_to_num(std / np.sqrt(mine["seeds"].to_numpy(np.float64)))
                axis.errorbar(mine["rank"], mine["loss"], err, fmt="o-", color=color, label=label)
                ranks |= set(mine["rank"])
        plain = float(analysis.plain["loss"])
        err_plain = float(np.nan_to_num(std / np.sqrt(float(analysis.plain["seeds"]))))
        axis.axhline(plain, color=INK, linewidth=0.9, label="plain embeddings")
        axis.axhspan(plain - err_plain, plain + err_plain, color=INK, alpha=0.15, linewidth=0)
        value_axis(axis, ranks)
        axis.set(xlabel="rank of the embedding", ylabel="test loss (nats per token)")
        axis.legend()
        return figure


def equivalents_figure(analysis: PositionalAnalysis) -> Figure:
    """The vocabulary rank that costs as much as each positional rank, with 68% intervals and bounds."""
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis, found = axes[0, 0], analysis.equivalents
        if not found:
            explain(axis, "No network has factored token embeddings.")
            return figure
        trained = sorted({*analysis.series(VOCABULARY)["rank"], float(analysis.full_ranks[VOCABULARY])})
        least, most = min(trained), max(trained)
        for one in found:
            low, high = (
                float(np.clip(np.nan_to_num(end, nan=one.rank), least, most)) for end in (one.low, one.high)
            )
            marker = _BOUNDS.get(one.status, "o")
            axis.errorbar(
                [one.positional_rank],
                [one.rank],
                [[max(one.rank - low, 0)], [max(high - one.rank, 0)]],
                fmt=marker,
                color=ACCENT,
            )
        axis.axhline(most, color=MUTED, linewidth=0.8, linestyle="--", label="full vocabulary rank")
        value_axis(axis, [one.positional_rank for one in found])
        axis.set_yscale("log")
        axis.set_yticks(trained, [f"{rank:g}" for rank in trained])
        axis.minorticks_off()
        axis.set(xlabel="positional rank", ylabel="vocabulary rank of equal loss")
        axis.legend()
        if analysis.noise is None:
            explain(axis, "No network has two seeds: no intervals.", (0.5, 0.1))
        return figure
