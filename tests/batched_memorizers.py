"""Batches of memorizers with made examples, for the tests of their computation."""

import torch
from hypothesis import strategies as st
from torch import Tensor

from shapelaw.models.memorizer import Parameters, initial_parameters
from shapelaw.specs.memorizers import Memorizer

shapes = st.builds(
    Memorizer,
    heads=st.integers(1, 4),
    context=st.integers(1, 6),
    head_dim=st.integers(1, 8),
    width=st.just(8),
    value_dim=st.sampled_from([None, 1, 3]),
    outputs=st.sampled_from([1, 2, 5]),
    logit_scale=st.sampled_from(["none", "head_dim", "width"]),
    attend_to_query=st.booleans(),
)


def pack(m: Memorizer, models: int) -> Parameters:
    """The initial parameters of models of the seeds 0, 1, ..., stacked."""
    every = [initial_parameters(m, seed, torch.float64) for seed in range(models)]
    return {name: torch.stack([p[name] for p in every]) for name in every[0]}


def problem(m: Memorizer, models: int, examples: int, shared: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [P, B, d], contexts [P, n, d] or [P, B, n, d], and labels [P, B]: classes, or numbers for one output."""
    generator = torch.Generator().manual_seed(7)
    queries = torch.rand(models, examples, m.width, generator=generator, dtype=torch.float64)
    size = (models, m.context, m.width) if shared else (models, examples, m.context, m.width)
    contexts = torch.rand(size, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, m.outputs, (models, examples), generator=generator)
    return queries, contexts, labels if m.outputs > 1 else labels + queries[..., 0]
