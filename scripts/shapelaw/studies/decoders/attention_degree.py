"""The best degree of linear attention in a decoder at equal parameters.

Navon 2021, "Attention is optimal building block", section 2: attention without softmax is a block of degree 3 in its
tokens (equation 2), and 3 is the best integer by the note's theory. Decoders with blocks of degree k,
`models.functions.attend_linearly`, and with softmax as the reference, at weights equal to within 2%, trained alike on
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
from typing import NamedTuple

import pandas as pd

from shapelaw.fits.inputs import RECIPE, numbers_of, refuse, refuse_mixed, refuse_twice, require_columns
from shapelaw.fits.significance import Mean, mean_of, paired_mean
from shapelaw.report import plots
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span
from shapelaw.report.tables import Columns, frame_of, grouped, interval_columns, plain_rows
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.studies.study_runs import StudyRuns, measured_runs

SOFTMAX, REFERENCE = "softmax", "degree 3"
PUBLISHED = "degree 3 is the best integer by theory (Navon 2021)."
COMPARED = ("better", "worse", "no significant difference")
LOOKS = {
    SOFTMAX: (plots.INK, "o"), "degree 2": (plots.SECOND, "s"), REFERENCE: (plots.ACCENT, "D"),
    "degree 4": (plots.THIRD, "P"),
}  # fmt: skip
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


class Difference(NamedTuple):
    """The loss of decoders minus that of decoders of equal depth and width with other attention, in nats per token."""

    decoders: Decoders
    against: str
    nats: Mean


class AttentionDegreeAnalysis(NamedTuple):
    """All decoders, and each one's differences from degree 3 and from softmax."""

    decoders: list[Decoders]
    differences: list[Difference]


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    # some seeds learn late, which is no divergence
    given = measured_runs(arguments.input, arguments.keep, ["test_loss"])
    return present(analyse(given)).after(given.notes)


def analyse(given: StudyRuns) -> AttentionDegreeAnalysis:
    """The analysis of a table of runs.

    Args:
        given: one row a run: `depth, width, attention_degree, seed, test_loss`, maybe `attention_dim` and
            `total_params`. An empty attention_degree means softmax.

    Raises:
        UserError: the input can't be used.
    """
    decoders = read_decoders(given.table, given.source)
    return AttentionDegreeAnalysis(decoders, differences(decoders))


def present(analysis: AttentionDegreeAnalysis) -> Results:
    """The tables, the figure and fit.json of an analysis."""
    tables = tables_of(TABLES, TABLES, analysis)
    compared = any(not math.isnan(one.nats.p_value) for one in analysis.differences)
    fit = {
        "study": "attention_degree",
        "model": "test loss minus that of the reference, mean over seeds, Student's 95% interval",
        "status": "converged" if compared else "too few points",
        "decoders": len(analysis.decoders),
        "differences": plain_rows(tables["differences"].frame),
    }
    drawn = {"losses": losses_figure(analysis)}
    return Results(tables, drawn, fit, answer=answer(tables))


_SHAPE = ("depth", "width", "attention")
_LOSSES: Columns = {
    **{name: name for name in (*_SHAPE, "attention_dim")},
    "total_params": "params",
    **interval_columns("loss", "test_loss"),
    "seeds": "loss.seeds",
}
_DIFFERENCES: Columns = {
    **{name: f"decoders.{name}" for name in _SHAPE},
    "against": "against",
    **interval_columns("nats", "difference"),
    **{name: f"nats.{name}" for name in ("p_value", "seeds", "verdict")},
}
_FORMATS = {"difference": "+.4f", "test_loss": ".4f"}
TABLES = {
    "losses": TableOf(
        lambda found: frame_of(found.decoders, _LOSSES),
        "Test loss in nats per token, mean over seeds.",
        _FORMATS,
    ),
    "differences": TableOf(
        lambda found: frame_of(found.differences, _DIFFERENCES),
        "Test loss minus that of the reference on the same seeds, in nats per token.",
        _FORMATS,
    ),
}


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
    runs = numbers_of(table, [*_COLUMNS, *sized], source, positive=["test_loss"])
    given = table["attention_degree"].astype("object")
    known = runs["degree"] = pd.to_numeric(given.where(given.notna(), 0), errors="coerce")
    wrong = known.isna() | (known % 1 != 0) | ((known < 2) & (known != 0))
    refuse(runs, wrong, source, "attention_degree must be 2 or more, or empty for softmax")
    names = ["depth", "width", "degree"]
    once = (
        "a run (depth, width, attention_degree, seed) must have one row; keep one vocabulary and one budget"
    )
    refuse_twice(runs, [*names, "seed"], source, once)
    found = []
    for _, group in runs.groupby(names, sort=True):
        first = {str(name): int(value) for name, value in group.iloc[0].items()}
        depth, width, degree = (first[name] for name in names)
        params = first.get("total_params", 12 * depth * width**2)
        losses = dict(zip(group["seed"].astype(int), group["test_loss"].astype(float), strict=True))
        found.append(Decoders(depth, width, degree or None, first.get("attention_dim"), params, losses))
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


def losses_figure(analysis: AttentionDegreeAnalysis) -> Chart:
    """Left: test loss of each depth and width, a colour for each kind of attention. Right: difference from degree 3."""
    compared = [(one.decoders, one.nats) for one in analysis.differences if one.against == REFERENCE]
    right = Panel(nothing="No runs of degree 3 to compare with.")
    if compared:
        equal = Across(0, label="equal to degree 3")
        right = _panel(compared, "minus that of degree 3 (nats per token)", equal)
    losses = [(one, one.loss) for one in analysis.decoders]
    panels = [_panel(losses, "test loss (nats per token)"), right]
    return Chart(panels, columns=2, legend=6, title="means over seeds, 95% intervals")


def _panel(points: Sequence[tuple[Decoders, Mean]], label: str, *below: Mark) -> Panel:
    """A place for each depth and width, the smallest first, with the kinds of attention side by side in it."""
    sizes: dict[tuple[int, int], int] = {}
    for one, _ in points:
        sizes[one.depth, one.width] = max(one.params, sizes.get((one.depth, one.width), 0))
    shapes = sorted(sizes, key=sizes.__getitem__)
    ordered, marks = sorted(points, key=lambda point: point[0].degree or 0), list(below)
    kinds = grouped((point[0].attention, point) for point in ordered)
    for place, (name, chosen) in enumerate(kinds.items()):
        beside = 0.1 * (place - (len(kinds) - 1) / 2)
        x = [shapes.index((one.depth, one.width)) + beside for one, _ in chosen]
        y, err = [mean.value for _, mean in chosen], [mean.reach for _, mean in chosen]
        marks.append(Points(x, y, name, *LOOKS.get(name, (plots.MUTED, "X")), err=err))
    names = {
        float(place): f"depth {depth}\nwidth {width}\n{plots.short_number(sizes[depth, width])}"
        for place, (depth, width) in enumerate(shapes)
    }
    ends = -0.5, len(shapes) - 0.5
    return Panel(marks, Span("depth, width and parameters", ticks=names, limits=ends), Span(label))
