"""The numbers of a page with what `shapelaw shape` answers for every size.

The rule stands in `costs.py`. The page carries its answers on a grid, and its script interpolates them
linearly and draws. A grid over vocabularies would have cells without room for blocks. But what embeddings leave depends
on the number R of their rows (V, or 2 V untied) over the root of the size alone, since a width d with
12 L d² + R d = P is sqrt(P) times a function of L and R / sqrt(P). So that is an axis, and all its cells have room.

Costs are kept as roots, at distances in log depth from the best one: there a U is nearly straight on either side, and
changes slowly with size and tokens.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from shapelaw.advice.answer.answer import Network, Transitions, costs_if_any, of_own_size
from shapelaw.advice.answer.costs import (
    DEEPEST,
    LEAST_TOKENS,
    OUTSIDE,
    SHOWN,
    TOKENS_A_PARAMETER,
    Costs,
    Evidence,
    Question,
    ask,
)
from shapelaw.advice.evidence.clocks import log_blocks_at
from shapelaw.advice.evidence.losses import FEW_TOKENS, Floats
from shapelaw.advice.models.bottlenecks import redundancy_text
from shapelaw.fits.projection import FARTHEST
from shapelaw.fits.redundancy import RANK, Series, estimate, rank_setting
from shapelaw.specs.sizes import Counting, SizeAxis

SIZES = np.geomspace(5e6, 2e10, 13)
# rows of embedding and classifier, over the root of the size
ROWS = np.array([0.0, 0.4, 1.0, 2.0, 3.5, 6.0, 10.0, 16.0, 26.0, 45.0, 80.0])
# log depths from the best one at which a cost is kept
OFFSETS = np.array([-4.0, -2.8, -2.0, -1.4, -1.0, -0.7, -0.4, -0.2, 0.0, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 2.8])
LARGEST_COST = 4.0  # nats that the page tells apart
LAYERS = np.geomspace(1, DEEPEST, 13)
WIDTHS = np.geomspace(16, 65536, 13)
VOCABULARIES = np.geomspace(16, 1e6, 9)
STRENGTHS = np.geomspace(1.02, 100.0, 48)  # d / rank; between them the page takes the nearest
MODEL_TOKENS = [0, 3, 4, 8]  # of the grid's tokens, those at which shipped models are priced
LEAST_STEP = 1e-8  # of a packed table
NEAR = 0.3  # log size within which a shipped model is shown
# coarser, of the best depths at equal time: every second size and number of rows
TIMED_SIZES, TIMED_ROWS, TIMED_TOKENS = SIZES[::2], ROWS[::2], [0, 2, 3, 5, 6, 8]
EXAMPLES = {
    "size": "1.3B",
    "vocab": "32k",
    "tokens": "30B",
    "depth": "24",
    "rank": "128",
    "positions": "1024",
}


def packed(axes: Sequence[Floats], values: npt.ArrayLike) -> dict[str, Any]:
    """A table on a grid in a few bytes: 65,536 steps from the least to the largest value of each column.

    A column that hardly varies has steps of LEAST_STEP: finer ones would hold what rounding left.

    Args:
        axes: coordinates of the grid.
        values: (of the axes' lengths, and columns).
    """
    table = np.asarray(values, dtype=np.float64).reshape(*map(len, axes), -1)
    columns = table.reshape(-1, table.shape[-1])
    least, largest = columns.min(axis=0), columns.max(axis=0)
    step = np.maximum((largest - least) / 65535, LEAST_STEP)
    data = np.round((table - least) / step).astype("<u2").tobytes()
    return {
        "axes": [[round(float(one), 5) for one in axis] for axis in axes],
        "least": least.tolist(),
        "step": step.tolist(),
        "data": base64.b64encode(data).decode("ascii"),
    }


def tokens_of(evidence: Evidence) -> Floats:
    """Tokens of the grid: intervals widen from the evidence's first and last ones on, and ridges bend at few tokens."""
    (first, last), few = evidence.tokens, FEW_TOKENS
    between = math.sqrt(first * few), few, math.sqrt(few * last)
    return np.array([LEAST_TOKENS, first, *between, *np.geomspace(last, 2e13, 4)])


def answers(question: Question, evidence: Evidence, laws: Sequence[Transitions]) -> dict[str, Any]:
    """The grid of answers.

    Args:
        question: its clock and block hold for the page.
        evidence: the fits.
        laws: witnesses.
    """
    tokens = tokens_of(evidence)
    best, costs, widths, witnesses = [], [], [], []
    for size, rows in product(SIZES, ROWS):
        counting = Counting(vocab_size=round(rows * math.sqrt(size)), tied=True)
        widths.append([math.log(counting.width_at(size, depth)) for depth in LAYERS])
        cells = [ask(evidence, replace(question, size=size, counting=counting, tokens=one)) for one in tokens]
        witnesses.append([np.minimum(law.depth(cells[0]), FARTHEST) for law in laws])
        best += [_best(cell) for cell in cells]
        costs += [_roots(cell) for cell in cells]
    places = [np.log(SIZES), np.log1p(ROWS)]
    return {
        "best": packed([*places, np.log(tokens)], best),
        "cost": packed([*places, np.log(tokens)], costs),
        "width": packed([*places, np.log(LAYERS)], widths),
        "law": packed(places, witnesses),
        "offsets": OFFSETS.tolist(),
    }


def _best(cell: Costs) -> list[float]:
    """Logs of the best depth and its intervals, and how far beyond the evidence by all parameters and by blocks."""
    best = cell.best
    ends = [math.log(one) for one in (best.low, best.high, best.own_low, best.own_high)]
    return [cell.log_best, *ends, cell.beyond, cell.evidence.beyond(cell.blocks, None, cell.best.depth)]


def _roots(cell: Costs) -> Floats:
    """(3 p,) roots of costs and of both ends of their intervals, at the offsets from the best depth."""
    log_depth = cell.log_best + OFFSETS
    counting, size = cell.question.counting, cell.question.size
    band = cell.band(log_depth, log_blocks_at(size, counting, log_depth))
    return np.asarray(np.sqrt(np.minimum(band, LARGEST_COST))).ravel()


def times(question: Question) -> dict[str, Any]:
    """Logs of seconds a token over vocabulary, width and layers, up to a constant."""
    vocab, width, depth = np.meshgrid(VOCABULARIES, np.log(WIDTHS), np.log(LAYERS), indexing="ij")
    blocks = math.log(12.0) + depth + 2.0 * width
    axes = [np.log(VOCABULARIES), np.log(WIDTHS), np.log(LAYERS)]
    return packed(axes, question.clock.log_times(blocks, depth, vocab, question.context))


def at_equal_time(question: Question, evidence: Evidence) -> dict[str, Any]:
    """Logs of the best depth at equal time and of its interval's ends, over sizes, rows, untied or tied, and tokens.

    The last column is 1 where a depth is told and 0 where it is not: beyond the evidence, or far from the depths that
    were timed.
    """
    tokens, rows = tokens_of(evidence)[TIMED_TOKENS], []
    for size, table, tied, one in product(TIMED_SIZES, TIMED_ROWS, (False, True), tokens):
        counting = Counting(vocab_size=round(table * math.sqrt(size) / (1 if tied else 2)), tied=tied)
        asked = replace(question, size=size, counting=counting, tokens=one, equal_time=True)
        found = costs_if_any(evidence, asked)
        if found is None:  # depths that were never timed
            rows.append([0.0, 0.0, 0.0, 0.0])
        else:
            ends = map(math.log, (found.best.low, found.best.high))
            rows.append([found.log_best, *ends, float(found.told)])
    return packed([np.log(TIMED_SIZES), np.log1p(TIMED_ROWS), np.array([0.0, 1.0]), np.log(tokens)], rows)


def content_of(
    question: Question,
    evidence: Evidence,
    laws: Sequence[Transitions],
    models: Mapping[SizeAxis, Sequence[Network]],
    series: Iterable[Series],
) -> dict[str, Any]:
    """The numbers that the page needs.

    Args:
        question: its clock, context and `within` hold for the page.
        evidence: the fits.
        laws: witnesses beside the evidence.
        models: that were shipped, the same ones for each meaning of a size.
        series: measured redundancies, the preferred ones first.
    """
    return {
        **answers(question, evidence, laws),
        "time": times(question),
        "timed": at_equal_time(question, evidence),
        "witnesses": [
            {"name": evidence.name, "blocks": evidence.blocks},
            *({"name": law.source, "blocks": law.sizes} for law in laws),
        ],
        "models": list(_models(question, evidence, models)),
        "modelTokens": np.log(tokens_of(evidence)[MODEL_TOKENS]).tolist(),
        "near": NEAR,
        "redundancies": redundancies_of(series),
        "sizes": [float(SIZES[0]), float(SIZES[-1])],
        "tokens": [float(one) for one in tokens_of(evidence)[[0, -1]]],
        "rows": float(ROWS[-1]),
        "blocks": evidence.blocks,
        "clock": question.clock.source,
        "within": question.within,
        "shown": SHOWN * question.within,
        "outside": OUTSIDE,
        "farthest": FARTHEST,
        "tokensAParameter": TOKENS_A_PARAMETER,
        "examples": EXAMPLES,
    }


def _models(
    question: Question, evidence: Evidence, models: Mapping[SizeAxis, Sequence[Network]]
) -> Iterator[dict[str, Any]]:
    """Networks with their sizes and their costs along some of the grid's tokens, where the evidence can price them."""
    for networks in zip(*models.values(), strict=True):
        costs = {
            axis.value: _prices(one, question, evidence) for axis, one in zip(models, networks, strict=True)
        }
        one = networks[0]
        if any(costs.values()):
            yield {
                "name": one.name,
                "year": one.year,
                "depth": one.depth,
                "width": one.width,
                "vocab": one.counting.vocab_size,
                "tied": one.counting.tied,
                "size": {
                    axis.value: n.size()
                    for axis, n in zip(models, networks, strict=True)
                    if costs[axis.value]
                },
                "costs": costs,
            }


def _prices(one: Network, question: Question, evidence: Evidence) -> list[float]:
    """Costs against the best of a network's own size, along `MODEL_TOKENS`; none where the evidence can't tell them."""
    place = np.log([one.depth]), np.log([one.block_params])
    costs = []
    for tokens in tokens_of(evidence)[MODEL_TOKENS]:
        own = costs_if_any(evidence, of_own_size(one, replace(question, tokens=float(tokens))))
        if own is None or not own.told:
            return []
        costs.append(round(float(own.band(*place)[0, 0]), 4))
    return costs


def redundancies_of(series: Iterable[Series]) -> list[tuple[float, str]]:
    """What a rank d / `strength` of the embedding wastes, in words, for each of `STRENGTHS`."""
    known, setting = list(series), rank_setting(False)
    rows = []
    for strength in STRENGTHS:
        found = estimate(RANK, float(strength), setting, known)
        text = "" if found is None else f"{redundancy_text(found)}, {found.basis.value} ({found.source})"
        rows.append((round(float(strength), 4), text))
    return rows
