"""Forms of the loss as a smooth function of size and depth, each with its best depth for every size.

With x = log size and z = log depth, about their means: six forms replace the size N of a power law by an effective
one, log N_eff = x - q p(t), where t = z - z*(x) is the distance from the best depth and p the penalty. They differ in
z* and in p; the seventh is a polynomial of the second degree, the eighth (`surface_smooth.py`) has no form. Several
are needed: one form alone is overconfident where the truth is another, and what none of them can do shows in no
residual that is smaller than the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from shapelaw.fits.line import Floats
from shapelaw.fits.separable import Separable

# families: forms that share an assumption about the penalty share its weight before the data speak
SYMMETRIC, SKEWED, FLAT, POINTED, FREE = "symmetric", "skewed", "flat", "pointed", "free"
# half of a valley's width in log depth, at k = 0: within it a flat one's penalty grows with the fourth power, and
# beyond it a pointed one's with the first
VALLEY = 0.4
# distances in log depth over which the two-sided penalty turns from one side's curvature to the other's
TURN = 0.08
NARROW = float(np.log(1.25))  # sizes that span less count as one size


@dataclass(frozen=True)
class Frame:
    """The middle and the spans of the shapes' log sizes and log depths."""

    x: float
    z: float
    x_span: float
    z_span: float

    @classmethod
    def of(cls, x: Floats, z: Floats) -> Frame:
        return cls(float(x.mean()), float(z.mean()), float(np.ptp(x)), float(np.ptp(z)))


@dataclass(frozen=True)
class Form:
    """One form: its formula, its family, the model with its priors, the starts (s, k) and its parameters' names.

    `linear` counts the linear coefficients.
    """

    name: str
    formula: str
    family: str
    model: Separable
    starts: Floats
    parameters: tuple[str, ...]
    linear: int

    @property
    def free(self) -> int:
        return self.linear + len(self.parameters)


def surface_forms(frame: Frame) -> tuple[Form, ...]:
    """All forms but the smooth one, with priors that suit shapes of this frame."""
    power = "E + A N_eff^-alpha, log N_eff = log N - q "
    line = ", log L* = c0 + c1 log N"
    return (
        _effective(frame, "symmetric", power + "t²" + line, SYMMETRIC, _square),
        _effective(frame, "skewed", power + "2 (e^(k t) - k t - 1) / k²" + line, SKEWED, _linex),
        _effective(frame, "two-sided", power + "t² e^(k sign t)" + line, SKEWED, _two_sided),
        _effective(frame, "law", power + "t², N = 12 L* exp(2 a + 2 b L*)", SYMMETRIC, _square, law=True),
        _effective(frame, "flat", power + "t⁴ / (t² + w²), w = 0.4 e^k" + line, FLAT, _flat),
        _effective(frame, "pointed", power + "2 w² log cosh(t / w), w = 0.4 e^k" + line, POINTED, _pointed),
        quadratic(frame),
    )


def quadratic(frame: Frame) -> Form:
    """The polynomial of the second degree in log size and log depth; without log size where the sizes are one."""
    empty = np.zeros(0)
    columns = partial(_powers, frame)
    return Form(
        "quadratic",
        "second degree in log N and log L",
        SYMMETRIC,
        Separable(columns, empty, empty),
        np.zeros((1, 0)),
        (),
        columns(empty, np.zeros(1), np.zeros(1)).shape[-1],
    )


Penalty = Callable[[Floats, Floats], Floats]


def _effective(
    frame: Frame, name: str, formula: str, family: str, penalty: Penalty, law: bool = False
) -> Form:
    bent = family in (SKEWED, FLAT, POINTED)
    # alpha, log q, then z* at the middle size and its slope (or, of the law, log(b L*) there), then k
    mean = np.array([0.2, np.log(0.3), frame.z, 0.0 if law else 0.3, *([0.0] if bent else [])])
    std = np.array([0.25, 1.5, 1.5 * frame.z_span, 1.0 if law else 0.5, *([1.0] if bent else [])])
    starts = [mean]
    for depth in (-0.6, 0.0, 0.6):
        for sharp in (-1.0, 1.0):
            for skew in (-0.7, 0.7) if bent else (0.0,):
                move = np.array([0.0, sharp, depth * frame.z_span, 0.0, *([skew] if bent else [])])
                starts.append(mean + move)
    best = _law_depth if law else _line_depth
    columns = partial(_effective_columns, frame, best, penalty)
    fourth = "log(b L*)" if law else "c1"
    names = ("alpha", "log q", "log L*", fourth, *(("k",) if bent else ()))
    return Form(name, formula, family, Separable(columns, mean, std), np.array(starts), names, 2)


def _effective_columns(
    frame: Frame,
    best: Callable[[Floats, Floats, Floats], Floats],
    penalty: Penalty,
    theta: Floats,
    x: Floats,
    z: Floats,
) -> Floats:
    alpha, log_q, middle, slope = (theta[..., j, None] for j in range(4))
    from_middle = x - frame.x
    t = z - best(from_middle, middle, slope)
    skew = theta[..., 4, None] if theta.shape[-1] > 4 else np.zeros_like(alpha)
    effective = from_middle - np.exp(log_q) * penalty(t, skew)
    # -expm1(-alpha u) / alpha spans the same as exp(-alpha u) beside a constant, and stays defined at alpha = 0
    alpha = np.where(np.abs(alpha) < 1e-6, 1e-6, alpha)
    power = -np.expm1(np.clip(-alpha * effective, -30.0, 30.0)) / alpha
    return np.stack([np.ones_like(power), power], axis=-1)


def _line_depth(from_middle: Floats, middle: Floats, slope: Floats) -> Floats:
    return middle + slope * from_middle


def _law_depth(from_middle: Floats, middle: Floats, log_growth: Floats) -> Floats:
    """Solve log N = log 12 + log L + 2 a + 2 b L for log L: with r from the middle size, s + 2g (e^s - 1) = r."""
    growth = 2.0 * np.exp(np.clip(log_growth, -6.0, 4.0))
    s = np.where(
        from_middle > 0,
        np.log1p(np.maximum(from_middle, 0.0) / (growth + 1.0)),
        from_middle / (growth + 1.0),
    )
    for _ in range(8):
        risen = growth * np.exp(s)
        s = s - (s + risen - growth - from_middle) / (1.0 + risen)
    return middle + s


def _square(t: Floats, skew: Floats) -> Floats:
    return t**2


def _linex(t: Floats, skew: Floats) -> Floats:
    skew = np.where(np.abs(skew) < 1e-4, 1e-4, skew)
    bent = np.clip(skew * t, -30.0, 12.0)
    return 2.0 * (np.expm1(bent) - bent) / skew**2


def _two_sided(t: Floats, skew: Floats) -> Floats:
    return t**2 * np.exp(skew * np.tanh(t / TURN))


def _flat(t: Floats, bend: Floats) -> Floats:
    return t**4 / (t**2 + _valley(bend) ** 2)


def _pointed(t: Floats, bend: Floats) -> Floats:
    """Near t² and far off like |t|; log cosh as a sum that doesn't overflow."""
    wide = _valley(bend)
    far = np.abs(t) / wide
    return np.asarray(2.0 * wide**2 * (far + np.log1p(np.exp(-2.0 * far)) - np.log(2.0)))


def _valley(bend: Floats) -> Floats:
    return np.asarray(VALLEY * np.exp(np.clip(bend, -5.0, 5.0)))


def _powers(frame: Frame, theta: Floats, x: Floats, z: Floats) -> Floats:
    x, z = x - frame.x, z - frame.z
    powers = [np.ones_like(z), z, z**2]
    if frame.x_span > NARROW:
        powers += [x, x**2, x * z]
    columns = np.stack(powers, axis=-1)
    return np.broadcast_to(columns, theta.shape[:-1] + columns.shape)
