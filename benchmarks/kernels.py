"""What Llama's kernel in C++ carries: our training step with and without it, beside transformers', on one CPU thread.

  PYTHONPATH=scripts python benchmarks/kernels.py --out docs/results/kernels.csv

The contestants of a shape are alive together and take turns in one process; times are medians of CPU seconds, and the
ratios are of medians. Where it is below 1.1 at most shapes the kernel goes (docs/architecture.md). Exit codes: 0 done,
2 --out can't be written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from statistics import median

import pandas as pd
import torch
from machine import machine
from peers import Step, llama_model, transformers_step

from shapelaw.errors import command_line, exit_code
from shapelaw.models.decoder import Decoder
from shapelaw.specs.making import make_shape
from shapelaw.specs.shapes import Shape

SHAPES = ((2, 24, 257), (2, 72, 257), (4, 40, 257), (2, 32, 2000), (6, 256, 2000))  # depth, width, vocabulary
BATCH, CONTEXT, HEADS = 8, 128, 2
SECONDS = 20.0  # of turns for a shape
WARM_UP = 3


def our_step(shape: Shape, ids: torch.Tensor, by_kernel: bool) -> Step:
    """A forward and a backward pass, and a step of AdamW."""
    model = Decoder(shape)
    if by_kernel:
        model.use_kernel()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step() -> None:
        optimizer.zero_grad()
        model(ids[:, :-1], ids[:, 1:]).backward()
        optimizer.step()

    return step


def times_of(steps: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median CPU seconds of each one's step, in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(WARM_UP):
            step()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for name, step in steps.items():
            start = time.process_time()
            step()
            seconds[name].append(time.process_time() - start)
    return {name: median(values) for name, values in seconds.items()}


def main() -> None:
    """Measure, and write the table after each shape."""
    parser = command_line(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="table, .csv")
    out, rows = parser.parse_args().out, []
    torch.set_num_threads(1)
    for depth, width, vocab_size in SHAPES:
        shape = make_shape(depth, width, HEADS, vocab_size, CONTEXT, block="llama")
        ids = torch.randint(0, vocab_size, (BATCH, CONTEXT + 1), generator=torch.Generator().manual_seed(0))
        found = times_of(
            {
                "ours": our_step(shape, ids, True),
                "without": our_step(shape, ids, False),
                "transformers": transformers_step(llama_model(shape), [ids], False, nullcontext),
            }
        )
        ratios = {f"{name}_ratio": found[name] / found["ours"] for name in ("without", "transformers")}
        rows.append(
            {
                "depth": depth,
                "width": width,
                "vocab_size": vocab_size,
                "step_ms": 1e3 * found["ours"],
                **ratios,
            }
        )
        print({**rows[-1], "machine": machine()}, flush=True)
        pd.DataFrame(rows).round(3).to_csv(out, index=False)


if __name__ == "__main__":
    sys.exit(exit_code(main))
