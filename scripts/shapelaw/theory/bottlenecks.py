"""The bottleneck that binds in an architecture (Wies et al. 2021, theorems 1 and 2, sections 4.2 and 5.3).

The embedding's rank, at most min(V, r, d), caps what the width adds: `log sep = O~(L min(r, d))`. The width caps what
the attention's inner width H d_a adds. For patches V is the numbers of a patch. The proof of theorem 1 has a gap
(docs/results/theory.md); no measured rank violates it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shapelaw.specs.architectures import Architecture


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


def input_rank(architecture: Architecture) -> int:
    """The most rank that the embedding can have, min(V, r, d): the width that counts."""
    rank = architecture.embedding_rank
    found = min(architecture.vocabulary, architecture.width)
    return found if rank is None else min(found, rank)


def attention_ratio(architecture: Architecture) -> float | None:
    """H d_a / d; None where the heads are not known."""
    attention = architecture.attention_width
    return None if attention is None else attention / architecture.width


def bindings(architecture: Architecture) -> tuple[Binding, ...]:
    """The bottlenecks that bind: at most one of the input (V where V equals r), then that of the attention."""
    found, rank = [], input_rank(architecture)
    if rank < architecture.width:
        if rank < architecture.vocabulary:
            kind = Bottleneck.RANK
        else:
            kind = Bottleneck.VOCABULARY if architecture.patch is None else Bottleneck.PATCH
        found.append(Binding(kind, architecture.width / rank))
    ratio = attention_ratio(architecture)
    if ratio is not None and ratio > 1:
        found.append(Binding(Bottleneck.ATTENTION, ratio))
    return tuple(found)
