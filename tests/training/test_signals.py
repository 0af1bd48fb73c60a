"""A signal asks the training to stop, and ends nothing by itself."""

import signal

import pytest

from shapelaw.training.signals import WATCHED, StopRequest


@pytest.mark.parametrize("number", WATCHED)
def test_a_watched_signal_is_kept_for_the_loop_to_read(number: signal.Signals) -> None:
    with StopRequest() as stop:
        assert stop.received is None
        signal.raise_signal(number)
        assert stop.received is number


def test_the_last_of_several_signals_counts() -> None:
    with StopRequest() as stop:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGTERM)
    assert stop.received is signal.SIGTERM


def test_afterwards_every_signal_does_what_it_did_before() -> None:
    before = {number: signal.getsignal(number) for number in WATCHED}
    with StopRequest():
        assert all(signal.getsignal(number) is not handler for number, handler in before.items())
    assert {number: signal.getsignal(number) for number in WATCHED} == before
    with pytest.raises(ZeroDivisionError), StopRequest():
        raise ZeroDivisionError
    assert {number: signal.getsignal(number) for number in WATCHED} == before
