"""Layers of linearized attention over GF(p), for all pairs of templates of two halves of the tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shapelaw.theory.finite_field import Residues, add, matmul, random_residues, reduce, transpose

BLOCK = 2**16  # numbers per matrix entry in one pass: 512 KiB per array, which fits in a core's cache


@dataclass(frozen=True)
class Layer:
    """`W_O W_V` and `W_K^T W_Q` of each head, both (H, d, d)."""

    values: Residues
    scores: Residues


@dataclass(frozen=True)
class Output:
    """The output that is read: `entry` of the vector at `position`, both from 0; `residual` for residual layers."""

    position: int
    entry: int
    residual: bool


def random_maps(rng: np.random.Generator, heads: int, width: int, inner: int, prime: int) -> Residues:
    """Products of random (d, d_a) and (d_a, d) matrices, one for each head: (H, d, d)."""
    pairs = [
        (random_residues(rng, (width, inner), prime), random_residues(rng, (inner, width), prime))
        for _ in range(heads)
    ]
    return np.stack([matmul(left, right, prime) for left, right in pairs])


def outputs(
    first: Residues,
    second: Residues,
    split: tuple[int, ...],
    layers: Sequence[Layer],
    output: Output,
    prime: int,
) -> Residues:
    """The output for every template of one half with every template of the other.

    Args:
        first, second: each half's contribution to each token's vector, (N, d, rows) and (N, d, columns); zeros where a
            half doesn't contribute to a token. The first half contributes to the output position.
        split: tokens, from 0, to which both halves contribute.
        layers: the layers of the network.
        output: the output that is read.
        prime: p.
    """
    d, rows, columns = first.shape[1], first.shape[2], second.shape[2]
    grams = [gram(vectors, prime) for vectors in (first, second)]
    maps: list[Residues] = []  # T_1 is linear in G: each half's part suffices
    if len(layers) > 1 and not split:
        maps = [mixed(half, layers[0], prime) for half in grams]
        if output.residual:
            maps[0] = add(maps[0], identity(maps[0]), prime)
    matrix = np.empty((rows, columns), dtype=np.uint64)
    wide = min(columns, max(1, BLOCK // d**2))
    high = max(1, BLOCK // d**2 // wide)
    for top, left in itertools.product(range(0, rows, high), range(0, columns, wide)):
        row, column = np.s_[..., top : top + high, None], np.s_[..., None, left : left + wide]
        a, b = first[row], second[column]
        G = add(grams[0][row], grams[1][column], prime)
        if split:
            cross = matmul(transpose(a[list(split)]), b[list(split)], prime)
            G = add(G, add(cross, transpose(cross), prime), prime)
        i = output.position
        x = add(a[i], b[i], prime)[:, None] if i in split else a[i][:, None]
        T = add(maps[0][row], maps[1][column], prime) if maps else None
        for layer in layers[1 if maps else 0 : -1]:
            T = next_map(T, G, layer, output.residual, prime)
        matrix[top : top + high, left : left + wide] = last_entry(T, G, x, layers[-1], output, prime)
    return matrix


def gram(vectors: Residues, prime: int) -> Residues:
    """The sum of x x^T over the tokens: (N, d, templates) to (d, d, templates)."""
    total = np.zeros((vectors.shape[1], *vectors.shape[1:]), dtype=np.uint64)
    for x in vectors:
        total = add(total, reduce(x[:, None] * x[None], prime), prime)
    return total


def identity(like: Residues) -> Residues:
    """The unit matrix, in a shape that broadcasts over the batch of `like`."""
    size = len(like)
    return np.eye(size, dtype=np.uint64).reshape(size, size, *(1,) * (like.ndim - 2))


def mixed(middle: Residues, layer: Layer, prime: int) -> Residues:
    """The sum over heads of `W_O W_V middle W_K^T W_Q`."""
    tail = (1,) * (middle.ndim - 2)
    total = np.zeros((1,) * middle.ndim, dtype=np.uint64)
    for values, scores in zip(layer.values, layer.scores, strict=True):
        left, right = values.reshape(*values.shape, *tail), scores.reshape(*scores.shape, *tail)
        total = add(total, matmul(matmul(left, middle, prime), right, prime), prime)
    return total


def next_map(T: Residues | None, G: Residues, layer: Layer, residual: bool, prime: int) -> Residues:
    """T of the next layer, from G and T (None is the unit matrix)."""
    middle = G if T is None else matmul(matmul(T, G, prime), transpose(T), prime)
    found = mixed(middle, layer, prime)
    if T is not None:
        found = matmul(found, T, prime)
    if residual:
        found = add(found, identity(G) if T is None else T, prime)
    return found


def last_entry(
    T: Residues | None, G: Residues, x: Residues, layer: Layer, output: Output, prime: int
) -> Residues:
    """The entry of the last layer's output, (rows, columns), using only products of matrices with vectors."""
    p = output.entry
    v = x if T is None else matmul(T, x, prime)
    total = v[p, 0] if output.residual else np.zeros((1, 1), dtype=np.uint64)
    for values, scores in zip(layer.values, layer.scores, strict=True):
        u = matmul(scores[..., None, None], v, prime)
        left = values[p : p + 1, :, None, None]
        if T is not None:
            u, left = matmul(transpose(T), u, prime), matmul(left, T, prime)
        total = add(total, matmul(left, matmul(G, u, prime), prime)[0, 0], prime)
    return total
