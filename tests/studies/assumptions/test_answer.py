"""The theorem's assumptions, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.assumptions.answer import answer


def test_layers_on_which_each_holds_and_agreement_with_the_paper():
    rows = [
        ("assumption 1", "holds", "holds"),
        ("assumption 1", "fails", "holds"),
        ("general position", "fails", None),
    ]
    verdicts = pd.DataFrame(rows, columns=["assumption", "ours", "published"])
    found = answer({"verdicts": Table(verdicts, "")})
    assert found.decided
    assert found.sentence == "Layers on which it holds: assumption 1 on 1 of 2, general position on 0 of 1."
    assert found.published == "1 of 2 published verdicts agree with ours."
