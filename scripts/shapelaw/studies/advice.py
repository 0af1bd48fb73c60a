"""The law to advise by, published or a fit of one's own, and advice in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError
from shapelaw.fits.advice import Advice, Budget, advise, params_of, rounded_shape
from shapelaw.fits.forms import FARTHEST, Form, log_width_of
from shapelaw.fits.inputs import check_transitions, read_table
from shapelaw.fits.projection import standard_params, why_no_projection
from shapelaw.report.bottleneck_table import findings_of, sentences
from shapelaw.specs.architectures import Architecture, make_architecture
from shapelaw.specs.shapes import Shape
from shapelaw.studies.measured import known_redundancies
from shapelaw.studies.transitions.analysis import (
    TransitionAnalysis,
    analyse_transitions,
    crossings,
    published,
)

PUBLISHED = "published"
LEAST_WEIGHT = 0.01  # of a form that is named
PUBLISHED_SOURCE = "Levine et al. 2020, table 4a"


@dataclass(frozen=True)
class Law:
    """Forms of log transition width against depth, with the sizes at which they were measured.

    Attributes:
        forms: the forms by weight.
        source: where its transitions come from.
        depths: smallest and largest depth of a transition.
        sizes: parameters of the blocks at the smallest and at the largest transition.
    """

    forms: tuple[Form, ...]
    source: str
    depths: tuple[int, int]
    sizes: tuple[float, float]


@dataclass(frozen=True)
class Answer:
    """Advice for a budget.

    Attributes:
        budget: the budget.
        law: the law.
        advice: the best real depth and width.
        by_form: the same by each form alone, where its weight is 1% or more.
        shape: a shape near it that hardware likes.
        given: an architecture to judge, or None.
    """

    budget: Budget
    law: Law
    advice: Advice
    by_form: Mapping[str, Advice]
    shape: Shape
    given: Architecture | None

    @property
    def bottlenecks(self) -> list[str]:
        """A sentence for each bottleneck of the shape to train and of the given one."""
        rank = self.budget.rank
        advised = make_architecture(
            "The shape to train",
            vocab_size=self.budget.vocab_size,
            embedding_rank=rank,
            width=self.shape.width,
            heads=self.shape.heads,
            depth=self.shape.depth,
        )
        measured = known_redundancies()
        asked = [advised] if self.given is None else [advised, self.given]
        return [sentences(finding) for one in asked for finding in findings_of(one, measured)]


def read_law(fit: str) -> Law:
    """The published law, or that of a folder of results.

    Args:
        fit: `published`, or a folder in which `fit_transitions.py` or its study wrote transitions.csv.

    Raises:
        UserError: the folder has no transitions, or no rising line goes through them.
    """
    if fit == PUBLISHED:
        return _law(
            analyse_transitions(check_transitions(published("transitions"), PUBLISHED)), PUBLISHED_SOURCE
        )
    path = Path(fit) / "transitions.csv"
    if not path.is_file() and (Path(fit) / "best_depth.csv").is_file():
        raise UserError(
            f"--fit {fit} has a surface of fit_surface.py, which answers for its own range of sizes; ask it for yours: "
            "fit_surface.py --sizes SIZE."
        )
    if not path.is_file():
        raise UserError(
            f"--fit {fit} has no transitions.csv; give `{PUBLISHED}`, or the folder that fit_transitions.py wrote."
        )
    return _law(analyse_transitions(check_transitions(read_table(path), str(path))), str(path))


def _law(analysis: TransitionAnalysis, source: str) -> Law:
    reason = why_no_projection(analysis.fit)
    used = crossings(analysis.transitions, analysis.method)
    if reason or not analysis.forms:
        raise UserError(
            f"{source} gives no law to advise by ({reason or 'too few transitions'}); it takes 3 transitions on a "
            f"rising line. Use --fit {PUBLISHED}, or add depths."
        )
    sizes = standard_params(used["depth"], used["width"])
    depths = int(used["depth"].min()), int(used["depth"].max())
    return Law(analysis.forms, source, depths, (float(sizes.min()), float(sizes.max())))


def answer(budget: Budget, law: Law, given: Architecture | None = None) -> Answer:
    """Advice for a budget by a law.

    Args:
        given: an architecture with a depth, to judge beside it.

    Raises:
        UserError: the embedding alone takes the budget.
    """
    advice = advise(law.forms, budget)
    if not math.isfinite(advice.depth):
        raise UserError(
            f"By {law.source} no depth up to {FARTHEST:,.0f} layers is worth {budget.params:.3g} parameters; the law "
            "does not reach so far. Take a smaller budget."
        )
    by_form = {form.name: advise([form], budget) for form in law.forms if form.weight >= LEAST_WEIGHT}
    return Answer(budget, law, advice, by_form, rounded_shape(budget, advice.depth), given)


def as_json(found: Answer) -> dict[str, Any]:
    """The numbers of an answer; None for what is infinite."""
    numbers = {name: value if math.isfinite(value) else None for name, value in asdict(found.advice).items()}
    shape = found.shape
    return {
        "params": found.budget.params,
        **numbers,
        "shape": {
            "depth": shape.depth,
            "width": shape.width,
            "heads": shape.heads,
            "head_dim": shape.attention_dim,
            "params": params_of(shape, found.budget),
            "block_params": shape.block_params,
        },
        "law": {
            "source": found.law.source,
            "forms": {form.name: form.weight for form in found.law.forms},
            "depths": found.law.depths,
            "block_params": found.law.sizes,
        },
        "range": range_of(found),
        "bottlenecks": found.bottlenecks,
        "given": None
        if found.given is None
        else {"depth": found.given.depth, "width": found.given.width, "verdict": verdict(found)},
    }


def range_of(found: Answer) -> str:
    """`measured`, or `extrapolated`, with the factor by which the size is outside of what the law was measured at."""
    low, high = found.law.sizes
    size = found.advice.block_params
    if size > high:
        return f"extrapolated: {size / high:,.3g} times the largest size at which the law was measured"
    if size < low:
        return f"extrapolated: {low / size:,.3g} times below the smallest size at which the law was measured"
    return "measured: within the sizes at which the law was measured"


def verdict(found: Answer) -> str:
    """The given shape beside the advice, in a sentence."""
    given, advice = found.given, found.advice
    assert given is not None
    assert given.depth is not None
    name = f"{_layers(given.depth)} of width {given.width:,}"
    if given.depth > advice.depth_high:
        side = "deeper than advised: width would serve it better"
    elif given.depth < advice.depth_low:
        side = "shallower than advised: depth would serve it better"
    else:
        return f"{name}: within the interval."
    log_width, _ = log_width_of(found.law.forms[0], [float(given.depth)])
    worth = float(standard_params(given.depth, math.exp(float(log_width[0]))))
    has = float(standard_params(given.depth, given.width))
    return (
        f"{name} is {side}. By the law {given.depth} layers are best for {big(worth)} parameters in blocks; at 12 d² a "
        f"block it has {big(has)}."
    )


def text_of(found: Answer) -> str:
    """The answer in plain words, a paragraph for each question."""
    budget, advice, shape, law = found.budget, found.advice, found.shape, found.law
    ties = "tied" if budget.tied else "untied"
    rank = "" if budget.rank is None else f", embedding rank {budget.rank:,}"
    lines = [
        f"Budget: {big(budget.params)} parameters, vocabulary {budget.vocab_size:,}{rank}, {ties} classifier.",
        "",
        f"Best depth: {_depths(advice)}, width {advice.width:,.0f} ({advice.width_low:,.0f} to "
        f"{advice.width_high:,.0f}).",
        f"A shape to train: {_layers(shape.depth)} of width {shape.width:,}, {shape.heads} heads of "
        f"{shape.attention_dim}: {params_of(shape, budget):,} parameters, {shape.block_params:,} in blocks.",
        "",
        f"The law: {law.source}, transitions at {law.depths[0]} to {law.depths[1]} layers, {big(law.sizes[0])} to "
        f"{big(law.sizes[1])} parameters in blocks. This size is {range_of(found)}.",
        "The interval contains the law's errors and the doubt which form it has. It is of the law's data, block,",
        "learning rate and number of steps, and says nothing about others. By each form alone:",
        *(
            f"  {form.name}, weight {form.weight:.0%}: {_depths(found.by_form[form.name])}"
            for form in law.forms
            if form.name in found.by_form
        ),
    ]
    if advice.depth <= 1.0:
        lines.append("One layer is the least there is; below this size the law says nothing else.")
    if found.given is not None:
        lines += ["", "Your shape: " + verdict(found)]
    lines += ["", *found.bottlenecks]
    return "\n".join(lines)


def _layers(depth: float) -> str:
    number = f"{depth:.1f}".removesuffix(".0") if depth < 10 else f"{depth:,.0f}"
    return f"{number} layer{'' if number == '1' else 's'}"


def _depths(advice: Advice) -> str:
    """`41 layers (68%: 40 to 42)`."""
    low, high = (
        _layers(depth).split()[0] if math.isfinite(depth) else "no limit"
        for depth in (advice.depth_low, advice.depth_high)
    )
    if not math.isfinite(advice.depth):
        return f"no depth up to {FARTHEST:,.0f} layers (68%: {low} to {high})"
    return f"{_layers(advice.depth)} (68%: {low} to {high})"


def big(number: float) -> str:
    """`1.3 billion`, `245 million`, `319,000`."""
    for unit, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return f"{float(f'{number:.3g}'):,.0f}"
