"""The tables of the study of undertraining that only it has."""

from __future__ import annotations

import pandas as pd

from shapelaw.studies.grid.rates import RATE, RatesAnalysis, rate_of
from shapelaw.studies.grid.tables import pairs_of, pooled_row, spread_table
from shapelaw.studies.transitions.ratios import ratio_of
from shapelaw.studies.undertraining.analysis import named


def ratios_table(analysis: RatesAnalysis) -> pd.DataFrame:
    """The transition's width at the most steps over that at the fewest, for each rate that both have.

    The 68% interval takes both widths as log-normal and independent; `p_equal` is the chance of a ratio as far from 1
    where the steps don't matter.
    """
    rows = []
    for rate in dict.fromkeys(map(rate_of, analysis.cells)):
        mine = [one for one in analysis.cells if rate_of(one) == rate]
        few, many = mine[0], mine[-1]
        for one, other in pairs_of(few, many) if few is not many else ():
            row = {RATE: rate, "depth": one["depth"], "deeper_depth": one["deeper_depth"]}
            row |= {"few_steps": few.cell.value("steps"), "many_steps": many.cell.value("steps")}
            row |= {
                "width_few": one["width"],
                "width_many": other["width"],
                **ratio_of(one, other, few.losses[1], many.losses[1]),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def seed_noise_table(analysis: RatesAnalysis) -> pd.DataFrame:
    """Mean and standard deviation of the loss of every repeated shape, and the pooled one, which every cell uses."""
    repeated = spread_table(analysis.trained, named)
    (noise,) = analysis.noise.values()
    pooled = pooled_row(repeated, noise, steps="pooled", learning_rate="", depth="", width="")
    return pd.concat([repeated.astype({"steps": object}), pooled], ignore_index=True)
