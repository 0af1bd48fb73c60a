"""The search for the largest T: it ends at the truth where there is one, and says bounds where there is none."""

from hypothesis import given
from hypothesis import strategies as st

from shapelaw.scheduling.bisection import bracket, next_sizes


def search(is_memorized, low, high, within):
    """All T that were tried, in order."""
    memorized, tried = {}, []
    while sizes := next_sizes(memorized, low, high, within):
        assert len(tried) < 40
        for size in sizes:
            assert size not in memorized
            memorized[size] = is_memorized(size)
        tried += sizes
    return memorized, tried


@given(st.integers(1, 500), st.integers(2, 5000), st.integers(1, 50), st.floats(0, 1))
def test_it_ends_within_the_width_around_the_truth(low, span, within, place):
    high = low + span
    truth = low + int(place * (span - 1))  # memorized up to here, below high
    memorized, tried = search(lambda size: size <= truth, low, high, within)
    below, above = bracket(memorized)
    assert below <= truth < above
    assert above - below <= max(within, 1)
    assert len(tried) <= 2 + max(span, 1).bit_length()


def test_ends_that_are_alike_are_bounds():
    assert search(lambda size: True, 100, 200, 10) == ({100: True, 200: True}, [100, 200])
    assert bracket({100: True, 200: True}) == (200, None)
    assert search(lambda size: False, 100, 200, 10) == ({100: False, 200: False}, [100, 200])
    assert bracket({100: False, 200: False}) == (None, 100)


def test_luck_is_kept():
    """450 is not memorized by chance, 550 is: the largest is looked for above 550."""
    memorized = {100: True, 450: False, 550: True, 800: False}
    assert bracket(memorized) == (550, 800)
    assert next_sizes(memorized, 100, 800, 50) == [675]
