"""Rank of the positional embedding, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.positional_rank.answer import answer


def told(enough, too_small, series="positional"):
    columns = ["series", "full_rank", "enough", "too_small", "unseen"]
    printed = pd.DataFrame({"quantity": ["rank from which nothing is lost"], "published": ["16"]})
    needed = pd.DataFrame([(series, 64, enough, too_small, 0.02)], columns=columns)
    return answer({"needed": Table(needed, ""), "comparison": Table(printed, "")})


def test_a_rank_between_two_decides():
    found = told(8, 4)
    assert found.decided
    assert found.sentence == "8 is enough, 4 too small, of 64; a cost below 0.02 nats would not be seen."
    assert found.published == "16 (rank from which nothing is lost)."


def test_one_sided_and_no_answers():
    assert told(None, 32).sentence == "More than 32: every rank tried is significantly worse than full rank."
    assert not told(1, None).decided
    assert not told(8, 4, series="vocabulary").decided
