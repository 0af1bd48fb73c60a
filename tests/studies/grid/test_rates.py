"""Runs at the best of several learning rates."""

import pandas as pd

from shapelaw.studies.decoders.todays_decoder import OTHER_SEEDS, OWN_LOSS, at_best_rates, best_of_seeds


def made(losses: dict[tuple[int, int], float]) -> pd.DataFrame:
    """Runs of depth 1: losses by width and seed."""
    rows = [{"depth": 1, "width": w, "seed": s, "loss": loss} for (w, s), loss in losses.items()]
    return pd.DataFrame(rows)


def test_each_seed_of_a_shape_has_a_rate_and_a_shape_without_one_is_left_out() -> None:
    at_rates = {
        0.001: made({(8, 1): 1.0, (8, 0): 1.1, (16, 0): 3.0}),
        0.002: made({(8, 1): 2.0, (8, 0): 0.9, (16, 0): 2.0}),
    }
    of_seeds = pd.DataFrame({"depth": 1, "width": 8, "seed": [0, 1], "learning_rate": [0.002, 0.001]})
    assert at_best_rates(at_rates, of_seeds)["loss"].tolist() == [0.9, 1.0]


def test_a_rate_is_picked_on_the_other_seeds_and_the_edge_is_said() -> None:
    """At width 8 each seed is luckiest at the rate that is worse for the other two."""
    low = made({(8, 0): 1.0, (8, 1): 1.3, (8, 2): 1.3, (16, 0): 1.0})
    middle = made({(8, 0): 1.1, (8, 1): 1.1, (8, 2): 1.1, (16, 0): 1.4})
    high = made({(8, 0): 2.0, (8, 1): 2.0, (8, 2): 2.0, (16, 0): 1.5})
    best = best_of_seeds({1e-3: low, 2e-3: middle, 4e-3: high})
    rates = best.set_index(["width", "seed"])["learning_rate"].to_dict()
    assert rates == {(8, 0): 2e-3, (8, 1): 2e-3, (8, 2): 2e-3, (16, 0): 1e-3}
    assert best["loss"].tolist() == [1.1, 1.1, 1.1, 1.0]  # not the lucky 1.0 of width 8
    assert best["picked_on"].tolist() == [OTHER_SEEDS] * 3 + [OWN_LOSS]
    assert best["at_edge"].tolist() == [False, False, False, True]


def test_a_shape_without_every_rate_has_no_best_one() -> None:
    best = best_of_seeds({1e-3: made({(8, 0): 1.0, (16, 0): 1.0}), 2e-3: made({(8, 0): 2.0})})
    assert best["width"].tolist() == [8]
