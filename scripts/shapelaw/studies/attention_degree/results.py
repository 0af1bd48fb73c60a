"""The best degree of linear attention in a decoder at equal parameters.

Navon 2021, "Attention is optimal building block", section 2: attention without softmax is a block of degree 3 in its
tokens (equation 2), and 3 is the best integer by the note's theory. Decoders with blocks of degree k,
`models.attention.attend_linearly`, and with softmax as the reference, at weights equal to within 2%, trained alike on
the same text:

    losses        test loss of each decoder, mean over seeds
    differences   each decoder against degree 3 and against softmax, over the same seeds

Decoders keep their norms, biases, feed-forward networks and residual sums: only the degree of the attention
differs. Every degree is trained at the one learning rate of the config.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.inputs import RECIPE, numbers_of, read_table, refuse, refuse_mixed, require_columns
from shapelaw.fits.paired import Mean, mean_of, paired_mean
from shapelaw.report.plots import (
    ACCENT,
    INK,
    MUTED,
    PAGE,
    SECOND,
    THIRD,
    explain,
    legend_below,
    new_figure,
    short_number,
    style,
)
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Results, Table
from shapelaw.studies.attention_degree.answer import answer

STUDY = "attention_degree"
SOFTMAX = "softmax"
REFERENCES = ("degree 3", SOFTMAX)
LOOKS = {SOFTMAX: (INK, "o"), "degree 2": (SECOND, "s"), "degree 3": (ACCENT, "D"), "degree 4": (THIRD, "P")}
_COLUMNS = ("depth", "width", "seed", "test_loss")


@dataclass(frozen=True)
class Decoders:
    """Decoders that are equal except for their seeds.

    Attributes:
        depth, width: shape of the decoder.
        degree: degree of its attention; None means softmax.
        attention_dim: dimension of a head; None where the table doesn't have it.
        params: all parameters; 12 L d^2 where the table doesn't have them.
        losses: test losses in nats per token, by seed.
    """

    depth: int
    width: int
    degree: int | None
    attention_dim: int | None
    params: int
    losses: dict[int, float]

    @property
    def attention(self) -> str:
        """The attention in words: `softmax`, `degree 3`."""
        return SOFTMAX if self.degree is None else f"degree {self.degree}"

    @property
    def loss(self) -> Mean:
        """Mean loss over the seeds."""
        return mean_of(list(self.losses.values()))


@dataclass(frozen=True)
class Difference:
    """The loss of decoders minus that of decoders of equal depth and width with other attention, in nats per token."""

    decoders: Decoders
    against: str
    nats: Mean

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return self.nats.verdict


@dataclass(frozen=True)
class AttentionDegreeAnalysis:
    """All decoders, and each one's differences from degree 3 and from softmax."""

    decoders: list[Decoders]
    differences: list[Difference]


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return present(analyse(arguments.input))


def analyse(runs: Path) -> AttentionDegreeAnalysis:
    """Read a table of runs (.csv or .parquet) and analyse it.

    Args:
        runs: one row a run: `depth, width, attention_degree, seed, test_loss`, maybe `attention_dim` and
            `total_params`. An empty attention_degree means softmax.

    Raises:
        UserError: the input can't be used.
    """
    decoders = read_decoders(read_table(runs), str(runs))
    return AttentionDegreeAnalysis(decoders, differences(decoders))


def present(analysis: AttentionDegreeAnalysis) -> Results:
    """The tables, the figure and fit.json of an analysis."""
    tables, drawn = _tables(analysis), {"losses": losses_figure(analysis)}
    return Results(tables, drawn, _fit(analysis), summary(analysis), answer=answer(tables))


def read_decoders(table: pd.DataFrame, source: str) -> list[Decoders]:
    """The runs of a table by depth, width and attention, softmax first.

    Raises:
        UserError: a column is missing, a value is wrong, or a run has two rows.
    """
    require_columns(table, [*_COLUMNS, "attention_degree"], source)
    refuse_mixed(table, [name for name in RECIPE if name != "attention_degree"], source)
    sized = [name for name in ("attention_dim", "total_params") if name in table]
    runs = numbers_of(table, [*_COLUMNS, *sized], source)
    degrees = table["attention_degree"].astype("object").where(table["attention_degree"].notna(), 0)
    runs["degree"] = pd.to_numeric(degrees, errors="coerce")
    wrong = (
        runs["degree"].isna() | (runs["degree"] % 1 != 0) | runs["degree"].isin([1]) | (runs["degree"] < 0)
    )
    refuse(runs, wrong, source, "attention_degree must be 2 or more, or empty for softmax")
    refuse(runs, runs["test_loss"] <= 0, source, "test_loss must be above zero")
    names = ["depth", "width", "degree"]
    refuse(
        runs,
        runs.duplicated([*names, "seed"], keep=False),
        source,
        "a run (depth, width, attention_degree, seed) must have one row; keep one vocabulary and one budget",
    )
    found = []
    for _, group in runs.groupby(names, sort=True):
        first = group.iloc[0]
        depth, width, degree = (int(first[name]) for name in names)
        found.append(
            Decoders(
                depth,
                width,
                degree or None,
                int(first["attention_dim"]) if "attention_dim" in group else None,
                int(first["total_params"]) if "total_params" in group else 12 * depth * width**2,
                dict(zip(group["seed"].astype(int), group["test_loss"].astype(float), strict=True)),
            )
        )
    return found


def differences(decoders: Sequence[Decoders]) -> list[Difference]:
    """Each decoder against degree 3 and against softmax, seed by seed: equal seeds see the same windows of text."""
    by_name = {(one.depth, one.width, one.attention): one for one in decoders}
    found = []
    for one in decoders:
        for against in REFERENCES:
            reference = by_name.get((one.depth, one.width, against))
            if reference is None or reference is one:
                continue
            nats = paired_mean(one.losses, reference.losses)
            if nats is not None:
                found.append(Difference(one, against, nats))
    return found


def summary(analysis: AttentionDegreeAnalysis) -> str:
    """The findings, a sentence a line."""
    if not analysis.differences:
        return "Nothing can be compared: the runs have neither degree 3 nor softmax beside other attention."
    return "\n".join(
        f"depth {one.decoders.depth}, width {one.decoders.width}: {one.decoders.attention} against {one.against}: "
        f"{one.nats.value:+.4f} nats per token{_interval(one.nats)}, {one.verdict}."
        for one in analysis.differences
    )


def _interval(mean: Mean) -> str:
    return "" if math.isnan(mean.low) else f" ({mean.low:+.4f} to {mean.high:+.4f}, {mean.seeds} seeds)"


def losses_table(decoders: Sequence[Decoders]) -> pd.DataFrame:
    """One row for each depth, width and attention."""
    rows = [
        {
            "depth": one.depth,
            "width": one.width,
            "attention": one.attention,
            "attention_dim": one.attention_dim,
            "total_params": one.params,
            "test_loss": one.loss.value,
            "low95": one.loss.low,
            "high95": one.loss.high,
            "seeds": one.loss.seeds,
        }
        for one in decoders
    ]
    return pd.DataFrame(rows)


def differences_table(found: Sequence[Difference]) -> pd.DataFrame:
    """One row for each depth, width, attention and reference; nats per token, positive if worse than the reference."""
    columns = ["depth", "width", "attention", "against", "difference", "low95", "high95", "p_value", "seeds"]
    rows = [
        (one.decoders.depth, one.decoders.width, one.decoders.attention, one.against, one.nats.value, one.nats.low,
         one.nats.high, one.nats.p_value, one.nats.seeds, one.verdict)
        for one in found
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=[*columns, "verdict"])


def _tables(analysis: AttentionDegreeAnalysis) -> dict[str, Table]:
    interval = {"low95": ".4f", "high95": ".4f"}
    return {
        "losses": Table(
            losses_table(analysis.decoders),
            "Test loss in nats per token, mean over seeds.",
            {"test_loss": ".4f", **interval},
        ),
        "differences": Table(
            differences_table(analysis.differences),
            "Test loss minus that of the reference on the same seeds, in nats per token.",
            {"difference": "+.4f", "p_value": ".2g", **interval},
        ),
    }


def _fit(analysis: AttentionDegreeAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
    compared = any(not math.isnan(one.nats.p_value) for one in analysis.differences)
    return {
        "study": STUDY,
        "model": "test loss minus that of the reference, mean over seeds, Student's 95% interval",
        "status": "converged" if compared else "too few points",
        "decoders": len(analysis.decoders),
        "differences": plain_rows(differences_table(analysis.differences)),
    }


def losses_figure(analysis: AttentionDegreeAnalysis) -> Figure:
    """Left: test loss of each depth and width, a colour for each kind of attention. Right: difference from degree 3."""
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=3.0)
        compared = [(one.decoders, one.nats) for one in analysis.differences if one.against == REFERENCES[0]]
        _draw(axes[0, 0], [(one, one.loss) for one in analysis.decoders])
        axes[0, 0].set_ylabel("test loss (nats per token)")
        if compared:
            axes[0, 1].axhline(0, color=MUTED, linewidth=0.8, label="equal to degree 3")
            _draw(axes[0, 1], compared)
            axes[0, 1].set_ylabel("minus that of degree 3 (nats per token)")
        else:
            explain(axes[0, 1], "No runs of degree 3 to compare with.")
        axes[0, 0].set_title("means over seeds, 95% intervals", fontsize=7)
        legend_below(figure, 6)
        return figure


def _draw(axis: Axes, points: Sequence[tuple[Decoders, Mean]]) -> None:
    """Draw a place for each depth and width, the smallest first, with the kinds of attention side by side in it."""
    sizes: dict[tuple[int, int], int] = {}
    for one, _ in points:
        sizes[one.depth, one.width] = max(one.params, sizes.get((one.depth, one.width), 0))
    shapes = sorted(sizes, key=sizes.__getitem__)
    kinds = sorted({one.degree or 0 for one, _ in points})
    for place, degree in enumerate(kinds):
        beside = 0.1 * (place - (len(kinds) - 1) / 2)
        chosen = [(one, mean) for one, mean in points if (one.degree or 0) == degree]
        color, shape = LOOKS.get(chosen[0][0].attention, (MUTED, "X"))
        axis.errorbar(
            [shapes.index((one.depth, one.width)) + beside for one, _ in chosen],
            [mean.value for _, mean in chosen],
            [0.0 if mean.seeds < 2 else mean.high - mean.value for _, mean in chosen],
            fmt=shape,
            color=color,
            label=chosen[0][0].attention,
        )
    names = [f"depth {depth}\nwidth {width}\n{short_number(sizes[depth, width])}" for depth, width in shapes]
    axis.set_xticks(range(len(shapes)), names)
    axis.set_xlim(-0.5, len(shapes) - 0.5)
    axis.set_xlabel("depth, width and parameters")


__all__ = ["STUDY", "AttentionDegreeAnalysis", "analyse", "losses_figure", "read_decoders", "summary"]
