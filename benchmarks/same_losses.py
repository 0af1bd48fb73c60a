"""Whether the fast path trains as the float32 reference does: loss curves of both, against the noise of seeds.

    PYTHONPATH=scripts python benchmarks/same_losses.py --out DIR [--train-store train.json --test-store test.json]

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
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from language_training import CONTEXT, shape_of, store_of
from machine import machine
from numpy.typing import NDArray

from shapelaw.corpora.token_store import TokenStore, open_token_store
from shapelaw.errors import UserError, command_line, exit_code
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run, Training
from shapelaw.storage.files import replacing
from shapelaw.storage.records import RUNS, read_record
from shapelaw.training.driver import train_job
from shapelaw.training.hardware import choose_device, device_name
from shapelaw.training.trainer import COMPILED_PARTS, Runtime

SHAPES = [(6, 128), (12, 264), (2, 704)]  # the last one attends by products of dimension 352
SEEDS = 3


@dataclass(frozen=True)
class Comparison:
    """What two ways of training one shape give.

    Attributes:
        noise: standard deviation of one reference run's training loss over seeds, pooled over the curve, in nats.
        curve: root mean square over the curve of the mean difference, in units of `noise`.
        largest: the largest mean difference of the curve, in the same units.
        test_noise: standard deviation of one reference run's final test loss.
        test_difference: mean difference of the final test losses, in nats.
        test_error: its standard error over seeds.
        test_loss: mean of the reference.
    """

    noise: float
    curve: float
    largest: float
    test_noise: float
    test_difference: float
    test_error: float
    test_loss: float

    @property
    def within(self) -> bool:
        """Whether the difference is within the noise of seeds."""
        return self.curve <= 1 and abs(self.test_difference) <= self.test_noise


def compare(
    reference: NDArray[np.float64], fast: NDArray[np.float64], tests: NDArray[np.float64]
) -> Comparison:
    """Compare training losses [seeds, rows] of both, and final test losses [2, seeds] (reference, fast)."""
    noise = math.sqrt(reference.var(0, ddof=1).mean())
    difference = (fast - reference).mean(0) / noise
    test = tests[1] - tests[0]
    return Comparison(
        noise,
        float(np.sqrt((difference**2).mean())),
        float(np.abs(difference).max()),
        float(tests[0].std(ddof=1)),
        float(test.mean()),
        float(test.std(ddof=1) / math.sqrt(len(test))),
        float(tests[0].mean()),
    )


def losses(folder: Path) -> tuple[list[float], float]:
    """Training losses of a finished record's history, and its final test loss."""
    record = read_record(folder)
    return record.history.column("train_loss").to_pylist(), float(record.summary["test_loss"])


def table(rows: Sequence[tuple[tuple[int, int], Comparison]], heading: str) -> str:
    """The comparisons in Markdown."""
    lines = [
        heading,
        "",
        "| depth | width | test loss, reference | its seed noise | fast - reference | curve, rms in units of noise "
        "| at most | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (depth, width), one in rows:
        lines.append(
            f"| {depth} | {width} | {one.test_loss:.4f} | {one.test_noise:.4f} "
            f"| {one.test_difference:+.4f} ± {one.test_error:.4f} | {one.curve:.2f} | {one.largest:.2f} "
            f"| {'within' if one.within else '**not within**'} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Train what is missing, compare, write."""
    started = time.monotonic()
    arguments = _parser().parse_args()
    if arguments.seeds < 2:
        raise UserError(f"--seeds is {arguments.seeds}; noise over seeds needs 2 at least.")
    device = choose_device(arguments.device, "float32")
    on_cpu = device.type == "cpu"
    executions = {
        "reference": Runtime(arguments.device, compile=False, micro_batch=arguments.micro_batch),
        "fast": Runtime(
            arguments.device,
            compile=arguments.compile,
            compiled_part=arguments.compiled_part,
            micro_batch=arguments.micro_batch,
        ),
    }
    rows, longest = [], 0.0
    with tempfile.TemporaryDirectory() as name:
        stores, note = _stores(arguments, Path(name))
        for depth, width in arguments.shapes or ([(2, 64)] if on_cpu else SHAPES):
            shape = make_shape(depth, width, 2, stores[0].vocab_size, CONTEXT)
            found: dict[str, list[tuple[list[float], float]]] = {}
            for way, runtime in executions.items():
                for seed in range(arguments.seeds):
                    if time.monotonic() - started + longest > arguments.seconds:
                        print("The time is up; call it again for the rest.")
                        return 3
                    begun = time.monotonic()
                    run = Run("tokens", shape, _training(arguments), seed)
                    if way == "fast" and not on_cpu:
                        run = replace(run, training=replace(run.training, precision="bfloat16"))
                    train_job([[run]], arguments.out / way, lambda _: stores, runtime)
                    longest = max(longest, time.monotonic() - begun)
                    found.setdefault(way, []).append(losses(arguments.out / way / RUNS / run.key))
            curves = [np.array([curve for curve, _ in found[way]]) for way in executions]
            tests = np.array([[test for _, test in found[way]] for way in executions])
            rows.append(((depth, width), compare(curves[0], curves[1], tests)))
            heading = (
                f"{machine()}, {device_name(device)}, torch {torch.__version__}; {arguments.steps} steps of "
                f"{arguments.batch} x {CONTEXT} tokens, {arguments.seeds} seeds. {note}"
            )
            with replacing(arguments.out / "same_losses.md") as temporary:
                temporary.write_text(table(rows, heading))
    print(table(rows, heading))
    return 0 if all(one.within for _, one in rows) else 1


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


def _stores(arguments: argparse.Namespace, folder: Path) -> tuple[tuple[TokenStore, TokenStore], str]:
    if (arguments.train_store is None) != (arguments.test_store is None):
        raise UserError("Give both --train-store and --test-store, or neither.")
    if arguments.train_store is not None:
        return (open_token_store(arguments.train_store), open_token_store(arguments.test_store)), ""
    store, note = store_of(2000, None, folder)
    test = store.path.with_name("test.json")
    return (store, open_token_store(test) if test.is_file() else store), note


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR")
    add("--train-store", type=Path, help="header of a token store (default: the default corpus at V = 2000)")
    add("--test-store", type=Path)
    add("--shapes", type=shape_of, nargs="+", metavar="L,d", help="(default: three; on a CPU one)")
    add("--steps", type=int, default=1000)
    add("--batch", type=int, default=128)
    add("--micro-batch", type=int)
    add("--test-sequences", type=int, default=200)
    add("--seeds", type=int, default=SEEDS)
    add("--compile", action=argparse.BooleanOptionalAction, help="the fast path's (default: on a GPU)")
    add("--compiled-part", choices=COMPILED_PARTS, default="model")
    add("--seconds", type=float, default=math.inf, help="of wall time, about; then call it again")
    add("--device", default="auto")
    return parser


if __name__ == "__main__":
    sys.exit(exit_code(main))
