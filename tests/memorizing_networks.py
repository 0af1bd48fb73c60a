"""Runs of networks whose memorization is known exactly, for the tests of the estimators, and analyses of runs.

A network memorizes `chance * T + per_head * (min(n, d_h) - 1) * H` of T examples, at most all. Seeds differ by a normal
deviation in proportion to p (1 - p), as measured: `noise` at a share p of one half, none where all is memorized.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from small import REPOSITORY

from shapelaw.fits.inputs import read_table
from shapelaw.fits.memorized import check_memorization_runs
from shapelaw.studies.memorization.analysis import MemorizationAnalysis, analyse_runs

HEAD_COUNTS = (1, 5, 10, 20, 30, 40, 50, 60)
CONTEXTS = (1, 5, 10, 20, 30, 40, 50, 60)
HEAD_DIMS = (10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 64)
BEND = "p-value of a line in H"
NOISE = 0.02
CHANCE = 0.02


def simulate(
    heads: Sequence[int] = (20,),
    context: Sequence[int] = (32,),
    head_dim: Sequence[int] = (64,),
    examples: Sequence[int] = (10000,),
    *,
    per_head: float = 15.0,
    noise: float = NOISE,
    seeds: int = 3,
    seed: int = 0,
    task: str = "classification",
) -> pd.DataFrame:
    """One row per combination and seed, with the columns that the trainer writes."""
    rng, rows = np.random.default_rng(seed), []
    for h, n, d, t, number in product(heads, context, head_dim, examples, range(seeds)):
        share = min(CHANCE + per_head * (min(n, d) - 1) * h / t, 1.0)
        share += noise * 4 * share * (1 - share) * rng.standard_normal()
        rows.append((h, n, d, t, number, min(share, 1.0)))
    runs = pd.DataFrame(rows, columns=["heads", "context", "head_dim", "examples", "seed", "accuracy"])
    runs = runs.assign(task=task, context_type="shared", value_dim=64, width=64)
    lost = 1.0 - runs["accuracy"]
    if task == "regression":
        return runs.assign(classes=None, accuracy=None, loss=lost.clip(lower=1e-5) / 12)
    return runs.assign(classes=100, accuracy=runs["accuracy"].clip(lower=0.0), loss=5 * lost)


def study_of(runs: pd.DataFrame, study: str) -> MemorizationAnalysis:
    """The analysis of a table of runs, checked first."""
    return analyse_runs(check_memorization_runs(runs, "runs.csv"), study)


def our_runs() -> pd.DataFrame:
    """The committed runs of figure 2a: one seed."""
    return read_table(REPOSITORY / "docs" / "results" / "laptop_memorization_heads.parquet")


def weights(examples=6, heads=4):
    """Example t has its first t % (heads + 1) heads saturated."""
    largest = np.full((examples, heads), 0.5, dtype=np.float32)
    for example in range(examples):
        largest[example, : example % (heads + 1)] = 0.995
    return largest


def save_weights(folder, name, largest, **changes):
    """Write one run's file; `changes` replaces arrays, and None leaves one out."""
    folder.mkdir(exist_ok=True)
    arrays = {"largest_weight": largest, "heads": largest.shape[1], "examples": largest.shape[0]} | changes
    np.savez(folder / f"{name}.npz", **{key: value for key, value in arrays.items() if value is not None})
