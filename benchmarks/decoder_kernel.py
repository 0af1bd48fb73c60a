"""The decoder's kernel against PyTorch: products of a micro-batch's linear maps, and GELU, on one thread.

    PYTHONPATH=scripts python benchmarks/decoder_kernel.py [--rounds 9]

Milliseconds of CPU for 2,048 tokens, forward and backward, the faster half of rounds by turns; all maps of a decoder.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from machine import machine

from shapelaw.models import decoder_kernel
from shapelaw.specs.shapes import MLP_RATIO
from shapelaw.training.hardware import keep_freed_memory

SHAPES = [(6, 128, 2000), (12, 88, 257), (12, 264, 2000)]
TOKENS = 2048


def milliseconds(actions: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """CPU time of each action: the lower quartile of rounds by turns, after one round of warm-up."""
    spent: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds + 1):
        for action, times in zip(actions, spent, strict=True):
            start = time.process_time()
            action()
            times.append(1000 * (time.process_time() - start))
    return [statistics.quantiles(times[1:])[0] for times in spent]


def products(k: int, n: int, rounds: int) -> list[list[float]]:
    """Forward, by the inputs, by the weight: each by the kernel and by PyTorch."""
    x, weight, bias, grad = (torch.randn(size) for size in ((TOKENS, k), (n, k), (n,), (TOKENS, n)))
    multiply = decoder_kernel._product
    assert decoder_kernel._is_right(TOKENS, k, n)
    return [
        milliseconds([lambda: multiply(x, weight.t(), bias), lambda: F.linear(x, weight, bias)], rounds),
        milliseconds([lambda: multiply(grad, weight), lambda: grad @ weight], rounds),
        milliseconds([lambda: multiply(grad.t(), x), lambda: grad.t() @ x], rounds),
    ]


def gelu(numbers: int, rounds: int) -> list[float]:
    """Values and gradient, by the kernel and by PyTorch."""
    x, grad = torch.randn(numbers), torch.randn(numbers)

    def by_kernel() -> None:
        slope = x.clone()  # the kernel writes there
        decoder_kernel._gelu(slope)
        grad * slope

    def by_pytorch() -> None:
        F.gelu(x, approximate="tanh")
        torch.ops.aten.gelu_backward(grad, x, approximate="tanh")

    assert decoder_kernel._is_gelu_right(numbers)
    return milliseconds([by_kernel, by_pytorch], rounds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    keep_freed_memory()
    print(f"{machine()}, 1 thread, torch {torch.__version__}\n")
    print(
        "| depth | width | V | forward | by inputs | by weights | PyTorch / kernel | GELU | PyTorch / kernel |"
    )
    print("|" + "---|" * 9)
    for depth, d, vocab_size in SHAPES:
        maps = [(depth, d, 3 * d), (depth, d, d), (depth, d, MLP_RATIO * d), (depth, MLP_RATIO * d, d)]
        totals = [[0.0, 0.0] for _ in range(3)]
        for times, k, n in [*maps, (1, d, vocab_size)]:
            for total, found in zip(totals, products(k, n, rounds), strict=True):
                for place, value in enumerate(found):
                    total[place] += times * value
        cells = [f"{kernel:.0f} for {pytorch:.0f}" for kernel, pytorch in totals]
        ratio = sum(pytorch for _, pytorch in totals) / sum(kernel for kernel, _ in totals)
        kernel, pytorch = (depth * value for value in gelu(TOKENS * MLP_RATIO * d, rounds))
        cells += [f"{ratio:.2f}", f"{kernel:.0f} for {pytorch:.0f}", f"{pytorch / kernel:.2f}"]
        print(f"| {depth} | {d} | {vocab_size} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
