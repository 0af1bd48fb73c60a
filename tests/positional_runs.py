"""Runs of the study of the positional embedding's rank whose costs are known."""

import numpy as np
import pandas as pd
from run_rows import run_row

from shapelaw.specs.making import make_shape

PLAIN = 3.0  # loss
# costs; of the vocabulary's rank a straight line in log rank, to 0 at full rank
VOCABULARY = {2: 0.6, 4: 0.5, 8: 0.4, 16: 0.3, 32: 0.2, 64: 0.1, 128: 0.0}
POSITIONAL = {1: 0.15, 2: 0.05, 4: 0.02, 8: 0.0, 16: 0.0, 128: 0.0}
EQUAL_TO_1 = 2 ** (7 - 0.15 / 0.1)  # the vocabulary rank that costs 0.15


def positional_runs(
    noise: float = 0.002, seeds: int = 3, seed: int = 0, factoring: float = 0.0
) -> pd.DataFrame:
    """Runs at width and context 128 whose low ranks cost what the two tables say.

    Args:
        noise: standard deviation over seeds.
        seeds: runs of each network.
        seed: seed of the noise.
        factoring: cost of a factored embedding of any rank.
    """
    rng, rows = np.random.default_rng(seed), []
    series = [({}, 0.0)]
    series += [({"positional_rank": rank}, cost + factoring) for rank, cost in POSITIONAL.items()]
    series += [({"embedding_rank": rank}, cost + factoring) for rank, cost in VOCABULARY.items()]
    for ranks, cost in series:
        shape = make_shape(2, 128, 2, 2000, 128, **ranks)
        for one in range(seeds):
            loss = PLAIN + cost + noise * rng.standard_normal()
            columns = "vocab_size", "context_length", "embedding_rank", "positional_rank"
            rows.append(run_row(shape, one, loss, *columns))
    return pd.DataFrame(rows).astype({"embedding_rank": "float64", "positional_rank": "float64"})
