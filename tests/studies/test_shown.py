"""Studies make of made runs what they made. golden_shown.py rewrites it on purpose."""

import pytest
from golden_shown import CASES, differences, golden, shown


@pytest.mark.parametrize("name", CASES)
def test_a_study_shows_what_it_showed(name: str) -> None:
    changes = differences(name, golden()[name], shown(CASES[name]()))
    assert not changes, "\n".join(["", *changes])


def test_no_case_is_kept_that_went() -> None:
    assert golden().keys() == CASES.keys()
