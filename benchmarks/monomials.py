"""Section 5.1 of the note on building blocks: which sums of d monomials have separation rank d, and which epsilon-rank.

  PYTHONPATH=scripts python benchmarks/monomials.py --draws 10000 --out docs/results/monomials.csv

A sum over l = 1..d of a_l times a monomial in n = 4 inputs, whose exponents are drawn uniformly from 1 to K and whose
a_l are random; half of the inputs are A. Its separation rank is that of its matrix of coefficients, with the exponents
of A as rows and those of B as columns: exact, over GF(p). `epsilon` is 0 there. For other epsilon the rank is the least
one of a function within that relative distance in the mean square over [-1, 1]^n (Eckart and Young), from the singular
values of the matricization at the nodes of Gauss and Legendre, whose weights make the mean exact.

`full` is the share of draws with rank d; `expected` the chance that all exponents of A differ, and all of B.
"""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapelaw.errors import command_line
from shapelaw.theory.polynomials import PRIMES, rank

INPUTS = 4
MOST_TERMS, MOST_POWER = 8, 6
EPSILONS = (1e-1, 1e-2, 1e-3, 1e-4)
SEED = 1
Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def full_rank_share(terms: int, power: int, inputs: int = INPUTS) -> float:
    """The chance of rank d: of K^(n/2) exponents of a half d different ones are drawn, and so of the other half."""
    kinds = power ** (inputs // 2)
    return math.prod(max(kinds - drawn, 0) / kinds for drawn in range(terms)) ** 2


def coefficient_rank(exponents: Whole, coefficients: Whole) -> int:
    """The separation rank of a sum of monomials, exactly.

    Args:
        exponents: (d, n).
        coefficients: (d) residues.
    """
    half = exponents.shape[1] // 2
    rows, columns = (
        np.unique(part, axis=0, return_inverse=True)[1].ravel()
        for part in (exponents[:, :half], exponents[:, half:])
    )
    matrix = np.zeros((rows.max() + 1, columns.max() + 1), dtype=np.uint64)
    np.add.at(matrix, (rows, columns), coefficients.astype(np.uint64))
    return rank(matrix % np.uint64(PRIMES[0]), PRIMES[0])


def singular_values(exponents: Whole, coefficients: Floats) -> Floats:
    """Those of sums of monomials in the mean square over [-1, 1]^n: (draws, d), falling.

    Args:
        exponents: (draws, d, n).
        coefficients: (draws, d).
    """
    nodes, weights = np.polynomial.legendre.leggauss(int(exponents.max()) + 1)
    powers = nodes ** exponents[..., None] * np.sqrt(weights / 2)  # (draws, d, n, nodes)
    a, b, c, d = np.moveaxis(powers, 2, 0)
    halves = [
        (one[..., :, None] * other[..., None, :]).reshape(*exponents.shape[:2], -1)
        for one, other in ((a, b), (c, d))
    ]
    left, right = (np.linalg.qr(half.transpose(0, 2, 1), mode="r") for half in halves)
    return np.asarray(
        np.linalg.svd(left * coefficients[:, None] @ right.transpose(0, 2, 1), compute_uv=False)
    )


def epsilon_ranks(values: Floats, epsilon: float) -> Whole:
    """How many singular values (draws, d) leave a tail of at most epsilon times their norm."""
    tails = np.sqrt(np.cumsum((values**2)[:, ::-1], axis=1))[:, ::-1]  # from each on
    return np.asarray((tails > epsilon * tails[:, :1]).sum(1))


def main() -> None:
    """Draw, measure, and write the table."""
    parser = command_line(__doc__)
    parser.add_argument("--draws", type=int, default=10_000, help="of each d and K (default 10,000)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv")
    arguments = parser.parse_args()
    rng = np.random.default_rng(SEED)
    rows = []
    for power, terms in product(range(1, MOST_POWER + 1), range(1, MOST_TERMS + 1)):
        exponents = rng.integers(1, power + 1, (arguments.draws, terms, INPUTS))
        residues = rng.integers(1, PRIMES[0], (arguments.draws, terms))
        exact = np.array(list(map(coefficient_rank, exponents, residues)))
        values = singular_values(exponents, rng.standard_normal((arguments.draws, terms)))
        ranks = {0.0: exact} | {epsilon: epsilon_ranks(values, epsilon) for epsilon in EPSILONS}
        for epsilon, found in ranks.items():
            expected = "" if epsilon else f"{full_rank_share(terms, power):.4f}"
            shares = f"{(found == terms).mean():.4f}", f"{found.mean():.3f}"
            rows.append((power, terms, epsilon, arguments.draws, *shares, expected))
    columns = ["power", "terms", "epsilon", "draws", "full", "mean_rank", "expected"]
    pd.DataFrame(rows, columns=columns).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
