"""Shapes that lie anywhere in size and depth, on loss surfaces whose best depth is known, none of them a fitted form.

About 16 layers are best at 300 M parameters, more at larger sizes; a depth a quarter off costs about 0.001 nats, one
three times off 0.03 to 0.06.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from shapelaw.advice.own_runs.budgets import Budget
from shapelaw.advice.surface.answers import BestDepth, best_depth
from shapelaw.advice.surface.average import fit_surface
from shapelaw.advice.surface.forms import Shapes
from shapelaw.fits.inputs import check_runs

NOISE = 0.004  # nats
RANGE = (5e7, 2e9)
MIDDLE = np.log(3e8)

Surface = Callable[[np.ndarray, np.ndarray], np.ndarray]


def middle_depth(x):
    return np.log(16.0) + 0.3 * (x - MIDDLE)


def power_law(effective):
    return 1.9 + 1.4 * np.exp(-0.25 * (effective - np.log(1e7)))


def log_width(x, z):
    return 0.5 * (x - np.log(12.0) - z)


def three_powers(x, z):
    """Size, depth and width each add a power law: no effective size at all."""
    narrow = 0.45 * np.exp(-0.7 * (log_width(x, z) - np.log(256.0)))
    return 1.7 + 1.2 * np.exp(-0.25 * (x - np.log(1e7))) + 0.35 * np.exp(-0.9 * (z - np.log(4.0))) + narrow


def in_nats(x, z):
    """A penalty that does not shrink with size."""
    return power_law(x) + 0.03 * (z - middle_depth(x)) ** 2


def rounded_v(x, z):
    """A penalty that grows like |t| far out."""
    return power_law(x - 0.6 * (np.sqrt(1.0 + (1.2 * (z - middle_depth(x))) ** 2) - 1.0))


def flat_bottom(x, z):
    """A cubic penalty: half as deep costs next to nothing."""
    return power_law(x - 0.15 * np.abs(z - middle_depth(x)) ** 3)


def steep_when_shallow(x, z):
    """Too shallow costs up to three times as much as too deep."""
    t = z - middle_depth(x)
    return power_law(x - t**2 * (0.15 + 0.3 / (1.0 + np.exp(2.5 * t))))


def steep_when_deep(x, z):
    t = z - middle_depth(x)
    return power_law(x - t**2 * (0.15 + 0.3 / (1.0 + np.exp(-2.5 * t))))


def law_depth(x):
    """log L of N = 12 L exp(2 a + 2 b L) with a = 4.6, b = 0.055."""
    z = np.full_like(x, 2.5)
    for _ in range(60):
        z = z - (z + np.log(12.0) + 9.2 + 0.11 * np.exp(z) - x) / (1.0 + 0.11 * np.exp(z))
    return z


def skewed_law(x, z):
    """The law's depth with a skewed penalty."""
    t = z - law_depth(x)
    return power_law(x - 0.35 * (np.expm1(0.8 * t) - 0.8 * t) / 0.64)


def ripple(x, z):
    """A wave of 0.003 nats over the depths, which no fitted form has."""
    return power_law(x - 0.25 * (z - middle_depth(x)) ** 2) + 0.003 * np.sin(
        2.5 * (z - middle_depth(x)) + 1.0
    )


def flat_valley(x, z):
    """Depths within a factor of 1.65 of the middle one cost nothing."""
    return power_law(x - 0.4 * np.maximum(np.abs(z - middle_depth(x)) - 0.5, 0.0) ** 2)


def sharp_valley(x, z):
    """A penalty that grows like |t|^1.5 from the best depth on, where no curvature is finite."""
    return power_law(x - 0.25 * np.abs(z - middle_depth(x)) ** 1.5)


def by_aspect(x, z):
    """A factor of the loss that can be reduced, by the aspect ratio: steeper when too narrow than when too wide."""
    t = z - np.log(16.0) - (x - MIDDLE) / 3.0
    lost = (np.exp(-1.2 * t) - 1.0) / 1.2 + (np.exp(0.6 * t) - 1.0) / 0.6
    return 1.9 + (power_law(x) - 1.9) * (1.0 + 0.05 * lost)


def one_wall(x, z):
    """Shallow networks lose, deep ones next to nothing."""
    t = z - middle_depth(x)
    return power_law(x - np.logaddexp(0.0, -6.0 * (t + 0.35)) / 12.0 - 0.02 * t)


def cornered_wall(x, z):
    """A parabola that is 15 times as flat on its deep side, which one of the fitted forms is too."""
    t = z - middle_depth(x)
    return power_law(x - np.where(t < 0, 0.45, 0.03) * t**2)


def endless_wall(x, z):
    """The deeper the better, by less and less."""
    return power_law(x - 0.06 * np.exp(-1.8 * (z - middle_depth(x))))


UNLIKE: dict[str, Surface] = {
    "three power laws": three_powers,
    "penalty in nats": in_nats,
    "rounded V": rounded_v,
    "flat bottom": flat_bottom,
    "steep when shallow": steep_when_shallow,
    "steep when deep": steep_when_deep,
    "the law, skewed": skewed_law,
    "ripple": ripple,
    "by aspect ratio": by_aspect,
    "one wall": one_wall,
}


def symmetric(x, z):
    """One of the fitted forms."""
    return power_law(x - 0.25 * (z - middle_depth(x)) ** 2)


def true_depth(surface: Surface, x: float) -> float:
    z = np.linspace(np.log(1.5), np.log(200.0), 4000)
    return float(np.exp(z[surface(np.full_like(z, x), z).argmin()]))


@dataclass(frozen=True)
class Design:
    """`count` shapes, within `spread` of the middle depth in log, at sizes anywhere or at four sizes.

    `shift` moves all of them in log depth; the first `repeated` shapes have three seeds. A shape is off by `scatter`
    (nats) whatever its seed, every other one by `batch`; the noise of seeds is `uneven` times as large below `MIDDLE`.
    """

    count: int = 22
    spread: float = 1.1
    shift: float = 0.0
    four_sizes: bool = False
    repeated: int = 0
    noise: float = NOISE
    scatter: float = 0.0
    batch: float = 0.0
    uneven: float = 1.0


def draw_shapes(surface: Surface, design: Design, seed: int) -> tuple[Shapes, np.ndarray]:
    """Shapes with noisy losses, and (n, 3) losses of their seeds, NaN where there is one seed only."""
    rng = np.random.default_rng([seed, design.count, sum(map(ord, surface.__name__))])
    low, high = np.log(RANGE)
    x = rng.uniform(low, high, design.count)
    if design.four_sizes:
        x = low + (high - low) * np.round(3 * (x - low) / (high - low)) / 3
    z = middle_depth(x) + design.shift + rng.uniform(-design.spread, design.spread, design.count)
    depth = np.maximum(1.0, np.round(np.exp(z)))
    width = 16.0 * np.maximum(1.0, np.round(np.sqrt(np.exp(x) / 12.0 / depth) / 16.0))
    size = 12.0 * depth * width**2
    noise = design.noise * np.where(x < MIDDLE, design.uneven, 1.0)
    losses = surface(np.log(size), np.log(depth))[:, None] + noise[:, None] * rng.standard_normal((len(x), 3))
    own = design.scatter * rng.standard_normal(len(x)) + design.batch * (np.arange(len(x)) % 2)
    losses = losses + own[:, None]
    seeds = np.where(np.arange(len(x)) < design.repeated, 3, 1)
    losses[np.arange(3) >= seeds[:, None]] = np.nan
    return Shapes(depth, width, size, np.nanmean(losses, axis=1), seeds.astype(float)), losses


def standard_shapes(depth: np.ndarray, width: np.ndarray, loss: np.ndarray | float = 0.0) -> Shapes:
    """Shapes of one seed each, whose blocks have 12 L d^2 parameters."""
    size = 12.0 * depth * width**2
    return Shapes(depth, width, size, np.zeros(len(size)) + loss, np.ones(len(size)))


def best_depths(surface: Surface, design: Design, draws: int, seed: int = 0) -> list[tuple[BestDepth, float]]:
    """What a surface fitted to such shapes says of three of their sizes, with the best depth that is true there."""
    shapes, _ = draw_shapes(surface, design, seed)
    fitted = fit_surface(shapes, None, draws=draws, seed=seed)
    places = np.quantile(shapes.x, (0.3, 0.5, 0.7))
    return [(best_depth(fitted, float(np.exp(x))), true_depth(surface, x)) for x in places]


def permuted(shapes: Shapes, seed: int) -> Shapes:
    """Shapes whose depths say nothing of their losses: how deep they are for their size, permuted among them."""
    deep = np.random.default_rng(seed).permutation(shapes.z - middle_depth(shapes.x))
    depth = np.maximum(1.0, np.round(np.exp(middle_depth(shapes.x) + deep)))
    return replace(shapes, depth=depth, width=np.sqrt(shapes.size / 12.0 / depth))


def budget_of(design: Design) -> Budget:
    """The runs of one draw, as the commands have them."""
    shapes, _ = draw_shapes(symmetric, design, 0)
    table = pd.DataFrame({"depth": shapes.depth, "width": shapes.width, "seed": 0, "loss": shapes.loss})
    return Budget(check_runs(table, "made", loss="loss"), 1e10, "every run saw 1e+10 tokens")
