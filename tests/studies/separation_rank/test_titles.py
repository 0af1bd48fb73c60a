"""A rank figure's title says what was found, or that lower bounds can't tell."""

from __future__ import annotations

import pandas as pd

from shapelaw.studies.separation_rank.results import UNKNOWN, best_degree_title, closed_form_title, flat_title


def test_closed_forms_are_counted_and_a_rank_that_grows_is_not_flat() -> None:
    assert closed_form_title([(1.0, 1.0), (2.0, 2.0)]) == "all 2 ranks equal the closed form"
    assert closed_form_title([(1.0, 1.0), (2.0, 2.5)]) == "1 of 2 ranks equal the closed form"
    rows = pd.DataFrame({"embedding_rank": [1, 1, 2], "rank": [5, 5, 18], "status": "exact"})
    assert flat_title(rows) == "Width beyond r adds nothing"
    assert flat_title(rows.assign(rank=[5, 6, 18])) == "Width beyond r still adds"
    assert flat_title(rows.assign(status="at least")) == UNKNOWN


def test_the_best_degrees_are_named_by_their_budgets() -> None:
    rows = pd.DataFrame({"degree": [2, 3], "log3_rank": [4.0, 3.0], "status": "exact"})
    tied = rows.assign(log3_rank=4.0)
    found = best_degree_title({6: rows, 8: tied, 12: rows}, 80)
    assert found == "best k: 2 at B\u00a0=\u00a06, 12; 2 and 3 at B\u00a0=\u00a08"
    unknown = best_degree_title({6: rows.assign(status="at least")}, 80)
    assert unknown == "best k: can't tell at B\u00a0=\u00a06"
