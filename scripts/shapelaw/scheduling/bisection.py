"""The search for the largest number of examples that a network memorizes: which T to train next."""

from __future__ import annotations

from collections.abc import Mapping


def next_sizes(memorized: Mapping[int, bool], low: int, high: int, within: int) -> list[int]:
    """The T to train next, given which of those tried were memorized; empty when the search is over.

    Both ends come first: where `low` is not memorized or `high` is, no bisection between them can find the largest T.
    Then the interval between the largest T memorized and the next one above, which is not, is halved until its ends are
    at most `within` apart.
    """
    if untried := [size for size in (low, high) if size not in memorized]:
        return untried
    if not memorized[low] or memorized[high]:
        return []
    below, above = bracket(memorized)
    assert below is not None
    assert above is not None
    return [(below + above) // 2] if above - below > within else []


def bracket(memorized: Mapping[int, bool]) -> tuple[int | None, int | None]:
    """The largest T that is memorized, and the smallest T above it that is not; None for one that wasn't found."""
    below = max((size for size, done in memorized.items() if done), default=None)
    above = min((size for size in memorized if size > (below or 0)), default=None)
    return below, above
