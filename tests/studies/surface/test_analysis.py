"""The options of a surface, and the answers for each form."""

import math
from dataclasses import replace

import pytest
from scattered_shapes import Design, budget_of

from shapelaw.errors import UserError
from shapelaw.fits.curves import SizeAxis
from shapelaw.studies.surface.analysis import (
    AVERAGE,
    ENOUGH_DRAWS,
    Options,
    analyse_surface,
    check_options,
    sizes_of,
)


def test_the_average_comes_first_and_forms_with_enough_draws_follow():
    analysis = analyse_surface(budget_of(Design(16)), Options(sizes=(1e8, 3e8), draws=400))
    names = [name for name, _ in analysis.best]
    assert names[:2] == [AVERAGE, AVERAGE]
    enough = [one.form.name for one in analysis.surface.forms if len(one.drawn_theta) >= ENOUGH_DRAWS]
    assert names[2::2] == enough
    assert len(analysis.penalties) == 16
    assert analysis.size_column == "block_params"
    assert replace(analysis, axis=SizeAxis.TOTAL).size_column == "total_params"
    assert Options(size=SizeAxis.FLOPS).size is SizeAxis.FLOPS


def test_sizes_in_words():
    assert sizes_of("6e7, 300M,1.3B") == (6e7, 3e8, 1.3e9)


@pytest.mark.parametrize("text", ["", "big", "3e8,", "3x"])
def test_sizes_that_are_none(text):
    with pytest.raises(UserError, match="write numbers, such as"):
        sizes_of(text)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(sizes=(-3e8,)), "--sizes has -3e.08; a size is a number above zero"),
        (Options(sizes=(math.nan,)), "--sizes has nan"),
        (Options(noise=0.0), "The noise is 0.0"),
        (Options(draws=5), "5 bootstrap draws are too few"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(UserError, match=words):
        check_options(options)
