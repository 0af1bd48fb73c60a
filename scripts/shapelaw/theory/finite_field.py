"""Exact arithmetic modulo a prime of 31 bits on whole numpy arrays, and the rank of a matrix by FLINT.

Numbers are uint64 below the prime: four products of two of them fit in 64 bits, so sums of products are reduced once in
four terms. Matrices have their two axes first and any number of axes of a batch, which broadcast, behind them.
"""

from __future__ import annotations

import flint
import numpy as np
import numpy.typing as npt

Residues = npt.NDArray[np.uint64]

PRIMES = (2**31 - 1, 2**31 - 19)  # the two largest primes below 2^31
TERMS = 4  # products of two residues, and a residue, that 64 bits hold


def random_residues(rng: np.random.Generator, shape: tuple[int, ...], prime: int) -> Residues:
    """Uniform residues."""
    return rng.integers(0, prime, shape, dtype=np.uint64)


def reduce(numbers: Residues, prime: int) -> Residues:
    """Reduce modulo the prime, in place; several times as fast as numpy's remainder, for it divides by a constant."""
    multiples = numbers // np.uint64(prime)
    multiples *= np.uint64(prime)
    numbers -= multiples
    return numbers


def add(first: Residues, second: Residues, prime: int) -> Residues:
    """The sum of two arrays of residues."""
    total = first + second
    np.minimum(total, total - np.uint64(prime), out=total)  # below zero wraps around to large
    return total


def matmul(left: Residues, right: Residues, prime: int) -> Residues:
    """The product of each pair of matrices of a batch: (n, k, ...) and (k, m, ...) to (n, m, ...)."""
    total = left[:, 0, None] * right[None, 0]
    for place in range(1, left.shape[1]):
        if place % TERMS == 0:
            reduce(total, prime)
        total += left[:, place, None] * right[None, place]
    return reduce(total, prime)


def transpose(matrices: Residues) -> Residues:
    """The transposes, as a view."""
    return matrices.swapaxes(0, 1)


def rank(matrix: Residues, prime: int) -> int:
    """The rank of a matrix of residues over GF(p), by FLINT's LU decomposition."""
    rows, columns = matrix.shape
    if min(rows, columns) == 0:
        return 0
    return int(flint.nmod_mat(rows, columns, matrix.ravel().tolist(), prime).rank())
