"""A transition for each vocabulary, and how it follows the embedding's rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.curves import Side
from shapelaw.fits.inputs import check_runs, numbers_of, refuse, require_columns
from shapelaw.fits.limits import Limit, fit_line_with_limits
from shapelaw.fits.line import LineFit
from shapelaw.specs.patches import NUMBERS
from shapelaw.studies.transitions.analysis import Options, TransitionAnalysis, analyse_runs

NAT = math.log(2)  # a bit in nats


@dataclass(frozen=True)
class Series:
    """Networks of one vocabulary and one rank.

    Attributes:
        vocab_size: V.
        rank: r of the factored token embedding; None is full rank.
        patches: the embedding maps the numbers of a patch of an image, not one-hot tokens.
        runs: checked runs, with `bits_per_byte` and `text_bytes` (text seen in training) where they are known.
        transitions: transition of each pair of adjacent depths, with the curves.
    """

    vocab_size: int
    rank: int | None
    patches: bool
    runs: pd.DataFrame
    transitions: TransitionAnalysis

    @property
    def name(self) -> str:
        """`V = 500`, `V = 2,000, r = 500`, `patches of 4 numbers, r = 2`."""
        what = f"patches of {NUMBERS} numbers" if self.patches else f"V = {self.vocab_size:,}"
        return what + ("" if self.rank is None else f", r = {self.rank:,}")

    @property
    def bottleneck(self) -> int:
        """min(V, r), which bounds the rank of the embedding beside the width; a patch's numbers stand for V."""
        entries = NUMBERS if self.patches else self.vocab_size
        return entries if self.rank is None else min(self.rank, entries)


@dataclass(frozen=True)
class VocabularyAnalysis:
    """All series by min(V, r), and the line log width = a + b log min(V, r) through their transitions."""

    series: tuple[Series, ...]
    relation: LineFit


def split_series(table: pd.DataFrame, source: str) -> Iterator[tuple[int, int | None, bool, pd.DataFrame]]:
    """The rows of each vocabulary, rank and embedding (patches or tokens).

    Raises:
        UserError: a column is missing, or a value is wrong.
    """
    require_columns(table, ["vocab_size", "embedding_rank"], source)
    sizes = numbers_of(table, ["vocab_size"], source)["vocab_size"]
    ranks = pd.to_numeric(table["embedding_rank"], errors="coerce").astype("Float64")
    refuse(table, table["embedding_rank"].notna() & ranks.isna(), source, "embedding_rank must be a number")
    patches = table["patch_embedding"].astype(str) == "True" if "patch_embedding" in table else False
    keyed = table.assign(vocab_size=sizes, embedding_rank=ranks.fillna(0.0), patch_embedding=patches)
    for _, rows in keyed.groupby(["vocab_size", "embedding_rank", "patch_embedding"], sort=True):
        first = rows.iloc[0]
        rank = int(first["embedding_rank"]) or None
        yield int(first["vocab_size"]), rank, bool(first["patch_embedding"]), rows


def analyse_series(table: pd.DataFrame, source: str, options: Options) -> VocabularyAnalysis:
    """A transition for every vocabulary and rank, and the line through them.

    Raises:
        UserError: the table can't be used.
    """
    found = []
    for size, rank, patches, rows in split_series(table, source):
        where = f"{source} (V = {size})" if rank is None else f"{source} (V = {size}, r = {rank})"
        checked = check_runs(rows, where, loss=options.loss, size=options.size)
        found.append(Series(size, rank, patches, _with_text(checked, rows), analyse_runs(checked, options)))
    if not any(one.transitions.runs and one.transitions.runs.adjacent for one in found):
        raise UserError(f"{source} has no vocabulary with two depths, so there are no transitions.")
    series = tuple(sorted(found, key=lambda one: (one.bottleneck, one.vocab_size)))
    return VocabularyAnalysis(series, fit_relation(series))


def _with_text(checked: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The checked runs with bits per byte, and the bytes of text seen where the table has the tokens.

    A token's bytes are those of the test set: loss / (ln 2 bits per byte).
    """
    if "bits_per_byte" not in rows:
        return checked
    known = rows[["depth", "width", "seed", "test_loss", "bits_per_byte"]].copy()
    if "tokens_trained" in rows:
        bytes_a_token = known["test_loss"] / (NAT * known["bits_per_byte"])
        known["text_bytes"] = rows["tokens_trained"] * bytes_a_token
    return checked.merge(known.drop(columns="test_loss"), on=["depth", "width", "seed"])


def fit_relation(series: tuple[Series, ...]) -> LineFit:
    """log width = a + b log min(V, r) through the bootstrap's transitions of the shallowest pair, limits included.

    b = 1 is "in proportion", b = 0 "the vocabulary does not matter".
    """
    x, y, sigma, limits = [], [], [], []
    for one in series:
        rows = one.transitions.bootstrap_rows
        if not rows:
            continue
        row, at = rows[0], math.log(one.bottleneck)
        if row["status"] == "crossing":
            x.append(at)
            y.append(math.log(row["width"]))
            sigma.append(row["width_err"] / row["width"])
        elif row["side"] in (Side.ABOVE.value, Side.BELOW.value):
            sign = 1 if row["side"] == Side.ABOVE.value else -1
            limits.append(Limit(at, math.log(row["bound"]), float(row["bound_err"] / row["bound"]), sign))
    return fit_line_with_limits(np.array(x), np.array(y), np.array(sigma), limits)
