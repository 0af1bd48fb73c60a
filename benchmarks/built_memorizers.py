"""Theorem 1 of Mahdavi et al. 2024 made visible: the weights of its proof, built, beside what training finds.

  PYTHONPATH=scripts python benchmarks/built_memorizers.py --steps 20000 --out docs/results/built_memorizers.csv

For each H, n and d_h as many random examples of ten classes as the theorem promises. `rank` is that of the matrix Z of
all heads' outputs in the limit of infinite weights, exact; `error` the largest distance of an output of the built
network from its label, in double precision, and `error_skip` with a skip connection (remark 2); `built` its accuracy,
and `trained` that of a network of the same shape (d_v = d, logits without scaling) after so many steps of Adam, in
single precision.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from machine import machine

from shapelaw.errors import command_line
from shapelaw.models.memorizer import Parameters, forward, positions
from shapelaw.specs.memorizers import ContextType, MemorizationRun, Memorizer
from shapelaw.storage.records import RUNS, read_record
from shapelaw.theory.memorization import memorizable_examples
from shapelaw.theory.memorizing_weights import MemorizingWeights, limit_rank, memorizing_weights
from shapelaw.theory.polynomials import PRIMES
from shapelaw.training.driver import stores_in, train_job
from shapelaw.training.memorizer_pack import Examples, draw_examples
from shapelaw.training.trainer import Runtime

Floats = npt.NDArray[np.float64]
CLASSES = 10
SIZES = ("context_type", "heads", "context", "head_dim")
SHAPES = [*product((1, 2, 4, 8), (4, 16), (4, 16)), (4, 32, 64), (8, 32, 64)]  # H, n, d_h
TYPES: tuple[ContextType, ...] = ("shared", "per_example")


def embedded(m: Memorizer, examples: Examples) -> tuple[Floats, Floats]:
    """Queries (T, d) and contexts (T, n, d) of random examples as the heads of a memorizer see them, embedded by I."""
    place = positions(m, torch.float64)
    contexts = (examples.contexts + place[1:]).expand(len(examples.queries), -1, -1)
    return (examples.queries + place[0]).numpy(), contexts.numpy()


def parameters_of(m: Memorizer, weights: MemorizingWeights, labels: Floats) -> Parameters:
    """The parameters of a memorizer with d_v = d whose outputs are labels (T, outputs), at most d of them."""
    d, columns = m.width, np.zeros((m.heads * m.width, m.width))
    columns[:, : labels.shape[1]] = weights.read_out(labels)
    arrays = {
        "embedding": np.eye(d),
        "embedding_bias": np.zeros(d),
        "w_q": weights.w_q,
        "w_k": weights.w_k.transpose(1, 0, 2).reshape(d, -1),
        "w_v": np.tile(np.eye(d), m.heads),
        "w_o": columns,
        "w_d": np.eye(d, labels.shape[1]),
        "bias": np.zeros(labels.shape[1]),
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def built(m: Memorizer, examples: Examples) -> tuple[int, float, float, float]:
    """The exact rank of Z, the largest errors of an output without and with a skip connection, and the accuracy."""
    queries, contexts = embedded(m, examples)
    weights = memorizing_weights(queries, contexts, m.heads, m.head_dim)
    labels = np.eye(m.outputs)[examples.labels]
    pack = {name: value[None] for name, value in parameters_of(m, weights, labels).items()}
    place = positions(m, torch.float64)
    outputs = forward(pack, m, place, examples.queries[None], examples.contexts[None])[0][0]
    accuracy = float((outputs.argmax(1) == examples.labels).double().mean())
    skipping = weights.outputs @ weights.read_out(labels, queries) + queries[:, : m.outputs]
    errors = [float(np.abs(found - labels).max()) for found in (outputs.numpy(), skipping)]
    return limit_rank(contexts, weights.parts, PRIMES[0]), errors[0], errors[1], accuracy


def main() -> None:
    """Build, train, and write the table."""
    parser = command_line(__doc__)
    parser.add_argument("--steps", type=int, default=20_000, help="of training (default 20,000)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv")
    arguments = parser.parse_args()
    runs = [
        MemorizationRun(
            Memorizer(*sizes, outputs=CLASSES),
            "classification",
            context_type,
            memorizable_examples(*sizes),
            arguments.steps,
            seed=0,
        )
        for context_type, sizes in product(TYPES, SHAPES)
    ]
    with tempfile.TemporaryDirectory() as folder:
        train_job([[run] for run in runs], Path(folder), stores_in(Path(folder)), Runtime(threads=1))
        accuracies = [read_record(Path(folder) / RUNS / run.key).summary["final_accuracy"] for run in runs]
    print(machine())
    rows = []
    for run, trained in zip(runs, accuracies, strict=True):
        m = run.memorizer
        found, error, skip, accuracy = built(m, draw_examples(replace(run, precision="float64")))
        sizes = (run.context_type, m.heads, m.context, m.head_dim, run.examples)
        rows.append((*sizes, found, f"{error:.1e}", f"{skip:.1e}", accuracy, trained))
    columns = [*SIZES, "examples", "rank", "error", "error_skip", "built", "trained"]
    pd.DataFrame(rows, columns=columns).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
