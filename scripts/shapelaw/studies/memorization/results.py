"""Memorization: the number of examples that the heads of one attention layer learn by heart.

Mahdavi et al. 2024, "Memorization Capacity of Multi-Head Attention in Transformers", sections 5.1 and 5.2 and
appendices H and I. From runs on random examples: the share memorized against the heads H, the context length n and
the head dimension d_h, for several numbers of examples T, with the theory's `H (min(n, d_h) - 1) + 1`.

    paper                       study                   here
    figures 2a, 4a, 5a          memorization_heads      share: a line below saturation? examples per head
    figure 3's subject          memorization_heads      saturated: the share of saturated heads against H
    figures 2b, 4b, 5b          memorization_context    share: monotone in n, by a test that knows its noise
    figure 2c                   memorization_head_dim   share: the gain beyond d_h = n
    figure 3, appendix H        memorization_saturation saturated heads; the largest T memorized perfectly
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from shapelaw.errors import UserError
from shapelaw.fits.capacity import Capacity, CapacityStatus
from shapelaw.fits.line import FitStatus, Floats, overall_status
from shapelaw.fits.memorized import (
    HEADS_SAY,
    MEMORIZED,
    REGRESSION,
    SATURATED,
    MemorizationCurve,
    check_memorization_runs,
    mean_squared_error,
)
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span, looked
from shapelaw.report.plots import INK, MOST_COLUMNS, PAGE, Look, key, ordered_looks
from shapelaw.report.tables import NO, OPEN, YES, grouped, plain_rows
from shapelaw.report.write import Answer, Results, Table, tables_of
from shapelaw.specs.memorizers import beyond_theorem
from shapelaw.studies.memorization import saturation
from shapelaw.studies.memorization.analysis import (
    SYMBOLS,
    TABLES,
    CurveAnalysis,
    MemorizationAnalysis,
    analyse_runs,
)
from shapelaw.studies.memorization.saturation import Saturation, analyse_saturation, relu_results
from shapelaw.studies.memorization.study import ALONG_CONTEXT, ALONG_HEAD_DIM, ALONG_HEADS, RELU, SATURATION
from shapelaw.studies.memorization.study import STUDIES as DECLARED
from shapelaw.studies.study_runs import StudyRuns, measured_runs

MOST_EXAMPLES = 0.9  # a share of examples that is called most of them
NEEDS_INPUT = False  # attention weights alone tell how many heads are saturated
_MODELS = {
    ALONG_HEADS: f"share = intercept + slope H up to a mean share of {SATURATED}, where a parabola is no better",
    ALONG_CONTEXT: "share does not fall with n (isotonic regression)",
    ALONG_HEAD_DIM: "share = intercept + slope d_h beyond d_h = n",
}
QUANTITIES = {  # of the table `comparison`: the one that answers the study's question
    ALONG_HEADS: "p-value of a line in H",
    ALONG_CONTEXT: "largest fall of the share in n",
    ALONG_HEAD_DIM: "gain in share beyond d_h = n",
    SATURATION: "share of saturated heads",
}
CLAIMS = {
    ALONG_HEADS: "a line in the number of heads fits",
    ALONG_CONTEXT: "no fall of the share with the context is significant",
    ALONG_HEAD_DIM: "no gain beyond d_h = n is significant",
    SATURATION: "the majority of heads is saturated",
}
NUMBERS = {  # the one number of an answer: a row of `comparison`, and its words
    ALONG_HEADS: (
        "examples per head where 99% are memorized",
        "{ours:.0f} examples per head where 99% are memorized",
    ),
    ALONG_HEAD_DIM: (QUANTITIES[ALONG_HEAD_DIM], "beyond d_h = n the share changes by {ours:+.3f}"),
    SATURATION: (QUANTITIES[SATURATION], "{ours:.0%} of them"),
}
FITS = {ALONG_HEADS: "linear_part", ALONG_CONTEXT: "monotony", ALONG_HEAD_DIM: "gain"}  # tables


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the option for attention weights, which show saturation."""
    parser.add_argument(
        "--attention",
        type=Path,
        metavar="FOLDER",
        help=f"of {SATURATION}: one .npz file a run, with largest_weight, heads and examples",
    )


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs, of attention weights, or of ReLU networks.

    Raises:
        UserError: the table or the weights are missing or wrong.
    """
    path = arguments.input
    if arguments.study == RELU:
        return relu_results(path)
    given = None if path is None else measured_runs(path, arguments.keep, ("accuracy", "loss"))
    found = present(analyse(given, arguments.study, attention=arguments.attention))
    return found if given is None else found.after(given.notes)


def analyse(
    given: StudyRuns | None, study: str, *, attention: Path | None = None
) -> MemorizationAnalysis | Saturation:
    """The analysis of a table of runs.

    Args:
        given: one row per run; see `check_memorization_runs`.
        study: its name.
        attention: only for the saturation study, which needs it or `given`: a folder of .npz files, one per run, with
            `largest_weight` (T, H) float, `heads` and `examples`. If `given` has a column `key`, only the files of its
            runs count.

    Raises:
        UserError: the input is missing or wrong.
    """
    runs = None if given is None else check_memorization_runs(given.table, given.source)
    if study == SATURATION:
        keys = frozenset(given.table["key"]) if given is not None and "key" in given.table else None
        return analyse_saturation(runs, attention, keys)
    if runs is None or attention is not None:
        raise UserError(
            f"{study} takes a table of runs but no attention weights; only {SATURATION} takes those."
        )
    return analyse_runs(runs, study)


def present(found: MemorizationAnalysis | Saturation) -> Results:
    """The tables and figures that the study declares, and fit.json. For saturation see `saturation.present`."""
    if isinstance(found, Saturation):
        results = saturation.present(found)
        return replace(results, answer=answer(SATURATION, results.tables))
    declared = next(study for study in DECLARED if study.name == found.study)
    tables = tables_of(TABLES, declared.tables, found)
    drawn = {name: FIGURES[name](found) for name in declared.figures}
    return Results(
        tables, drawn, _fits(found, tables), "\n".join(sentences(found)), answer=answer(found.study, tables)
    )


def sentences(analysis: MemorizationAnalysis) -> Iterator[str]:
    """What no table says: runs that theorem 1 doesn't cover, and fits without seed noise."""
    yield from (f"Note: {sentence}" for sentence in warnings(analysis))
    if not any(one.curve.noise for one in analysis.curves):
        yield (
            "Seed noise: no seeds are repeated below saturation, so nothing can be called significant; the errors of "
            "fits come from their scatter."
        )


def warnings(analysis: MemorizationAnalysis) -> list[str]:
    """A sentence per width on the context lengths of the runs that theorem 1 doesn't cover (n >= d)."""
    return beyond_theorem(
        (int(context), one.curve.width)
        for one in analysis.curves
        for context in (one.curve.x if one.curve.context is None else [one.curve.context])
    )


def _fits(analysis: MemorizationAnalysis, tables: Mapping[str, Table]) -> dict[str, Any]:
    """The content of fit.json: the model, all fits, and a status that is "converged" if one of them is."""
    rows = plain_rows(tables[FITS[analysis.study]].frame)
    return {
        "study": analysis.study,
        "model": _MODELS[analysis.study],
        "status": overall_status([str(row["status"]) for row in rows]),
        "curves": rows,
        "warnings": warnings(analysis),
    }


def answer(study: str, tables: Mapping[str, Table]) -> Answer:
    """In how many settings the paper's finding holds, fails and is open, with the clearest fit.

    Args:
        study: one of the four.
        tables: `comparison` of the study, and its fits.
    """
    rows = tables["comparison"].frame
    mine = rows[rows["quantity"] == QUANTITIES[study]]
    counted = {says: int((mine["agrees"] == says).sum()) for says in (YES, NO, OPEN)}
    decided = counted[YES] + counted[NO]
    if not decided:
        why = "the runs have nothing to compare"
        if not mine.empty and "note" in mine:
            why = f"{mine['setting'].iloc[0]}: {mine['note'].iloc[0]}"
        return Answer(f"Not at these sizes: {why}.", False)
    still_open = f"; {counted[OPEN]} are open" if counted[OPEN] else ""
    claimed = (
        f"{CLAIMS[study].capitalize()} in {counted[YES]} of {decided} settings that can tell{still_open}."
    )
    yes_or_no = (
        "No" if not counted[YES] else "Yes" if not counted[NO] else f"In {counted[YES]} of {decided} settings"
    )
    number = _growth(tables["points"].frame) if study == ALONG_CONTEXT else _number(study, rows)
    return Answer(f"{yes_or_no}{number}.", True, more=claimed + _best_line(study, tables))


def _number(study: str, rows: pd.DataFrame) -> str:
    """The number that goes with a yes or a no, of the last setting that has one: of most examples."""
    quantity, words = NUMBERS[study]
    known = rows[(rows["quantity"] == quantity) & rows["ours"].notna()]
    if known.empty:
        return ""
    row = known.iloc[-1]
    examples = str(row["setting"]).rpartition(", ")[2]  # settings list the examples last
    return f": {words.format(ours=row['ours'], published=row['published'])} ({examples})"


def _growth(points: pd.DataFrame) -> str:
    """The share at the shortest and at the longest context, of the setting with the most examples."""
    mine = points[points["examples"] == points["examples"].max()].sort_values("context", kind="stable")
    first, last = mine.to_dict("records")[0], mine.to_dict("records")[-1]
    return (
        f": from {first['share']:.0%} of T = {last['examples']:,} at n = {first['context']} "
        f"to {last['share']:.0%} at n = {last['context']}"
    )


def _best_line(study: str, tables: Mapping[str, Table]) -> str:
    """The slope of the line in H with the most points."""
    if study != ALONG_HEADS:
        return ""
    fits = tables[FITS[study]].frame
    fits = fits[fits["status"] == FitStatus.CONVERGED]
    if fits.empty:
        return ""
    row = fits.sort_values("n_points", ascending=False, kind="stable").iloc[0]
    return f" Share of T = {row['examples']:,} per head: {row['slope']:.3f} \u00b1 {row['slope_err']:.3f}."


LABELS = {"heads": "heads H", "context": "context length n", "head_dim": "head dimension $d_h$"}
LEAST_MSE = 1e-5
_SMALL = {"markersize": 3.5}


def share_figure(analysis: MemorizationAnalysis) -> Chart:
    """Accuracy (or MSE) against the size that the study varies, one colour per T, one panel per setting.

    Bars are the standard deviation over seeds. Dotted lines show the share that theorem 1 guarantees. Along H the line
    goes through the filled points, if they are consistent with one; along d_h a dashed line is at n.
    """
    panels = _panels(analysis.curves)
    columns = min(len(panels), MOST_COLUMNS)
    letters = 46 if len(panels) == 1 else 72 // columns
    return Chart(
        [_share_panel(mine, analysis.along, letters) for mine in panels],
        columns,
        height=0.8 + 3.1 * -(-len(panels) // columns),
        keys=_keys(analysis),
        legend=1 if len(panels) == 1 else 3,
    )


def saturated_figure(analysis: MemorizationAnalysis) -> Chart | str:
    """The share of saturated heads, and of examples with an unsaturated head, against H; or why it is not known."""
    table = analysis.saturated.dropna(subset=list(HEADS_SAY))
    if table.empty:
        return "no run says how many of its heads are saturated"
    looks = ordered_looks([int(examples) for examples in table["examples"].unique()])
    kept = ("heads", "seeds", "share", "mean_saturated_heads", *HEADS_SAY)
    groups = [rows for _, rows in table.groupby([name for name in table if name not in kept], sort=True)]
    panels, labels = [], ("share of saturated heads", "share of examples\nwith an unsaturated head")
    for column, label, title in zip(HEADS_SAY, labels, saturated_titles(table), strict=True):
        marks = []
        for rows in groups:
            examples = int(rows["examples"].iloc[0])
            look = looked(looks[examples]) | {"line": "-", "more": _SMALL | {"linewidth": 1.0}}
            marks.append(Points(rows["heads"], rows[column], f"T = {examples:,}", **look))
        panels.append(Panel(marks, Span(LABELS["heads"], "whole"), Span(label, limits=(-0.02, 1.04)), title))
    return Chart(panels, 2, PAGE, 2.9, legend=6)


def _share_panel(mine: Sequence[CurveAnalysis], along: str, letters: int) -> Panel:
    looks = ordered_looks([one.curve.examples or 0 for one in mine])
    regression = mine[0].curve.task == REGRESSION
    marks = list[Mark]()
    for one in mine:
        look = looks[one.curve.examples or 0]
        marks += _curve_marks(one, look, regression)
    if along == "head_dim":
        context = float(mine[0].curve.context or 0)
        marks.append(Across(context, "x", color=INK, line="--", more={"zorder": 1.5}))
    y = Span("mean squared error", "log") if regression else Span("accuracy", limits=(-0.02, 1.04))
    legend = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2, "fontsize": 6.5}
    found = with_setting(share_title(mine, along), _setting(mine[0].curve), letters)
    title = found.replace("d_h", "$d_h$").replace("d_v", "$d_v$")
    return Panel(marks, Span(LABELS[along], "whole"), y, title, legend | {"handlelength": 1.2})


def _curve_marks(one: CurveAnalysis, look: Look, regression: bool) -> Iterator[Mark]:
    curve, linear, color = one.curve, one.linear, look.color
    y, spread = curve.share, np.nan_to_num(curve.spread)
    err = np.stack([spread, np.minimum(spread, np.maximum(1.0 - y, 0.0))])
    if regression:
        y, err = mean_squared_error(y), np.stack([spread, spread]) / 12.0
        err[0] = np.minimum(err[0], 0.9 * y)  # a bar that would leave the logarithmic axis
    used = np.ones(len(y), dtype=np.bool_) if linear is None else linear.used
    joined = "" if linear is not None else "-"
    yield Points(curve.x, y, color=color, line=joined, err=err, more={"elinewidth": 0.8, "linewidth": 1.0})
    yield Points(curve.x[used], y[used], f"T = {curve.examples:,}", color, look.marker, more=_SMALL)
    white = _SMALL | {"markerfacecolor": "white"}
    yield Points(curve.x[~used], y[~used], color=color, marker=look.marker, more=white)
    dotted = {"linewidth": 1.1}
    yield Points(curve.x, _shown(one.guaranteed, regression), color=color, line=":", more=dotted)
    if linear is not None and linear.line.usable:
        x = np.linspace(curve.x[used][0], curve.x[used][-1], 60)
        share = _shown(linear.line.a + linear.line.b * x, regression)
        yield Points(x, share, color=color, line="-", more={"linewidth": 1.0})


def _shown(share: Floats, regression: bool) -> Floats:
    """A share in the panel's units: MSE for a regression."""
    return np.maximum(mean_squared_error(share), LEAST_MSE) if regression else share


def _keys(analysis: MemorizationAnalysis) -> list[Line2D]:
    """The meaning of what was drawn beside the points of each T, and of nothing else."""
    linear = [one.linear for one in analysis.curves if one.linear is not None]
    keys = [key("guaranteed by theory (share of T)", line=":")]
    if any(np.nan_to_num(one.curve.spread).any() for one in analysis.curves):
        keys.append(key("± one standard deviation over seeds", line="none", marker="|", markersize=9))
    if any(one.line.usable for one in linear):
        keys.append(key("line through filled points"))
    if any(not one.used.all() for one in linear):
        keys.append(key("saturated", line="none", marker="o", markerfacecolor="white"))
    if analysis.along == "head_dim":
        keys.append(key("$d_h = n$", INK, "--", linewidth=0.8))
    return keys


def _panels(curves: Sequence[CurveAnalysis]) -> list[list[CurveAnalysis]]:
    """The curves of each panel: they differ in T and in the size that the study varies."""
    setting = attrgetter("task", "context_type", "width", "variant", "heads", "context", "head_dim")
    return list(grouped((setting(one.curve), one) for one in curves).values())


def _setting(curve: MemorizationCurve) -> str:
    return curve.setting.removesuffix(f", T = {curve.examples:,}") if curve.examples else curve.setting


FIGURES = {"share": share_figure, "saturated": saturated_figure}


def share_title(curves: Sequence[CurveAnalysis], along: str) -> str:
    """The heads that memorize T, or how far the share comes, of the curves of one panel."""
    needed = [(int(one.curve.examples or 0), one.needed) for one in curves if one.needed is not None]
    if any(one.status is CapacityStatus.FOUND for _, one in needed):
        return f"{MEMORIZED:.0%} accuracy takes {_heads(needed)}"
    return _reach(max(curves, key=lambda one: one.curve.examples or 0).curve, along)


def _heads(needed: Sequence[tuple[int, Capacity]]) -> str:
    """`30 heads for T = 10,000, more than 60 for 30,000 and 40,000`."""
    bounds = {CapacityStatus.AT_LEAST: "more than ", CapacityStatus.BELOW: "at most "}
    words = [
        (f"{bounds.get(one.status, '')}{one.size:.0f}", f"{examples:,}") for examples, one in sorted(needed)
    ]
    parts = [
        f"{heads} for {' and '.join(examples for _, examples in group)}"
        for heads, group in groupby(words, key=lambda pair: pair[0])
    ]
    parts[0] = parts[0].replace(" for ", " heads for T = ")
    return ", ".join(parts)


def _reach(curve: MemorizationCurve, along: str) -> str:
    """The share, or the error, at both ends of a curve."""
    regression, ends = curve.task == REGRESSION, [0, -1]
    errors = mean_squared_error(curve.share)
    said = [
        f"{f'{errors[at]:.2g}' if regression else f'{curve.share[at]:.0%}'} at {SYMBOLS[along]} = {curve.x[at]:.0f}"
        for at in ends
    ]
    return f"T = {curve.examples:,}: {'squared error' if regression else 'accuracy'} {', '.join(said)}"


def saturated_titles(table: pd.DataFrame) -> tuple[str, str]:
    """The share of saturated heads, and from how many heads on most examples have one that is not.

    Args:
        table: a row per network and T: `heads`, and the two columns of `HEADS_SAY`.
    """
    share, free = table["saturated_share"], table["examples_with_free_head"]
    left = f"{share.min():.0%} to {share.max():.0%} of the heads are saturated"
    worst = free.groupby(table["heads"]).min().sort_index()
    enough = worst[::-1].cummin()[::-1] > MOST_EXAMPLES
    if not enough.any():
        return left, f"{free.min():.0%} to {free.max():.0%} of the examples have an unsaturated head"
    heads = int(enough.index[enough][0])
    return (
        left,
        f"From {heads} heads on at least {worst.loc[heads:].min():.0%}\nof the examples have an unsaturated head",
    )


def with_setting(found: str, setting: str, letters: int) -> str:
    """What a panel found, above its setting, in lines of so many letters."""
    return "\n".join(fill(part.replace(" = ", "\u00a0=\u00a0"), letters) for part in (found, setting) if part)
