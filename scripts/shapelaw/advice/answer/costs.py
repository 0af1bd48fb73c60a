"""What each depth of one size costs by the evidence, and the best depth with a predictive interval; numpy alone.

Costs are losses above the best of the size, of the mean over the evidence's draws. Their intervals, and that of the
best depth, are over draws whose ridge is moved, besides, by what other sources than the evidence differ by, and by more
the farther the question lies outside of it, and whose costs are scaled by what recipes differ by. So the interval is
for another lab's network, not for the evidence's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from shapelaw.advice.answer.sizes import Counting, big
from shapelaw.advice.evidence import clocks
from shapelaw.advice.evidence.clocks import Serving, Times
from shapelaw.advice.evidence.losses import MIDDLE_DEPTH, TABLE, Draws, Floats, draws_of, lowest
from shapelaw.errors import UserError
from shapelaw.specs.sizes import SizeAxis

if TYPE_CHECKING:  # needs pandas, which no other answer does
    from shapelaw.advice.surface.answers import OwnSurface

LOW, HIGH = 0.16, 0.84
DEEPEST = 512
DEPTHS = np.linspace(0.0, math.log(DEEPEST), 201)  # logs of the depths that are compared
OUTSIDE = 3.0  # factor beyond the evidence's sizes within which a cost is told
MOSTLY_EMBEDDING = 10.0  # the same for blocks, where the total is within OUTSIDE
LEAST_TOKENS = 1e9
# factor beyond the evidence's tokens within which a cost is told; those that were held out lay 6 times beyond the rest
MANY_TOKENS = 10.0
LEAST_WIDTH = 16
CONTEXT = 2048  # tokens a window of the evidence's networks, and of a question that doesn't say
TOKENS_A_PARAMETER = 20  # of a question that doesn't say
WITHIN = 0.005  # nats: the cost below which depths count as flat
ROWS = 7
SHOWN = 4.0  # rows reach to depths that cost so many times `within`
# sizes that a cost is worth, over the asked one
SMALLER = np.log([1.0, 0.95, 0.9, 0.8, 0.7, 0.55, 0.4, 0.25, 0.1])
UNTIMED = 1.5  # factor of depth beyond those that were timed up to which times are taken to go on
COARSE = 8  # depths of a grid among which one is looked at first
NUDGE = 0.02  # e-folds of size over which slopes are taken
SETTLED = 1e-5  # change of log depths and sizes at which steps towards equal times end
TURNS = 12  # steps at most


@dataclass(frozen=True)
class Spread:
    """What widens the draws, as standard deviations of log depth, and the last one of log cost.

    Attributes:
        sources: of one source about the mean of sources, beyond the errors of their fits.
        per_log_size: for each e-fold of the blocks outside of the evidence's sizes.
        per_log_tokens: for each e-fold of tokens above the evidence's.
        per_log_fewer: for each e-fold of tokens below them.
        scale: of the scale of costs, by which recipes differ.
    """

    sources: float
    per_log_size: float
    per_log_tokens: float
    per_log_fewer: float
    scale: float


# draws of a loss surface: those of public losses, or of a surface of one's own
Drawn: TypeAlias = "Draws | OwnSurface"


@dataclass(frozen=True)
class Evidence:
    """The draws with what is known about them.

    Attributes:
        draws: the draws.
        spread: what widens them.
        blocks, totals, tokens: smallest and largest of the evidence's networks and budgets.
        clock: the public times.
        name: whose they are.
        block: of their networks, in words.
        grid: (201,) logs of the depths that are compared.
        least_tokens, most_tokens: below and above which nothing follows from them.
        least_size: the smallest size, as the question counts it, whose best loss is known.
        few_shapes: whether intervals of costs are those of few shapes (`interval_of_few`).
        depths: smallest and largest depth of the evidence's networks.
    """

    draws: Drawn
    spread: Spread
    blocks: tuple[float, float]
    totals: tuple[float, float]
    tokens: tuple[float, float]
    clock: clocks.Clock
    name: str
    grid: Floats = field(default_factory=DEPTHS.copy)
    least_tokens: float = LEAST_TOKENS
    most_tokens: float = math.inf
    least_size: float = 0.0
    few_shapes: bool = False
    depths: tuple[float, float] = (1.0, (DEEPEST - 1) / OUTSIDE)
    block: str = ""

    @cached_property
    def normals(self) -> Floats:
        """(D,) normal scores in an order of their own, by which the ridges of the draws are moved."""
        return np.random.default_rng(0).permutation(clocks.normal_scores(len(self.draws)))

    @cached_property
    def recipes(self) -> Drawn:
        """The draws with the costs of other recipes."""
        if not self.spread.scale:
            return self.draws
        assert isinstance(self.draws, Draws)
        scores = np.random.default_rng(1).permutation(clocks.normal_scores(len(self.draws)))
        return self.draws.scaled(self.spread.scale * scores)

    def shift(self, blocks: float, tokens: float) -> float:
        """The standard deviation by which ridges are moved for networks of these blocks and tokens."""
        spread = self.spread
        by_tokens = spread.per_log_tokens if tokens > self.tokens[0] else spread.per_log_fewer
        by_size = spread.per_log_size * outside(blocks, self.blocks)
        return math.hypot(spread.sources, by_size, by_tokens * outside(tokens, self.tokens))

    def moved(
        self, log_blocks: Floats, log_depth: Floats, log_tokens: float, shift: float, errors: Floats | None
    ) -> Floats:
        """(D, p) losses of other recipes, with ridges moved by `shift` standard deviations and blocks by errors."""
        moves = shift * self.normals
        losses = self.recipes.losses(log_blocks, log_depth, log_tokens, moves)
        if errors is None:
            return losses
        larger = self.recipes.losses(log_blocks + NUDGE, log_depth, log_tokens, moves)
        return losses + (larger - losses) / NUDGE * errors

    def beyond(self, blocks: float, total: float | None, depth: float) -> float:
        """E-folds beyond the sizes and best depths at which costs are told; at most 0 where they are.

        They are told for blocks within a factor of three of the evidence's, or for such a total with blocks of ten:
        small totals are embedding for the most part, the evidence's own too. The best depth has to lie within a
        factor of three of its depths.
        """
        out = outside(blocks, self.blocks)
        if total is not None and out <= math.log(MOSTLY_EMBEDDING):
            out = min(out, outside(total, self.totals))
        return max(out, outside(depth, self.depths)) - math.log(OUTSIDE)


def evidence_of(content: Mapping[str, Any]) -> Evidence:
    """The evidence of a file that `shapelaw evidence` wrote."""
    times = content["time"]
    blocks, totals, tokens, depths, levels = (
        (float(content["range"][name][0]), float(content["range"][name][1]))
        for name in ("block_params", "total_params", "tokens", "depth", "level_tokens")
    )
    groups = ((one["form"], one["size"], one["draws"]) for one in content["groups"])
    ends = DEPTHS[[0, -1]]
    # of the smallest and the largest blocks, at the middle depth
    small, large = clocks.log_work(np.log(blocks), np.full(2, MIDDLE_DEPTH), TABLE // 2, CONTEXT).tolist()
    errors = times["work_err"], times["depth_err"] * ends, (small, large), times["per_log_work"]
    clock = clocks.Clock(1.0 - times["work"], ends, -times["depth"] * ends, times["source"], *errors)
    draws, widens = draws_of(groups, levels), Spread(**content["spread"])
    most, block = MANY_TOKENS * tokens[1], content.get("block", "")
    spans = blocks, totals, tokens
    return Evidence(
        draws, widens, *spans, clock, content["name"], most_tokens=most, depths=depths, block=block
    )


def outside(value: float, span: tuple[float, float]) -> float:
    """E-folds by which a value lies outside of a span; 0 inside."""
    return max(0.0, math.log(span[0] / value), math.log(value / span[1]))


@dataclass(frozen=True)
class Question:
    """A size to divide into depth and width.

    Attributes:
        size: as `counting` counts it; with `equal_time` all parameters at the best depth.
        counting: what size means, and the vocabulary.
        tokens: to train on.
        clock: of which machine times are, or how tokens are served.
        context: tokens a window, of which times depend.
        equal_time: compare depths that take the same time, rather than have the same size.
        within: nats that count as nothing.
        asked_depth: with `equal_time` the depth whose time the others have; None is the best one.
        serving: how tokens are served, where that is told too.
    """

    size: float
    counting: Counting
    tokens: float
    clock: Times
    context: int = CONTEXT
    equal_time: bool = False
    within: float = WITHIN
    asked_depth: float | None = None
    serving: Serving | None = None

    @property
    def at_latency(self) -> bool:
        """Whether shapes that decode as quickly are compared."""
        return self.equal_time and self.clock is self.serving

    def log_times(self, log_blocks: Floats, log_depth: Floats) -> Floats:
        """(p,) logs of seconds a token at (p,) logs of blocks and depths."""
        return self.clock.log_times(log_blocks, log_depth, self.counting.vocab_size, self.context)


@dataclass(frozen=True)
class Cost:
    """A depth's loss above the best, in nats with its 68% interval, and what it is worth.

    `params_worth` is the share of its size by which the best shape could be smaller and as good.
    """

    value: float
    low: float
    high: float
    params_worth: float


@dataclass(frozen=True)
class Best:
    """The best depth, with the predictive 68% interval and that of the evidence's own fits."""

    depth: float
    low: float
    high: float
    own_low: float
    own_high: float


@dataclass(frozen=True)
class Costs:
    """The answer to a question.

    Attributes:
        question: the question.
        evidence: the evidence.
        sizes: (201,) sizes along the evidence's `grid`, all the same but at equal time.
        log_blocks: (201,) logs of the parameters of the blocks.
        best: the best depth.
        shift: the standard deviation by which ridges were moved.
        moved_least: (D,) losses of each draw's best depth, with its ridge moved.
        block_errors: (D, 201) errors of `log_blocks` by those of the times; None but at equal time.
    """

    question: Question
    evidence: Evidence
    sizes: Floats
    log_blocks: Floats
    best: Best
    shift: float
    moved_least: Floats
    block_errors: Floats | None = None

    def blocks_at(self, depth: float) -> float:
        """Parameters of the blocks at a depth."""
        return float(np.exp(self._along(np.log([depth]))[0]))

    def _along(self, log_depth: Floats) -> Floats:
        """(p,) logs of the blocks at (p,) logs of depths."""
        return np.asarray(np.interp(log_depth, self.grid, self.log_blocks))

    @property
    def grid(self) -> Floats:
        """(201,) logs of the depths that are compared."""
        return self.evidence.grid

    @property
    def blocks(self) -> float:
        """Parameters of the blocks at the best depth."""
        return self.blocks_at(self.best.depth)

    @property
    def told(self) -> bool:
        """Whether the evidence reaches so far that it can price shapes."""
        evidence = self.evidence
        return evidence.least_tokens <= self.question.tokens <= evidence.most_tokens and self.beyond <= 0.0

    @property
    def beyond(self) -> float:
        """E-folds beyond the sizes and depths at which costs are told; at most 0 where they are."""
        total = self.question.size if self.question.counting.axis is SizeAxis.TOTAL else None
        return self.evidence.beyond(self.blocks, total, self.best.depth)

    @cached_property
    def _least(self) -> float:
        """The mean loss of the best depth."""
        log_depth = np.log([self.best.depth])
        return float(self._middle(self._along(log_depth), log_depth)[0])

    def _moved(self, log_blocks: Floats, log_depth: Floats) -> Floats:
        """(D, p) losses by the draws, with their ridges moved, and at equal time their sizes."""
        errors = self.block_errors
        if errors is not None:
            errors = np.stack([np.interp(log_depth, self.grid, row) for row in errors])
        log_tokens = math.log(self.question.tokens)
        return self.evidence.moved(log_blocks, log_depth, log_tokens, self.shift, errors)

    def _middle(self, log_blocks: Floats, log_depth: Floats) -> Floats:
        """(p,) losses by all draws together."""
        return self.evidence.draws.middle(log_blocks, log_depth, math.log(self.question.tokens))

    @cached_property
    def curve(self) -> Floats:
        """(201,) costs along the evidence's `grid`, in nats."""
        return np.asarray(np.maximum(self._middle(self.log_blocks, self.grid) - self._least, 0.0))

    def at(self, depth: float, blocks: float | None = None) -> Cost:
        """The cost of a depth.

        Args:
            depth: layers.
            blocks: parameters of the blocks, where they are not those that the size leaves to this depth.
        """
        log_depth = np.array([math.log(depth)])
        log_blocks = self._along(log_depth) if blocks is None else np.log([blocks])
        value, low, high = (float(one) for one in self.band(log_depth, log_blocks)[:, 0])
        return Cost(value, low, high, self.worth(value))

    def band(self, log_depth: Floats, log_blocks: Floats) -> Floats:
        """(3, p) costs in nats with the ends of their 68% intervals, at (p,) logs of depths and blocks."""
        value = np.maximum(self._middle(log_blocks, log_depth) - self._least, 0.0)
        moved, least = self._moved(log_blocks, log_depth), self.moved_least
        if self.evidence.few_shapes:
            log_best = np.log([self.best.depth])
            best = self._moved(self._along(log_best), log_best)[:, 0]
            ends = [
                interval_of_few(one, least, best, float(c)) for one, c in zip(moved.T, value, strict=True)
            ]
            low, high = np.array(ends).T
        else:
            low, high = np.quantile(np.maximum(moved - least[:, None], 0.0), (LOW, HIGH), axis=0)
        return np.stack([value, np.minimum(low, value), np.maximum(high, value)])

    def worth(self, cost: float) -> float:
        """The share of the size by which the best shape could be smaller and have this cost.

        It is a bound where `worth_more` says so.
        """
        return float(1.0 - np.exp(np.interp(cost, self._smaller, SMALLER[: len(self._smaller)])))

    def worth_more(self, cost: float) -> bool:
        """Whether `worth` is a bound: the best shape would be smaller than all whose best loss is known."""
        return bool(cost > self._smaller[-1])

    @cached_property
    def _smaller(self) -> Floats:
        """The cost of the best shape of each size of `SMALLER` that the vocabulary leaves room for."""
        counting, sizes = self.question.counting, self.question.size * np.exp(SMALLER)
        least_size = min(self.evidence.least_size, self.question.size)
        scaled = [
            clocks.log_blocks_at(size, counting, self.grid)
            for size in sizes
            if size > counting.fixed and size >= least_size
        ]
        log_tokens = math.log(self.question.tokens)
        least = [lowest_mean(self.evidence.draws, one, self.grid, log_tokens)[1] for one in scaled]
        return np.asarray(np.maximum.accumulate(np.array(least) - least[0]))

    def flat(self, times: float = 1.0) -> tuple[int, int]:
        """The shallowest and the deepest whole depth that cost less than so many times `within`; at least the best."""
        cost = times * self.question.within
        least = int(np.argmin(self.curve))
        over = self.curve > cost
        left, right = np.flatnonzero(over[:least]), np.flatnonzero(over[least:])
        low = self.grid[left[-1] + 1] if len(left) else self.grid[0]
        high = self.grid[least + right[0] - 1] if len(right) else self.grid[-1]
        whole = int(self.best.depth)
        return min(math.ceil(math.exp(low) - 1e-9), whole), max(math.floor(math.exp(high) + 1e-9), whole)

    def rows(self) -> list[int]:
        """About seven whole depths around the flat part, the best one among them."""
        low, high = self.flat(SHOWN)
        best = int(self.best.depth)
        first, last = math.ceil(math.exp(self.grid[0]) - 1e-9), math.floor(math.exp(self.grid[-1]) + 1e-9)
        low, high = min(low, max(best - 1, first)), max(high, min(best + 1, last))
        spread = np.geomspace(low, max(high, low + 1), ROWS)
        nearest = int(np.abs(np.log(spread / best)).argmin())
        return sorted({*(round(depth) for i, depth in enumerate(spread) if i != nearest), best})

    def size_at(self, depth: float) -> float:
        """The size that a depth has in this comparison."""
        return float(np.exp(np.interp(math.log(depth), self.grid, np.log(self.sizes))))

    def relative_time(self, depth: float) -> float:
        """Seconds a token over those of the best depth."""
        logs = np.log([depth, self.best.depth])
        here, best = self.question.log_times(self._along(logs), logs)
        return float(np.exp(here - best))


def lowest_mean(draws: Drawn, log_blocks: Floats, grid: Floats, log_tokens: float) -> tuple[float, float]:
    """The log depth on a (201,) grid at which all draws together lose the least, and the loss there.

    The mean has one minimum, so every eighth depth tells where it lies.
    """
    near = COARSE * int(draws.middle(log_blocks[::COARSE], grid[::COARSE], log_tokens).argmin())
    part = slice(max(near - COARSE, 0), near + COARSE + 1)
    place, loss = lowest(draws.middle(log_blocks[part], grid[part], log_tokens)[None], grid[part])
    return float(place[0]), float(loss[0])


def interval_of_few(losses: Floats, least: Floats, best: Floats, value: float) -> tuple[float, float]:
    """The 68% interval of a cost by a surface of few shapes, on which some depth has the least loss by chance.

    So a draw's own least is too low, and costs above it are never nothing: of shapes that cost nothing 12 to 31% of
    the draws' 68% intervals held that. The lower end is the lowest of the draws' against the fitted best depth and of
    the upper one, reflected about the cost (the basic bootstrap, Davison and Hinkley 1997, 5.2.1).

    Args:
        losses: (D,) of the shape, a draw each.
        least: (D,) of the draw's own best depth.
        best: (D,) of the depth that all draws together have as best.
        value: the cost, in nats.
    """
    high = float(np.quantile(np.maximum(losses - least, 0.0), HIGH))
    low = min(float(np.quantile(losses - best, LOW)), 2.0 * value - high, value)
    return max(0.0, low), max(high, value)


def ask(evidence: Evidence, question: Question) -> Costs:
    """The costs of depths, and the best one.

    Raises:
        UserError: the vocabulary leaves no room for blocks, or at equal time the best depth is far from those timed.
    """
    counting, grid = question.counting, evidence.grid
    if counting.width_at(question.size, 1.0) < LEAST_WIDTH:
        raise UserError(
            f"{big(question.size)} parameters have no room for blocks beside a vocabulary of {counting.vocab_size:,}: "
            f"one layer would be narrower than {LEAST_WIDTH}. Take a larger size, a smaller vocabulary, or --tied."
        )
    sizes = np.full_like(grid, question.size)
    if question.equal_time:
        sizes = _at_equal_time(evidence, question)
    log_blocks = clocks.log_blocks_at(sizes, question.counting, grid)
    log_tokens = math.log(question.tokens)
    own = evidence.draws.losses(log_blocks, grid, log_tokens)
    together = own.mean(axis=0)
    middle = float(lowest(together[None], grid)[0][0])
    blocks = float(np.exp(np.interp(middle, grid, log_blocks)))
    shift = evidence.shift(blocks, question.tokens)
    same = middle if question.asked_depth is None else math.log(question.asked_depth)
    errors = _block_errors(evidence, question, sizes, same) if question.equal_time else None
    unmoved = shift == 0.0 and errors is None and evidence.recipes is evidence.draws
    moved = own if unmoved else evidence.moved(log_blocks, grid, log_tokens, shift, errors)
    places, moved_least = lowest(moved, grid)
    ends = [np.quantile(one, (LOW, HIGH)) for one in (places, lowest(own, grid)[0])]
    low, high, own_low, own_high = (math.exp(one) for one in np.concatenate(ends))
    beside = [max(1.0, math.floor(math.exp(middle))), max(1.0, math.ceil(math.exp(middle)))]
    depth = min(beside, key=lambda one: float(np.interp(math.log(one), grid, together)))
    first, last = (math.exp(question.clock.log_depth[end]) for end in (0, -1))
    if question.equal_time and not first / UNTIMED <= depth <= last * UNTIMED:
        raise UserError(
            f"By the times of {question.clock.source}, of {first:.0f} to {last:.0f} layers, the best depth at equal "
            f"time lies beyond them (about {depth:.0f}), where none were measured; time more depths: shapelaw speed "
            "--depths."
        )
    own_low, own_high = min(own_low, depth), max(own_high, depth)
    best = Best(depth, min(low, own_low), max(high, own_high), own_low, own_high)
    return Costs(question, evidence, sizes, log_blocks, best, shift, moved_least, errors)


def _block_errors(evidence: Evidence, question: Question, sizes: Floats, log_same: float) -> Floats:
    """(D, 201) errors of the logs of blocks at equal time: a depth that is slower than thought has fewer.

    They are against the depth whose log is `log_same`, whose size is the asked one whatever the times are.
    """
    grid, counting = evidence.grid, question.counting
    log_blocks, larger = (
        clocks.log_blocks_at(factor * sizes, counting, grid) for factor in (1.0, math.exp(NUDGE))
    )
    slower = question.log_times(larger, grid) - question.log_times(log_blocks, grid)
    rate = slower / (larger - log_blocks)
    places = np.append(grid, log_same)
    blocks = np.append(log_blocks, np.interp(log_same, grid, log_blocks))
    off = question.clock.errors(blocks, places, counting.vocab_size, question.context, len(evidence.draws))
    return np.asarray((off[:, -1:] - off[:, :-1]) / rate)


def _at_equal_time(evidence: Evidence, question: Question) -> Floats:
    """(201,) sizes that take as long as the asked size takes at the question's depth, or at that which is then best."""
    log_tokens, at, grid = math.log(question.tokens), math.log(question.asked_depth or 24.0), evidence.grid
    sizes = np.full_like(grid, question.size)
    asked = question.log_times(clocks.log_blocks_at(sizes, question.counting, grid), grid)
    for _ in range(TURNS):
        wanted = float(np.interp(at, grid, asked))
        sizes = as_quick(question, wanted, sizes, grid)
        log_blocks, before = clocks.log_blocks_at(sizes, question.counting, grid), at
        if question.asked_depth is None:
            at, _ = lowest_mean(evidence.draws, log_blocks, grid, log_tokens)
        if abs(at - before) < SETTLED:
            break
    return sizes


def as_quick(question: Question, wanted: float, sizes: Floats, log_depth: Floats) -> Floats:
    """(p,) sizes that take `wanted`, a log of seconds a token, at (p,) logs of depths, by secants from (p,) `sizes`.

    A depth that has no size so quick, beside its embedding or its launches, gets nearly none.
    """
    counting = question.counting
    least = 1.01 * counting.fixed + 1e4

    def off(log_sizes: Floats) -> Floats:
        log_blocks = clocks.log_blocks_at(np.exp(log_sizes), counting, log_depth)
        return question.log_times(log_blocks, log_depth) - wanted

    before = np.log(sizes)
    missed, now = off(before), before + 0.1
    for _ in range(TURNS):
        here = off(now)
        slope = np.clip((here - missed) / np.where(now == before, 1.0, now - before), 0.05, 2.0)
        before, missed = now, here
        now = np.maximum(now - np.clip(here / slope, -2.0, 2.0), math.log(least))
        if np.abs(now - before).max() < SETTLED:
            break
    return np.exp(now)
