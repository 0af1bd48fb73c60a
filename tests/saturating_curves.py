"""Curves that level off, with a knee and without, for the calibration of the knee's test."""

from collections.abc import Callable

import numpy as np

from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise
from shapelaw.fits.plateau import KneeFit, fit_knee

# of the paper's figure 2c, and eight as on a small budget
LISTS = {
    "12 points": np.array([10.0, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 64]),
    "8 points": np.array([4.0, 8, 16, 24, 32, 40, 48, 64]),
}


def knee_at(knee: float) -> Callable[[Floats], Floats]:
    """Two straight pieces to a plateau of 0.7."""
    return lambda x: 0.7 - 0.015 * np.maximum(knee - x, 0.0)


KNEES = {f"knee at {knee}": knee_at(knee) for knee in (22.0, 32.0, 40.0)}
# the last five are none of the forms that a knee is compared with
SMOOTH: dict[str, Callable[[Floats], Floats]] = {
    "exponential": lambda x: 0.7 - 0.3 * np.exp(-(x - 10) / 12),
    "slow exponential": lambda x: 0.75 - 0.45 * np.exp(-(x - 10) / 20),
    "hyperbola": lambda x: 0.95 * x / (x + 15) - 0.1,
    "logistic": lambda x: 0.7 / (1 + np.exp(-(x - 18) / 6)),
    "logarithm": lambda x: 0.2 + 0.12 * np.log(x),
    "tanh": lambda x: 0.7 * np.tanh(x / 25),
    "tanh of a power": lambda x: 0.7 * np.tanh((x / 28) ** 1.5),
    "Hill": lambda x: 0.75 * x**2 / (x**2 + 225),
    "Gompertz": lambda x: 0.7 * np.exp(-3 * np.exp(-x / 10)),
    "arctangent": lambda x: 0.45 * np.arctan(x / 12),
}


def draw_fit(
    curve: Callable[[Floats], Floats], x: Floats, rng: np.random.Generator, *, noise: float, seeds: int = 3
) -> KneeFit:
    """The knee of means over seeds, with the noise that they show; with one seed without a noise."""
    runs = curve(x)[:, None] + noise * rng.standard_normal((len(x), seeds))
    if seeds == 1:
        return fit_knee(x, runs[:, 0], np.ones(len(x)), None)
    std = float(np.sqrt(runs.var(axis=1, ddof=1).mean()))
    err = np.full(len(x), std / np.sqrt(seeds))
    return fit_knee(x, runs.mean(axis=1), err, Noise(std, float(len(x) * (seeds - 1))))
