"""The vocabulary, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.vocabulary.answer import answer


def told(**row):
    return answer({"relation": Table(pd.DataFrame([row]), "")})


def test_an_exponent_with_its_error_decides_where_it_excludes_something():
    assert told(b=0.9, b_err=0.1, p_none=1e-9, p_proportional=0.3, message="").decided
    open_ = told(b=0.5, b_err=0.4, p_none=0.2, p_proportional=0.2, message="")
    assert not open_.decided
    assert open_.sentence.endswith("b = 0.50 ± 0.40; neither b = 0 nor b = 1 is excluded.")


def test_without_a_fit_the_reason_stands_there():
    found = told(b=None, message="0 points, and a line needs 3")
    assert (found.decided, "0 points, and a line needs 3." in found.sentence) == (False, True)
