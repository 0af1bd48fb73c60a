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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.inputs import RECIPE, numbers_of, read_table, refuse, refuse_mixed, require_columns
from shapelaw.fits.paired import Mean, mean_of, paired_mean
from shapelaw.report import plots
from shapelaw.report.tables import Columns, frame_of, interval_columns, plain_rows
from shapelaw.report.write import Answer, Results, Table, captioned
from shapelaw.studies.attention_degree.study import NAME

SOFTMAX, REFERENCE = "softmax", "degree 3"
PUBLISHED = "degree 3 is the best integer by theory (Navon 2021)."
COMPARED = ("better", "worse", "no significant difference")
LOOKS = {
    SOFTMAX: (plots.INK, "o"), "degree 2": (plots.SECOND, "s"), REFERENCE: (plots.ACCENT, "D"),
    "degree 4": (plots.THIRD, "P"),
}  # fmt: skip
CAPTIONS = {
    "losses": "Test loss in nats per token, mean over seeds.",
    "differences": "Test loss minus that of the reference on the same seeds, in nats per token.",
}
FORMATS = {"difference": "+.4f", "p_value": ".2g", **dict.fromkeys(("test_loss", "low95", "high95"), ".4f")}
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
    shape = ("depth", "width", "attention")
    losses: Columns = {
        **{name: name for name in (*shape, "attention_dim")},
        "total_params": "params",
        **interval_columns("loss", "test_loss"),
        "seeds": "loss.seeds",
    }
    differences: Columns = {
        **{name: f"decoders.{name}" for name in shape},
        "against": "against",
        **interval_columns("nats", "difference"),
        **{name: f"nats.{name}" for name in ("p_value", "seeds", "verdict")},
    }
    frames = {
        "losses": frame_of(analysis.decoders, losses),
        "differences": frame_of(analysis.differences, differences),
    }
    tables = captioned(frames, CAPTIONS, FORMATS)
    compared = any(not math.isnan(one.nats.p_value) for one in analysis.differences)
    fit = {
        "study": NAME,
        "model": "test loss minus that of the reference, mean over seeds, Student's 95% interval",
        "status": "converged" if compared else "too few points",
        "decoders": len(analysis.decoders),
        "differences": plain_rows(tables["differences"].frame),
    }
    drawn = {"losses": losses_figure(analysis)}
    return Results(tables, drawn, fit, summary(analysis), answer=answer(tables))


def answer(tables: Mapping[str, Table]) -> Answer:
    """How each attention stands against degree 3, at the largest network.

    Args:
        tables: `differences` of the study.
    """
    found = tables["differences"].frame
    found = found[(found["against"] == REFERENCE) & found["verdict"].isin(COMPARED)]
    if found.empty:
        return Answer(
            "No degree can be compared with degree 3: that takes two seeds of both.", False, PUBLISHED
        )
    largest = found.iloc[int((found["depth"] * found["width"] ** 2).to_numpy().argmax())]
    depth, width = largest["depth"], largest["width"]
    there = found[(found["depth"] == depth) & (found["width"] == width)]
    said = "; ".join(
        f"{row['attention']} {row['difference']:+.3f} nats ({row['low95']:+.3f} to {row['high95']:+.3f}), "
        f"{row['verdict']}"
        for row in there.to_dict("records")
    )
    decided = bool(there["verdict"].isin(COMPARED[:2]).any())
    return Answer(f"Against degree 3, at depth {depth}, width {width}: {said}.", decided, PUBLISHED)


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
        for against in (REFERENCE, SOFTMAX):
            reference = by_name.get((one.depth, one.width, against), one)
            nats = paired_mean(one.losses, reference.losses)
            if reference is not one and nats is not None:
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


def losses_figure(analysis: AttentionDegreeAnalysis) -> Figure:
    """Left: test loss of each depth and width, a colour for each kind of attention. Right: difference from degree 3."""
    with plots.style():
        figure, axes = plots.new_figure(1, 2, width=plots.PAGE, height=3.0)
        compared = [(one.decoders, one.nats) for one in analysis.differences if one.against == REFERENCE]
        _draw(axes[0, 0], [(one, one.loss) for one in analysis.decoders])
        axes[0, 0].set_ylabel("test loss (nats per token)")
        if compared:
            axes[0, 1].axhline(0, color=plots.MUTED, linewidth=0.8, label="equal to degree 3")
            _draw(axes[0, 1], compared)
            axes[0, 1].set_ylabel("minus that of degree 3 (nats per token)")
        else:
            plots.explain(axes[0, 1], "No runs of degree 3 to compare with.")
        axes[0, 0].set_title("means over seeds, 95% intervals", fontsize=7)
        plots.legend_below(figure, 6)
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
        color, shape = LOOKS.get(chosen[0][0].attention, (plots.MUTED, "X"))
        axis.errorbar(
            [shapes.index((one.depth, one.width)) + beside for one, _ in chosen],
            [mean.value for _, mean in chosen],
            [mean.reach for _, mean in chosen],
            fmt=shape,
            color=color,
            label=chosen[0][0].attention,
        )
    names = [
        f"depth {depth}\nwidth {width}\n{plots.short_number(sizes[depth, width])}" for depth, width in shapes
    ]
    axis.set_xticks(range(len(shapes)), names)
    axis.set_xlim(-0.5, len(shapes) - 0.5)
    axis.set_xlabel("depth, width and parameters")
