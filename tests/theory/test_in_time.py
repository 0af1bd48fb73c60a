"""Work that is killed when its time is up."""

import math
import os
import signal
import time
from collections.abc import Callable

import pytest

from shapelaw.errors import UserError
from shapelaw.theory.in_time import TimeIsUp, in_time


def test_work_that_ends_in_time_gives_its_result() -> None:
    here = os.getpid()
    there = in_time(math.inf, lambda tell: os.getpid())
    assert there != here


@pytest.mark.parametrize("work", [lambda: time.sleep(600), lambda: sum(range(10**12))])
def test_work_that_does_not_is_killed_also_inside_of_one_call(work: Callable[[], object]) -> None:
    """The second one gives Python no chance to look at the clock for hours, as FLINT does not."""

    def telling(tell: Callable[[int], None]) -> object:
        tell(1)
        tell(2)
        return work()

    begun = time.monotonic()
    with pytest.raises(TimeIsUp) as error:
        in_time(3.0, telling)
    assert error.value.told == 2
    assert time.monotonic() - begun < 100


def test_what_the_work_refuses_is_refused_here() -> None:
    def refusing(_tell: Callable[[int], None]) -> None:
        raise UserError("The width is odd.")

    with pytest.raises(UserError, match=r"^The width is odd\.$"):
        in_time(math.inf, refusing)


def test_work_that_is_killed_is_a_sentence() -> None:
    with pytest.raises(UserError, match="was killed, perhaps for want of memory"):
        in_time(math.inf, lambda tell: os.kill(os.getpid(), signal.SIGKILL))
