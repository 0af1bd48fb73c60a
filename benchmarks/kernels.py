"""What Llama's kernel in C++ carries: our training step with and without it, beside transformers', on one CPU thread.

  PYTHONPATH=scripts python benchmarks/kernels.py --out docs/results/kernels.csv

The contestants of a shape are alive together and take turns in one process; times are medians of CPU seconds, and the
ratios are of medians. Where it is below 1.1 at most shapes the kernel goes (docs/architecture.md). Exit codes: 0 done,
2 --out can't be written.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pandas as pd
import torch
from machine import alternate, machine
from peers import Step, llama_model, training_step, transformers_step

from shapelaw.errors import command_line, end_with
from shapelaw.models.decoder import Decoder
from shapelaw.specs.making import make_shape
from shapelaw.specs.shapes import Shape

SHAPES = ((2, 24, 257), (2, 72, 257), (4, 40, 257), (2, 32, 2000), (6, 256, 2000))  # depth, width, vocabulary
BATCH, CONTEXT, HEADS = 8, 128, 2
ROUNDS = 100


def our_step(shape: Shape, ids: torch.Tensor, by_kernel: bool) -> Step:
    """A forward and a backward pass, and a step of AdamW."""
    model = Decoder(shape)
    if by_kernel:
        model.use_kernel()
    return training_step(model, [lambda: model(ids[:, :-1], ids[:, 1:])])


def main() -> None:
    """Measure, and write the table after each shape."""
    parser = command_line(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="table, .csv")
    out, rows = parser.parse_args().out, []
    torch.set_num_threads(1)
    for depth, width, vocab_size in SHAPES:
        shape = make_shape(depth, width, HEADS, vocab_size, CONTEXT, block="llama")
        ids = torch.randint(0, vocab_size, (BATCH, CONTEXT + 1), generator=torch.Generator().manual_seed(0))
        steps = {
            "ours": our_step(shape, ids, True),
            "without": our_step(shape, ids, False),
            "transformers": transformers_step(llama_model(shape), [ids]),
        }
        times = alternate(*steps.values(), rounds=ROUNDS, clock=time.process_time)
        found = dict(zip(steps, map(median, times), strict=True))
        ratios = {f"{name}_ratio": found[name] / found["ours"] for name in ("without", "transformers")}
        sizes = {"depth": depth, "width": width, "vocab_size": vocab_size}
        rows.append({**sizes, "step_ms": 1e3 * found["ours"], **ratios})
        print({**rows[-1], "machine": machine()}, flush=True)
        pd.DataFrame(rows).round(3).to_csv(out, index=False)


if __name__ == "__main__":
    end_with(main)
