"""An analysis in parts: one that fails takes nothing else with it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from shapelaw.errors import UserError, reason_of, say

T = TypeVar("T")
Thing = TypeVar("Thing")


class PartFailed(Exception):
    """A part can't be done without another one that failed."""


class Parts:
    """The parts of one analysis that failed.

    Attributes:
        failed: for each of them, by its name, the reason.
    """

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self._inside: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """A sentence for each of them."""
        return [f"Failed: {part}: {why.removesuffix('.')}." for part, why in self.failed.items()]

    def attempt(self, part: str, work: Callable[[], T]) -> T | None:
        """Do a part: what comes of it, or None where it fails.

        A failure that is no user's mistake is printed to standard error with its traceback. Errors of the operating
        system, such as a full disk's, are no part's own.

        Args:
            part: its name, such as `table effects`; a part of a part has both names.

        Raises:
            OSError: the work raised it.
        """
        try:
            with self.inside(part):
                return work()
        except OSError:
            raise
        except Exception as error:
            self._tell(part, error)
            return None

    def each(
        self, things: Iterable[Thing], work: Callable[[Thing], T], name_of: Callable[[Thing], str]
    ) -> list[tuple[Thing, T]]:
        """Each thing with what comes of it, without those that fail, each a part of its name.

        Raises:
            Exception: nothing comes of any; the first one's.
        """
        found, errors = list[tuple[Thing, T]](), dict[str, Exception]()
        for thing in things:
            try:
                with self.inside(name_of(thing)):
                    found.append((thing, work(thing)))
            except OSError:
                raise
            except Exception as error:
                errors[name_of(thing)] = error
        if errors and not found:
            raise next(iter(errors.values()))
        for name, failure in errors.items():
            self._tell(name, failure)
        return found

    @contextmanager
    def inside(self, part: str) -> Iterator[None]:
        """Parts that fail in here are parts of this one."""
        outside = self._inside
        self._inside = (*outside, part)
        try:
            yield
        finally:
            self._inside = outside

    def _tell(self, part: str, error: Exception) -> None:
        if isinstance(error, UserError | PartFailed):
            reason = str(error)
        else:
            reason = f"{type(error).__name__}: {reason_of(error)}"
            say("".join(traceback.format_exception(error)))
        self.failed[", ".join((*self._inside, part))] = reason
