"""Today's decoder, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.todays_decoder.answer import answer


def told(*rows):
    columns = ["one", "other", "at", "ratio", "ratio_low", "ratio_high", "p_equal"]
    transitions = pd.DataFrame({"status": ["crossing", "too few sizes"]})
    return answer(
        {"ratios": Table(pd.DataFrame(rows, columns=columns), ""), "transitions": Table(transitions, "")}
    )


def test_ratios_the_clearest_first():
    found = told(
        ("gpt2", "llama", "rate 0.001", 1.1, 0.9, 1.3, 0.5),
        ("gpt2", "llama", "best rates", 1.5, 1.3, 1.7, 0.01),
    )
    assert found.decided
    assert found.sentence.startswith(
        "The transition moves significantly in 1 of 2 comparisons: from gpt2 to llama (best rates) by 1.50 "
    )
    assert not told(("gpt2", "llama", "rate 0.001", 1.1, 0.9, 1.3, 0.5)).decided


def test_nothing_to_compare_is_undecided():
    found = told(("gpt2", "llama", "rate 0.001", None, None, None, None))
    assert (found.decided, found.sentence) == (
        False,
        "No two transitions can be compared: 1 of 2 are crossings.",
    )
