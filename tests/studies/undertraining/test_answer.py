"""Learning rate and steps, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.undertraining.answer import answer


def tables(*rows):
    columns = [
        "learning_rate",
        "depth",
        "deeper_depth",
        "few_steps",
        "many_steps",
        "ratio",
        "ratio_low",
        "ratio_high",
    ]
    return {"ratios": Table(pd.DataFrame(rows, columns=[*columns, "p_equal", "status"]), "")}


def test_the_best_rates_decide():
    one = (0.001, 1, 2, 1000, 4000, 0.9, 0.8, 1.0, 0.04, "measured")
    best = ("best rates", 1, 2, 1000, 4000, 0.8, 0.7, 0.9, 0.001, "measured")
    found = answer(tables(one, best))
    assert found.decided
    assert found.sentence == (
        "From 1,000 to 4,000 steps, at the best rates, the width where depth 2 overtakes 1 moves by a factor of 0.80 "
        "(0.70 to 0.90)."
    )


def test_no_significant_move_and_nothing_to_compare_are_undecided():
    unmoved = (0.001, 1, 2, 1000, 4000, 0.9, 0.7, 1.1, 0.4, "measured")
    assert "does not move significantly" in answer(tables(unmoved)).sentence
    assert not answer(tables(unmoved)).decided
    none = (0.001, 1, 2, 1000, 4000, None, None, None, float("nan"), "not both are crossings")
    assert answer(tables(none)).sentence.endswith("not both are crossings.")
    assert not answer(tables()).decided
