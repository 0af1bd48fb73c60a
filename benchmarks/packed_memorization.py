"""Model-steps a CPU-second of packed memorizers, against one model at a time and against the pack without each idea.

    PYTHONPATH=scripts python benchmarks/packed_memorization.py [--rounds 7] [--device cpu]

A model-step is one Adam step of one model on 256 examples, its batch picked from its examples. In one process, on one
thread, by turns; medians of CPU time (of wall time on a GPU). The peers:

- naive: keys for every example, an output for every token, autograd, torch.optim.Adam (naive_memorizer.py)
- one at a time: the same folded algebra as the pack's, one model, autograd, torch.optim.Adam, eager
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from machine import machine
from naive_memorizer import NaiveMemorizer

from shapelaw.memorizers import MemorizationRun, Memorizer
from shapelaw.models.memorizer import forward, gradients, initial_parameters, losses, positions
from shapelaw.training.examples import draw_examples, example_order
from shapelaw.training.packed import Pack, can_compile, keep_freed_memory

SHARED, EACH = "shared", "per_example"
CASES = [
    (4, 64, 550, SHARED),
    (20, 64, 2000, SHARED),
    (30, 8, 2000, SHARED),
    (4, 64, 550, EACH),
    (20, 64, 2000, EACH),
]
LEAST_SECONDS = 0.3  # of a measurement


def run_of(heads: int, head_dim: int, examples: int, context_type: str, seed: int = 0) -> MemorizationRun:
    """A run of the paper's grid, with the conventions of its authors' code."""
    m = Memorizer(heads, 32, head_dim, value_dim=1, logit_scale="width")
    return MemorizationRun("benchmark", m, "classification", context_type, examples, 50_000, seed)  # type: ignore[arg-type]


def naive(run: MemorizationRun, device: torch.device) -> Callable[[], object]:
    """A step of the naive model."""
    m, examples = run.memorizer, draw_examples(run)
    model = NaiveMemorizer(m, initial_parameters(m, run.seed, torch.float32)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=run.learning_rate)
    contexts = (
        examples.contexts if run.context_type == EACH else examples.contexts.expand(run.examples, -1, -1)
    )
    tokens = torch.cat([examples.queries[:, None], contexts], 1).to(device)
    labels, order = examples.labels.to(device), torch.from_numpy(example_order(run, 0, 64)).to(device)
    count = iter(range(10**9))

    def step() -> None:
        at = order[next(count) % 64]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(tokens[at]), labels[at]).backward()
        optimizer.step()

    return step


def alone(run: MemorizationRun, device: torch.device) -> Callable[[], object]:
    """A step of one model with the folded algebra, by autograd and torch.optim.Adam."""
    m, examples = run.memorizer, draw_examples(run)
    drawn = initial_parameters(m, run.seed, torch.float32)
    parameters = {name: value[None].to(device).requires_grad_() for name, value in drawn.items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=run.learning_rate)
    place, order = (
        positions(m, torch.float32).to(device),
        torch.from_numpy(example_order(run, 0, 64)).to(device),
    )
    queries, labels, contexts = (x.to(device) for x in (examples.queries, examples.labels, examples.contexts))
    count = iter(range(10**9))

    def step() -> None:
        at = order[next(count) % 64]
        context = contexts if run.context_type == SHARED else contexts[at]
        optimizer.zero_grad()
        losses(
            forward(parameters, m, place, queries[at][None], context[None])[0], labels[at][None]
        ).sum().backward()
        optimizer.step()

    return step


def packed(
    runs: list[MemorizationRun], device: torch.device, compiled: bool, written: bool = True
) -> Callable[[], object]:
    """A step of a pack."""
    pack = Pack(runs, device, compiled)
    if not written:
        pack._gradients = gradients
    return pack.step


def seconds_of(step: Callable[[], object], device: torch.device) -> float:
    """CPU seconds of one call (wall seconds on a GPU), from as many as take a while."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    calls, start = 0, clock()
    while clock() - start < LEAST_SECONDS:
        for _ in range(5):
            step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        calls += 5
    return (clock() - start) / calls


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--cases", type=int, nargs="+", default=range(len(CASES)), help="places in the list of cases"
    )
    parser.add_argument("--models", type=int, nargs="+", default=[1, 4, 8], help="sizes of packs")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    torch.set_num_threads(1)
    keep_freed_memory()
    print(f"{machine()}, 1 thread, torch {torch.__version__}, {device}\n")
    print("Milliseconds a model-step, and how many times faster than each peer.\n")
    print(
        "| H | d_h | T | context | what | ms | x naive | x one at a time |\n|---|---|---|---|---|---|---|---|"
    )
    for heads, head_dim, examples, context_type in (CASES[place] for place in arguments.cases):
        run = run_of(heads, head_dim, examples, context_type)
        steps: dict[str, tuple[Callable[[], object], int]] = {
            "naive": (naive(run, device), 1),
            "one at a time": (alone(run, device), 1),
        }
        for models in arguments.models:
            runs = [run_of(heads, head_dim, examples, context_type, seed) for seed in range(models)]
            steps[f"pack of {models}, autograd"] = (packed(runs, device, False, written=False), models)
            steps[f"pack of {models}"] = (packed(runs, device, False), models)
            if can_compile(device):
                steps[f"pack of {models}, compiled"] = (packed(runs, device, True), models)
        for step, _ in steps.values():
            for _ in range(3):
                step()
        times: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(arguments.rounds):
            for name, (step, models) in steps.items():
                times[name].append(seconds_of(step, device) / models)
        for name, values in times.items():
            against = [
                statistics.median(p / v for p, v in zip(times[peer], values, strict=True))
                for peer in ("naive", "one at a time")
            ]
            print(
                f"| {heads} | {head_dim} | {examples} | {context_type} | {name} | "
                f"{1000 * statistics.median(values):.2f} | {against[0]:.1f} | {against[1]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
