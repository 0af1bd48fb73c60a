"""A balanced partition of a network's inputs, and the tokens that each half reaches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shapelaw.errors import UserError

MOST_DIGITS = 100  # most digits of the degree of a network's output


def check_whole_numbers(**sizes: int | None) -> None:
    """Refuse sizes other than whole numbers of at least 1; None passes.

    Raises:
        UserError: names the first such size.
    """
    for name, size in sizes.items():
        whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
        if size is not None and not (whole and size >= 1):
            raise UserError(f"{name} = {size!r}: it must be a whole number of at least 1.")


def check_output(position: int, tokens: int, entry: int, width: int) -> None:
    """Refuse an output that a network does not have.

    Raises:
        UserError: the position is not from 1 to N, or the entry not from 1 to d.
    """
    if not 1 <= position <= tokens:
        raise UserError(f"The position {position} must be from 1 to N = {tokens}.")
    if not 1 <= entry <= width:
        raise UserError(f"The entry {entry} must be from 1 to the width {width}.")


def check_degrees(degrees: Sequence[int]) -> None:
    """Refuse layers of a degree below 1.

    Raises:
        UserError: names the first such degree.
    """
    for degree in degrees:
        if degree < 1:
            raise UserError(f"The degree k = {degree} of a layer must be at least 1.")
        check_whole_numbers(degree=degree)
    check_total_degree(sum(map(math.log10, degrees)))


def check_total_degree(digits: float) -> None:
    """Refuse a network whose output has a degree with more than `MOST_DIGITS` digits.

    Raises:
        UserError: names the number of digits.
    """
    if digits > MOST_DIGITS:
        raise UserError(
            f"The degree of the output has {digits:,.0f} digits; its bounds can be computed up to {MOST_DIGITS}, "
            "which linearized attention has up to depth 209: take fewer layers."
        )


@dataclass(frozen=True)
class Halves:
    """N tokens, each of `patch` inputs, and the places, from 1, of the inputs in the half A."""

    tokens: int
    patch: int = 1
    first: tuple[int, ...] | None = None

    def check(self) -> None:
        """Refuse a partition whose halves differ in size or that names wrong places.

        Raises:
            UserError: N is odd, or the places are not half of all places.
        """
        if self.tokens % 2:
            raise UserError(f"N = {self.tokens} tokens is odd: a balanced partition needs an even number.")
        places = self.first
        if places is None:
            return
        count = self.tokens * self.patch
        if len(set(places)) != len(places) or not set(places) <= set(range(1, count + 1)):
            raise UserError(f"The partition must name places from 1 to {count}, each once.")
        if 2 * len(places) != count:
            raise UserError(
                f"The partition names {len(places)} of {count} places; a balanced one names {count // 2}."
            )

    @property
    def inputs(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The places of both halves."""
        count = self.tokens * self.patch
        first = tuple(range(1, count // 2 + 1)) if self.first is None else self.first
        return first, tuple(place for place in range(1, count + 1) if place not in set(first))

    def ordered(self, position: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The places of both halves; the half with the token `position` comes first."""
        first, second = self.inputs
        return (first, second) if self.token_in(position, first) else (second, first)

    def token_in(self, token: int, half: tuple[int, ...]) -> bool:
        """True if a half holds an input of a token."""
        return any((place - 1) // self.patch == token - 1 for place in half)

    @property
    def split(self) -> list[int]:
        """Tokens, from 1, that have inputs in both halves."""
        if self.patch == 1:
            return []
        tokens = [{(place - 1) // self.patch + 1 for place in half} for half in self.inputs]
        return sorted(tokens[0] & tokens[1])
