"""Runs at the best of several learning rates."""

import pandas as pd

from shapelaw.studies.transitions.rates import at_best_rates, rate_name

AT_RATES = {
    rate: pd.DataFrame({"depth": [1, 1, 2], "width": [8, 8, 4], "seed": [1, 0, 0], "loss": loss})
    for rate, loss in ((0.001, [1.0, 1.1, 3.0]), (0.002, [2.0, 0.9, 2.0]))
}


def test_a_rate_for_a_shape_holds_for_all_of_its_seeds() -> None:
    best = pd.DataFrame({"depth": [1, 2], "width": [8, 4], "learning_rate": [0.001, 0.002]})
    runs = at_best_rates(AT_RATES, best)
    assert runs[["depth", "width", "seed"]].to_numpy().tolist() == [[1, 8, 0], [1, 8, 1], [2, 4, 0]]
    assert runs["loss"].tolist() == [1.1, 1.0, 2.0]


def test_each_seed_can_have_its_own_rate_and_a_shape_without_one_is_left_out() -> None:
    best = pd.DataFrame({"depth": 1, "width": 8, "seed": [0, 1], "learning_rate": [0.002, 0.001]})
    assert at_best_rates(AT_RATES, best)["loss"].tolist() == [0.9, 1.0]


def test_rates_are_named() -> None:
    assert (rate_name(0.002), rate_name(None)) == ("rate 0.002", "best rates")
