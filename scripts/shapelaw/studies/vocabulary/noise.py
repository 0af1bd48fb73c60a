"""Which series have the same noise between seeds."""

from __future__ import annotations

NoiseKind = tuple[int, bool, int | None]  # vocab_size, patches, rank


def noise_kind(vocab_size: int, rank: int | None, patches: bool) -> NoiseKind:
    """Key of the series that share their noise: all ranks of one vocabulary, whose losses have the same unit.

    A patch embedding shares it with no other rank: fewer numbers of a patch are another input, which some seeds learn
    and others don't.
    """
    return vocab_size, patches, rank if patches else None
