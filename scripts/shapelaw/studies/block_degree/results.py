"""The degree of the building block: the polynomial degree of a layer that learns best at equal parameters.

Navon 2021, "Attention is optimal building block": `d^(1/d)` is largest at e, so 3 is the best integer (conclusion 1.1),
and a fractional degree near e would be better still (task 3). From runs of product networks on sums of R separable
products (section 3.4) and on digits (section 3.3):

    pooled            each network against degree 3 over several targets at once, the answer in one line
    losses            the final held-out loss of every degree, each at its own learning rate
    differences       each degree against 3, over the same seeds
    speed             steps to given losses
    mixtures          where a learned mixture of two degrees settles, against e
    rank_losses       each network's loss beside the exact separation rank of its polynomial
    rank_correlation  whether the loss follows that rank

For separable targets the figures draw the networks with the most inputs and, of these, the greatest width; for digits
those with the greatest width. Of mixtures they draw those that begin half-way; the figure of mixtures has all. The
tables have everything.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import NamedTuple, TypeVar

import numpy as np

from shapelaw.fits.equal_sizes import holm
from shapelaw.fits.noise import SIGNIFICANT
from shapelaw.fits.significance import UNKNOWN, Mean, mean_of, paired_mean
from shapelaw.report import plots
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span
from shapelaw.report.tables import Columns, frame_of, grouped, interval_columns, plain_rows
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.specs.degrees import HALF
from shapelaw.studies.block_degree import ranks
from shapelaw.studies.block_degree.analysis import (
    ALL_SEEDS,
    AT_END,
    DIVERGED,
    POOLED_BY,
    SIGNS,
    Difference,
    Pooled,
    Tuned,
    check_runs,
    differences,
    exp_bars,
    of_task,
    pooled,
    pooled_table,
    references,
    tune,
)
from shapelaw.studies.block_degree.study import NAME
from shapelaw.studies.study_runs import StudyRuns, measured_runs

PUBLISHED = "3 is the best integer, by theory (Navon 2021)."


class DegreeAnalysis(NamedTuple):
    """The comparisons over several targets, the tuned networks, each one's difference from degree 3 on each target, its
    rank, and how losses correlate with ranks."""

    pooled: list[Pooled]
    tuned: list[Tuned]
    differences: list[Difference]
    ranked: list[ranks.Ranked]
    correlations: list[ranks.Correlation]


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table is missing or wrong.
    """
    given = measured_runs(arguments.input, arguments.keep, ("loss", DIVERGED))
    return present(analyse(given)).after(given.notes)


def analyse(given: StudyRuns, rank_seconds: float = ranks.SECONDS) -> DegreeAnalysis:
    """The analysis of a table of runs.

    Args:
        given: one row per run; columns as in `analysis.COLUMNS`.
        rank_seconds: seconds of one core for the exact separation rank of a network.

    Raises:
        UserError: the table is missing or wrong.
    """
    checked = check_runs(given.table, given.source)
    tuned = tune(checked)
    ranked = ranks.rank_networks(tuned, rank_seconds)
    return DegreeAnalysis(pooled(checked), tuned, differences(tuned), ranked, ranks.correlations(ranked))


def present(analysis: DegreeAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    tuned = analysis.tuned
    drawn = {
        "differences": differences_figure(analysis.differences),
        "speed": speed_figure(tuned),
        "mixtures": mixtures_figure(tuned),
        "rank": ranks.rank_figure(analysis.ranked, analysis.correlations),
    }
    tables = tables_of(TABLES, TABLES, analysis)
    compared = any(not math.isnan(one.log_ratio.p_value) for one in analysis.differences)
    fit = {
        "study": NAME,
        "model": "log loss of a network minus log loss of degree 3, mean over seeds, Student's 95% interval",
        "status": "converged" if compared else "too few points",
        "networks": len(tuned),
        **{
            name: plain_rows(tables[name].frame)
            for name in ("pooled", "differences", "mixtures", "rank_correlation")
        },
    }
    return Results(tables, drawn, fit, answer=answer(tables))


def answer(tables: Mapping[str, Table]) -> Answer:
    """Every whole degree against 3 over all targets of R > 1, or over their signs, at the largest budget.

    Args:
        tables: `pooled` of the study.
    """
    found = tables["pooled"].frame
    found = found[(found["rates_chosen_on"] == ALL_SEEDS) & found["p_value_holm"].notna()]
    numbers, signs = (found[found["targets"] == targets] for targets in ("R > 1", SIGNS))
    found = signs if numbers.empty else numbers
    if found.empty:
        return Answer("No degree can be compared with 3: that takes two seeds of both.", False, PUBLISHED)
    first = found.iloc[0]
    found = found[(found[[*POOLED_BY]] == first[[*POOLED_BY]]).all(axis="columns")]
    budget = f"{first['matrices']} matrices of {first['width']} x {first['width']}"
    said = "; ".join(
        f"{row['network']} {row['ratio']:.2f} times ({row['low95']:.2f} to {row['high95']:.2f}), {row['verdict']}"
        for row in found.to_dict("records")
    )
    return Answer(
        f"Loss over that of degree 3, {', '.join(filter(None, [budget, first['block']]))}: {said}.",
        bool((found["p_value_holm"] < 0.05).any()),
        PUBLISHED,
    )


def _at_end(name: str, one: Tuned) -> float:
    return one.at_end.get(name, math.nan)


# of each network on a task: its loss, and whether the learning rate is inside the range tried
LOSSES: Columns = {
    **of_task(),
    **interval_columns("log_loss", "loss", change=math.exp),
    "seeds": lambda one: len(one.losses),
    "diverged": lambda one: len(one.losses) - len(one.log_losses),
    "learning_rate": lambda one: float(np.median(list(one.learning_rates.values()))),
    "rates_tried": "tried",
    "rates_at_edge": "at_edge",
    **{name: partial(_at_end, name) for name in AT_END},
}
DIFFERENCES: Columns = {
    **of_task("tuned."),
    **interval_columns("log_ratio", "ratio", change=math.exp),
    "p_value": "log_ratio.p_value",
    "seeds": "log_ratio.seeds",
    "verdict": "verdict",
}
# of each mixture: mean degrees before and after training, and whether the last one could be e
MIXTURES: Columns = {
    **of_task(),
    "begins_at": "begins_at",
    **interval_columns("settled_mean", "mean_degree"),
    "seeds": "settled_mean.seeds",
    "p_value_of_e": lambda one: mean_of([value - math.e for value in one.settled.values()]).p_value,
}
# of each network and threshold that a seed reaches; `at_once` counts seeds below it at their first evaluation, which
# like one that doesn't reach it leave the steps to it unknown, and their ratio to those of degree 3
SPEEDS: Columns = {
    **of_task("tuned."),
    "threshold": "threshold",
    "reached": lambda one: sum(map(math.isfinite, one.steps.values())),
    "at_once": lambda one: sum(steps <= one.tuned.first_evaluation for steps in one.steps.values()),
    "seeds": lambda one: len(one.steps),
    **interval_columns("log_steps", "steps_to_it", ("steps_to_it_low95", "steps_to_it_high95"), math.exp),
    **interval_columns("log_ratio", "ratio", ("ratio_low95", "ratio_high95"), math.exp),
}


class Speed(NamedTuple):
    """The steps of a network to a loss that a seed reaches.

    Attributes:
        steps: to the loss, by seed; infinite where it is not reached.
        log_steps: mean of their logarithms; unknown unless every seed reaches the loss, after its first evaluation.
        log_ratio: the same less those of degree 3.
    """

    tuned: Tuned
    threshold: float
    steps: Mapping[int, float]
    log_steps: Mean
    log_ratio: Mean


def _speeds(tuned: Sequence[Tuned]) -> Iterator[Speed]:
    of_degree_3 = references(tuned)
    for one in tuned:
        reference = of_degree_3.get(one.task, one)
        for threshold, steps in one.steps_to.items():
            if not any(map(math.isfinite, steps.values())):
                continue
            logs, ratio = one.log_steps_to(threshold), None
            if reference is not one:
                ratio = paired_mean(logs, reference.log_steps_to(threshold))
            mean = mean_of(list(logs.values())) if logs else UNKNOWN
            yield Speed(one, threshold, steps, mean, ratio or UNKNOWN)


TABLES = {
    "pooled": TableOf(
        lambda found: pooled_table(found.pooled),
        "Each network's loss over that of degree 3, over several targets; the seeds are the independent draws.",
    ),
    "losses": TableOf(
        lambda found: frame_of(found.tuned, LOSSES),
        "Final held-out loss, geometric mean over seeds; accuracy, absolute errors and steps are means.",
    ),
    "differences": TableOf(
        lambda found: frame_of(found.differences, DIFFERENCES),
        "Each network's loss over that of degree 3 on the same seeds.",
    ),
    "speed": TableOf(
        lambda found: frame_of(_speeds(found.tuned), SPEEDS),
        "Training steps to a held-out loss at the rate that is best for the final loss; geometric mean over seeds.",
    ),
    "mixtures": TableOf(
        lambda found: frame_of((one for one in found.tuned if one.settled), MIXTURES),
        "The mean degree at which learned mixtures of two degrees settle.",
    ),
    "rank_losses": TableOf(
        lambda found: frame_of(found.ranked, ranks.LOSSES, ["rank"]),
        "Held-out loss beside the exact separation rank of the network's polynomial.",
    ),
    "rank_correlation": TableOf(
        lambda found: frame_of(found.correlations, ranks.CORRELATIONS, ["target_rank"]),
        "Rank correlation of the held-out loss with theory's numbers; a row without R is over all targets.",
    ),
}


LOOKS = {
    1: (plots.MUTED, "o"),
    2: (plots.SECOND, "s"),
    3: (plots.ACCENT, "D"),
    4: (plots.THIRD, "P"),
    6: (plots.FOURTH, "X"),
}
MIXED, UNEVEN = (plots.FIFTH, "*"), (plots.INK, "p")  # degrees that are learned, and different ones in turn
MIXER = (plots.INK, "v")
Item = TypeVar("Item")
Means = Sequence[tuple[Tuned, Mean]]  # of logarithms


def differences_figure(differences: Sequence[Difference]) -> Chart:
    """Held-out loss divided by that of degree 3, seed by seed: against the target's separation rank R; right, digits.

    A colour per degree; no point where a seed of either diverged.
    """
    points = [
        (one.tuned, one.log_ratio) for one in differences if not one.diverged and _is_half_way(one.tuned)
    ]
    left, right = (_of_target(target, points) for target in ("separable", "digits"))
    compared = [(one.tuned, one.log_ratio) for one in differences]
    title = partial(difference_title, compared=compared)
    equal = Across(1, label="equal to degree 3", more={"zorder": 0})
    ratio = Span("held-out loss / that of degree 3", "log")
    panels = [
        _separable_panel(left, ratio, [equal], fill(f"Separable: {title(left)}", 60))
        if left
        else Panel(nothing="No runs on separable targets."),
        _digits_panel(right, Span("", "log"), [equal], fill(f"Digits: {title(right)}", 26))
        if right
        else None,
    ]
    return Chart(panels, columns=2, height=3.5, widths=[2, 1], legend=4)


def speed_figure(tuned: Sequence[Tuned]) -> Chart | str:
    """Steps to a held-out loss against R, one panel per threshold of the separable targets; or why there is none."""
    half_way = [(one, one.name) for one in tuned if _is_half_way(one)]
    drawn = {id(one) for one, _ in _of_target("separable", half_way)}
    panels = grouped(
        (one.threshold, one)
        for one in _speeds(tuned)
        if id(one.tuned) in drawn and one.log_steps is not UNKNOWN
    )
    if not panels:
        return "no threshold is reached by every seed of a network after its first evaluation"
    steps_axis, shown = Span("training steps", "whole log"), list[Panel]()
    for threshold in sorted(panels, reverse=True):
        ratios = [(one.tuned, one.log_ratio) for one in panels[threshold]]
        title = fill(speed_title(threshold, ratios), 33)
        steps = [(one.tuned, one.log_steps) for one in panels[threshold]]
        shown.append(_separable_panel(steps, steps_axis, title=title))
    return Chart(shown, columns=len(shown), width=plots.PAGE, share_y=True, legend=4)


def mixtures_figure(tuned: Sequence[Tuned]) -> Chart | str:
    """Mean degree of mixtures at the end against that at the beginning, a colour per R; or why not."""
    settled = [(one, one.settled_mean) for one in tuned if one.settled]
    shown = [*_of_target("digits", settled), *_of_target("separable", settled)]
    if not shown:
        return "no network learns a mixture of degrees"
    looks = plots.ordered_looks([one.task.target_rank for one, _ in shown])
    ordered = sorted(shown, key=lambda point: point[0].begins_at)
    lines = grouped(((one.task.target_rank, one.mean_layer), (one, mean)) for one, mean in ordered)
    marks = list[Mark]()
    for place, (rank, degree) in enumerate(sorted(lines)):
        line, look = lines[rank, degree], looks[rank]
        x = [one.begins_at + 0.015 * (place - (len(lines) - 1) / 2) for one, _ in line]
        y, err = [mean.value for _, mean in line], [mean.reach for _, mean in line]
        marks.append(Points(x, y, f"R = {rank}" if rank else "digits", look.color, look.marker, "-", err))
    begins = [one.begins_at for one, _ in shown]
    ends = [min(begins) - 0.05, max(begins) + 0.05]
    marks.append(Points(ends, ends, "unchanged", plots.MUTED, line="--", more={"linewidth": 0.8}))
    marks.append(Across(math.e, "y", "e, the note's best degree", plots.INK, ":"))
    before, after = Span("mean degree before training"), Span("mean degree after it")
    panel = Panel(marks, before, after, mixture_title(shown))
    return Chart([panel], width=plots.COLUMN * 1.1, height=3.4)


def _is_half_way(one: Tuned) -> bool:
    return one.initial_share == HALF


def _of_target(target: str, items: Sequence[tuple[Tuned, Item]]) -> list[tuple[Tuned, Item]]:
    """The networks of one block on a target with the most inputs and, of these, the greatest width."""
    of_target = [(one, item) for one, item in items if one.task.target == target]
    first = min(((one.task.block, one.task.until_converged) for one, _ in of_target), default=None)
    chosen = [(one, item) for one, item in of_target if (one.task.block, one.task.until_converged) == first]
    largest = max(((one.task.inputs, one.task.width) for one, _ in chosen), default=None)
    return [(one, item) for one, item in chosen if (one.task.inputs, one.task.width) == largest]


def _lines(points: Means) -> dict[tuple[str, int], list[tuple[Tuned, Mean]]]:
    """Networks of one name and budget, by R."""
    ordered = sorted(points, key=lambda p: (p[0].mixture, p[0].mean_layer, p[0].task.target_rank))
    return grouped(((one.name, one.task.matrices), (one, mean)) for one, mean in ordered)


def _separable_panel(points: Means, y: Span, below: Sequence[Mark] = (), title: str = "") -> Panel:
    """A line per network against R, with its points beside those of the others."""
    budgets, lines = sorted({one.task.matrices for one, _ in points}), _lines(points)

    def marks() -> Iterator[Mark]:
        for place, ((name, budget), line) in enumerate(lines.items()):
            beside = plots.side_by_side(place, len(lines))
            value, err = exp_bars([mean for _, mean in line])
            said = name if len(budgets) == 1 else f"{name}, {budget} matrices"
            dashes = ("-", "--", ":", "-.")[budgets.index(budget) % 4]
            x = [one.task.target_rank * beside for one, _ in line]
            yield Points(x, value, said, *_look(line[0][0]), dashes, err)
        yield from below

    ranks = {one.task.target_rank for one, _ in points}
    return Panel(marks(), Span("separation rank R of the target", "values", ranks), y, title)


def _digits_panel(points: Means, y: Span, below: Sequence[Mark], title: str) -> Panel:
    """Each network at its own place."""
    lines = _lines(points)
    marks = list(below)
    for place, line in enumerate(lines.values()):
        for one, mean in line:
            value, err = exp_bars([mean])
            marks.append(Points(place, value, "", *_look(one), err=err))
    names = {float(place): name for place, (name, _) in enumerate(lines)}
    return Panel(marks, Span(ticks=names, turned=40), y, title)


def _look(one: Tuned) -> tuple[str, str]:
    """The colour and the marker of a network's degree."""
    if one.mixer_tokens:
        return MIXER
    if one.mixture:
        return MIXED
    return LOOKS.get(one.layers[0], UNEVEN) if len(set(one.layers)) == 1 else UNEVEN


def difference_title(shown: Means, compared: Means) -> str:
    """The networks of a panel that differ from degree 3.

    Args:
        shown: log ratios to degree 3 of a panel.
        compared: all that Holm's correction is for.
    """
    here = {id(one) for one, _ in shown}
    known = _known(compared)
    if not any(id(one) in here for one, _ in known):
        return "can't tell: one seed"
    better, worse = (_named(one for one in some if id(one) in here) for some in _significant(known))
    words = [f"worse than degree 3: {worse}" if worse else "", f"better: {better}" if better else ""]
    return "; ".join(filter(None, words)) or "no significant difference from degree 3"


def speed_title(threshold: float, ratios: Means) -> str:
    """The networks that reach a loss in fewer steps than degree 3."""
    reached = f"To a loss of {threshold:g}: "
    if not (known := _known(ratios)):
        return f"{reached}can't compare with degree 3"
    faster, slower = map(_named, _significant(known))
    words = [
        f"{faster or 'no network'} significantly faster than degree 3",
        f"slower: {slower}" if slower else "",
    ]
    return reached + "; ".join(filter(None, words))


def _known(ratios: Means) -> Means:
    return [(one, mean) for one, mean in ratios if not math.isnan(mean.p_value)]


def _significant(ratios: Means) -> tuple[list[Tuned], list[Tuned]]:
    """The networks below degree 3, and those above it, after Holm's correction for all these ratios."""
    corrected = holm(np.array([mean.p_value for _, mean in ratios]))
    clear = [pair for pair, p in zip(ratios, corrected, strict=True) if p < SIGNIFICANT]
    return [one for one, mean in clear if mean.value < 0], [one for one, mean in clear if mean.value > 0]


def _named(networks: Iterable[Tuned]) -> str:
    """`degree 1 (R = 16, 64)`: networks with the targets of each."""
    targets_of = grouped((one.name, one.task.target_rank) for one in networks)
    return ", ".join(
        name + (f" (R\u00a0=\u00a0{', '.join(map(str, sorted(targets)))})" if any(targets) else "")
        for name, targets in targets_of.items()
    )


def mixture_title(shown: Means) -> str:
    """How far mixtures end from where they begin, and how many could be at e."""
    farthest = max(abs(mean.value - one.begins_at) for one, mean in shown)
    chances = [mean_of([value - math.e for value in one.settled.values()]).p_value for one, _ in shown]
    at_e = sum(p >= SIGNIFICANT for p in chances)
    said = f"{at_e or 'none'} of {len(shown)} could be at e"
    if any(map(math.isnan, chances)):
        said = "one seed can't tell whether they are at e"
    return f"Mixtures end within {farthest:.2f} of where they begin;\n{said}"
