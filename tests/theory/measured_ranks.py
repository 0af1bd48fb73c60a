"""Separation ranks of small networks, measured in a moment."""

from shapelaw.theory.separation_rank import Polynomial, separation_rank


def measured(network: Polynomial) -> int:
    """The exact rank, which is certain and within its bound."""
    found = separation_rank(network)
    assert found.exact
    assert found.rank <= found.upper_bound
    assert found.failure_probability < 1e-12
    return found.rank
