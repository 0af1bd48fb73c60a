"""Weights that memorize as many examples as theorem 1 of Mahdavi et al. 2024 promises, built as its proof does.

The proof (appendix B) adds a head at a time. With r = min(n, d_h), the first head gives r examples any convex
combination of their context tokens (claim 1); each further head gives r - 1 more examples any, and to all others,
nearly, one token each (claim 2). So the matrix Z of all heads' outputs gains r - 1 in rank with every head. Where its
H (r - 1) + 1 rows are independent, one linear solve finds a read-out for any labels. The proof picks each combination
so that the rank grows; almost every combination does that, so here they are drawn.

Sizes: T examples, H heads, n context tokens, d width, k head_dim.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special  # type: ignore[import-untyped]

from shapelaw.theory.memorization import examples_per_head, memorizable_examples
from shapelaw.theory.polynomials import rank

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
PARTS = 16  # a combination is of whole numbers from 1 to this over their sum
DRAWS = 32  # of the rank-one part that saturates a head, of which the clearest is taken
SATURATED = 1e-6  # what a saturated head leaves to its other tokens


@dataclass(frozen=True)
class MemorizingWeights:
    """Keys and queries of every head, and what the heads make of the examples.

    Attributes:
        w_k, w_q: (H, d, k); the logits of an example are `E w_k w_q^T e`, with context E (n, d) and query e (d).
        outputs: (T, H d), Z: each head's weighted mean of the context tokens.
        parts: (T, H, n) the combinations in the limit of infinite weights, as whole numbers over their sum.
    """

    w_k: Floats
    w_q: Floats
    outputs: Floats
    parts: Whole

    def read_out(self, labels: Floats, skipped: Floats | None = None) -> Floats:
        """The read-out (H d, outputs) of least norm for labels (T, outputs).

        Args:
            skipped: the queries (T, d), where a skip connection adds them to the layer's output; of that the first
                numbers are the labels, W_D = I, so what is left of the labels is read out (remark 2, appendix C).
        """
        left = labels if skipped is None else labels - skipped[:, : labels.shape[1]]
        return np.asarray(np.linalg.lstsq(self.outputs, left, rcond=None)[0], dtype=np.float64)


def memorizing_weights(
    queries: Floats, contexts: Floats, heads: int, head_dim: int, seed: int = 0
) -> MemorizingWeights:
    """The weights for H (min(n, d_h) - 1) + 1 examples in general position (assumptions 1 and 2).

    Args:
        queries: (T, d), d > n.
        contexts: (T, n, d).
        seed: of the combinations and of the directions that saturate.

    Raises:
        ValueError: there are more examples than that, or the width is not above n.
    """
    examples, context, width = contexts.shape
    r = examples_per_head(context, head_dim)
    most = memorizable_examples(heads, context, head_dim)
    if examples > most or width <= context:
        raise ValueError(f"{examples} examples of width {width}; at most {most}, of a width above {context}")
    generator = np.random.default_rng(seed)
    w_k, w_q = np.zeros((2, heads, width, head_dim))
    parts = generator.integers(1, PARTS + 1, (examples, heads, context))
    outputs = np.empty((examples, heads, width))
    for head in range(heads):
        first = 0 if head == 0 else r + (head - 1) * (r - 1)
        mine = np.arange(first, min(first + r - (head > 0), examples))
        others = np.setdiff1d(np.arange(examples), mine)
        logits = np.log(parts[mine, head])[:, :, None]
        w_k[head, :, : len(mine)] = (np.linalg.pinv(contexts[mine]) @ logits)[:, :, 0].T
        w_q[head, :, : len(mine)] = np.linalg.pinv(queries[mine])
        if head:
            key, query, tokens = _saturating(queries, contexts, mine, others, generator)
            w_k[head, :, -1], w_q[head, :, -1] = key, query
            parts[others, head] = np.eye(context, dtype=np.int64)[tokens]
        found = np.einsum("tnd,de,te->tn", contexts, w_k[head] @ w_q[head].T, queries)
        outputs[:, head] = np.einsum("tn,tnd->td", special.softmax(found, axis=1), contexts)
    return MemorizingWeights(w_k, w_q, outputs.reshape(examples, -1), parts)


def _saturating(
    queries: Floats, contexts: Floats, mine: Whole, others: Whole, generator: np.random.Generator
) -> tuple[Floats, Floats, Whole]:
    """A key and a query direction (d) that are nothing to a head's own examples and saturate it for the others.

    Returns:
        The directions, the query's scaled, and the token that each of the others attends to.
    """
    own = np.linalg.qr(queries[mine].T)[0]
    best = -1.0
    for _ in range(DRAWS):
        key, query = generator.standard_normal((2, queries.shape[1]))
        for _ in range(2):  # what rounding leaves the first time
            query = query - own @ (own.T @ query)
        logits = contexts[others] @ key * (queries[others] @ query)[:, None]
        second, top = np.partition(logits, -2, axis=1)[:, -2:].T
        if (clear := float((top - second).min(initial=np.inf))) > best:
            best, found = clear, (key, query, logits.argmax(1))
    key, query, tokens = found
    return key, query * (np.log(contexts.shape[1] / SATURATED) / best if len(others) else 0.0), tokens


def limit_rank(contexts: Floats, parts: Whole, prime: int) -> int:
    """The rank over GF(p) of Z in the limit of infinite weights, whose entries are rational: a lower bound of its rank.

    Args:
        contexts: (T, n, d).
        parts: (T, H, n) whole numbers, of `MemorizingWeights`.
    """
    inverse = np.array([pow(int(total), -1, prime) for total in parts.sum(2).ravel()]).reshape(
        parts.shape[:2]
    )
    shares = parts * inverse[:, :, None] % prime
    tokens = _residues(contexts, prime)
    z = np.zeros((*parts.shape[:2], contexts.shape[2]), dtype=np.int64)
    for place in range(contexts.shape[1]):  # sums of products would leave 64 bits
        z = (z + shares[:, :, place, None] * tokens[:, None, place]) % prime
    return rank(z.reshape(len(z), -1).astype(np.uint64), prime)


def _residues(numbers: Floats, prime: int) -> Whole:
    """Floating-point numbers, which are whole numbers times powers of two, over GF(p)."""
    mantissa, exponent = np.frexp(numbers)
    whole = (mantissa * 2.0**53).astype(np.int64) % prime
    powers, places = np.unique(exponent, return_inverse=True)
    factors = np.array([pow(2, int(power) - 53, prime) for power in powers])
    return np.asarray(whole * factors[places].reshape(numbers.shape) % prime, dtype=np.int64)
