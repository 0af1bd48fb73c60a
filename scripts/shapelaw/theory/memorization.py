"""The number of examples that attention heads can memorize: the bounds of Mahdavi et al. 2024, and their matrix Z.

Notation as in the paper: `T` examples, each a context of `n` tokens and one query, all of width `d`; `H` heads of
dimension `d_h`; `Z`, (T, H d), one row an example, the concatenated outputs of its heads before any value matrix.
Anything linear in `Z` can fit any real labels of rank(Z) examples, and of no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shapelaw.errors import UserError
from shapelaw.specs.memorizers import beyond_theorem

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


def attention_params(
    heads: int, width: int, head_dim: int, outputs: int = 1, value_dim: int | None = None
) -> int:
    """`2 H d d_h + H d d_v + d d_out`, as in theorem 1: the output map is fixed; `d_v` is `d_out` if not given."""
    check_sizes(heads=heads, width=width, head_dim=head_dim, outputs=outputs, value_dim=value_dim)
    value_dim = value_dim if value_dim is not None else outputs
    return 2 * heads * width * head_dim + heads * width * value_dim + width * outputs


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
    matrix_MN = np.asarray(matrix, dtype=np.float64)
    if matrix_MN.ndim != 2 or matrix_MN.size == 0 or not np.isfinite(matrix_MN).all():
        raise ValueError(f"a rank needs a matrix of finite numbers, not an array of shape {matrix_MN.shape}")
    if not 0 < tolerance < 1:
        raise ValueError(f"the tolerance must be between 0 and 1, not {tolerance}")
    values = np.linalg.svd(matrix_MN, compute_uv=False)
    largest = float(values[0])
    if largest == 0:
        return NumericalRank(0, tolerance, 0.0, 0.0, 0.0)
    relative = values / largest
    rank = int((relative > tolerance).sum())
    dropped = float(relative[rank]) if rank < len(relative) else 0.0
    return NumericalRank(rank, tolerance, largest, float(relative[rank - 1]), dropped)


def _is_size(size: object) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool) and int(size) >= 1
