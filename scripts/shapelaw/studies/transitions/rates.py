"""Networks at one of several learning rates, each at its best."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

BEST_RATES = "best rates"


def rate_name(learning_rate: float | None) -> str:
    """`rate 0.002`; `best rates` for None."""
    return BEST_RATES if learning_rate is None else f"rate {learning_rate:g}"


def at_best_rates(at_rates: Mapping[float, pd.DataFrame], best: pd.DataFrame) -> pd.DataFrame:
    """The runs at the best rates, by shape and seed.

    Args:
        at_rates: checked runs by learning rate.
        best: `learning_rate` for each `depth, width`, or for each `depth, width, seed`.
    """
    keys = [name for name in ("depth", "width", "seed") if name in best]
    found = [
        runs.merge(best.loc[best["learning_rate"] == rate, keys], on=keys) for rate, runs in at_rates.items()
    ]
    return pd.concat(found, ignore_index=True).sort_values(["depth", "width", "seed"], ignore_index=True)
