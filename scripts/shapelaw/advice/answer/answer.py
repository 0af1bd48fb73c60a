"""The answer for one size as data: what depths cost, the best one, who says so, and what people ship; numpy alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from shapelaw.advice.answer.costs import OUTSIDE, Best, Cost, Costs, Question, ask, outside
from shapelaw.advice.answer.sizes import SizedShape, big, shape_of_size
from shapelaw.advice.evidence.clocks import Times, log_blocks_at
from shapelaw.advice.evidence.losses import FEW_TOKENS
from shapelaw.advice.evidence.public import (
    Network,
    Transitions,
    machine_clock,
    public_evidence,
    published_law,
    shipped_models,
)
from shapelaw.errors import UserError
from shapelaw.specs.sizes import SizeAxis

if TYPE_CHECKING:  # needs pandas, which no other answer does
    from shapelaw.advice.surface.answers import OwnSurface

NEAREST = 3
NEARLY = 0.02  # log size
BADLY = 0.01  # chance of their scatter below which transitions don't lie on their law
ENOUGH_TOKENS = 3e10  # at which both labs have runs
FEW = 4  # transitions that are fewer widen a law's interval


@dataclass(frozen=True)
class Priced:
    """A network with the costs of depths of its own size, and its own against the best.

    Both are None where the evidence can't tell them, and for a network made from another.
    """

    network: Network
    own: Costs | None
    cost: Cost | None


@dataclass(frozen=True)
class Verdict:
    """What the best shape of a network's own size and clock would change.

    Attributes:
        best: that shape, and `cost` the network's cost against it.
        slower: its training time a token over the network's, minus 1.
        decoding: the same of a decoded token; None where it isn't said how they are served.
        at_equal_time: the network's cost against the best shape that takes its time, None where that can't be told.
    """

    best: SizedShape
    cost: Cost
    slower: float
    decoding: float | None
    at_equal_time: Cost | None

    def keeps(self, within: float) -> bool:
        """Whether nothing is gained by another shape at equal size, or nothing at equal time."""
        timed = self.at_equal_time
        return self.cost.value < within or (self.slower > 0 and timed is not None and timed.value < within)


@dataclass(frozen=True)
class Row:
    """A depth of the asked size: a shape for it, its cost, and seconds a token over those of the best depth."""

    sized: SizedShape
    cost: Cost
    time: float


@dataclass(frozen=True)
class Witness:
    """Who says what about the best depth.

    Attributes:
        name, block: who, with which block.
        depth, low, high: the best depth with the error of the fit alone; infinite where it has none.
        sizes: parameters of the blocks that it was measured at.
        beyond: the factor by which the asked size lies outside of them; 1 inside.
        remarks: what weakens it, in sentences.
        said: in place of a depth: a bound, or that it can't be told.
        bound: whether that is a bound.
    """

    name: str
    block: str
    depth: float
    low: float
    high: float
    sizes: tuple[float, float]
    beyond: float
    remarks: tuple[str, ...] = ()
    said: str = ""
    bound: bool = False

    @property
    def inside(self) -> bool:
        """Whether the asked size is one that it was measured at."""
        return self.beyond <= 1.0 + NEARLY


Tells = Callable[[Question], Costs | None]  # the costs of any question; None where it tells none


@dataclass(frozen=True)
class ShapeAnswer:
    """The answer for a size.

    Attributes:
        question: the question.
        costs: what the evidence says, or where it doesn't reach and a surface of one's own does, what that says.
        best: the best depth with its predictive interval; by the own fit where the evidence doesn't reach.
        by: who says so; empty where nobody can.
        advised: the shape of the best depth; None where it can't be told.
        rows: the table of costs; empty where the evidence can't tell them.
        witnesses: in the order in which they are heard.
        shipped: the networks of the nearest sizes.
        given: the user's shape.
        equal_times: the best depth at equal time by the machine's name, and at equal latency, where that is another
            question.
        verdict: on the user's shape, where its cost is known.
        vocabulary: the sizes of vocabulary that the published law takes, smallest and largest.
        nearest: where nobody can tell the best depth, the costs of the nearest question that the evidence answers.
        bound: there the source that has measured at this size and bounds the best depth, if one does.
        enough: where tokens are so few that the runs of one lab decide, the costs at `ENOUGH_TOKENS`.
    """

    question: Question
    costs: Costs
    best: Best
    by: str
    advised: SizedShape | None
    rows: tuple[Row, ...]
    witnesses: tuple[Witness, ...]
    shipped: tuple[Priced, ...]
    given: Priced | None
    equal_times: Mapping[str, Best]
    verdict: Verdict | None
    vocabulary: tuple[float, float] | None
    nearest: Costs | None
    bound: Witness | None
    enough: Costs | None


def public_answer(
    question: Question, own: Transitions | OwnSurface | None = None, given: Network | None = None
) -> ShapeAnswer:
    """The answer by the committed fits and the published law.

    Args:
        question: size, vocabulary, tokens; its clock may be `public_evidence().clock`.
        own: a law of the user's own transitions, or a surface of own shapes.
        given: a shape to price.

    Raises:
        UserError: the vocabulary leaves no room for blocks.
    """
    evidence, laws, surface = public_evidence(), [published_law()], None
    if isinstance(own, Transitions):
        laws.insert(0, own)
    else:
        surface = own
    costs = ask(evidence, question)
    witnesses = [_of_evidence(costs), *(_of_law(law, costs) for law in laws)]
    if surface is not None:
        witnesses.insert(1, surface.witness(question))
    if question.counting.block == "gpt2":
        witnesses.sort(key=lambda one: one.block == evidence.block)
    name, tells = evidence.name, _told
    if surface is not None and not costs.told:
        mine = partial(surface.costs, per_log_tokens=evidence.spread.per_log_tokens)
        if (found := mine(question)) is not None:
            costs, name, tells = found, surface.source, mine
    best, by = (costs.best, name) if costs.told else _by_own(costs, laws)
    shown = costs.rows() if costs.told else ()
    rows = tuple(Row(_shape(costs, one), costs.at(one), costs.relative_time(one)) for one in shown)
    advised = _shape(costs, whole(best.depth)) if by else None
    shape = None if advised is None else advised.shape
    clocks = [] if question.equal_time or not costs.told else _clocks(question)
    timed = {clock.name: tells(replace(_timed(question, costs), clock=clock)) for clock in clocks}
    priced = None if given is None else price(given, question, tells)
    return ShapeAnswer(
        question,
        costs,
        best,
        by,
        advised,
        rows,
        tuple(witnesses),
        tuple(price(network, question) for network in _nearest(question)),
        priced,
        {name: found.best for name, found in timed.items() if found is not None},
        None if priced is None else _verdict(priced, question, tells),
        None if shape is None else vocabulary_of_law(shape.block_params, shape.width),
        None if by else _nearest_told(question),
        None if by else next((one for one in witnesses if one.bound and one.inside), None),
        _told(replace(question, tokens=ENOUGH_TOKENS))
        if by == evidence.name and question.tokens < FEW_TOKENS
        else None,
    )


def _clocks(question: Question) -> list[Times]:
    """By what the best depths at equal time are told beside an answer at equal size."""
    clocks: list[Times] = [question.clock]
    if question.clock is public_evidence().clock:  # nobody chose a machine
        clocks.append(machine_clock("h200", question.counting.vocab_size, question.context))
    if question.serving is not None:
        clocks.append(question.serving)
    return clocks


def times(factor: float) -> str:
    """`3.9 times`, `27 times`."""
    return f"{factor:.2g} times" if factor < 10 else f"{float(f'{factor:.2g}'):,.0f} times"


def whole(depth: float) -> int:
    """The nearest number of layers, at least one."""
    return max(1, round(depth))


def _told(question: Question) -> Costs | None:
    """The costs of a question; None where the evidence doesn't reach, the vocabulary leaves no room for standard
    blocks, or depths were never timed."""
    try:
        found = ask(public_evidence(), question)
    except UserError:
        return None
    return found if found.told else None


def _nearest_told(question: Question) -> Costs | None:
    """The costs of the nearest question that the evidence answers, in tokens first, else in size, to a fiftieth."""
    evidence = public_evidence()
    tokens = min(max(question.tokens, evidence.least_tokens), evidence.most_tokens)
    asked = replace(question, tokens=tokens)
    outside_at, inside_at = math.log(question.size), sum(map(math.log, evidence.totals)) / 2
    found = _told(asked) or _told(replace(asked, size=math.exp(inside_at)))
    while found is not None and found.question.size != question.size and abs(outside_at - inside_at) > NEARLY:
        middle = (outside_at + inside_at) / 2
        if (nearer := _told(replace(asked, size=math.exp(middle)))) is None:
            outside_at = middle
        else:
            found, inside_at = nearer, middle
    return found


def _verdict(priced: Priced, question: Question, tells: Tells) -> Verdict | None:
    """What is to be said of a network whose cost is known."""
    network, own = priced.network, priced.own
    if own is None or priced.cost is None:
        return None
    asked, depth = own.question, whole(own.best.depth)
    best = shape_of_size(asked.size, depth, network.counting)
    blocks, depths = np.log([network.block_params, own.blocks]), np.log([network.depth, depth])
    mine, theirs = asked.log_times(blocks, depths)
    counting = replace(network.counting, axis=SizeAxis.TOTAL)
    same_time = replace(
        asked, size=network.total_params, counting=counting, equal_time=True, asked_depth=float(network.depth)
    )
    timed = tells(same_time)
    decoding, serving, shape = None, question.serving, best.shape
    if serving is not None and network.kv_width is not None:
        weights = network.block_params + network.width * counting.vocab_size
        decoding = serving.of(shape)[2] / serving.seconds(weights, network.depth, network.kv_width) - 1.0
    return Verdict(
        best,
        priced.cost,
        math.expm1(theirs - mine),
        decoding,
        None if timed is None else timed.at(network.depth, network.block_params),
    )


def _timed(question: Question, costs: Costs) -> Question:
    """The same question at equal time, of all parameters."""
    counting = replace(question.counting, axis=SizeAxis.TOTAL)
    size = question.size
    if question.counting.axis is not SizeAxis.TOTAL:
        size = float(counting.size(_shape(costs, whole(costs.best.depth)).shape))
    return replace(question, size=size, counting=counting, equal_time=True)


def _shape(costs: Costs, depth: int) -> SizedShape:
    """The shape of a depth; at equal latency preferably one whose own heads of keys decode as quickly."""
    question, size = costs.question, costs.size_at(depth)
    if not question.at_latency or question.serving is None:
        return shape_of_size(size, depth, question.counting)
    serving, log_depth = question.serving, np.log([depth])
    log_blocks = log_blocks_at(size, question.counting, log_depth)
    wanted = float(question.log_times(log_blocks, log_depth)[0])
    return shape_of_size(
        size, depth, question.counting, lambda shape: abs(math.log(serving.of(shape)[2]) - wanted)
    )


def _of_evidence(costs: Costs) -> Witness:
    best, evidence = costs.best, costs.evidence
    beyond = math.exp(outside(costs.blocks, evidence.blocks))
    remarks = []
    if (out := outside(costs.question.tokens, evidence.tokens)) > 0:
        low, high = map(big, evidence.tokens)
        remarks.append(
            f"Its losses are at {low} to {high} tokens; these are {times(math.exp(out))} "
            f"{'fewer' if costs.question.tokens < evidence.tokens[0] else 'more'}, so its intervals are wider."
        )
    depths = best.depth, best.own_low, best.own_high
    return Witness(evidence.name, evidence.block, *depths, evidence.blocks, beyond, tuple(remarks))


def _of_law(law: Transitions, costs: Costs) -> Witness:
    """What a law says; at equal time nothing, since it compares equal sizes and knows no costs."""
    timed = costs.question.equal_time
    depth, low, high = (math.inf,) * 3 if timed else law.depth(costs)
    blocks = costs.blocks if not math.isfinite(depth) else costs.blocks_at(depth)
    remarks = []
    if law.p_value < BADLY:
        from shapelaw.fits.noise import chance_words  # imports pandas, a second that no other answer needs

        remarks.append(
            f"Its {law.count} transitions don't lie on it ({chance_words(law.p_value)}), so the interval is widened by "
            "their scatter and the law is a poor guide."
        )
    if law.count < FEW:
        remarks.append(f"It rests on {law.count} transitions, so the interval is widened as Student's.")
    beyond, said = math.exp(outside(blocks, law.sizes)), "compares equal sizes alone" if timed else ""
    return Witness(law.source, law.block, depth, low, high, law.sizes, beyond, tuple(remarks), said)


def _by_own(costs: Costs, laws: Sequence[Transitions]) -> tuple[Best, str]:
    """The best depth by the user's own law where it reaches the size, as wide as sources differ; else by nobody."""
    for law in laws:
        depth, low, high = law.depth(costs)
        if law.own and all(map(math.isfinite, (depth, low, high))):
            if outside(costs.blocks_at(depth), law.sizes) > math.log(OUTSIDE):
                continue
            more = costs.evidence.spread.sources
            down, up = (math.hypot(math.log(end / depth), more) for end in (low, high))
            return Best(depth, max(1.0, depth * math.exp(-down)), depth * math.exp(up), low, high), law.source
    return costs.best, ""


def price(network: Network, question: Question, tells: Tells = _told) -> Priced:
    """The cost of a network against the best of its own size, at its own tokens if known, by who answers it."""
    asked = replace(question, size=network.size(), counting=network.counting, equal_time=False)
    own = None if network.origin else tells(replace(asked, tokens=network.tokens or asked.tokens))
    return Priced(network, own, None if own is None else own.at(network.depth, network.block_params))


def _nearest(question: Question) -> list[Network]:
    """The shipped networks of the nearest sizes, to a percent, the newest first; one of each depth and width.

    None that is more than `OUTSIDE` times away.
    """

    def far(one: Network) -> tuple[float, int]:
        return round(abs(math.log(one.size() / question.size)), 2), -one.year

    by_shape: dict[tuple[int, int], Network] = {}
    for one in sorted(shipped_models(question.counting.axis), key=far):
        if far(one)[0] <= math.log(OUTSIDE):
            by_shape.setdefault((one.depth, one.width), one)
    return list(by_shape.values())[:NEAREST]


def vocabulary_of_law(block_params: float, width: int) -> tuple[float, float]:
    """The vocabulary that a published law takes, by two of its three fits: smallest and largest.

    Tao et al. 2024, "Scaling laws with vocabulary", for compute-optimal tokens: N_v = V d follows from the other
    parameters N_nv, by isoFLOPs (N_nv and N_v against C) and by the derivative.
    """
    compute = (block_params / math.exp(-2.48465)) ** 2
    by_flops = math.exp(-1.58903) * compute**0.41636
    by_derivative = 3_145_728 * (block_params / 33e6) ** 0.8354
    low, high = sorted((by_flops / width, by_derivative / width))
    return low, high
