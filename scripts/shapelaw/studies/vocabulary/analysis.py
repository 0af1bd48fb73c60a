"""A transition for each vocabulary, and how it follows the embedding's rank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.inputs import (
    RECIPE,
    numbers_of,
    refuse,
    refuse_mixed,
    require_columns,
    whole_or_empty,
)
from shapelaw.fits.line import LevelFit, LineFit, chance_of_limits, fit_level, fit_line_with_limits
from shapelaw.specs.shapes import NUMBERS
from shapelaw.studies.grid.analysis import CellAnalysis, analyse_cells, require_two_depths
from shapelaw.studies.grid.cells import Cell
from shapelaw.studies.transitions.analysis import Options, limits_of, points_of
from shapelaw.studies.vocabulary.study import NoiseKind, noise_kind

KEYS = ("vocab_size", "embedding_rank", "patch_embedding")
NAT = math.log(2)  # a bit in nats


@dataclass(frozen=True)
class Series(CellAnalysis):
    """The cell of one vocabulary and one rank.

    `runs` has `corpus`, `bits_per_byte` and `text_bytes` (text seen in training) where they are known.
    """

    @property
    def vocab_size(self) -> int:
        """V."""
        return int(self.cell.number("vocab_size"))

    @property
    def rank(self) -> int | None:
        """r of the factored token embedding; None is full rank."""
        return None if self.values["embedding_rank"] is None else int(self.cell.number("embedding_rank"))

    @property
    def patches(self) -> bool:
        """The embedding maps the numbers of a patch of an image, not one-hot tokens."""
        return self.values["patch_embedding"] == "True"

    @property
    def name(self) -> str:
        """`V = 500`, `V = 2,000, r = 500`, `patches of 4 numbers, r = 2`."""
        return name_of(self.vocab_size, self.rank, self.patches)

    @property
    def corpus(self) -> str | None:
        """The corpus of its runs; None where their table doesn't say."""
        name = self.runs["corpus"].iloc[0] if "corpus" in self.runs else None
        return name if isinstance(name, str) else None

    @property
    def bottleneck(self) -> int:
        """min(V, r), which bounds the rank of the embedding beside the width; a patch's numbers stand for V."""
        entries = NUMBERS if self.patches else self.vocab_size
        return entries if self.rank is None else min(self.rank, entries)


def name_of(vocab_size: int, rank: int | None, patches: bool = False) -> str:
    """`V = 2,000, r = 500`, or `patches of 4 numbers`."""
    what = f"patches of {NUMBERS} numbers" if patches else f"V = {vocab_size:,}"
    return what + ("" if rank is None else f", r = {rank:,}")


@dataclass(frozen=True)
class Relation:
    """How the transitions of some series follow m = min(V, r), by two models.

    Attributes:
        of: "all", "one matrix" or "factored": two factors train otherwise than one matrix, whatever their rank.
        power: log width = a + b log m; b = 1 is "in proportion", b = 0 "the vocabulary does not matter".
        level: in proportion to m for small m, the same width for large m.
        power_chance, level_chance: of points, or of a limit, as far from the model as the worst of these; NaN without
            a fit.
    """

    of: str
    power: LineFit
    level: LevelFit
    power_chance: float
    level_chance: float


@dataclass(frozen=True)
class VocabularyAnalysis:
    """All series by min(V, r), and the relations through their transitions, that of all of them first."""

    series: tuple[Series, ...]
    relations: tuple[Relation, ...]


def split_series(table: pd.DataFrame, source: str) -> Iterator[Cell]:
    """The cell of each vocabulary, rank and embedding (patches or tokens).

    Raises:
        UserError: a column is missing, a value is wrong, or runs of a series differ in more than shape and seed.
    """
    require_columns(table, ["vocab_size", "embedding_rank"], source)
    sizes = numbers_of(table, ["vocab_size"], source)["vocab_size"]
    ranks = whole_or_empty(table, "embedding_rank", source)
    refuse(table, (sizes < 1) | (sizes % 1 != 0), source, "vocab_size must be a whole number of 1 or more")
    patches = table["patch_embedding"].astype(str) == "True" if "patch_embedding" in table else False
    keyed = table.assign(vocab_size=sizes, embedding_rank=ranks.fillna(0.0), patch_embedding=patches)
    for _, rows in keyed.groupby(list(KEYS), sort=True):
        size, rank, patched = rows[list(KEYS)].iloc[0]
        key = int(size), int(rank) or None, bool(patched)
        refuse_mixed(rows, RECIPE, source, of=name_of(*key))
        yield Cell(dict(zip(KEYS, (*key[:2], str(key[2])), strict=True)), (), rows)


def pool_of(cell: Cell) -> NoiseKind:
    """The pool of a series, whose noise its cells share: of all ranks of one vocabulary, whatever their text."""
    size, rank, patches = (cell.values[name] for name in KEYS)
    assert isinstance(size, int)
    return noise_kind(size, rank if isinstance(rank, int) else None, patches == "True")


def analyse_series(table: pd.DataFrame, source: str, options: Options) -> VocabularyAnalysis:
    """A transition for every vocabulary and rank, and the relations through them.

    The noise is pooled over the series that `noise_kind` puts together: few shapes of each are repeated.

    Raises:
        UserError: the table can't be used.
    """
    cells = list(split_series(table, source))
    analyses, _ = analyse_cells(cells, source, options, pool_of)
    require_two_depths((one.runs for one in analyses), source, "vocabulary")
    found = [
        Series(one.cell, _with_text(one.runs, one.cell.runs), one.transitions, one.bits) for one in analyses
    ]
    series = tuple(sorted(found, key=lambda one: (one.bottleneck, one.vocab_size)))
    return VocabularyAnalysis(series, tuple(fit_relations(series)))


def _with_text(checked: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The checked runs with their corpus, bits per byte, and the bytes of text seen where the table has the tokens.

    A token's bytes are those of the test set: loss / (ln 2 bits per byte).
    """
    names = [name for name in ("corpus", "bits_per_byte") if name in rows]
    known = rows[["depth", "width", "seed", "test_loss", *names]].copy()
    if {"bits_per_byte", "tokens_trained"} <= {*rows}:
        bytes_a_token = known["test_loss"] / (NAT * known["bits_per_byte"])
        known["text_bytes"] = rows["tokens_trained"] * bytes_a_token
    return checked.merge(known.drop(columns="test_loss"), on=["depth", "width", "seed"])


def fit_relations(series: Sequence[Series]) -> Iterator[Relation]:
    """The relation of all series, and where some are factored and some not, those of each kind."""
    kinds = {
        "all": series,
        "one matrix": [one for one in series if one.rank is None],
        "factored": [one for one in series if one.rank is not None],
    }
    for of, some in kinds.items():
        if of == "all" or 0 < len(some) < len(series):
            yield _fit_relation(of, some)


def _fit_relation(of: str, series: Sequence[Series]) -> Relation:
    """Through the bootstrap's transitions of the shallowest pair of depths, as `fit_transitions` takes them.

    Those estimated at the edge of the sizes are points too; a transition above or below a width is a limit.
    """
    tables = [
        one.transitions.transitions.query("method == @BOOTSTRAP")
        .head(1)
        .assign(bottleneck=math.log(one.bottleneck))
        for one in series
    ]
    rows = pd.concat(tables, ignore_index=True)
    x, width, err = points_of(rows, BOOTSTRAP, at="bottleneck")
    points, limits = (x, np.log(width), err / width), limits_of(rows, BOOTSTRAP, at="bottleneck")
    power, level = fit_line_with_limits(*points, limits), fit_level(*points, limits)
    by_power = [power.a + power.b * limit.x for limit in limits]
    by_level = [min(level.k + limit.x, level.level) for limit in limits]
    return Relation(
        of,
        power,
        level,
        min(power.p_value, chance_of_limits(by_power, limits)) if power.usable else math.nan,
        min(level.p_value, chance_of_limits(by_level, limits)) if level.usable else math.nan,
    )
