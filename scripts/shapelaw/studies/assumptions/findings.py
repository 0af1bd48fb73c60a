"""The tests of section 5.1 on the tokens of one layer, with how much each verdict depends on the tolerance.

Contexts are too large to keep: of each batch only the queries and the contexts' means and singular values are kept.
The findings have a file for each layer, so that a later call with other networks adds to the same tables.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shapelaw.errors import UserError
from shapelaw.storage.files import replacing
from shapelaw.studies.assumptions.study import Assumptions
from shapelaw.theory.memorization import (
    PASS_RATE,
    TOLERANCE,
    Floats,
    NumericalRank,
    PassRate,
    context_values,
    kruskal_pass_rate,
    kruskal_rank_estimate,
    numerical_rank,
    smallest_values,
)

# some hundred epsilons of float64: the rounding of products and singular values of these sizes
ROUNDING = 1e-13
DRAWN = (1e-6, 1e-8, 1e-10)
FORMAT = 1
_SUBSETS = ("query", "mixed", "position")
_WORDS = ("model", "weights", "layer", "note", "inputs")
_NUMBERS = ("examples", "context", "width", "kruskal", "kruskal_float32")
_ARRAYS = ("context_values", "sizes", "curve")
TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


@dataclass
class Collected:
    """The numbers that are kept of one layer's tokens."""

    queries: list[Floats] = field(default_factory=list)
    means: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    context: int = 0

    def add(self, tokens_BnD: npt.NDArray[np.float64], query: int) -> None:
        """Add a batch; the query, at its place, is also a token of its context (self-attention)."""
        self.context = tokens_BnD.shape[1]
        self.queries.append(tokens_BnD[:, query].copy())
        self.means.append(tokens_BnD.mean(axis=1))
        self.values.append(context_values(tokens_BnD))


def float32_tolerance(size: int, width: int) -> float:
    """The authors' tolerance: `torch.linalg.matrix_rank` of float32 takes max(rows, columns) times its epsilon."""
    return max(size, width) * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Subsets:
    """Random subsets of one size: the verdict at 1e-10, and the smallest singular values, which show how firm it is.

    `values` are those of the sensitivity trials, relative to the largest singular value of each subset; `needed` is the
    share that must be independent.
    """

    rate: PassRate
    values: Floats
    needed: float = PASS_RATE

    def rate_at(self, tolerance: float) -> float:
        """The share of subsets that are independent at another tolerance."""
        return float((self.values > tolerance).mean())

    def holds_at(self, tolerance: float) -> bool:
        """True where enough of the subsets are independent at this tolerance."""
        return (self.rate.rate if tolerance == TOLERANCE else self.rate_at(tolerance)) >= self.needed

    @property
    def limit(self) -> float:
        """The largest tolerance at which enough subsets are independent; 0 if that is rounding."""
        value = float(np.sort(self.values)[len(self.values) - math.ceil(self.needed * len(self.values))])
        return value if value > ROUNDING else 0.0


@dataclass(frozen=True)
class LayerFindings:
    """One layer of one network on T examples of n tokens of width d.

    Attributes:
        query: subsets of n queries (assumption 1).
        mixed: subsets of n queries, each with the mean of its context added (assumption 3).
        position: subsets of d queries, the largest possible ones (general position).
        context_values: (T, min(n, d)), each context's singular values relative to its largest (assumption 2).
        rank: rank of all queries together.
        kruskal: the queries' Kruskal rank by sampling, at 1e-10 and at the authors' tolerance of float32.
        sizes, curve: subset sizes, and (sizes, trials) smallest relative singular values at each (figure 1).
    """

    examples: int
    context: int
    width: int
    query: Subsets
    mixed: Subsets
    position: Subsets
    context_values: Floats
    rank: NumericalRank
    kruskal: int
    kruskal_float32: int
    sizes: npt.NDArray[np.int64]
    curve: Floats

    @cached_property
    def contexts(self) -> Subsets:
        """The contexts, as the subsets that assumption 2 is about: all of them must have rank n."""
        fits = self.context <= self.width
        values = self.context_values[:, -1] if fits else np.zeros(self.examples)
        full, least = float((values > TOLERANCE).mean()), float(values.min())
        rate = PassRate(self.context, full, self.examples, TOLERANCE, least, self.examples)
        return Subsets(rate, values, needed=1.0)

    @property
    def tested(self) -> dict[str, Subsets]:
        """The subsets that each assumption is tested on."""
        return {
            "general_position": self.position,
            "assumption_1": self.query,
            "assumption_2": self.contexts,
            "assumption_3": self.mixed,
        }

    def verdicts(self, tolerance: float | None = None) -> dict[str, bool]:
        """The verdicts at a tolerance; None is the authors', of float32."""
        return {
            name: one.holds_at(tolerance or float32_tolerance(one.rate.size, self.width))
            for name, one in self.tested.items()
        }


def findings_of(collected: Collected, asked: Assumptions, seed: int = 0) -> LayerFindings:
    """The findings from the collected numbers of one layer.

    Raises:
        UserError: fewer examples than the context has tokens, so that assumption 1 can't be tested.
    """
    queries_TD, means_TD = np.concatenate(collected.queries), np.concatenate(collected.means)
    examples, width = queries_TD.shape
    n = collected.context
    if examples < n:
        raise UserError(f"{examples} examples are too few for a context of {n} tokens; give more --examples.")

    def subsets(vectors_TD: Floats, size: int) -> Subsets:
        return Subsets(
            kruskal_pass_rate(vectors_TD, size, asked.trials, seed),
            smallest_values(vectors_TD, size, asked.sensitivity_trials, seed),
        )

    largest = min(examples, width)
    sizes, curve = _curve(queries_TD, min(n, largest), largest, asked.curve_trials, seed)

    def kruskal(tolerance: float) -> int:
        return kruskal_rank_estimate(queries_TD, asked.sensitivity_trials, seed, tolerance)

    return LayerFindings(
        examples, n, width, subsets(queries_TD, n), subsets(queries_TD + means_TD, n),
        subsets(queries_TD, largest), np.concatenate(collected.values), numerical_rank(queries_TD),
        kruskal(TOLERANCE), kruskal(float32_tolerance(n, width)), sizes, curve,
    )  # fmt: skip


def _curve(
    queries_TD: Floats, context: int, largest: int, trials: int, seed: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Subset sizes over the whole range, closer where the pass rate of a drawn curve falls, with the values at each."""
    found = {
        int(size): smallest_values(queries_TD, int(size), trials, seed)
        for size in {*np.linspace(1, largest, 13).round().astype(np.int64).tolist(), context}
    }
    width = queries_TD.shape[1]
    closer: set[int] = set()
    for tolerance in (None, *DRAWN):
        rates = {
            size: float((found[size] > (tolerance or float32_tolerance(size, width))).mean())
            for size in sorted(found)
        }
        above = max((size for size, rate in rates.items() if rate >= PASS_RATE), default=1)
        below = min((size for size, rate in rates.items() if size > above and rate < 0.01), default=largest)
        closer |= set(np.linspace(above, below, 7).round().astype(np.int64).tolist())
    for size in closer - set(found):
        found[size] = smallest_values(queries_TD, size, trials, seed)
    sizes = sorted(found)
    return np.array(sizes, dtype=np.int64), np.stack([found[size] for size in sizes])


@dataclass(frozen=True)
class Row:
    """One layer of one network, its inputs, and the findings."""

    model: str
    weights: str
    layer: str
    note: str
    inputs: str
    findings: LayerFindings


def write_row(folder: Path, row: Row) -> Path:
    """Write `<model>-<weights>-<layer>.npz`; the folder is made."""
    found = row.findings
    numbers = {name: getattr(found, name) for name in _NUMBERS}
    words = {name: getattr(row, name) for name in _WORDS}
    rates = {name: asdict(getattr(found, name).rate) for name in _SUBSETS}
    header = {"format": FORMAT, **words, **numbers, "rates": rates, "rank": asdict(found.rank)}
    path = folder / f"{row.model}-{row.weights}-{row.layer.replace(' ', '_')}.npz"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            header=np.array(json.dumps(header)),
            **{name: getattr(found, name) for name in _ARRAYS},
            **{name: getattr(found, name).values for name in _SUBSETS},
        )
    return path


def read_rows(folder: Path) -> list[Row]:
    """All layers of a folder, in the order of their names.

    Raises:
        UserError: a file is not one of these, or has another format.
    """
    return [_read_row(path) for path in sorted(folder.glob("*.npz"))]


def _read_row(path: Path) -> Row:
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            if header["format"] != FORMAT:
                raise ValueError(f"format {header['format']}")
            parts: dict[str, Any] = {name: header[name] for name in _NUMBERS}
            parts |= {name: Subsets(PassRate(**header["rates"][name]), file[name]) for name in _SUBSETS}
            parts |= {name: file[name] for name in _ARRAYS}
            found = LayerFindings(rank=NumericalRank(**header["rank"]), **parts)
            words = {name: str(header[name]) for name in _WORDS}
    except Exception as error:
        raise UserError(f"{path} can't be read ({error}); delete it and check its network again.") from error
    return Row(**words, findings=found)
