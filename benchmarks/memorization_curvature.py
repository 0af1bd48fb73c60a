"""Is the curve of accuracy against heads capacity or optimisation? T = 10,000 at two numbers of steps, and rank(Z).

  PYTHONPATH=scripts python benchmarks/memorization_curvature.py --steps 50000 --heads 5,10,20,30 --seeds 3 --out FILE
  PYTHONPATH=scripts python benchmarks/memorization_curvature.py --steps 300000 --heads 5,10,20,30 --seeds 3 --out FILE

Trains the networks of figure 2a (Mahdavi et al. 2024) with the conventions of the authors' code, the seeds of one H as
a pack, on one thread, to the last step. FILE (.csv) has a row a network; `analyse.py memorization_heads` reads the
rows of one number of steps. A network that has a row is not trained again.

The rank of Z, the outputs of all heads before any value matrix, is taken in float64 on some of the examples: at random
weights (`rank_first`) and at trained ones, above 1e-10 of the largest singular value (`rank_trained`) and above 1e-4
(`rank_rough`), beside `rank_bound`, the most that it can be (proposition 2).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import torch
from machine import machine
from torch import Tensor

from shapelaw.errors import command_line
from shapelaw.models.memorizer import forward, initial_parameters, positions
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.theory.memorization import numerical_rank, shared_context_rank
from shapelaw.training.driver import COMPILE_FROM
from shapelaw.training.hardware import start_afresh
from shapelaw.training.memorizer_pack import MemorizerPack, draw_examples

EXAMPLES = 10_000
RANKED = 2_000  # examples whose Z is taken, more than any rank here
ROUGH = 1e-4
CPU = torch.device("cpu")


def rank_of_z(run: MemorizationRun, parameters: Mapping[str, Tensor], tolerance: float) -> int:
    """The rank of Z, (`RANKED`, H d), in float64."""
    m, drawn = run.memorizer, draw_examples(run)
    alone = {name: value.double() for name, value in parameters.items()}
    place_nd = positions(m, torch.float64)
    queries, context_nd = drawn.queries[None, :RANKED].double(), drawn.contexts.double()
    _, weights = forward(alone, m, place_nd, queries, context_nd[None])
    tokens_nd = context_nd @ alone["embedding"][0] + alone["embedding_bias"][0] + place_nd[1:]
    z_THd = weights[0].numpy() @ tokens_nd.numpy()
    return numerical_rank(z_THd.reshape(RANKED, -1), tolerance).rank


def train(heads: int, seeds: list[int], steps: int) -> pd.DataFrame:
    """A row a seed."""
    m = Memorizer(heads, 32, 64, value_dim=1, logit_scale="width")
    runs = [MemorizationRun(m, "classification", "shared", EXAMPLES, steps, seed) for seed in seeds]
    start_afresh(CPU)
    pack = MemorizerPack(runs, CPU, compiled=len(runs) * steps >= COMPILE_FROM)
    begin = time.process_time()
    for _ in range(steps):
        pack.step()
    seconds = (time.process_time() - begin) / len(runs)
    rows = []
    for place, run in enumerate(runs):
        found, trained = pack.evaluate(place), pack.alone(place)
        first = {name: value[None] for name, value in initial_parameters(m, run.seed, torch.float32).items()}
        setting = {"heads": heads, "context": m.context, "head_dim": m.head_dim, "classes": m.outputs}
        setting |= {"examples": EXAMPLES, "seed": run.seed, "steps": steps, "steps_done": steps}
        ranks = {
            "rank_first": rank_of_z(run, first, 1e-10),
            "rank_trained": rank_of_z(run, trained, 1e-10),
            "rank_rough": rank_of_z(run, trained, ROUGH),
            "rank_bound": shared_context_rank(heads, m.context),
        }
        learned = {"accuracy": found.accuracy, "loss": round(found.loss, 5)}
        rows.append({**setting, **learned, **ranks, "cpu_seconds": round(seconds, 1)})
    return pd.DataFrame(rows)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--heads", default="5,10,20", type=lambda text: [int(h) for h in text.split(",")])
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(machine(), flush=True)
    out, steps = arguments.out, arguments.steps
    for heads in arguments.heads:
        there = pd.read_csv(out) if out.exists() else pd.DataFrame(columns=["heads", "steps", "seed"])
        done = there.loc[(there["heads"] == heads) & (there["steps"] == steps), "seed"]
        if seeds := sorted(set(range(arguments.seeds)) - set(done)):
            rows = train(heads, seeds, steps)
            rows.to_csv(out, mode="a", header=not out.exists(), index=False)
            print(rows.to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
