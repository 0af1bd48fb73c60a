"""Loss surfaces with transitions that are known exactly, for the tests of the estimators.

All depths share a power law of size; depth L adds D_L N^-0.5, what too thin layers cost (the paper's width-efficiency),
and S_L, what more layers save. D and S grow so that adjacent depths are equal at exactly one size.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from shapelaw.fits.curves import Curve

NOISE = 0.0015
GAIN = 0.02  # nats that the next depth saves at large sizes


def size(depth: int, width: float) -> float:
    return 12.0 * depth * width**2


def ladder(
    transitions: Mapping[int, float], depths: Sequence[int], gain: float = GAIN
) -> dict[int, tuple[float, float]]:
    """Depth -> (D, S) so that depth i is overtaken by the next one at width transitions[i]."""
    terms = {depths[0]: (0.0, 0.0)}
    for shallow, deep in pairwise(depths):
        cost, saving = terms[shallow]
        terms[deep] = (cost + gain * size(shallow, transitions[shallow]) ** 0.5, saving - gain)
    return terms


def loss(terms: tuple[float, float], params: float) -> float:
    return 1.8 + 1.5 * (params / 1e6) ** -0.12 + terms[0] * params**-0.5 + terms[1]


def grid_of(depths: Sequence[int], low: float, high: float, count: int) -> dict[int, list[int]]:
    """Widths, multiples of four, of `count` sizes evenly spread in log(P) between `low` and `high`."""
    sizes = np.geomspace(low, high, count)
    rounded = {depth: [4 * round(float(np.sqrt(p / (12 * depth))) / 4) for p in sizes] for depth in depths}
    return {depth: list(dict.fromkeys(widths)) for depth, widths in rounded.items()}


def simulate(
    widths: Mapping[int, Sequence[int]],
    transitions: Mapping[int, float],
    *,
    noise: float = NOISE,
    seed: int = 0,
    repeated: Sequence[int] = (1, -2),
    seeds: int = 3,
    gain: float = GAIN,
) -> pd.DataFrame:
    """Runs of every width; those at the places `repeated` of each depth's list have several seeds."""
    rng = np.random.default_rng(seed)
    terms = ladder(transitions, sorted(widths), gain)
    rows = [
        (depth, width, number, loss(terms[depth], size(depth, width)) + noise * rng.standard_normal())
        for depth, row in widths.items()
        for place, width in enumerate(row)
        for number in range(seeds if place in {r % len(row) for r in repeated} else 1)
    ]
    return pd.DataFrame(rows, columns=["depth", "width", "seed", "test_loss"])


def curve_of(depth: int, widths: Sequence[float], losses: Sequence[float], err: float = 0.001) -> Curve:
    """A loss curve of these points, one seed each."""
    width = np.array(widths, dtype=float)
    loss_err, seeds = np.full(len(width), err), np.ones(len(width))
    return Curve(depth, width, 12.0 * depth * width**2, np.array(losses, dtype=float), loss_err, seeds)
