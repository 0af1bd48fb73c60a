"""A small grid of separation ranks, its tables, and measurements that are made up."""

from shapelaw.studies.separation_rank.study import Asked, AttentionSizes, DegreeSizes
from shapelaw.studies.separation_rank.tables import Measured, network_of, ranks_table

GRIDS = {
    "separation_rank": [
        {"depth": [1, 2], "width": [1, 2, 4], "tokens": [2, 8]},
        {"depth": [2], "width": [2, 4], "tokens": [8], "heads": [2], "residual": [False, True]},
        {"depth": [2], "width": [3], "tokens": [8], "embedding_rank": [1, 2], "positional_rank": [0, 1]},
        {"depth": [2], "width": [2], "tokens": [8], "residual": [True]},
        {"depth": [2], "width": [3], "tokens": [6], "heads": [1, 3]},
    ],
    "degree_budget": [
        {"blocks": "product", "width": [2], "budget": [5, 6]},
        {"blocks": "attention", "width": [2], "budget": [8], "tokens": [4]},
    ],
    "fractional_degree": [
        {"blocks": "attention", "width": [2], "degrees": [2, 3], "budget": [8], "tokens": [4]}
    ],
}


def asked_one(depth, width, tokens, seconds=9.0, residual=False):
    """A network of one head."""
    sizes = AttentionSizes(depth, width, tokens, 1, None, None, 0, residual)
    return Asked("ranks", sizes, None, seconds)


def ranks_of(*networks):
    """The table of some networks of one head with the ranks that are known of them."""
    found = []
    for network in networks:
        one = asked_one(*network)
        rank = network_of(one.sizes).rank_bound()  # which is the rank wherever it was measured
        found.append((one, Measured(rank, True, rank, rank + 8, 0.0, 0.0)))
    return ranks_table(found)


def degree_rows(*ranks):
    """(degree, rank, exact, bound) at a budget of 6 matrices."""
    return [
        (
            Asked("degree_budget", DegreeSizes("product", (k,) * (6 // k), 2, 2, 1), 6, 1.0),
            Measured(rank, exact, bound, bound, 0.0, 1.0),
        )
        for k, rank, exact, bound in ranks
    ]
