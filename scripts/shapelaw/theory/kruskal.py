"""Test by sampling whether sets of vectors are linearly independent, as Mahdavi et al. 2024 assume.

The Kruskal rank of a set is the largest size at which every subset is independent. Computing it is NP-hard, so the
paper draws 5,000 random subsets and asks for full rank in at least 99% of them (section 5.1). "Full rank" is numerical
here: the smallest singular value is above `tolerance` times the largest, in float64.

Singular values decide. Two certificates save the decomposition where its answer is certain:

- A subset's Gram matrix, less a shift, has a Cholesky factor. Then its smallest eigenvalue is above the shift up to
rounding errors, and the shift includes a bound on those: this proves full rank. The test fails for condition numbers
above about 1e6, which a Gram matrix squares and so can't resolve; there the singular values are computed. - The
singular values of a subset are at most those of the whole set (interlacing). If these are too small for any subset of a
size, no such subset is independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shapelaw.errors import UserError
from shapelaw.theory.memorization import TOLERANCE, Floats

TRIALS = 5_000  # section 5.1
PASS_RATE = 0.99
_EPSILON = float(np.finfo(np.float64).eps)
_CHUNK = 2**22  # numbers per batch of decompositions


@dataclass(frozen=True)
class PassRate:
    """The share of `trials` random subsets of `size` vectors that are independent at `tolerance`.

    `smallest` is the least relative smallest singular value that was computed: the distance of the worst subset from
    the tolerance; `decomposed` is the number of subsets with computed values. They are NaN and 0 if none was computed.
    """

    size: int
    rate: float
    trials: int
    tolerance: float
    smallest: float
    decomposed: int

    @property
    def holds(self) -> bool:
        """True if the Kruskal rank is at least `size` by the paper's test."""
        return self.rate >= PASS_RATE


def kruskal_pass_rate(
    vectors: npt.ArrayLike, size: int, trials: int = TRIALS, seed: int = 0, tolerance: float = TOLERANCE
) -> PassRate:
    """Draw subsets without replacement and count those of full rank.

    Args:
        vectors: (N, d).
        size: size of the subsets, at most N; above d none is independent.
        trials, seed: the number of subsets and their draw, which does not depend on the tolerance.
        tolerance: relative to the largest singular value of each subset.

    Raises:
        UserError: a subset needs more vectors than there are, or trials is 0.
        ValueError: the matrix is not finite, or the tolerance is not between 0 and 1.
    """
    vectors_ND = _checked(vectors, tolerance)
    _check_size(size, trials, len(vectors_ND))
    values = _singular_values(vectors_ND)
    return _pass_rate(vectors_ND, values, size, trials, seed, tolerance, allowed=trials)


def kruskal_rank_estimate(
    vectors: npt.ArrayLike, trials: int = TRIALS, seed: int = 0, tolerance: float = TOLERANCE
) -> int:
    """The largest size whose pass rate is at least 99%, by bisection; 0 if single vectors fail.

    Subsets of independent vectors are independent, so the rate falls with the size. A size is rejected as soon as more
    than 1% of all its trials have failed. The estimate may be too high, since a dependent subset may be rare.

    Raises:
        UserError, ValueError: as `kruskal_pass_rate`.
    """
    vectors_ND = _checked(vectors, tolerance)
    _check_size(1, trials, len(vectors_ND))
    allowed = trials - int(np.ceil(PASS_RATE * trials))  # failures
    values = _singular_values(vectors_ND)
    low, high = 0, min(vectors_ND.shape)
    while low < high:
        size = (low + high + 1) // 2
        if _pass_rate(vectors_ND, values, size, trials, seed, tolerance, allowed).holds:
            low = size
        else:
            high = size - 1
    return low


def smallest_values(vectors: npt.ArrayLike, size: int, trials: int, seed: int = 0) -> Floats:
    """The smallest singular value of each random subset relative to its largest, (trials,), all by decomposition.

    The subsets are those of `kruskal_pass_rate`, and the share above a tolerance is its rate there. The 1% quantile is
    the tolerance below which a set passes. 0 where `size` is above d or all vectors of a subset are zero.

    Raises:
        UserError: a subset needs more vectors than there are, or trials is 0.
        ValueError: the matrix is not finite.
    """
    vectors_ND = _checked(vectors, TOLERANCE)
    n_vectors, width = vectors_ND.shape
    _check_size(size, trials, n_vectors)
    if size > width:
        return np.zeros(trials)
    rng = np.random.default_rng(seed)
    subsets = [rng.choice(n_vectors, size, replace=False, shuffle=False) for _ in range(trials)]
    step = max(1, _CHUNK // (size * width))
    found = [
        _relative(_singular_values(vectors_ND[np.stack(subsets[start : start + step])]))[:, -1]
        for start in range(0, trials, step)
    ]
    return np.concatenate(found)


def context_values(contexts: npt.ArrayLike) -> Floats:
    """The singular values of each context relative to its largest, (T, min(n, d)), from contexts (T, n, d).

    Raises:
        ValueError: contexts are not a stack of finite matrices.
    """
    e_TnD = np.asarray(contexts, dtype=np.float64)
    if e_TnD.ndim != 3 or e_TnD.size == 0 or not np.isfinite(e_TnD).all():
        raise ValueError(f"contexts must be finite and of shape (T, n, d), not {e_TnD.shape}")
    step = max(1, _CHUNK // e_TnD[0].size)
    parts = [_singular_values(e_TnD[start : start + step]) for start in range(0, len(e_TnD), step)]
    return _relative(np.concatenate(parts))


def _pass_rate(
    vectors_ND: Floats, values: Floats, size: int, trials: int, seed: int, tolerance: float, allowed: int
) -> PassRate:
    """The pass rate over `trials` subsets; after more than `allowed` failures it stops and counts the rest as failures.

    `values` are the singular values of all vectors.
    """
    n_vectors, width = vectors_ND.shape
    if size > width or _none_independent(vectors_ND, values, size, tolerance):
        return PassRate(size, 0.0, trials, tolerance, float("nan"), 0)
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // (size * width))
    passed, failed, decomposed, smallest = 0, 0, 0, np.inf
    doubtful: list[npt.NDArray[np.int64]] = []
    for trial in range(trials):
        subset = rng.choice(n_vectors, size, replace=False, shuffle=False)
        if _surely_independent(vectors_ND[subset], tolerance):
            passed += 1
        else:
            doubtful.append(subset)
        if len(doubtful) == step or (doubtful and trial == trials - 1):
            relative = _relative(_singular_values(vectors_ND[np.stack(doubtful)]))[:, -1]
            independent = int((relative > tolerance).sum())
            passed, failed = passed + independent, failed + len(doubtful) - independent
            decomposed, smallest = decomposed + len(doubtful), min(smallest, float(relative.min()))
            doubtful = []
            if failed > allowed:
                break
    return PassRate(
        size, passed / trials, trials, tolerance, smallest if decomposed else float("nan"), decomposed
    )


def _surely_independent(rows_SD: Floats, tolerance: float) -> bool:
    """True if a Cholesky factor proves full rank; False proves nothing."""
    gram_SS = rows_SD @ rows_SD.T
    # the rounding of the products and of the factor is at most (d + s + 1) eps / 2 of the trace: eight times that
    shift = (tolerance**2 + 4 * (sum(rows_SD.shape) + 1) * _EPSILON) * float(np.trace(gram_SS))
    gram_SS[np.diag_indices_from(gram_SS)] -= shift
    try:
        np.linalg.cholesky(gram_SS)
    except np.linalg.LinAlgError:
        return False
    return True


def _none_independent(vectors_ND: Floats, values: Floats, size: int, tolerance: float) -> bool:
    """True if interlacing proves that all subsets of `size` fail: the largest value is at least a row's norm."""
    shortest = float(np.linalg.norm(vectors_ND, axis=1).min())
    rounding = max(vectors_ND.shape) * _EPSILON * values[0]
    return size > len(values) or bool(values[size - 1] + rounding < tolerance * shortest)


def _singular_values(matrices: Floats) -> Floats:
    return np.asarray(np.linalg.svd(matrices, compute_uv=False), dtype=np.float64)


def _relative(values_TK: Floats) -> Floats:
    """Singular values divided by the largest; zeros for a zero matrix."""
    return np.asarray(values_TK / np.maximum(values_TK[:, :1], np.finfo(np.float64).tiny))


def _checked(vectors: npt.ArrayLike, tolerance: float) -> Floats:
    vectors_ND = np.asarray(vectors, dtype=np.float64)
    if vectors_ND.ndim != 2 or vectors_ND.size == 0 or not np.isfinite(vectors_ND).all():
        raise ValueError(f"vectors must be finite and of shape (N, d), not {vectors_ND.shape}")
    _check_tolerance(tolerance)
    return vectors_ND


def _check_tolerance(tolerance: float) -> None:
    if not 0 < tolerance < 1:
        raise ValueError(f"the tolerance must be between 0 and 1, not {tolerance}")


def _check_size(size: int, trials: int, n_vectors: int) -> None:
    if trials < 1:
        raise UserError(f"{trials} trials are too few; at least 1 is needed.")
    if not 1 <= size <= n_vectors:
        raise UserError(f"Subsets of {size} vectors can't be drawn from {n_vectors}; give 1 to {n_vectors}.")
