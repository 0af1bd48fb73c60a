"""Rank of the embedding, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.embedding_rank.answer import answer

COLUMNS = [
    "embedding_rank",
    "rank_over_width",
    "positions",
    "size_axis",
    "redundancy",
    "low",
    "high",
    "status",
]


def told(*rows, published=0.25):
    printed = pd.DataFrame([{"published": published, "published_setting": "r = 16 of d = 680"}])
    frame = pd.DataFrame(rows, columns=[*COLUMNS, "significant"])
    return answer({"redundancy": Table(frame, ""), "comparison": Table(printed, "")})


def test_the_lowest_rank_in_the_blocks_parameters():
    found = told(
        (8, 0.5, "of full rank", "block", 0.01, -0.1, 0.1, "measured", "no"),
        (2, 0.125, "of full rank", "block", 0.33, 0.29, 0.36, "measured", "yes"),
        (2, 0.125, "of full rank", "total", -0.5, -0.6, -0.4, "measured", "no"),
    )
    assert found.decided
    assert found.sentence == (
        "At rank 2, 0.12 of the width, 33% (29% to 36%) of the blocks' parameters are wasted (positions of full rank; "
        "measured)."
    )
    assert found.published == "25% at r = 16 of d = 680."


def test_nothing_to_compare_is_undecided():
    found = told(published=None)
    assert (found.decided, found.published) == (False, "")
