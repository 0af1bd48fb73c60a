"""The cost of attention wider than the network, H d_a > d (Wies et al. 2021, section 5.3, figures 4 and 6).

Input: rows of `depth, width, heads, attention_dim, ff_width, seed, test_loss, block_params, total_params, step_flops`;
an empty `ff_width` is 4 d, any other must be 4 H d_a. Networks differ in shape alone: they have one vocabulary, text
and recipe, where the table says.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.equal_sizes import AtSize, Networks, at_own_sizes, at_size, mean_slope, size_groups
from shapelaw.fits.inputs import refuse, refuse_twice
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import INTERVAL, Noise, group_means, group_noise, noise_sentence
from shapelaw.fits.redundancy import DRAWS, Baseline, Redundancy, RedundancyStatus, redundancy_of_draws
from shapelaw.fits.significance import Monotony, MonotonyTest, monotony
from shapelaw.report import plots
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span, looked
from shapelaw.report.plots import short_number
from shapelaw.report.tables import NO, OPEN, YES, Columns, frame_of, picked
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.specs.shapes import MLP_RATIO
from shapelaw.specs.sizes import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.studies.decoders import redundancies as shared
from shapelaw.studies.study import published, published_of
from shapelaw.studies.study_runs import study_runs
from shapelaw.studies.transitions.figures import layers_text

NAME = "attention_ratio"

ATTENTION, WIDTH = "4 H d_a", "4 d"  # what the feed-forward width is
FALL = "largest fall of the loss from a ratio to a larger one"
SPREAD = "spread of the loss over ratios, less that over depths"
SIGNIFICANT = 0.025  # two-sided 95%
_LARGER, _SMALLER = "larger", "smaller"
_AGREES = {_LARGER: YES, _SMALLER: NO, Monotony.RISING: YES, Monotony.FALLING: NO}  # else open
_NAMES = ["ratio", "feed_forward", "depth", "width"]
_WHOLE = ("depth", "width", "heads", "attention_dim")
_TITLES = {ATTENTION: "feed-forward width $4 H d_a$, as in T5", WIDTH: "feed-forward width $4 d$"}
_LOOKS = {
    ATTENTION: ("feed-forward width $4 H d_a$", plots.ACCENT, "o"),
    WIDTH: (_TITLES[WIDTH], plots.SECOND, "s"),
}
_BOUNDS = {RedundancyStatus.AT_LEAST: "^", RedundancyStatus.AT_MOST: "v"}
_RATIO = "$H d_a / d$"
_RANGES = tuple(
    f"{name}{end}" for name in ("over_ratios", "over_depths", "difference") for end in ("", "_low", "_high")
)
_LOSSES = ("test_loss", "largest_fall", "over_depths", "over_ratios", "difference")
_FORMATS = {"ratio": "g", **dict.fromkeys(("redundancy", "ours"), ".3f"), **dict.fromkeys(_LOSSES, ".4f")}


@dataclass(frozen=True)
class Found:
    """A ratio at a size, on one size axis.

    Attributes:
        feed_forward: what the feed-forward width is.
        ratio: H d_a / d.
        axis: the size axis.
        at: its depths at that size.
        redundancy: against ratio 1 at its best depth of each size; of ratio 1 itself None.
    """

    feed_forward: str
    ratio: float
    axis: SizeAxis
    at: AtSize
    redundancy: Redundancy | None


@dataclass(frozen=True)
class RatioAnalysis:
    """The networks and what was found of them.

    Attributes:
        networks: one row each: `ratio, feed_forward, depth, width`, sizes, `loss`, `seeds`, `loss_std`. A network of
            ratio 1 has one row, of the feed-forward width 4 H d_a = 4 d.
        noise: noise of one run's loss over seeds, pooled; None where nothing is repeated.
        axis: the size axis of all but the redundancies, which are on all.
        baseline: ratio 1 at the size of each of its networks.
        found: every ratio at every size that it reaches, on every axis.
        monotony: by feed-forward width and size, the test that the loss does not fall where the ratio grows.
        spreads: a row of `spread_table` where two ratios and two depths of one of them reach a size.
    """

    networks: pd.DataFrame
    noise: Noise | None
    axis: SizeAxis
    baseline: tuple[AtSize, ...]
    found: tuple[Found, ...]
    monotony: Mapping[tuple[str, float], MonotonyTest]
    spreads: tuple[Mapping[str, Any], ...]

    @property
    def redundant(self) -> tuple[Found, ...]:
        """The findings on every axis that have a redundancy: all but those of ratio 1."""
        return tuple(one for one in self.found if one.redundancy is not None)

    @property
    def on_axis(self) -> tuple[Found, ...]:
        """The findings on the main axis."""
        return tuple(one for one in self.found if one.axis is self.axis)

    def also_best(self, one: Found) -> tuple[int, ...]:
        """The other depths that are not significantly worse than the best one; none without noise."""
        return () if self.noise is None else one.at.also_best(self.noise)

    def compared(self, feed_forward: str, axis: SizeAxis) -> tuple[Found, ...]:
        """The ratios at the one size at which they compare best: of those that most depths reach, the largest.

        At the largest size of all some ratios have networks of few depths, whose best may be worse than that of all.
        """
        mine = [one for one in self.found if (one.feed_forward, one.axis) == (feed_forward, axis)]
        depths = Counter[float]()
        for one in mine:
            if one.redundancy is not None:
                depths[one.at.size] += len(one.at.depths)
        best = max(depths, key=lambda size: (depths[size], size), default=None)
        return tuple(one for one in mine if one.at.size == best)


def check_ratio_runs(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with `ratio`, `feed_forward` and `loss`; an empty `ff_width` is 4 d.

    Raises:
        UserError: a column is missing, a value is wrong, runs differ in more than shape, or one has two rows.
    """
    runs = shared.bottleneck_runs(table, source, _WHOLE, {"ff_width": "for four times the width"})
    inner = runs["heads"] * runs["attention_dim"]
    hidden = runs["ff_width"].fillna(MLP_RATIO * runs["width"])
    follows = hidden == MLP_RATIO * inner
    neither = ~follows & (hidden != MLP_RATIO * runs["width"])
    refuse(runs, neither, source, "ff_width must be 4 H d_a or 4 d (or empty for 4 d)")
    runs = runs.assign(ratio=inner / runs["width"], feed_forward=np.where(follows, ATTENTION, WIDTH))
    once = "a run (ratio, feed-forward width, depth, width, seed) must have one row"
    refuse_twice(runs, [*_NAMES, "seed"], source, once)
    return runs


def analyse_runs(runs: pd.DataFrame, axis: SizeAxis = SizeAxis.BLOCK) -> RatioAnalysis:
    """Best depths, redundancies, monotony and spreads.

    Args:
        runs: of `check_ratio_runs`.
        axis: the size axis of all but the redundancies.

    Raises:
        UserError: fewer than two networks have ratio 1, or none has another.
    """
    networks = group_means(runs, _NAMES, shared.SIZES)
    if (networks["ratio"] == 1).sum() < 2 or (networks["ratio"] == 1).all():
        raise UserError(
            "The runs need two networks with H d_a = d, and one with another H d_a to compare with them."
        )
    noise, found = group_noise(networks), list[Found]()
    tested: dict[tuple[str, float], MonotonyTest] = {}
    spreads: list[Mapping[str, Any]] = []
    for one in SizeAxis:
        for feed_forward in (ATTENTION, WIDTH):
            series = _series(networks, feed_forward, one)
            if len(series) < 2:
                continue
            drawn = {
                ratio: some.drawn(noise, DRAWS, place)
                for place, (ratio, some) in enumerate(series.items())
                if noise is not None
            }
            ones = at_own_sizes(series[1.0])
            slope = mean_slope(ones)
            others = np.concatenate([some.size for ratio, some in series.items() if ratio != 1])
            for size in size_groups(others):
                here = [(ratio, at) for ratio, some in series.items() if (at := at_size(some, size, slope))]
                found += [
                    Found(feed_forward, ratio, one, at, _redundancy(ones, ratio, at, drawn, noise))
                    for ratio, at in here
                ]
                if one is axis:
                    tested[feed_forward, size] = _monotony(here, noise)
                    spreads += _spread(feed_forward, size, here, drawn)
    baseline = at_own_sizes(_series(networks, ATTENTION, axis)[1.0])
    return RatioAnalysis(networks, noise, axis, baseline, tuple(found), tested, tuple(spreads))


def _series(networks: pd.DataFrame, feed_forward: str, axis: SizeAxis) -> dict[float, Networks]:
    """The networks of every ratio; ratio 1 always."""
    mine = networks[(networks["ratio"] == 1) | (networks["feed_forward"] == feed_forward)]
    series = {}
    for ratio in np.unique(mine["ratio"]):
        rows = mine[mine["ratio"] == ratio]
        numbers = rows[[SIZE_COLUMNS[axis], "loss", "seeds", "width"]].to_numpy(np.float64).T
        series[float(ratio)] = Networks(rows["depth"].to_numpy(np.int64), *numbers)
    return series


def _redundancy(
    ones: Sequence[AtSize], ratio: float, at: AtSize, drawn: Mapping[float, Floats], noise: Noise | None
) -> Redundancy | None:
    """The redundancy of a ratio's best depth, against ratio 1 at the best depth of each of its own sizes."""
    if ratio == 1:
        return None
    size, loss = (np.array([getattr(one, name) for one in ones]) for name in ("size", "loss"))
    baseline = Baseline(size, loss, np.array([one.runs(noise) for one in ones]))
    if not drawn:
        return redundancy_of_draws(baseline, at.size, at.loss, None)
    losses = np.stack([one.drawn_losses(drawn[1.0]).min(axis=1) for one in ones], axis=1)
    mine = at.drawn_losses(drawn[ratio]).min(axis=1)
    return redundancy_of_draws(baseline, at.size, at.loss, (losses, mine))


def _monotony(here: list[tuple[float, AtSize]], noise: Noise | None) -> MonotonyTest:
    ratios, losses = np.array([(ratio, at.loss) for ratio, at in here]).T
    errs = shared.standard_errors(noise, [at.runs(noise) for _, at in here])
    known = [] if noise is None else [at.noise(noise) for _, at in here]
    return monotony(ratios, losses, errs, min(known, key=lambda one: one.dof, default=None))


def _spread(
    feed_forward: str, size: float, here: list[tuple[float, AtSize]], drawn: Mapping[float, Floats]
) -> Iterator[dict[str, Any]]:
    """The ranges of the loss at one size: of the best depths over ratios, and over depths where that is largest.

    Noise makes a range too large, and the largest of several ranges more so: a difference above zero is on the safe
    side. `p_value` is the chance that the range over ratios is not larger; NaN without noise, as are all ends.
    """
    if len(here) < 2 or all(len(at.depths) < 2 for _, at in here):
        return
    ratios, depths = float(np.ptp([at.loss for _, at in here])), max(at.spread for _, at in here)
    values = np.array([ratios, depths, ratios - depths])
    ends, p_value = np.full((2, 3), np.nan), np.nan
    if drawn:
        losses = [at.drawn_losses(drawn[ratio]) for ratio, at in here]
        over_ratios = np.ptp(np.stack([some.min(axis=1) for some in losses]), axis=0)
        over_depths = np.stack([np.ptp(some, axis=1) for some in losses]).max(axis=0)
        ranges = np.stack([over_ratios, over_depths, over_ratios - over_depths])
        # noise on top of noise makes ranges larger, and that part is taken off
        ranges += (values - np.median(ranges, axis=1))[:, None]
        ends, p_value = np.quantile(ranges, INTERVAL, axis=1), float(np.mean(ranges[2] <= 0))
    ranges_with_ends = dict(zip(_RANGES, np.vstack([values, ends]).T.ravel().tolist(), strict=True))
    yield {"feed_forward": feed_forward, "size": size, **ranges_with_ends, "p_value": p_value}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the size at which networks are compared."""
    parser.add_argument(
        "--size",
        choices=[axis.value for axis in SizeAxis],
        default=SizeAxis.BLOCK.value,
        help="parameters of the blocks (default), all parameters, or FLOPs; redundancies are given for all three",
    )


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    given = study_runs(arguments.input, arguments.keep)
    runs = check_ratio_runs(given.table, given.source)
    return present(analyse_runs(runs, SizeAxis(arguments.size))).after(given.notes)


def present(analysis: RatioAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    tables = _tables(SIZE_LABELS[analysis.axis])
    made = tables_of(tables, tables, analysis)
    drawn = {
        "losses": losses_figure(analysis),
        "depths": depths_figure(analysis),
        "redundancy": redundancy_figure(analysis),
    }
    model = "1 - size of the best network of ratio 1 with equal loss / size, by monotone interpolation"
    fit = shared.fit_of(NAME, model, analysis.noise, made, ("redundancy", "monotony", "spread"))
    return Results(made, drawn, fit, noise_sentence(analysis.noise), answer=answer(made))


def answer(tables: Mapping[str, Table]) -> Answer:
    """The redundancy of the widest attention at the largest size, in the blocks' parameters.

    Args:
        tables: `redundancy` of the study.
    """
    found = shared.of_blocks(tables)
    if found.empty:
        return Answer("No redundancy can be measured: no wide network can be compared.", False)
    row = found.sort_values(["ratio", "size"], ascending=False, kind="stable").iloc[0]
    return Answer(
        f"At H d_a / d = {row['ratio']:g} and {short_number(row['size'])} parameters in the blocks, "
        f"{shared.wasted_words(row)} of them are wasted ({row['status']}).",
        row["significant"] == "yes",
    )


def losses_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """One row for each network."""
    return shared.networks_table(analysis.networks, _NAMES)


def best_depth_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """The best depth of every ratio at equal size, and the depths that are not significantly worse.

    `certain`: two depths or more reach the size, and the others are significantly worse.
    """
    noise = analysis.noise

    def err(one: Found) -> float:
        if noise is None:
            return math.nan
        return one.at.noise(noise).threshold() * noise.std / math.sqrt(one.at.runs(noise))

    columns: Columns = {
        "feed_forward": "feed_forward",
        "ratio": "ratio",
        **{name: f"at.{name}" for name in ("size", "depths", "best_depth")},
        "also_best": analysis.also_best,
        "certain": lambda one: noise is not None and len(one.at.depths) > 1 and not analysis.also_best(one),
        "test_loss": "at.loss",
        "loss_low": lambda one: one.at.loss - err(one),
        "loss_high": lambda one: one.at.loss + err(one),
        "over_depths": lambda one: one.at.spread if len(one.at.depths) > 1 else math.nan,
    }
    return frame_of(analysis.on_axis, columns)


def redundancy_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """One row for each ratio, size and size axis: the redundancy of the best depth with its 68% interval.

    `depths` are those that reach the size. `compared`: yes at the size at which the ratios compare, the largest of
    those that most depths reach.
    """
    compared = {id(one) for kind in _TITLES for axis in SizeAxis for one in analysis.compared(kind, axis)}
    return frame_of(
        analysis.redundant,
        {
            "feed_forward": "feed_forward",
            "ratio": "ratio",
            "size_axis": "axis",
            "size": "at.size",
            "depths": "at.depths",
            "best_depth": "at.best_depth",
            **shared.REDUNDANCY,
            "compared": lambda one: id(one) in compared,
        },
    )


def monotony_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """One row for each size: the test that the loss does not fall where the ratio grows.

    `falls_p` is the chance of falls this large if none are real, `rises_p` the same for rises. `largest_fall` stands
    with its standard error and the ratios between which it is.
    """

    tested = ("falls_p", "rises_p", "largest_fall", "largest_fall_err", "fall_from", "fall_to", "verdict")
    rows = []
    for (kind, size), test in analysis.monotony.items():
        here = [one for one in analysis.on_axis if (one.feed_forward, one.at.size) == (kind, size)]
        ratios = ", ".join(f"{one.ratio:g}" for one in here)
        rows.append({"feed_forward": kind, "size": size, "ratios": ratios, **picked(test, *tested)})
    return pd.DataFrame(rows)


def spread_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """The range of the loss over ratios beside that over depths, with 68% intervals, at each size."""
    table = pd.DataFrame(analysis.spreads, columns=["feed_forward", "size", *_RANGES, "p_value"])
    return table.assign(verdict=[_larger(p_value) for p_value in table["p_value"]])


def _larger(p_value: float) -> str:
    """The verdict on the spread over ratios, against that over depths."""
    if math.isnan(p_value):
        return shared.NO_NOISE
    return _LARGER if p_value < SIGNIFICANT else _SMALLER if p_value > 1 - SIGNIFICANT else OPEN


def comparison_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """The paper's statements beside ours, for d_ff = 4 H d_a, at the size at which the ratios compare.

    `agrees`: the 68% interval overlaps the published redundancy's rounding, or a bound lies on its side; the loss rises
    significantly with the ratio; its spread over ratios is significantly larger than over depths. Open where ours
    can't tell.
    """
    return pd.DataFrame([*_redundancies(analysis), *_losses(analysis)])


def _redundancies(analysis: RatioAnalysis) -> Iterator[dict[str, object]]:
    for ratio, theirs in published_of(NAME, shared.REDUNDANT).items():
        for axis in SizeAxis:
            for one in analysis.compared(ATTENTION, axis):
                if one.ratio == float(ratio) and one.redundancy is not None:
                    quantity = f"redundancy of ratio {ratio} in {SIZE_LABELS[axis]}"
                    setting = f"L = {one.at.best_depth}, size {short_number(one.at.size)}"
                    yield shared.compared_redundancy(theirs, quantity, setting, one.redundancy)


def _losses(analysis: RatioAnalysis) -> Iterator[dict[str, object]]:
    """The order and the spread of the losses, each at the largest size."""
    sizes = [size for feed_forward, size in analysis.monotony if feed_forward == ATTENTION]
    if sizes:
        test, theirs = analysis.monotony[ATTENTION, max(sizes)], published(NAME, FALL)
        fall, err = test.largest_fall, test.largest_fall_err
        numbers, agrees = (fall, fall - err, fall + err), _AGREES.get(test.verdict, OPEN)
        yield shared.compared(theirs, f"size {short_number(max(sizes))}", numbers, test.verdict.value, agrees)
    spreads = [row for row in analysis.spreads if row["feed_forward"] == ATTENTION]
    if spreads:
        row, theirs = max(spreads, key=lambda row: row["size"]), published(NAME, SPREAD)
        setting, larger = f"size {short_number(row['size'])}", _larger(row["p_value"])
        difference = [row[name] for name in _RANGES if name.startswith("difference")]
        yield shared.compared(theirs, setting, difference, larger, _AGREES.get(larger, OPEN))


def _tables(equal: str) -> dict[str, TableOf]:
    """The tables, where networks are compared at this size in words."""
    ranges = f"Range of the loss over ratios and over depths at equal {equal}, with 68% intervals."
    best = f"The best depth of every ratio at equal {equal}, its loss with the 95% interval of its seeds."
    less = "Redundancy: how much smaller a network of ratio 1 reaches the same loss, with 68% intervals."
    fall = f"Does the loss fall anywhere as the ratio grows, at equal {equal}?"
    theirs = "Ours beside the published statements (Wies et al. 2021)."
    return {
        "losses": TableOf(losses_table, "Test loss of every network, in nats per token.", _FORMATS),
        "best_depth": TableOf(best_depth_table, best, _FORMATS),
        "redundancy": TableOf(redundancy_table, less, _FORMATS),
        "monotony": TableOf(monotony_table, fall, _FORMATS),
        "spread": TableOf(spread_table, ranges, _FORMATS),
        "comparison": TableOf(comparison_table, theirs, _FORMATS),
    }


def losses_figure(analysis: RatioAnalysis) -> Chart:
    """Test loss of every ratio at the best depth of each size, against size (figure 4 of the vocabulary paper)."""
    return _chart(analysis, lambda kind: _best(analysis, kind))


def depths_figure(analysis: RatioAnalysis) -> Chart:
    """The same with all networks, a marker for each depth (figure 6 of the vocabulary paper)."""
    depths = sorted(int(depth) for depth in analysis.networks["depth"].unique())
    markers = {depth: plots.MARKERS[place % len(plots.MARKERS)] for place, depth in enumerate(depths)}
    hollow = {"markersize": 6, "fillstyle": "none"}

    def marks(kind: str) -> Iterator[Points]:
        mine = analysis.networks
        mine = mine[(mine["ratio"] == 1) | (mine["feed_forward"] == kind)]
        yield from _best(analysis, kind, marked=False)
        for (ratio, look), depth in itertools.product(_looks(analysis).items(), depths):
            rows = mine[(mine["ratio"] == ratio) & (mine["depth"] == depth)]
            size = rows[SIZE_COLUMNS[analysis.axis]]
            yield Points(size, rows["loss"], "", look.color, markers[depth], more=hollow)
        for depth in depths:
            yield Points([], [], layers_text(depth), plots.INK, markers[depth], more=hollow)

    return _chart(analysis, marks)


def _looks(analysis: RatioAnalysis) -> dict[float, plots.Look]:
    ratios = sorted({float(ratio) for ratio in analysis.networks["ratio"]})
    return dict(zip(ratios, plots.ordered_looks(range(len(ratios))).values(), strict=True))


def _best(analysis: RatioAnalysis, kind: str, *, marked: bool = True) -> Iterator[Points]:
    """The best depths of every ratio, with markers or as lines alone."""
    noise = analysis.noise
    for ratio, look in _looks(analysis).items():
        best = [one.at for one in analysis.on_axis if (one.feed_forward, one.ratio) == (kind, ratio)]
        points = analysis.baseline if ratio == 1 else best
        if points:
            loss, size = [at.loss for at in points], [at.size for at in points]
            err = shared.standard_errors(noise, [at.runs(noise) for at in points])
            shown = looked(look) | {"marker": look.marker if marked else ""}
            yield Points(size, loss, f"{_RATIO} = {ratio:g}", err=err, more={"markersize": 3.5}, **shown)


def _chart(analysis: RatioAnalysis, marks: Callable[[str], Iterable[Points]]) -> Chart:
    """A panel for each feed-forward width."""
    across, up = Span(SIZE_LABELS[analysis.axis], "log"), Span("test loss (nats per token)")
    panels = [
        Panel(marks(kind), across, up, title)
        for kind, title in _TITLES.items()
        if any(one.feed_forward == kind for one in analysis.on_axis)
    ]
    return Chart(panels, columns=len(panels), width=plots.PAGE, height=3.2, share_y=True, legend=5)


def redundancy_figure(analysis: RatioAnalysis) -> Chart:
    """Redundancy against the ratio, in blocks and in all parameters, with 68% intervals and bounds.

    The sizes of a ratio stand side by side, the smallest on the left.
    """
    theirs = {float(ratio): one.number for ratio, one in published_of(NAME, shared.REDUNDANT).items()}
    panels = list[Panel]()
    for size in shared.PANELS:
        shown = [one for one in analysis.redundant if one.axis is size]
        places = sorted({(one.at.size, one.feed_forward) for one in shown})
        marks: list[Mark] = [Across(0, label="nothing wasted")]
        for kind, look in _LOOKS.items():
            marks += _redundancies_of([one for one in shown if one.feed_forward == kind], places, *look)
        said = "published, 30M to 70M"
        marks.append(Points([*theirs], [*theirs.values()], said, plots.MUTED, "D", hollow=True))
        ticks = {*(one.ratio for one in shown), *theirs}
        note = "No network has two seeds: no intervals." if analysis.noise is None and not panels else ""
        across, up = Span(_RATIO, "values", ticks), Span("wasted parameters (share)")
        panels.append(Panel(marks, across, up, f"in {SIZE_LABELS[size]}", note=note))
    return Chart(panels, columns=2, share_y=True)


def _redundancies_of(
    series: Sequence[Found], places: Sequence[tuple[float, str]], label: str, color: str, marker: str
) -> Iterator[Points]:
    """Points of one feed-forward width; those of one ratio stand side by side in the order of `places`."""
    known = [(one, found) for one in series if (found := one.redundancy) is not None]
    for status, shape in ((None, marker), *_BOUNDS.items()):
        some = [(one, found) for one, found in known if _BOUNDS.get(found.status, marker) == shape]
        if some:
            at = [places.index((one.at.size, one.feed_forward)) for one, _ in some]
            x = [
                one.ratio * plots.side_by_side(place, len(places))
                for place, (one, _) in zip(at, some, strict=True)
            ]
            value, low, high = np.array([(found.value, found.low, found.high) for _, found in some]).T
            err = np.clip([value - np.fmax(low, -1.0), high - value], 0, None)
            yield Points(x, value, f"{label}, {status or '68% interval'}", color, shape, err=err)
