"""Runs of the study of the attention ratio whose redundancies and best depths are known."""

from functools import cache

import numpy as np
import pandas as pd
from run_rows import run_row

from shapelaw.specs.making import make_shape
from shapelaw.studies.decoders.attention_ratio import RatioAnalysis, analyse_runs, check_ratio_runs

TRUE = {1: 0.0, 2: 0.1, 4: 0.25, 8: 0.35, 16: 0.45}  # redundancy in blocks, by ratio
BEST = 18  # depth at every ratio but those below
DEEPEST = {4: 24}
DEPTH_COST = 0.01  # nats for every six layers away from the best


def law(size: float) -> float:
    return float(3.0 + 9.0 * size**-0.2)


def ratio_runs(
    noise: float = 0.001, seeds: int = 3, *, variant: bool = False, seed: int = 0, depths: bool = True
) -> pd.DataFrame:
    """Runs of ratios 1 to 16 at 12, 18 and 24 layers whose blocks waste what `TRUE` says.

    Args:
        noise: standard deviation over seeds.
        seeds: runs of each network.
        variant: ratios 4 and 16 also with d_ff = 4 d, where they waste half as much.
        seed: seed of the noise.
        depths: another depth costs something.
    """
    rng, rows = np.random.default_rng(seed), []
    for ratio, wasted in TRUE.items():
        for follows in (True, False) if variant and ratio in (4, 16) else (True,):
            for depth in (12, 18, 24):
                for size in np.geomspace(10e6, 66e6, 8) if ratio == 1 else (48e6, 66e6):
                    shares = 12 * ratio if follows else 4 * ratio + 8
                    width = 4 * round(np.sqrt(size / shares / depth) / 4)
                    shape = make_shape(
                        depth, width, 4, 500, 128, ratio * width // 4,
                        ff_width=4 * ratio * width if follows and ratio > 1 else None,
                    )  # fmt: skip
                    waste = wasted if follows else wasted / 2
                    away = abs(depth - DEEPEST.get(ratio, BEST)) / 6 if depths else 0
                    loss = law(shape.block_params * (1 - waste)) + DEPTH_COST * away
                    for one in range(seeds):
                        drawn = loss + noise * rng.standard_normal()
                        rows.append(run_row(shape, one, drawn, "heads", "attention_dim", "ff_width"))
    return pd.DataFrame(rows)


@cache
def analysed(
    noise: float = 0.001, seeds: int = 3, *, variant: bool = False, seed: int = 0, depths: bool = True
) -> RatioAnalysis:
    """The analysis of `ratio_runs`, made once."""
    runs = ratio_runs(noise, seeds, variant=variant, seed=seed, depths=depths)
    return analyse_runs(check_ratio_runs(runs, "runs.csv"))
