"""Work in a process of its own, which is killed when its time is up, whatever it computes then."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar, cast

from shapelaw.errors import UserError

Told = TypeVar("Told")
Result = TypeVar("Result")
_LONGEST_WAIT = 3600.0  # of one call: a system's own bound on waiting is some days


class TimeIsUp(Exception):
    """The work did not end in time.

    Attributes:
        told: what it told last; None where it told nothing.
    """

    def __init__(self, told: Any) -> None:
        self.told = told
        super().__init__()


def in_time(seconds: float, work: Callable[[Callable[[Told], None]], Result]) -> Result:
    """The result of `work(tell)`, where it comes within so many seconds of wall time.

    Args:
        seconds: may be infinite.
        work: runs in a fork of this process; what it tells and returns can be pickled.

    Raises:
        TimeIsUp: it has not ended by then, and has been killed.
        UserError: the work raised it, or its process died of something else, such as a lack of memory.
    """
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, work), daemon=True)
    process.start()
    there.close()
    try:
        return cast(Result, _heard(here, time.monotonic() + seconds))
    finally:
        process.kill()
        process.join()


def _answer(there: Connection, work: Callable[[Callable[[Told], None]], Result]) -> None:
    """In the fork: work, and send what it tells and how it ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is the parent's to report
    try:
        there.send(("done", work(lambda told: there.send(("told", told)))))
    except UserError as error:
        there.send(("refused", str(error)))


def _heard(here: Connection, until: float) -> object:
    """The result that the fork sends.

    Raises:
        TimeIsUp, UserError: as in `in_time`.
    """
    told = None
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeIsUp(told)
        if not here.poll(min(left, _LONGEST_WAIT)):
            continue
        try:
            kind, content = here.recv()
        except EOFError:
            raise UserError(
                "The process that computes was killed, perhaps for want of memory; take a smaller network."
            ) from None
        if kind == "refused":
            raise UserError(content)
        if kind == "done":
            return cast(object, content)
        told = content
