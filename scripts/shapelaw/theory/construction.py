"""Theorem 1 of Mahdavi et al. 2024 as a construction: attention weights that memorize `T = H (r - 1) + 1` examples.

The proof of proposition 1 (section 4.1, appendix B), step by step. The first head is responsible for `r` examples
(claim 1), every further one for `r - 1` new ones (claim 2):

1. A matrix of rank one, `W+ = v u^T`, is zero on the queries of the head's own examples and ranks the context tokens
   of all others without a tie (lemma 3).
2. Times a large `c` it saturates the softmax of all others: each attends to one token, whatever else the head does
(lemma 4). So the rows of all other examples are known before the head's own are chosen. 3. Each own example, one after
another, gets the attention weights that put its row of Z farthest outside the span of
   all rows before it. (The proof takes any row outside it; the candidates here each favour one token.)
4. `W*` gives these logits to the own examples: a linear system in their queries, which are independent.
5. `W_K W_Q^T = W* + c W+` has rank at most `r`, so `r <= d_h` suffices; the factors follow directly.

Then Z has full row rank, and the value matrices solve `Z W_V = Y` (step 2 of the proof of theorem 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shapelaw.errors import UserError
from shapelaw.theory.memorization import (
    Floats,
    NumericalRank,
    Scale,
    as_data,
    attention_weights,
    bilinear,
    check_sizes,
    combine,
    examples_per_head,
    head_outputs,
    is_shared,
    memorizable_examples,
    numerical_rank,
    softmax,
)

DIRECTIONS = 64  # random pairs u, v tried for W+; the one with the widest gap between tokens is used


@dataclass(frozen=True)
class AttentionLayer:
    """Weights of one multi-head attention layer with read-out, and the scale of its logits.

    `w_k`, `w_q` (H, d, d_h), `w_v` (H, d, d_v), `w_o` (H d_v, d), `w_d` (d, d_out).
    """

    w_k: Floats
    w_q: Floats
    w_v: Floats
    w_o: Floats
    w_d: Floats
    scale: Scale = "none"

    def outputs(self, contexts: npt.ArrayLike, queries: npt.ArrayLike) -> Floats:
        """The layer's outputs (eqs. 1 to 6), (T, d_out), from contexts (n, d) or (T, n, d) and queries (T, d)."""
        z = head_outputs(contexts, queries, self.w_k, self.w_q, self.scale)
        heads, width, value_dim = self.w_v.shape
        values_THV = np.einsum("thd,hdv->thv", z.reshape(-1, heads, width), self.w_v)
        return np.asarray(values_THV.reshape(-1, heads * value_dim) @ self.w_o @ self.w_d)


@dataclass(frozen=True)
class Memorized:
    """A layer that memorizes its examples, and its errors.

    `max_error` is the largest difference between an output and its label, divided by the largest label (or by 1, if
    that is larger). `rank` is that of Z. `responsible` (T,) is the head responsible for each example. `saturation` is
    the largest distance (sum of absolute differences) from a single token of the attention weights of an example in a
    head not responsible for it; 0 without such a pair.
    """

    layer: AttentionLayer
    max_error: float
    rank: NumericalRank
    responsible: npt.NDArray[np.int64]
    saturation: float


def memorize(
    contexts: npt.ArrayLike,
    queries: npt.ArrayLike,
    labels: npt.ArrayLike,
    heads: int,
    head_dim: int,
    *,
    value_dim: int | None = None,
    kruskal_rank: int | None = None,
    scale: Scale = "none",
    logit_gap: float = 4.0,
    saturation: float = 1e-9,
    tolerance: float = 1e-8,
    seed: int = 0,
) -> Memorized:
    """Build weights whose outputs are the labels, by the proof of theorem 1.

    Args:
        contexts: (n, d), shared by all examples, or (T, n, d); each of rank n.
        queries: (T, d), of Kruskal rank at least `r`, the smaller one of n and `head_dim`.
        labels: (T,) or (T, d_out) finite numbers.
        heads, head_dim: `H` and `d_h`; `T` may be up to `H (r - 1) + 1`.
        value_dim: `d_v`, at least `d_out`; `d_out` if not given.
        kruskal_rank: Kruskal rank of the queries if it is below n (remark 1); `r` is then at most this.
        scale: the divisor of the layer's logits; the keys are multiplied by it.
        logit_gap: lead of the favoured token's logit over the others in the chosen attention weights.
        saturation: the largest allowed distance (sum of absolute differences) from a single token of the softmax of an
            example in a head not responsible for it, except in the first head.
        tolerance: the largest accepted error of an output, relative to the largest label.
        seed: seed of the random directions.

    Raises:
        UserError: more examples than the theorem promises, more outputs than the width or the value dimension, a
            context or queries that are not independent, or labels that the construction doesn't reach.
        ValueError: arrays whose shapes do not agree, or that are not finite.
    """
    e_TnD, q_TD = as_data(contexts, queries)
    y_TO = np.asarray(labels, dtype=np.float64)
    y_TO = y_TO[:, None] if y_TO.ndim == 1 else y_TO
    if y_TO.ndim != 2 or len(y_TO) != len(q_TD) or not np.isfinite(y_TO).all():
        raise ValueError(f"labels must be finite, (T,) or (T, d_out) with T = {len(q_TD)}: {y_TO.shape}")
    value_dim = value_dim if value_dim is not None else y_TO.shape[1]
    check_sizes(heads=heads, head_dim=head_dim, value_dim=value_dim)
    _check_limits(e_TnD, y_TO, heads, head_dim, value_dim, kruskal_rank)

    r = examples_per_head(e_TnD.shape[1], head_dim, kruskal_rank)
    w_k, w_q, responsible = _heads(e_TnD, q_TD, heads, head_dim, r, logit_gap, saturation, seed)
    w_k *= {"none": 1.0, "width": math.sqrt(q_TD.shape[1]), "head_dim": math.sqrt(head_dim)}[scale]
    theta_THn = attention_weights(e_TnD, q_TD, w_k, w_q, scale)
    z = combine(theta_THn, e_TnD)
    layer = AttentionLayer(w_k, w_q, *read_out(z, y_TO, heads, value_dim), scale)
    rank = numerical_rank(z)
    difference = np.abs(layer.outputs(e_TnD, q_TD) - y_TO).max()
    max_error = float(difference / max(1.0, np.abs(y_TO).max()))
    if not (rank.rank == len(z) and max_error <= tolerance):
        raise UserError(
            f"The construction does not reach the labels: error {max_error:.2g} (at most {tolerance:.2g} is wanted), "
            f"rank of Z {rank.rank} of {len(z)}, smallest singular value {rank.kept:.2g} of the largest; the data are "
            f"too close to breaking the assumptions (contexts of rank n, queries of Kruskal rank {r})."
        )
    return Memorized(layer, max_error, rank, responsible, _distance_from_one_token(theta_THn, responsible))


def read_out(z: Floats, y_TO: Floats, heads: int, value_dim: int) -> tuple[Floats, Floats, Floats]:
    """`W_V`, `W_O`, `W_D` with `Z diag(W_V) W_O W_D = Y`, or its least squares if Z lacks full row rank.

    Step 2 of the proof of theorem 1: `W_V` solves the system, `W_O` stacks identities, and `W_D` is one.
    """
    width, outputs = z.shape[1] // heads, y_TO.shape[1]
    solution = np.linalg.lstsq(z, y_TO, rcond=None)[0]
    w_v = np.zeros((heads, width, value_dim))
    w_v[:, :, :outputs] = solution.reshape(heads, width, outputs)
    return w_v, np.tile(np.eye(value_dim, width), (heads, 1)), np.eye(width, outputs)


def _heads(
    e_TnD: Floats,
    q_TD: Floats,
    heads: int,
    head_dim: int,
    r: int,
    logit_gap: float,
    saturation: float,
    seed: int,
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """`w_k`, `w_q` (H, d, d_h), and the head responsible for each example (T,)."""
    (n_examples, width), rng = q_TD.shape, np.random.default_rng(seed)
    w_k, w_q = np.zeros((2, heads, width, head_dim))
    responsible = np.zeros(n_examples, dtype=np.int64)
    z = np.empty((n_examples, 0))
    start = 0
    for h in range(heads):
        own = np.arange(start, min(start + (r if h == 0 else r - 1), n_examples))
        others = np.setdiff1d(np.arange(n_examples), own)
        responsible[own] = h
        start += len(own)
        if len(own) == 0:
            break  # heads without examples keep zero weights: they average the tokens, which is harmless
        # the other examples' rows in this head, known before those of its own (steps 1 and 2)
        taken_TD = np.zeros_like(q_TD)
        saturating = None
        if h > 0:
            saturating = _saturating(e_TnD[others], q_TD, own, others, rng)
            taken_TD[others] = e_TnD[others, saturating.order[:, -1]]
        logits = _independent_rows(z, taken_TD, e_TnD, own, logit_gap)
        # W* = B pinv(queries), exact on its own examples
        b_DR = np.stack([np.linalg.pinv(e_TnD[t]) @ a for t, a in zip(own, logits, strict=True)], axis=1)
        _check_independent(q_TD[own], own, "queries")
        w_k[h, :, : len(own)], w_q[h, :, : len(own)] = b_DR, np.linalg.pinv(q_TD[own])
        if saturating is not None:
            unsaturated = bilinear(e_TnD[others], q_TD[others] @ w_q[h] @ w_k[h].T)
            w_k[h, :, len(own)] = saturating.strength(unsaturated, saturation) * saturating.v_D
            w_q[h, :, len(own)] = saturating.u_D
        z = np.concatenate([z, head_outputs(e_TnD, q_TD, w_k[h : h + 1], w_q[h : h + 1])], axis=1)
    return w_k, w_q, responsible


@dataclass(frozen=True)
class _Saturating:
    """`W+ = v u^T`, its logits (rows of the other examples, n) and the order of the tokens in each row."""

    u_D: Floats
    v_D: Floats
    logits: Floats
    order: npt.NDArray[np.int64]

    def strength(self, unsaturated: Floats, saturation: float) -> float:
        """The `c` for which `softmax(unsaturated + c logits)` is within `saturation` of its limit in each row.

        The distance is at most `2 (n - 1) exp(-lead)`, with the smallest lead of the first token.
        """
        n = self.logits.shape[1]
        if len(self.logits) == 0 or n == 1:
            return 0.0
        rows = np.arange(len(self.logits))
        top, second = self.order[:, -1], self.order[:, -2]
        gap = self.logits[rows, top] - self.logits[rows, second]
        lead = math.log(2 * (n - 1) / saturation) + unsaturated.max(axis=1) - unsaturated[rows, top]
        return float((lead / gap).max())


def _saturating(
    e_others: Floats,
    q_TD: Floats,
    own: npt.NDArray[np.int64],
    others: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> _Saturating:
    """Lemma 3: random `u` orthogonal to the head's own queries, random `v`; the pair with the widest gap.

    A tie of two tokens has probability zero where the assumptions hold.
    """
    width, n = q_TD.shape[1], e_others.shape[1]
    orthogonal = np.linalg.svd(q_TD[own], full_matrices=True)[2][len(own) :]  # (d - |own|, d)
    best_gap = -1.0
    best: tuple[Floats, Floats, Floats] | None = None
    u_KD = rng.standard_normal((DIRECTIONS, len(orthogonal))) @ orthogonal
    u_KD /= np.linalg.norm(u_KD, axis=1, keepdims=True)
    v_KD = rng.standard_normal((DIRECTIONS, width))
    for u_D, v_D in zip(u_KD, v_KD, strict=True):
        reach = q_TD[others] @ u_D
        scores = (e_others[0] if is_shared(e_others) else e_others) @ v_D
        logits: Floats = reach[:, None] * scores
        two = np.partition(logits, n - 2, axis=1)[:, n - 2 :] if n > 1 else np.zeros((len(others), 2))
        gap = float((two[:, 1] - two[:, 0]).min(initial=math.inf))
        if gap > best_gap:
            best_gap, best = gap, (u_D, v_D, logits)
    if best is None or (best_gap <= 1e-12 * np.abs(best[2]).max(initial=0.0) and n > 1):
        raise UserError(
            "No direction separates a head's examples from the others: a query is a combination of r - 1 others, or a "
            "context holds a token twice, so the Kruskal rank of the queries or the rank of a context is too low."
        )
    return _Saturating(*best, np.argsort(best[2], axis=1))


def _independent_rows(
    z: Floats, taken_TD: Floats, e_TnD: Floats, own: npt.NDArray[np.int64], logit_gap: float
) -> Floats:
    """Logits (|own|, n) of the own examples that keep the rows of Z up to each of them independent.

    `z` (T, h d) are the outputs of the earlier heads, and `taken_TD` those of this one for the examples before.
    """
    n, before = e_TnD.shape[1], slice(0, own[0])
    candidates_nn = softmax(logit_gap * np.eye(n))
    basis = np.linalg.qr(np.concatenate([z[before], taken_TD[before]], axis=1).T)[0]  # (h d + d, rows before)
    basis = np.concatenate([basis, np.empty((len(basis), len(own)))], axis=1)
    logits = np.zeros((len(own), n))
    for i, t in enumerate(own):
        known = basis[:, : own[0] + i]
        rows = np.concatenate([np.tile(z[t], (n, 1)), candidates_nn @ e_TnD[t]], axis=1)
        outside = rows - (rows @ known) @ known.T
        best = int(np.linalg.norm(outside, axis=1).argmax())
        row = outside[best]
        row -= known @ (row @ known)  # a second pass removes the rounding errors of the first
        basis[:, own[0] + i] = row / max(float(np.linalg.norm(row)), np.finfo(float).tiny)
        logits[i, best] = logit_gap
    return logits


def _check_limits(
    e_TnD: Floats, y_TO: Floats, heads: int, head_dim: int, value_dim: int, kruskal_rank: int | None
) -> None:
    (n_examples, n, width), outputs = e_TnD.shape, y_TO.shape[1]
    most = memorizable_examples(heads, n, head_dim, kruskal_rank)
    if n_examples > most:
        raise UserError(
            f"{n_examples} examples are more than the {most} that {heads} heads of dimension {head_dim} are sure to "
            f"memorize with {n} context tokens; give fewer examples or more heads."
        )
    if outputs > min(value_dim, width):
        raise UserError(
            f"Labels of {outputs} numbers need a value dimension and a width of at least {outputs}, and here they "
            f"are {value_dim} and {width}."
        )
    for t in range(1 if is_shared(e_TnD) else n_examples):
        _check_independent(e_TnD[t], np.array([t]), "context tokens")


def _check_independent(rows: Floats, examples: npt.NDArray[np.int64], what: str) -> None:
    rank = numerical_rank(rows)
    if rank.rank < len(rows):
        first, last = examples[0], examples[-1]
        where = f"example {first}" if first == last else f"examples {first} to {last}"
        raise UserError(
            f"The {len(rows)} {what} of {where} are not linearly independent: their rank is {rank.rank} at a "
            f"tolerance of {rank.tolerance:.0e}, and the theorem needs {len(rows)}."
        )


def _distance_from_one_token(theta_THn: Floats, responsible: npt.NDArray[np.int64]) -> float:
    heads = np.arange(theta_THn.shape[1])
    foreign = (heads[None, :] != responsible[:, None]) & (heads > 0) & (heads <= responsible.max())
    return float(2.0 * (1.0 - theta_THn.max(axis=2)[foreign]).max(initial=0.0))
