"""The number of examples that attention heads can memorize: the bounds of Mahdavi et al. 2024, and their matrix Z.

Notation as in the paper: `T` examples, each a context of `n` tokens and one query, all of width `d`; `H` heads of
dimension `d_h`; `Z`, (T, H d), one row an example, the concatenated outputs of its heads before any value matrix.
Anything linear in `Z` can fit any real labels of rank(Z) examples, and of no more.

The theorems assume that sets of vectors are linearly independent, tested here by sampling. The Kruskal rank of a set
is the largest size at which every subset is independent. Computing it is NP-hard, so the paper draws 5,000 random
subsets and asks for full rank in at least 99% of them (section 5.1). "Full rank" is numerical here: the smallest
singular value is above `tolerance` times the largest, in float64.

Singular values decide. Two certificates save the decomposition where its answer is certain:

- A subset's Gram matrix, less a shift, has a Cholesky factor. Then its smallest eigenvalue is above the shift up to
  rounding errors, and the shift includes a bound on those: this proves full rank. The test fails for condition numbers
  above about 1e6, which a Gram matrix squares and so can't resolve; there the singular values are computed.
- The singular values of a subset are at most those of the whole set (interlacing). If these are too small for any
  subset of a size, no such subset is independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shapelaw.errors import UserError
from shapelaw.specs.memorizers import Memorizer, beyond_theorem

Floats = npt.NDArray[np.float64]

TOLERANCE = 1e-10  # relative to the largest singular value: float64 rounds at about 1e-15 of it


def check_sizes(**sizes: int | None) -> None:
    """Refuse sizes other than whole numbers of at least 1; None passes.

    Raises:
        UserError: names every such size.
    """
    wrong = [f"{name} = {size!r}" for name, size in sizes.items() if size is not None and not _is_size(size)]
    if wrong:
        raise UserError(f"{', '.join(wrong)}: sizes must be whole numbers of at least 1.")


def examples_per_head(context: int, head_dim: int, kruskal_rank: int | None = None) -> int:
    """`r = min(n, d_h)`, or `min(n, Q, d_h)`: each head adds `r - 1` examples (theorem 1; remark 1 for `Q`)."""
    check_sizes(context=context, head_dim=head_dim, kruskal_rank=kruskal_rank)
    return min(context, head_dim, kruskal_rank if kruskal_rank is not None else context)


def memorizable_examples(heads: int, context: int, head_dim: int, kruskal_rank: int | None = None) -> int:
    """`H (min(n, d_h) - 1) + 1`: the examples that can be memorized, whatever their labels.

    Theorem 1 of Mahdavi et al. 2024, for contexts of rank `n < d` (assumption 2) and queries of Kruskal rank at
    least `n` (assumption 1). With a Kruskal rank `Q < n` remark 1 holds, `H (min(Q, d_h) - 1) + 1`.

    Raises:
        UserError: a size is not a whole number of at least 1.
    """
    check_sizes(heads=heads)
    return heads * (examples_per_head(context, head_dim, kruskal_rank) - 1) + 1


def shared_context_rank(heads: int, context: int) -> int:
    """`H (n - 1) + 1`: the largest possible rank(Z) when all examples share one context (proposition 2).

    Holds for any weights and any `d_h`: the rows of each head's attention weights sum to one.
    """
    check_sizes(heads=heads, context=context)
    return heads * (context - 1) + 1


def constant_sum_rank(heads: int, width: int) -> int:
    """`H (d - 1) + 1`: the largest possible rank(Z) when the entries of each context token sum to one constant.

    Proposition 5 (appendix I); it assumes nothing about the queries, and contexts may differ between examples.
    """
    check_sizes(heads=heads, width=width)
    return heads * (width - 1) + 1


def relu_examples(context: int, relu_units: int, outputs: int) -> int:
    """`(n + 1) m / d_out + m + 1`, rounded down: the most examples that a two-layer ReLU network memorizes.

    Proposition 3, for a network of `m` hidden units on the (n + 1) d numbers of context and query, over the class of
    data that satisfies assumptions 1 and 2: beyond it, some labels of some such data can't be memorized.
    """
    check_sizes(context=context, relu_units=relu_units, outputs=outputs)
    return (context + 1) * relu_units // outputs + relu_units + 1


def attention_params(heads: int, width: int, head_dim: int, outputs: int = 1) -> int:
    """`2 H d d_h + H d d_v + d d_out` with `d_v = d_out`, as in theorem 1: the output map is fixed."""
    check_sizes(heads=heads, width=width, head_dim=head_dim, outputs=outputs)
    return 2 * heads * width * head_dim + heads * width * outputs + width * outputs


def free_params(m: Memorizer, *, shared: bool) -> int:
    """The dimensions in which the parameters of a memorizer with `d_v = 1` can change its probabilities.

    It is the rank of the Jacobian at generic weights, below `total_params`: W_Q and W_K act through their product of
    rank `r`, logits and scores have a constant each that nothing depends on, and a context that all examples share
    shows `n - 1` directions of it. Holds for `H, n <= d` and without `attend_to_query`.

    Args:
        shared: one context for all examples, or one each.

    Raises:
        UserError: the sizes are others.
    """
    heads, n, d = m.heads, m.context, m.width
    if m.values != 1 or m.attend_to_query or heads > d or n > d:
        raise UserError(
            "Free parameters are known for d_v = 1, at most d heads, at most d tokens, and no query as a key."
        )
    directions = n - 1 if shared else d
    if n == 1:  # attention has no choice: the outputs are a linear map of the context, or constant
        seen = 0 if shared else min(heads, d, m.outputs - 1)
        return seen * (d + m.outputs - 1 - seen) + m.outputs - 1
    rank = min(m.head_dim, directions)
    values = n - 2 if shared else d - 1
    head = rank * (directions + d - rank) + values + m.outputs - 1
    embedding = min(d, heads * rank) + (0 if shared else d * min(d, n - 1))
    return heads * head + embedding + m.outputs - 1


def relu_params(context: int, width: int, relu_units: int, outputs: int) -> int:
    """Weights and biases of a two-layer network on (n + 1) d numbers: `((n + 1) d + 1) m + (m + 1) d_out`."""
    check_sizes(context=context, width=width, relu_units=relu_units, outputs=outputs)
    return ((context + 1) * width + 1) * relu_units + (relu_units + 1) * outputs


def equal_relu_units(params: int, context: int, width: int, outputs: int) -> int:
    """The most hidden units with `relu_params` within `params`; 0 if one unit is already too many."""
    check_sizes(params=params, context=context, width=width, outputs=outputs)
    return max(0, (params - outputs) // ((context + 1) * width + 1 + outputs))


@dataclass(frozen=True)
class Bound:
    """A bound on a number of examples: at least (`lower`) or at most, with its formula and its source."""

    name: str
    examples: int
    lower: bool
    formula: str
    source: str


def capacity_bounds(
    heads: int, context: int, head_dim: int, width: int, kruskal_rank: int | None = None
) -> tuple[Bound, ...]:
    """The bounds for an attention layer of this shape: examples memorized at least, and rank(Z) at most.

    Raises:
        UserError: a size is not a whole number of at least 1, or `d_h` or `Q` is above `d`.
    """
    check_sizes(heads=heads, context=context, head_dim=head_dim, width=width, kruskal_rank=kruskal_rank)
    for name, size in (("head dimension", head_dim), ("Kruskal rank", kruskal_rank)):
        if size is not None and size > width:
            raise UserError(f"The {name} {size} is above the width {width}; it can be at most the width.")
    weaker = kruskal_rank is not None and kruskal_rank < context
    least = memorizable_examples(heads, context, head_dim, kruskal_rank)
    formula = f"H (min({'Q' if weaker else 'n'}, d_h) - 1) + 1"
    theorem = "remark 1" if weaker else "theorem 1"
    shared, constant = shared_context_rank(heads, context), constant_sum_rank(heads, width)
    sums = "rank of Z, entries of each context token with a constant sum"
    return (
        Bound("examples that can be memorized", least, True, formula, theorem),
        Bound(
            "rank of Z, one context shared by all examples", shared, False, "H (n - 1) + 1", "proposition 2"
        ),
        Bound(sums, constant, False, "H (d - 1) + 1", "proposition 5"),
    )


def theorem_warnings(
    context: int, width: int, head_dim: int, kruskal_rank: int | None = None, outputs: int = 1
) -> list[str]:
    """A sentence for each part of theorem 1 that fails, or gains nothing, at these sizes; empty if all hold."""
    r = examples_per_head(context, head_dim, kruskal_rank)
    check_sizes(width=width, outputs=outputs)
    warnings = beyond_theorem([(context, width)])
    if kruskal_rank is not None and kruskal_rank < context:
        warnings.append(
            f"The queries' Kruskal rank {kruskal_rank} is below n = {context}, so assumption 1 fails; "
            "the bound is the weaker one of remark 1."
        )
    if head_dim > r:
        warnings.append(f"A head dimension above {r} adds nothing to the bound; here it is {head_dim}.")
    if outputs > width:
        warnings.append(
            f"The theorem's read-out needs labels of at most d = {width} numbers; here they have {outputs}."
        )
    if r == 1:
        warnings.append(
            "With min(n, d_h) = 1 a head adds no example: one is memorized, however many heads there are."
        )
    return warnings


@dataclass(frozen=True)
class NumericalRank:
    """The number of singular values above `tolerance` times the largest, and how clear it is.

    `kept` is the smallest one counted and `dropped` the largest one not counted (0 if all are counted), both relative
    to `largest`. The rank is trustworthy where the tolerance lies far from both: see `margin`.
    """

    rank: int
    tolerance: float
    largest: float
    kept: float
    dropped: float

    @property
    def margin(self) -> float:
        """The factor by which the tolerance can be moved either way without changing the rank."""
        above = self.kept / self.tolerance if self.rank else math.inf
        below = self.tolerance / self.dropped if self.dropped > 0 else math.inf
        return min(above, below)


def numerical_rank(matrix: npt.ArrayLike, tolerance: float = TOLERANCE) -> NumericalRank:
    """The rank of a matrix by its singular values in float64; `tolerance` is relative to the largest of them.

    Raises:
        ValueError: the array is not a matrix of finite numbers, or the tolerance is not between 0 and 1.
    """
    values = _singular_values(_checked(matrix, tolerance))
    largest = float(values[0])
    if largest == 0:
        return NumericalRank(0, tolerance, 0.0, 0.0, 0.0)
    relative = values / largest
    rank = int((relative > tolerance).sum())
    dropped = float(relative[rank]) if rank < len(relative) else 0.0
    return NumericalRank(rank, tolerance, largest, float(relative[rank - 1]), dropped)


def _is_size(size: object) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool) and int(size) >= 1


TRIALS = 5_000  # section 5.1
PASS_RATE = 0.99
_EPSILON = float(np.finfo(np.float64).eps)
_CHUNK = 2**22  # numbers per batch of decompositions


@dataclass(frozen=True)
class PassRate:
    """The share of `trials` random subsets of `size` vectors that are independent."""

    size: int
    rate: float
    trials: int

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
    e_TnD = _finite("contexts", contexts, "(T, n, d)")
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
        return PassRate(size, 0.0, trials)
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // (size * width))
    passed, failed = 0, 0
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
            doubtful = []
            if failed > allowed:
                break
    return PassRate(size, passed / trials, trials)


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
    """A matrix of finite numbers, and a tolerance between 0 and 1."""
    if not 0 < tolerance < 1:
        raise ValueError(f"the tolerance must be between 0 and 1, not {tolerance}")
    return _finite("vectors", vectors, "(N, d)")


def _finite(name: str, numbers: npt.ArrayLike, shape: str) -> Floats:
    """Finite numbers of a shape such as (N, d), none of whose sides is 0.

    Raises:
        ValueError: they are not.
    """
    found = np.asarray(numbers, dtype=np.float64)
    if found.ndim != len(shape.split(",")) or found.size == 0 or not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite and of shape {shape}, not {found.shape}")
    return found


def _check_size(size: int, trials: int, n_vectors: int) -> None:
    if trials < 1:
        raise UserError(f"{trials} trials are too few; at least 1 is needed.")
    if not 1 <= size <= n_vectors:
        raise UserError(f"Subsets of {size} vectors can't be drawn from {n_vectors}; give 1 to {n_vectors}.")
