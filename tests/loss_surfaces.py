"""Loss surfaces with transitions that are known exactly, for the tests of the estimators.

All depths share a power law of size; depth L adds D_L N^-0.5, what too thin layers cost (the paper's width-efficiency),
and S_L, what more layers save. D and S grow so that adjacent depths are equal at exactly one size.

A `Surface` makes it hard to find the crossing of two depths, 6 and 12 from 1.5 M to 80 M parameters, for calibrating
estimators. `gap(u)` is the deeper one's loss less the shallower one's, in nats, at log size u from the true crossing,
which is drawn between the widths 300 and 460 (about the middle of the range). Noise is in units of `NOISE`, the
published seed noise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from shapelaw.fits.curves import Curve

NOISE = 0.0015  # nats
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


DEPTHS = (6, 12)
RANGE = (1.5e6, 8e7)
WIDTHS = (300.0, 460.0)


def straight(u):
    return -0.012 * u


def saturating(u):
    return -0.02 * np.tanh(u / 1.2)


def powers(u):
    return 0.02 * (np.exp(-u / 2) - 1)


@dataclass(frozen=True)
class Surface:
    """`noise(s)` is the seed noise at the relative log size s in [0, 1]; `scatter`: what a shape adds that no seed
    shows; `drift`: the amplitude of a smooth wave of each depth; `outlier`: what one run near the crossing is off by;
    `outliers`: the share of runs that are 10 too high. `repeated` are places in each depth's list with `seeds` seeds.
    The true width is drawn from `between`.
    """

    name: str
    gap: Callable[[np.ndarray], np.ndarray] = powers
    crosses: bool = True
    count: int = 9
    noise: Callable[[np.ndarray], np.ndarray] = np.ones_like
    tails: float = np.inf
    scatter: float = 0.0
    drift: float = 0.0
    outlier: float = 0.0
    outliers: float = 0.0
    kink: bool = False
    unaligned: bool = False
    repeated: Sequence[int] = (1, -2)
    seeds: int = 3
    between: tuple[float, float] = WIDTHS


def steep(u):
    return 3 * powers(u)


def growing(s):
    return 0.5 * 4.0**s


def falling(s):
    return 2.0 * 4.0**-s


CROSSING = (
    Surface("power laws"),
    Surface("straight gap", straight),
    Surface("gap that saturates", saturating),
    Surface("steep gap", lambda u: -0.05 * np.tanh(u / 0.5)),
    Surface("flat gap", lambda u: -0.004 * u),
    Surface("gap with a long tail", lambda u: 0.01 * (np.exp(-u) - 1)),
    Surface("kink in both curves", kink=True),
    Surface("4 sizes a depth", count=4),
    Surface("6 sizes a depth", count=6),
    Surface("16 sizes a depth", count=16),
    Surface("unaligned sizes", unaligned=True),
    Surface("noise from one repeated pair", repeated=(4,), seeds=2),
    Surface("heavy tails (t, 3 dof)", tails=3.0),
    Surface("5% of runs 10 sigma too high", outliers=0.05),
    Surface("one run 7 sigma off near the crossing", outlier=7.0),
    Surface("noise grows, repeats at both ends", noise=growing),
    Surface("noise grows, repeats at small sizes", noise=growing, repeated=(0, 1)),
    Surface("noise falls, repeats at both ends", noise=falling),
    Surface("scatter as large as the noise", scatter=1.0),
    Surface("scatter twice the noise", scatter=2.0),
    Surface("scatter six times the noise", scatter=6.0),
    Surface("smooth drift", drift=2.0),
)
WITHOUT = (
    Surface("equal", np.zeros_like, crosses=False),
    Surface("deeper worse, then equal", lambda u: 0.02 / (1 + np.exp(u / 0.3)), crosses=False),
    Surface("gap that decays to zero", lambda u: 0.012 * np.exp(-u), crosses=False),
    Surface("two crossings, deeper better between", lambda u: -0.008 + 0.012 * u**2, crosses=False),
    Surface("two crossings, deeper worse between", lambda u: 0.008 - 0.012 * u**2, crosses=False),
    Surface("deeper better, then worse", lambda u: -powers(u), crosses=False),
    Surface("deeper better by scatter", lambda u: np.full_like(u, -0.003), crosses=False, scatter=2.0),
)

# how the noise follows the size, 0.012 to 0.002 nats from one end to the other, or 0.0049 at both; and the places with
# three seeds, of 20 and of 8 degrees of freedom
NOISES = {
    "falls": lambda s: 8.0 * 6.0**-s,
    "rises": lambda s: 8.0 / 6.0 * 6.0**s,
    "constant": lambda s: 0 * s + 3.27,
}
REPEATS = {20: (0, 2, 4, 6, 8), 8: (1, -2)}
BY_SIZE = tuple(
    Surface(
        f"noise {how}, {dof} degrees of freedom{what}",
        gap,
        crosses=not what,
        noise=noise,
        repeated=places,
        between=(220.0, 680.0),
    )
    for how, noise in NOISES.items()
    for dof, places in REPEATS.items()
    for what, gap in (("", steep), (", equal", np.zeros_like))
)


def draw_runs(surface: Surface, seed: int) -> tuple[pd.DataFrame, float]:
    """Runs as `depth, width, seed, loss`, and the width of depth 6 at the true crossing."""
    rng = np.random.default_rng([seed, sum(map(ord, surface.name))])
    true_width = float(np.exp(rng.uniform(*np.log(surface.between))))
    widths = grid_of(DEPTHS, *RANGE, surface.count)
    if surface.unaligned:
        low, high = np.log(RANGE)
        step = (high - low) / surface.count
        places = low + step * (np.arange(surface.count) + rng.uniform(0.05, 0.95, (2, surface.count)))
        widths = {
            depth: sorted({2 * round(float(np.sqrt(np.exp(x) / (12 * depth))) / 2) for x in row})
            for depth, row in zip(DEPTHS, places, strict=True)
        }
    frames = []
    for depth, row in widths.items():
        x = np.log(12.0 * depth * np.array(row, dtype=float) ** 2)
        u = x - np.log(72 * true_width**2)
        s = (x - np.log(RANGE[0])) / np.log(RANGE[1] / RANGE[0])
        loss = 1.8 + 1.5 * np.exp(-0.12 * (x - np.log(1e6))) + (depth == 12) * surface.gap(u)
        if surface.kink:
            loss = loss + 0.04 * np.maximum(0.0, -u - 0.4)
        loss = loss + NOISE * surface.scatter * rng.standard_normal(len(x))
        loss = loss + NOISE * surface.drift * np.sin(2 * np.pi * (u / 3 + rng.uniform()))
        off = np.zeros(len(x))
        if surface.outlier and depth == 12:
            off[np.argmin(np.abs(u))] = surface.outlier * rng.choice([-1.0, 1.0])
        for number in range(surface.seeds):
            there = np.isin(np.arange(len(x)), [r % len(row) for r in surface.repeated]) | (number == 0)
            tail = (
                rng.standard_normal(len(x))
                if np.isinf(surface.tails)
                else rng.standard_t(surface.tails, len(x))
            )
            noise = surface.noise(s) * tail + 10 * (rng.uniform(size=len(x)) < surface.outliers)
            frames.append(
                pd.DataFrame(
                    {
                        "depth": depth,
                        "width": row,
                        "seed": number,
                        "loss": loss + NOISE * (noise + off * (number == 0)),
                    }
                )[there]
            )
    return pd.concat(frames, ignore_index=True), true_width
