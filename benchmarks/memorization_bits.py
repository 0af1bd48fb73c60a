"""How many bits does a memorizer learn for each of its parameters? From committed records, nothing is trained.

  PYTHONPATH=scripts python benchmarks/memorization_bits.py --runs docs/results/h200_memorization.csv --out FILE

A label of T has log2(100) bits less the loss in bits; they grow with T until the network is full. FILE (.csv) has a row
for each kind of context, H, n and d_h: the T and steps at which the bits, the mean over seeds, are the most, beside all
parameters and those that are free (`free_params`). `growth` is by what factor the bits grow to this T from the next
smaller one at the same steps: near 1 the network is full, else the bits are a bound from below. `guaranteed` are the
bits for each parameter of the examples that theorem 1 guarantees, were their labels classes.
"""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from shapelaw.errors import command_line
from shapelaw.specs.memorizers import Memorizer
from shapelaw.theory.memorization import free_params, memorizable_examples

CLASSES = 100
SIZES = ["context_type", "heads", "context", "head_dim"]


def full_networks(runs: pd.DataFrame) -> pd.DataFrame:
    """A row for each size of network: where its bits are the most."""
    runs = runs[runs["task"] == "classification"]
    bits = runs["examples"] * (math.log2(CLASSES) - runs["loss"] / math.log(2))
    means = (
        runs.assign(bits=bits)
        .groupby([*SIZES, "last_batch", "steps", "examples"], as_index=False)
        .agg(bits=("bits", "mean"), accuracy=("accuracy", "mean"), seeds=("seed", "nunique"))
    )
    rows = means.loc[means.groupby(SIZES)["bits"].idxmax()]
    return pd.DataFrame([_row(row, means) for row in rows.to_dict("records")])


def _row(row: dict[str, object], means: pd.DataFrame) -> dict[str, object]:
    shared = row["context_type"] == "shared"
    heads, context, head_dim = (int(str(row[name])) for name in SIZES[1:])
    m = Memorizer(heads, context, head_dim, value_dim=1, logit_scale="width", outputs=CLASSES)
    free, bits = free_params(m, shared=shared), float(str(row["bits"]))
    guaranteed = memorizable_examples(heads, context, head_dim) * math.log2(CLASSES)
    same = means[(means[[*SIZES, "last_batch"]] == pd.Series(row)[[*SIZES, "last_batch"]]).all(axis=1)]
    # where steps grow with T, those of a smaller T are other steps
    fewer = same[(same["examples"] < row["examples"]) & (same["steps"] <= row["steps"])]
    before = fewer.sort_values(["examples", "steps"])["bits"].tail(1)
    return {
        **{name: row[name] for name in (*SIZES, "examples", "steps", "seeds", "accuracy")},
        "bits": round(bits),
        "growth": round(bits / float(before.iloc[0]), 3) if len(before) else math.nan,
        "params": m.total_params,
        "free_params": free,
        "bits_per_param": round(bits / m.total_params, 4),
        "bits_per_free_param": round(bits / free, 4),
        "guaranteed": round(guaranteed / m.total_params, 4),
    }


def main() -> None:
    """Parse the command line and write."""
    parser = command_line(__doc__)
    parser.add_argument("--runs", required=True, type=Path, metavar="FILE")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE")
    arguments = parser.parse_args()
    full_networks(pd.read_csv(arguments.runs)).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
