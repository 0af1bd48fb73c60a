"""One smooth surface through the shapes of a token budget, everything that is asked of it, and the results.

The results are tables, sentences and figures: the best shape of a size, and what each trained shape gives away, from
shapes that lie anywhere (`advice/surface/average.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.advice.answer.costs import WITHIN, Costs
from shapelaw.advice.answer.numbers import finite
from shapelaw.advice.answer.text import aligned
from shapelaw.advice.evidence.losses import lowest
from shapelaw.advice.own_runs.budgets import Budget, SizeRule, size_rule
from shapelaw.advice.own_runs.columns import NATS
from shapelaw.advice.surface import answers
from shapelaw.advice.surface.answers import BestDepth, Overtaking, Penalty
from shapelaw.advice.surface.average import FittedForm, Surface, fit_surface
from shapelaw.advice.surface.forms import SurfaceStatus, shapes_of
from shapelaw.errors import Parts, UserError
from shapelaw.fits.inputs import check_bootstrap
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import INTERVAL, Noise, chance_words, pooled_noise
from shapelaw.report.charts import Across, Band, Chart, Mark, Panel, Points, Span
from shapelaw.report.plots import INK, PAGE, SECOND, short_number
from shapelaw.report.tables import Columns, frame_of, picked
from shapelaw.report.write import Results, TableOf, assembled
from shapelaw.specs.sizes import SIZE_COLUMNS, SIZE_LABELS, SizeAxis, number_of

AVERAGE = "average"
ENOUGH_DRAWS = 100  # of a form, to show its own answer


@dataclass(frozen=True)
class Options:
    """`size`: the size that compared shapes share. `sizes`: sizes to answer for; none: five of the shapes' own.

    `noise`: a run's loss std over seeds, in place of the pooled one. `draws`, `seed`: of the bootstrap.
    `within`: what counts as nothing, in the `unit` of the losses, nats or bits.
    """

    size: SizeAxis = SizeAxis.BLOCK
    sizes: tuple[float, ...] = ()
    noise: float | None = None
    draws: int = 2000
    seed: int = 0
    within: float = WITHIN
    unit: str = NATS


@dataclass(frozen=True)
class SurfaceAnalysis:
    """A surface, its answers, and what equal size means in it; the answers are empty where there is no surface.

    `parts` has what of it failed.
    """

    surface: Surface
    axis: SizeAxis
    budget: Budget
    rule: SizeRule
    sizes: tuple[float, ...]
    within: float
    unit: str
    best: tuple[tuple[str, BestDepth], ...] = ()
    penalties: tuple[Penalty, ...] = ()
    overtakings: tuple[Overtaking, ...] = ()
    parts: Parts = field(default_factory=Parts)

    @cached_property
    def costs(self) -> tuple[Costs, ...]:
        """What depths cost at each of `sizes`, where the surface can tell a best one."""
        best = (one for model, one in self.best if model == AVERAGE)
        found = (answers.costs_of_size(self.surface, one, self.within) for one in best)
        return tuple(one for one in found if one is not None)

    @property
    def size_column(self) -> str:
        return SIZE_COLUMNS[self.axis]


def check_options(options: Options) -> None:
    """Refuse sizes, a cost that is none, a noise or a number of draws that nothing can be done with.

    Raises:
        UserError: one of them is not above zero, or there are too few draws.
    """
    for size in options.sizes:
        if not 0 < size < math.inf:
            raise UserError(f"--sizes has {size:g}; a size is a number above zero, such as 3e8.")
    if not 0 < options.within < 1:
        raise UserError(
            f"--within is {options.within:g}; give {options.unit} between 0 and 1, such as {WITHIN:g}."
        )
    check_bootstrap(options.noise, options.draws)


def sizes_of(text: str) -> tuple[float, ...]:
    """The sizes of a list such as `6e7,3e8,1.3B`.

    Raises:
        UserError: the list is empty, or a part of it is no number.
    """
    sizes = []
    for part in text.split(","):
        try:
            sizes.append(number_of(part))
        except ValueError:
            raise UserError(f"--sizes has {part.strip()!r}; write numbers, such as 6e7,300M,1.3B.") from None
    return tuple(sizes)


def analyse_surface(budget: Budget, options: Options) -> SurfaceAnalysis:
    """Fit the surface of one token budget and ask it everything."""
    shapes = shapes_of(budget.runs, options.size, budget.ratio > 0)
    # one number: the surface takes its noise from its residuals as well, which follow the size as they like
    given = None if options.noise is None else Noise(options.noise, math.inf)
    noise = given or pooled_noise(budget.runs, by_width=False)
    surface = fit_surface(shapes, noise, draws=options.draws, seed=options.seed)
    rule = size_rule(shapes.depth, shapes.width, shapes.size)
    sizes = options.sizes or shapes.middle_sizes
    found = SurfaceAnalysis(surface, options.size, budget, rule, sizes, options.within, options.unit)
    if not surface.usable:
        return found
    best = [(AVERAGE, answers.best_depth(surface, size)) for size in sizes]
    for one in surface.forms:
        if len(one.drawn_theta) >= ENOUGH_DRAWS:
            alone = replace(surface, forms=(one,))
            asked = partial(_best_depths, alone, sizes)
            best += found.parts.attempt(f"best depth by the form {one.form.name}", asked) or []
    costs, over = tuple(answers.penalties(surface)), tuple(answers.overtakings(surface))
    return replace(found, best=tuple(best), penalties=costs, overtakings=over)


def _best_depths(alone: Surface, sizes: Sequence[float]) -> list[tuple[str, BestDepth]]:
    """The best depths by the one form of a surface, with its name."""
    return [(alone.forms[0].form.name, answers.best_depth(alone, size)) for size in sizes]


NO_DEPTH = "Depth makes no difference beyond the noise, so no best depth and no cost of one can be told"
MISSED = 2.0  # times the fit's own residuals, from which those of left-out shapes are said
COSTLY = 3  # shapes that the sentences name
SAME = {
    SizeAxis.BLOCK: "the same number of parameters in the blocks",
    SizeAxis.TOTAL: "the same number of all parameters",
    SizeAxis.FLOPS: "the same number of FLOPs a training step",
}
_NEEDED = ("needed", "needed_low", "needed_high")
_LOSSES = {"loss": ".4f", "penalty": ".4f", "penalty_low": ".4f", "penalty_high": ".4f"}
PANELS = 6  # sizes that get a panel
DEPTHS = 61
NEAR = np.log(1.6)  # shapes whose size is less than this factor away are drawn in a panel


def present_surface(analysis: SurfaceAnalysis) -> Results:
    """The tables, figures and fit.json; left out is a figure that has nothing to draw, and a table without rows."""
    size = analysis.size_column
    depths = dict.fromkeys(("depth", "depth_low", "depth_high"), ".1f")
    costs = dict.fromkeys(("cost", "cost_low", "cost_high", "loss", "loss_low", "loss_high"), ".4f")
    tables = {
        "penalty": TableOf(
            penalty_table,
            "Excess loss of each shape: above the best shape of its size, and the size that the best "
            "shape needs for the same loss; empty where that is smaller than all shapes, and less than needed_high.",
            _LOSSES | dict.fromkeys((*_NEEDED, size), ".3g") | {"share": ".0%"},
        ),
        "costs": TableOf(
            costs_table,
            f"Excess loss of the depths of a size, above the best in {analysis.unit}; the share of the size by which "
            "the best could be smaller and as good, and the loss of one more run with its scatter.",
            {size: ".3g", "width": ".0f", "params_worth": ".0%"} | costs,
        ),
        "best_depth": TableOf(
            best_depth_table,
            "Best depth of a size, by the average of all forms and by each.",
            {size: ".3g", "width": ".0f"} | depths,
        ),
        "forms": TableOf(
            lambda one: forms_table(one.surface),
            "Forms of the surface, weighted by how well they predict left-out shapes.",
            {"weight": ".3f", "left_out": ".4f", "scatter": ".4f"},
        ),
    }
    left_out = {}
    if analysis.overtakings:
        caption = "Width from which the deeper of two trained depths is the better one."
        tables["overtaking"] = TableOf(overtaking_table, caption)
    else:
        few = "no two depths have four shapes each at common sizes"
        left_out["table overtaking"] = analysis.surface.why_untold or few
    found = assembled(
        analysis.parts,
        {name: partial(table.of, analysis) for name, table in tables.items()},
        {"penalty": lambda _: penalty_figure(analysis)},
        {"the surface": lambda _: surface_summary(analysis).splitlines()},
        lambda _: fit_json(analysis),
    )
    undrawn = {name: why for name, why in found.figures.items() if isinstance(why, str)}
    drawn = {name: figure for name, figure in found.figures.items() if name not in undrawn}
    left_out |= {f"figure {name}": why for name, why in undrawn.items()}
    return replace(found, figures=drawn, left_out=left_out)


def penalty_table(analysis: SurfaceAnalysis) -> pd.DataFrame:
    """One row a shape by size: `depth, width, block_params, seeds, loss, penalty, ..., needed, ..., share, status`."""
    shapes, size = analysis.surface.shapes, analysis.size_column
    costs = analysis.penalties or [Penalty(analysis.surface.status)] * len(shapes)
    measured = {
        "depth": shapes.depth.astype(int),
        "width": shapes.width.astype(int),
        size: shapes.size,
        **({} if shapes.tokens is None else {"tokens": shapes.tokens}),
        "seeds": shapes.seeds.astype(int),
        "loss": shapes.loss,
    }
    penalty = {"penalty": "loss", "penalty_low": "low", "penalty_high": "high"}
    told = frame_of(
        costs, penalty | dict(zip(_NEEDED, _NEEDED, strict=True)) | {"share": "needed", "status": "status"}
    )
    table = pd.DataFrame(measured).join(told)
    table["share"] /= table[size]
    return table.sort_values(size, kind="stable", ignore_index=True)


def costs_table(analysis: SurfaceAnalysis) -> pd.DataFrame:
    """About seven depths a size: `block_params, depth, width, cost, ..., params_worth, worth_more, loss, ..., is`.

    `worth_more`: `params_worth` is a bound, since the best would be smaller than all shapes. `is`: `best`, `flat` where
    the cost is below `within`, or empty. No rows for a size whose best depth can't be told.
    """
    rows = []
    for costs in analysis.costs:
        size = costs.question.size
        low, high = costs.flat()
        for depth in costs.rows():
            cost, width = costs.at(depth), float(analysis.rule.width(depth, size))
            worth = cost.params_worth, costs.worth_more(cost.value)
            said = "best" if depth == int(costs.best.depth) else "flat" if low <= depth <= high else ""
            run = answers.new_run(analysis.surface, size, depth)
            rows.append((size, depth, width, cost.value, cost.low, cost.high, *worth, *run, said))
    columns = [analysis.size_column, *("depth", "width", "cost", "cost_low", "cost_high", "params_worth")]
    return pd.DataFrame(rows, columns=[*columns, "worth_more", "loss", "loss_low", "loss_high", "is"])


def best_depth_table(analysis: SurfaceAnalysis) -> pd.DataFrame:
    """One row a size and model: `block_params, depth, depth_low, depth_high, width, status, model`."""
    nan, status = math.nan, analysis.surface.status
    best = analysis.best or [(AVERAGE, BestDepth(size, nan, nan, nan, status)) for size in analysis.sizes]
    columns: Columns = {
        analysis.size_column: "size",
        "depth": "depth",
        "depth_low": "low",
        "depth_high": "high",
        "width": lambda one: float(analysis.rule.width(one.depth, one.size)),
        "status": "status",
    }
    return frame_of([one for _, one in best], columns).assign(model=[model for model, _ in best])


def forms_table(surface: Surface) -> pd.DataFrame:
    """One row a form: `form, formula, weight, left_out, scatter`, losses in the unit of the runs'."""
    numbers = {name: name for name in ("weight", "left_out", "scatter")}
    return frame_of(surface.forms, {"form": "form.name", "formula": "form.formula", **numbers})


def overtaking_table(analysis: SurfaceAnalysis) -> pd.DataFrame:
    """One row a pair of neighbouring depths: `depth, deeper_depth, width, ..., share`; NaN without a crossing."""
    rows = []
    for one in analysis.overtakings:
        widths = analysis.rule.width(np.full(3, one.depth), np.array([one.size, one.low, one.high]))
        rows.append((one.depth, one.deeper, *map(float, widths), one.size, one.share))
    columns = ["depth", "deeper_depth", "width", "width_low", "width_high", analysis.size_column, "share"]
    return pd.DataFrame(rows, columns=columns)


def fit_json(analysis: SurfaceAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
    surface, budget = analysis.surface, analysis.budget
    return {
        "model": "loss as a smooth function of log size and log depth, the average of several forms",
        "status": surface.status.value,
        "message": surface.message,
        "size_axis": analysis.axis.value,
        "tokens": finite(budget.tokens),
        "token_rule": budget.rule,
        "unit": analysis.unit,
        "shapes": len(surface.shapes),
        "size_rule": asdict(analysis.rule) | {"exact": analysis.rule.exact},
        "seed_noise": None if surface.noise is None else surface.noise.std,
        "seed_noise_dof": None if surface.noise is None else finite(surface.noise.dof),
        "scatter": finite(surface.scatter),
        "left_out": finite(surface.left_out),
        "draws": surface.draws,
        "chance_that_depth_does_nothing": surface.chance,
        "forms": [_form_json(one) for one in surface.forms],
    }


def _form_json(one: FittedForm) -> dict[str, Any]:
    found = picked(one.form, "name", "formula")
    found |= picked(one, "weight", "log_density", "left_out", "scatter")
    found["parameters"] = dict(zip(one.form.parameters, map(float, one.theta), strict=True))
    return found | {"covariance": None if one.covariance is None else one.covariance.tolist()}


def surface_summary(analysis: SurfaceAnalysis) -> str:
    """The findings in sentences, one a line: what equal size means, first; then costs, best depths, forms."""
    surface, shapes = analysis.surface, analysis.surface.shapes
    lines = [f"Equal size means {SAME[analysis.axis]}; {analysis.budget.rule}."]
    if not surface.usable:
        return "\n".join([*lines, f"No surface: {surface.status}. {surface.message.capitalize()}."])
    low, high = (short_number(float(size)) for size in (shapes.size.min(), shapes.size.max()))
    lines.append(
        f"{len(shapes)} shapes from {low} to {high}: left-out shapes are predicted to {surface.left_out:.4f} "
        f"{analysis.unit}; " + _noise_sentence(surface)
    )
    if (ratio := surface.left_out / surface.scatter) > MISSED:
        lines.append(
            f"Left-out shapes are missed {ratio:.1f} times as far as the fitted ones ({surface.scatter:.4f} "
            f"{analysis.unit}): the shapes differ in more than depth and width, such as batch or rate, or are too few; "
            "trust costs below "
            f"{surface.left_out:.4f} {analysis.unit} as little."
        )
    lines += (
        _answer_sentences(analysis) if surface.told else [f"{NO_DEPTH} ({chance_words(surface.chance)})."]
    )
    weights = ", ".join(f"{one.form.name} {one.weight:.2f}" for one in surface.forms)
    lines.append(f"Forms by weight: {weights}.")
    return "\n".join(lines)


def _answer_sentences(analysis: SurfaceAnalysis) -> list[str]:
    lines = [*_cost_sentences(analysis), *_costs_lines(analysis), *_best_lines(analysis)]
    for row in overtaking_table(analysis).to_dict("records"):
        if not math.isnan(row["width"]):
            lines.append(
                f"Depth {row['depth']:.0f} is overtaken by depth {row['deeper_depth']:.0f} at width {row['width']:.1f} "
                f"(68%: {row['width_low']:.1f} to {row['width_high']:.1f})."
            )
    if analysis.costs:
        size, axis = short_number(analysis.costs[-1].question.size), analysis.axis.value
        # the blocks alone don't depend on V
        words = "" if analysis.axis is SizeAxis.BLOCK else " --vocab V"
        lines.append(
            f"Any other shape: shapelaw shape {size} --size {axis}{words} --fit DIR --depth L --width D."
        )
    return lines


def _noise_sentence(surface: Surface) -> str:
    if surface.noise is None:
        return f"no shape has two seeds, so the residuals, {surface.scatter:.4f}, are the noise."
    ratio = surface.scatter / surface.noise.std
    more = f", and runs lie {ratio:.1f} times as far off the surface" if ratio > 1.2 else ""
    return f"seed noise is {surface.noise.std:.4f}{more}."


def _cost_sentences(analysis: SurfaceAnalysis) -> list[str]:
    shapes = analysis.surface.shapes
    known: Sequence[int] = [i for i in range(len(shapes)) if not math.isnan(analysis.penalties[i].loss)]
    lines = []
    for index in sorted(known, key=lambda i: -analysis.penalties[i].loss)[:COSTLY]:
        cost = analysis.penalties[index]
        least = "at least " if cost.status in (SurfaceStatus.DEEPER, SurfaceStatus.SHALLOWER) else ""
        lines.append(
            f"L{shapes.depth[index]:.0f}-d{shapes.width[index]:.0f} costs {least}{cost.loss:.4f} {analysis.unit} "
            f"({cost.low:.4f} to {cost.high:.4f}): the best shape needs {_needed_words(cost, shapes.size[index])}."
        )
    free = sum(analysis.penalties[index].low <= 0.001 for index in known)
    unknown = len(shapes) - len(known)
    lines.append(
        f"{free} of {len(shapes)} shapes may be within 0.001 {analysis.unit} of the best of their size."
    )
    if unknown:
        lines.append(
            f"At the sizes of {unknown} shapes no best depth can be told, so what they cost neither."
        )
    return lines


def _needed_words(cost: Penalty, size: float) -> str:
    if not math.isnan(cost.needed):
        return f"{cost.needed / size:.0%} of its size"
    if cost.needed_high > 0.995 * size:
        return "less, and these shapes are too large to tell how much less"
    return f"less than {cost.needed_high / size:.0%} of its size"


def _costs_lines(analysis: SurfaceAnalysis) -> list[str]:
    """The table of costs of the middle one of the sizes that can be told."""
    if not analysis.costs:
        return []
    size = analysis.costs[len(analysis.costs) // 2].question.size
    table = costs_table(analysis)
    rows = [
        ("depth", "width", f"excess loss, {analysis.unit} (68%)", "wasted", "loss of one more run (68%)", "")
    ]
    for row in table[table[analysis.size_column] == size].to_dict("records"):
        more = "> " if row["worth_more"] else ""
        width = "" if math.isnan(row["width"]) else f"{row['width']:,.0f}"
        cost = f"{row['cost']:.4f} ({row['cost_low']:.4f} to {row['cost_high']:.4f})"
        loss = f"{row['loss']:.4f} ({row['loss_low']:.4f} to {row['loss_high']:.4f})"
        rows.append((f"{row['depth']}", width, cost, f"{more}{row['params_worth']:.0%}", loss, row["is"]))
    others = "" if len(analysis.costs) == 1 else " (the other sizes: costs.csv)"
    return [f"Excess loss of each depth at size {short_number(size)}{others}:", *aligned(rows).splitlines()]


def _best_lines(analysis: SurfaceAnalysis) -> list[str]:
    """A row a size: its best depth or bound with the interval, and the depths that cost less than `within`."""
    costs = {one.question.size: one for one in analysis.costs}
    rows = [("size", "best depth (68%)", "width", f"below {analysis.within:g} {analysis.unit}", "")]
    for model, one in analysis.best:
        if model == AVERAGE:
            flat = " to ".join(map(str, dict.fromkeys(costs[one.size].flat()))) if one.size in costs else ""
            width = float(analysis.rule.width(one.depth, one.size))
            wide = "" if math.isnan(width) else f"{width:,.0f}"
            rows.append((short_number(one.size), _best_words(one), wide, flat, one.status.value))
    return aligned(rows).splitlines()


def _best_words(one: BestDepth) -> str:
    if one.status is SurfaceStatus.DEEPER:
        return f"above {one.low:.1f}"
    if one.status is SurfaceStatus.SHALLOWER:
        return f"below {one.high:.1f}"
    if math.isnan(one.depth):
        return "can't tell"
    return f"{one.depth:.1f} ({one.low:.1f} to {one.high:.1f})"


def penalty_figure(analysis: SurfaceAnalysis) -> Chart | str:
    """Loss above the best of its size against aspect ratio, a panel for each size; or why there is none.

    Line and band: the surface and its 68% interval over the depths that were tried. Points: shapes of about this size,
    each above the best of its own size, by its measured loss.
    """
    surface, rule = analysis.surface, analysis.rule
    if surface.why_untold:
        return surface.why_untold
    if not rule.exact:
        return (
            "the sizes follow no rule of depth and width, so no width of another depth is known; fit networks of one "
            "kind of block alone (--only COLUMN=VALUE)"
        )
    sizes = [size for size in analysis.sizes if _inside(analysis, size)][:PANELS]
    if not sizes:
        return "no asked size lies among the shapes'"
    own = _above_best(analysis, surface.shapes.x, surface.at_one_level)
    panels = [_penalties(analysis, size, own) for size in sizes]
    columns = min(3, len(sizes))
    height = 2.1 * -(-len(sizes) // columns) + 0.5
    return Chart(panels, columns, PAGE, height, share_x=True, share_y=True)


def _penalties(analysis: SurfaceAnalysis, size: float, own: Floats) -> Panel:
    """What an aspect ratio costs at one size; `own` is the cost of each shape at its own."""
    surface, shapes, x = analysis.surface, analysis.surface.shapes, float(np.log(size))
    grid = np.linspace(*answers.tried_depths(shapes, x), DEPTHS)
    losses = surface.losses(np.full_like(grid, x), grid)
    above = losses - lowest(losses, grid)[1][:, None]
    ratio = analysis.rule.width(np.exp(grid), size) / np.exp(grid)
    low, high = np.quantile(above, INTERVAL, axis=0)
    near, small = np.abs(shapes.x - x) < NEAR, {"markersize": 3}
    words = "trained shapes of similar size"
    marks: list[Mark] = [
        Points(ratio, np.median(above, axis=0), "surface at this size", SECOND, line="-"),
        Band(ratio, low, high, "68% of the draws", SECOND),
        Points((shapes.width / shapes.depth)[near], own[near], words, INK, "o", more=small),
        Across(0, label="the best of this size", more={"linewidth": 0.7}),
    ]
    x_axis, y_axis = Span("aspect ratio, width / depth", "log"), Span(f"excess loss ({analysis.unit})")
    return Panel(marks, x_axis, y_axis, f"{short_number(size)} {SIZE_LABELS[analysis.axis]}")


def _inside(analysis: SurfaceAnalysis, size: float) -> bool:
    shapes = analysis.surface.shapes
    return bool(shapes.size.min() * 0.9 <= size <= shapes.size.max() * 1.1)


def _above_best(analysis: SurfaceAnalysis, x: Floats, loss: Floats) -> Floats:
    """(n,) losses less the surface's lowest at their (n,) log sizes."""
    surface = analysis.surface
    best = []
    for value in x:
        grid = np.linspace(*answers.tried_depths(surface.shapes, float(value)), DEPTHS)
        best.append(lowest(surface.fitted(np.full_like(grid, value), grid)[None, :], grid)[1][0])
    return np.asarray(loss - np.array(best), dtype=np.float64)
