"""Exact arithmetic modulo a prime of 31 bits on whole numpy arrays, and the rank of a matrix by FLINT.

Numbers are uint64 below the prime: four products of two of them fit in 64 bits, so sums of products are reduced once
every four terms. A matrix's two axes come first, any number of batch axes, which broadcast, after them.
"""

from __future__ import annotations

import flint
import numpy as np
import numpy.typing as npt

Residues = npt.NDArray[np.uint64]

PRIMES = (2**31 - 1, 2**31 - 19)  # the two largest primes below 2^31
TERMS = 4  # how many products of two residues, plus one residue, fit in 64 bits


def random_residues(rng: np.random.Generator, shape: tuple[int, ...], prime: int) -> Residues:
    """Uniform residues."""
    return rng.integers(0, prime, shape, dtype=np.uint64)


def reduce(numbers: Residues, prime: int) -> Residues:
    """Reduce modulo the prime, in place; several times faster than numpy's remainder, since the divisor is constant."""
    multiples = numbers // np.uint64(prime)
    multiples *= np.uint64(prime)
    numbers -= multiples
    return numbers


def add(first: Residues, second: Residues, prime: int) -> Residues:
    """The sum of two arrays of residues."""
    total = first + second
    np.minimum(total, total - np.uint64(prime), out=total)  # negative numbers wrap around to large ones
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
