"""A Transformer architecture by the numbers that decide its bottlenecks: somebody else's network, or a plan.

The bottleneck that binds in an architecture follows from the bounds on the
separation rank (`shapelaw.theory.rank_bounds`; Wies et al., theorems 1 and 2, sections 4.2, 5.3).
The embedding's rank, at most min(V, r, d), caps what the width adds: `log sep = O~(L min(r, d))`. The width caps what
the attention's inner width H d_a adds. For patches V is the numbers of a patch. The proof of theorem 1 has a gap
(docs/results/theory.md); no measured rank violates it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from shapelaw.errors import UserError
from shapelaw.specs.sizes import number_of


@dataclass(frozen=True)
class Architecture:
    """A Transformer whose input is a vocabulary of tokens or, as in a Vision Transformer, patches of an image.

    Attributes:
        name: its name in tables.
        width: residual dimension, d.
        vocab_size: V; None where the input is patches.
        embedding_rank: r of an embedding that is factored (V x r)(r x d), as ALBERT's; None is one V x d matrix.
        patch: side of a square patch, in pixels; None where the input is a vocabulary.
        channels: numbers of a pixel, 3 for colours.
        image: side of the image, in pixels.
        heads: attention heads of a block, H.
        attention_dim: dimension of one head, d_a; width / heads unless given.
        depth: number of blocks, L; of the encoder where there is a decoder too.
        ff_width: d_ff, hidden width of the feed-forward network.
        params: all parameters, as published.
        source: where the numbers stand.
    """

    name: str
    width: int
    vocab_size: int | None = None
    embedding_rank: int | None = None
    patch: int | None = None
    channels: int | None = None
    image: int | None = None
    heads: int | None = None
    attention_dim: int | None = None
    depth: int | None = None
    ff_width: int | None = None
    params: int | None = None
    source: str = ""

    @property
    def vocabulary(self) -> int:
        """V, or for patches the effective vocabulary M/N d_input: the numbers of a patch (vocabulary paper, 2.1)."""
        if self.patch is not None:
            return self.patch**2 * (self.channels or 1)
        return self.vocab_size or 0

    @property
    def attention_width(self) -> int | None:
        """H d_a, the width of all heads together; None where the heads are not known."""
        if self.heads is None:
            return None
        return self.heads * (self.width // self.heads if self.attention_dim is None else self.attention_dim)

    @property
    def size(self) -> int | None:
        """All parameters: as published, else the matrices of L blocks and of the embedding; None where L is not known.

        Where they are not given, H d_a is taken as d and d_ff as 4 H d_a. Blocks that share their weights (ALBERT) are
        counted each, a decoder beside the encoder, experts and a classifier of its own are not.
        """
        if self.params is not None or self.depth is None:
            return self.params
        attention = self.width if self.attention_width is None else self.attention_width
        feed_forward = 4 * attention if self.ff_width is None else self.ff_width
        rank = self.embedding_rank
        embedding = self.vocabulary * self.width if rank is None else rank * (self.vocabulary + self.width)
        return self.depth * self.width * (4 * attention + 2 * feed_forward) + embedding

    @property
    def input_rank(self) -> int:
        """The most rank that the embedding can have, min(V, r, d): the width that counts."""
        return min(self.vocabulary, self.width, self.embedding_rank or self.width)

    @property
    def attention_ratio(self) -> float | None:
        """H d_a / d; None where the heads are not known."""
        return None if self.attention_width is None else self.attention_width / self.width

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """The bottlenecks that bind: at most one of the input (V where V equals r), then that of the attention."""
        found, rank, ratio = [], self.input_rank, self.attention_ratio
        if rank < self.width:
            if rank < self.vocabulary:
                kind = Bottleneck.RANK
            else:
                kind = Bottleneck.VOCABULARY if self.patch is None else Bottleneck.PATCH
            found.append(Binding(kind, self.width / rank))
        if ratio is not None and ratio > 1:
            found.append(Binding(Bottleneck.ATTENTION, ratio))
        return tuple(found)


NUMBERS = tuple(field.name for field in fields(Architecture) if field.name not in ("name", "source"))


def make_architecture(name: str, source: str = "", **numbers: Any) -> Architecture:
    """A checked architecture.

    Args:
        numbers: of `NUMBERS`; None, NaN and empty texts are left out, texts and floats that are whole are converted.

    Raises:
        UserError: the numbers don't make an architecture, in a sentence for each reason.
    """
    given = {key: _whole(name, key, value) for key, value in numbers.items() if not _missing(value)}
    if "width" not in given:
        raise UserError(f"{name}: the width is missing; every architecture needs one.")
    architecture = Architecture(name, source=source, **given)
    problems = _problems(architecture)
    if problems:
        raise UserError("\n".join(f"{name}: {problem}" for problem in problems))
    return architecture


def architecture_of_row(row: Mapping[str, Any]) -> Architecture:
    """The architecture of a table's row; columns other than an architecture's are ignored.

    Raises:
        UserError: the row doesn't make an architecture.
    """
    source = "" if _missing(row.get("source")) else str(row["source"])
    return make_architecture(str(row["name"]), source, **{key: row[key] for key in NUMBERS if key in row})


def _missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _whole(name: str, key: str, value: Any) -> int:
    try:
        number = float(round(number_of(str(value))) if key == "params" else value)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{name}: {key} is {value!r}; it must be a whole number.") from None
    if not number.is_integer():
        raise UserError(f"{name}: {key} is {value}; it must be a whole number.")
    return int(number)


def _problems(a: Architecture) -> list[str]:
    """A sentence for each reason why the numbers don't make an architecture."""
    given = {key: value for key in NUMBERS if (value := getattr(a, key)) is not None}
    problems = [f"{key} is {value}; it must be at least 1." for key, value in given.items() if value < 1]
    if problems:
        return problems
    if (a.vocab_size is None) == (a.patch is None):
        problems.append("its input is either a vocabulary (vocab_size) or patches (patch); give one of them.")
    if a.patch is None and (a.image is not None or a.channels is not None):
        problems.append("image and channels belong to patches; give patch too, or leave them out.")
    if a.patch is not None and a.image is not None and a.image % a.patch:
        problems.append(
            f"a patch of {a.patch} pixels does not divide an image of {a.image}; the nearest image that it divides "
            f"has {max(1, round(a.image / a.patch)) * a.patch}."
        )
    if a.heads is None and a.attention_dim is not None:
        problems.append("attention_dim is the dimension of one head; give heads too.")
    if a.heads is not None and a.attention_dim is None and a.width % a.heads:
        problems.append(
            f"{a.heads} heads do not divide a width of {a.width}; give attention_dim, the dimension of one head."
        )
    return problems


class Bottleneck(StrEnum):
    """A limit of an architecture's expressivity below that of its parameters."""

    VOCABULARY = "vocabulary"  # V < d, and V is the least
    RANK = "rank"  # the factored embedding's r < d, and r is the least
    PATCH = "patch"  # a patch has fewer numbers than d
    ATTENTION = "attention ratio"  # H d_a > d


@dataclass(frozen=True)
class Binding:
    """A bottleneck that binds, and how far: d / rank of the embedding, or H d_a / d; above 1."""

    bottleneck: Bottleneck
    strength: float
