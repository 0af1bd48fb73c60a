"""Random data and random heads whose softmax is neither flat nor saturated, so that ranks are clear in float64."""

import numpy as np


def uniform_examples(n_examples, context, width, seed, *, shared=True, constant_sum=None):
    """Contexts (n, d) or (T, n, d) and queries (T, d), uniform(0, 1) as the paper's; tokens may be given one sum."""
    rng = np.random.default_rng(seed)
    contexts = rng.random((context, width) if shared else (n_examples, context, width))
    if constant_sum is not None:
        contexts += (constant_sum - contexts.sum(axis=-1, keepdims=True)) / width
    return contexts, rng.random((n_examples, width))


def random_heads(heads, width, head_dim, seed):
    """`w_k`, `w_q` (H, d, d_h) that give logits of a standard deviation of about 3 on uniform data."""
    rng = np.random.default_rng([seed, 1])
    return rng.standard_normal((2, heads, width, head_dim)) * 3.0 / np.sqrt(width) / head_dim**0.25


def head_outputs(contexts, queries, w_k, w_q):
    """The matrix Z, (T, H d): each head's convex combination of the context tokens (eqs. 1 to 3 and 7)."""
    contexts_TnD = np.broadcast_to(contexts, (len(queries), *contexts.shape[-2:]))
    queries_HTk = queries @ w_q
    logits_THn = np.stack(
        [(contexts_TnD @ k @ q[..., None])[..., 0] for k, q in zip(w_k, queries_HTk, strict=True)], 1
    )
    weights_THn = np.exp(logits_THn - logits_THn.max(axis=-1, keepdims=True))
    weights_THn /= weights_THn.sum(axis=-1, keepdims=True)
    return (weights_THn @ contexts_TnD).reshape(len(queries), -1)
