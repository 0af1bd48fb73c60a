"""Runs of the studies of bottlenecks whose costs and redundancies are known, their recipe, and what is made of them."""

from argparse import Namespace
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.specs.making import make_shape
from shapelaw.specs.shapes import Shape
from shapelaw.studies.decoders import attention_ratio, embedding_rank
from shapelaw.studies.decoders.attention_ratio import RatioAnalysis, analyse_runs, check_ratio_runs

WASTED_BY_RANK = {4: 0.30, 8: 0.2, 16: 0.10, 32: 0.0, 64: 0.0}  # redundancy in blocks
WASTED_BY_RATIO = {1: 0.0, 2: 0.1, 4: 0.25, 8: 0.35, 16: 0.45}
BEST = 18  # depth at every ratio but those below
DEEPEST = {4: 24}
DEPTH_COST = 0.01  # nats for every six layers away from the best
PLAIN = 3.0  # loss
# costs; of the vocabulary's rank a straight line in log rank, to 0 at full rank
VOCABULARY = {2: 0.6, 4: 0.5, 8: 0.4, 16: 0.3, 32: 0.2, 64: 0.1, 128: 0.0}
POSITIONAL = {1: 0.15, 2: 0.05, 4: 0.02, 8: 0.0, 16: 0.0, 128: 0.0}
EQUAL_TO_1 = 2 ** (7 - 0.15 / 0.1)  # the vocabulary rank that costs 0.15
ONE_RECIPE = {
    "corpus": "wiki",
    "vocab_size": 500,
    "context_length": 128,
    "steps": 4000,
    "learning_rate": 0.002,
    "test_sequences": 600,
    "batch_size": 16,
    # empty stands for the usual one
    **dict.fromkeys(
        ("schedule", "gelu", "block", "tied", "base_width", "attention_degree", "parametrization")
    ),
}


def law(shape: Shape, wasted: float) -> float:
    """The loss of a network that wastes a share of its blocks."""
    return float(3.0 + 9.0 * (shape.block_params * (1 - wasted)) ** -0.2)


def runs_of(
    networks: Iterable[tuple[Shape, float]], columns: Iterable[str], noise: float, seeds: int, seed: int = 0
) -> pd.DataFrame:
    """Runs of networks of these losses, with columns by the names of the shape's fields beside its sizes.

    Args:
        noise: standard deviation over seeds.
        seeds: runs of each network.
        seed: seed of the noise.
    """
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {name: getattr(shape, name) for name in ("depth", "width", *columns)}
        | {"seed": number, "test_loss": loss + noise * rng.standard_normal()}
        | {"block_params": shape.block_params, "total_params": shape.total_params}
        | {"step_flops": shape.step_flops(8)}
        for shape, loss in networks
        for number in range(seeds)
    )


def rank_runs(noise: float = 0.001, seeds: int = 3) -> pd.DataFrame:
    """Runs at depth 6 and width 128 whose low ranks cost what `WASTED_BY_RANK` says."""
    networks = [(make_shape(6, width, 2, 500, 64), 0.0) for width in (80, 96, 104, 112, 120, 128, 136)]
    networks += [
        (make_shape(6, 128, 2, 500, 64, embedding_rank=rank, positional_rank=rank), wasted)
        for rank, wasted in WASTED_BY_RANK.items()
    ]
    losses = ((shape, law(shape, wasted)) for shape, wasted in networks)
    return runs_of(losses, ("embedding_rank", "positional_rank"), noise, seeds)


def positional_runs(
    noise: float = 0.002, seeds: int = 3, seed: int = 0, factoring: float = 0.0
) -> pd.DataFrame:
    """Runs at width and context 128 whose low ranks cost what the two tables say.

    Args:
        factoring: cost of a factored embedding of any rank.
    """
    series = [({}, PLAIN)]
    series += [({"positional_rank": rank}, PLAIN + (cost + factoring)) for rank, cost in POSITIONAL.items()]
    series += [({"embedding_rank": rank}, PLAIN + (cost + factoring)) for rank, cost in VOCABULARY.items()]
    networks = ((make_shape(2, 128, 2, 2000, 128, **ranks), loss) for ranks, loss in series)
    columns = "vocab_size", "context_length", "embedding_rank", "positional_rank"
    runs = runs_of(networks, columns, noise, seeds, seed)
    return runs.astype({"embedding_rank": "float64", "positional_rank": "float64"})


def ratio_runs(
    noise: float = 0.001, seeds: int = 3, *, variant: bool = False, seed: int = 0, depths: bool = True
) -> pd.DataFrame:
    """Runs of ratios 1 to 16 at 12, 18 and 24 layers whose blocks waste what `WASTED_BY_RATIO` says.

    Args:
        variant: ratios 4 and 16 also with d_ff = 4 d, where they waste half as much.
        depths: another depth costs something.
    """
    networks = []
    for ratio, wasted in WASTED_BY_RATIO.items():
        for follows in (True, False) if variant and ratio in (4, 16) else (True,):
            for depth in (12, 18, 24):
                for size in np.geomspace(10e6, 66e6, 8) if ratio == 1 else (48e6, 66e6):
                    shares = 12 * ratio if follows else 4 * ratio + 8
                    width = 4 * round(np.sqrt(size / shares / depth) / 4)
                    shape = make_shape(
                        depth, width, 4, 500, 128, ratio * width // 4,
                        ff_width=4 * ratio * width if follows and ratio > 1 else None,
                    )  # fmt: skip
                    away = abs(depth - DEEPEST.get(ratio, BEST)) / 6 if depths else 0
                    loss = law(shape, wasted if follows else wasted / 2) + DEPTH_COST * away
                    networks.append((shape, loss))
    return runs_of(networks, ("heads", "attention_dim", "ff_width"), noise, seeds, seed)


@cache
def analysed_ratios(**options: Any) -> RatioAnalysis:
    """The analysis of `ratio_runs`, made once."""
    return analyse_runs(check_ratio_runs(ratio_runs(**options), "runs.csv"))


def write_redundancies(study: str, runs: pd.DataFrame, folder: Path) -> Path:
    """Analyse the runs and write the study's redundancy.csv and losses.csv into a folder, which is made."""
    folder.mkdir()
    runs.to_csv(folder / "runs.csv", index=False)
    given = Namespace(input=folder / "runs.csv", keep=False, size="block")
    room = {"embedding_rank": embedding_rank, "attention_ratio": attention_ratio}[study]
    made = room.results(given).tables
    for name in ("redundancy", "losses"):
        made[name].frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def with_recipe(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with one value of each column of a recipe that they lack."""
    return runs.assign(**{name: value for name, value in ONE_RECIPE.items() if name not in runs})


def with_another(runs: pd.DataFrame, name: str, same: "pd.Series[bool]") -> pd.DataFrame:
    """The runs with another value of a column, but for those of `same`."""
    other = runs[name].max() + 1 if pd.api.types.is_numeric_dtype(runs[name]) else "other"
    return runs.assign(**{name: runs[name].where(same, other)})
