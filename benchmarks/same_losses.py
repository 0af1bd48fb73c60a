"""Whether the fast path trains as the float32 reference does: loss curves of both, against the noise of seeds.

    PYTHONPATH=scripts python benchmarks/same_losses.py --out DIR --train-store train.json --test-store test.json

The reference: float32, eager, autograd. The fast path: what training does by itself on this device, or what --compile
and --compiled-part say; on a GPU with bfloat16 products. Both train the same shapes with the same seeds, data order and
initial weights by the project's own training loop, which keeps records and checkpoints in --out: stopped (also by
--seconds), it goes on where it was.

At every row of the histories, the mean over seeds of fast - reference is compared with the standard deviation of one
reference run over seeds, pooled over the rows. A shape is "within" when the root mean square of that ratio over the
curve, and the ratio of the final test losses, are at most 1. Exit codes: 0 all shapes are, 1 one is not, 2 wrong input,
3 the time is up.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from language_training import CONTEXT, shape_of
from machine import machine, markdown, while_time_lasts

from shapelaw.corpora.token_store import open_token_store
from shapelaw.errors import UserError, command_line, end_with
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run, Training
from shapelaw.storage.files import replacing
from shapelaw.storage.records import RUNS, read_record
from shapelaw.training.driver import train_job
from shapelaw.training.hardware import choose_device, device_name
from shapelaw.training.trainer import COMPILED_PARTS, Runtime

SHAPES = [(6, 128), (12, 264), (2, 704)]  # the last one attends by products of dimension 352
WITHIN = "within"


def compare(found: Sequence[tuple[list[float], float]]) -> dict[str, object]:
    """What two ways of training a shape give, as a row; `found` has each run's `losses`, the reference's first."""
    reference, fast = np.split(np.array([curve for curve, _ in found]), 2)  # [seeds, rows]
    reference_test, fast_test = np.split(np.array([test for _, test in found]), 2)
    noise = math.sqrt(reference.var(0, ddof=1).mean())  # of one run over seeds, pooled over the curve
    difference = (fast - reference).mean(0) / noise
    curve = math.sqrt((difference**2).mean())
    test, test_noise = fast_test - reference_test, reference_test.std(ddof=1)
    within = curve <= 1 and abs(test.mean()) <= test_noise
    return {
        "test loss, reference": f"{reference_test.mean():.4f}",
        "its seed noise": f"{test_noise:.4f}",
        "fast - reference": f"{test.mean():+.4f} ± {test.std(ddof=1) / math.sqrt(len(test)):.4f}",
        "curve, rms in units of noise": f"{curve:.2f}",
        "at most": f"{np.abs(difference).max():.2f}",
        "": WITHIN if within else "**not within**",
    }


def losses(folder: Path) -> tuple[list[float], float]:
    """Training losses of a finished record's history, and its final test loss."""
    record = read_record(folder)
    return record.history.column("train_loss").to_pylist(), float(record.summary["test_loss"])


def main() -> int:
    """Train what is missing, compare, write."""
    arguments = _parser().parse_args()
    if arguments.seeds < 2:
        raise UserError(f"--seeds is {arguments.seeds}; noise over seeds needs 2 at least.")
    device = choose_device(arguments.device, "float32")
    on_cpu = device.type == "cpu"
    training = _training(arguments)
    fast = Runtime(arguments.device, compile=arguments.compile, compiled_part=arguments.compiled_part)
    ways = {
        "reference": (training, Runtime(arguments.device, compile=False)),
        "fast": (training if on_cpu else replace(training, precision="bfloat16"), fast),
    }
    shapes = arguments.shapes or ([(2, 64)] if on_cpu else SHAPES)
    found: dict[tuple[int, int], list[tuple[list[float], float]]] = {shape: [] for shape in shapes}
    rows: list[dict[str, object]] = []
    stores = open_token_store(arguments.train_store), open_token_store(arguments.test_store)
    heading = (
        f"{machine()}, {device_name(device)}, torch {torch.__version__}; {arguments.steps} steps of "
        f"{arguments.batch} x {CONTEXT} tokens, {arguments.seeds} seeds."
    )
    runs = itertools.product(found, ways, range(arguments.seeds))
    for (depth, width), way, seed in while_time_lasts(runs, arguments.seconds):
        recipe, runtime = ways[way]
        run = Run("tokens", make_shape(depth, width, 2, stores[0].vocab_size, CONTEXT), recipe, seed)
        train_job([[run]], arguments.out / way, lambda _: stores, runtime)
        of_shape = found[depth, width]
        of_shape.append(losses(arguments.out / way / RUNS / run.key))
        if len(of_shape) == len(ways) * arguments.seeds:
            rows.append({"depth": depth, "width": width, **compare(of_shape)})
            text = f"{heading}\n\n{markdown(rows)}\n"
            with replacing(arguments.out / "same_losses.md") as temporary:
                temporary.write_text(text)
    if len(rows) < len(found):
        return 3
    print(text)
    return 0 if all(row[""] == WITHIN for row in rows) else 1


def _training(arguments: argparse.Namespace) -> Training:
    """The recipe of scale `gpu`, without dropout: its masks are drawn in another way by a compiler."""
    return Training(
        arguments.steps,
        arguments.batch,
        warmup_steps=arguments.steps // 10,
        log_every=max(1, arguments.steps // 40),
        evaluate_every=arguments.steps,
        test_sequences=arguments.test_sequences,
    )


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR")
    add("--train-store", type=Path, required=True, help="header of a token store")
    add("--test-store", type=Path, required=True)
    add("--shapes", type=shape_of, nargs="+", metavar="L,d", help="(default: three; on a CPU one)")
    add("--steps", type=int, default=1000)
    add("--batch", type=int, default=128)
    add("--test-sequences", type=int, default=200)
    add("--seeds", type=int, default=3)
    add("--compile", action=argparse.BooleanOptionalAction, help="the fast path's (default: on a GPU)")
    add("--compiled-part", choices=COMPILED_PARTS, default="model")
    add("--seconds", type=float, default=math.inf, help="of wall time, about; then call it again")
    add("--device", default="auto")
    return parser


if __name__ == "__main__":
    end_with(main)
