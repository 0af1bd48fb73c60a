"""Model-steps a CPU-second of packed memorizers, against one model at a time.

    PYTHONPATH=scripts python benchmarks/packed_memorization.py [--rounds 7] [--device cpu] [--peer FOLDER]

A model-step is one Adam step of one model on 256 examples, its batch picked from its examples. In one process, on one
thread, by turns; medians of CPU time (of wall time on a GPU). The peers:

- naive: keys for every example, an output for every token, autograd, torch.optim.Adam (naive_memorizer.py)
- public: the model of the paper's public code, from a checkout of smahdavi4/attention-memorization that --peer names,
  with its loss and torch.optim.Adam; its data loader, scheduler and logging are left out, which take time too
- one at a time: the same folded algebra as the pack's, one model, autograd, torch.optim.Adam, eager

The second table is a step of models of several shapes: in a pack for each shape, and in one pack, filled up with zeros.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from machine import machine, ratio
from naive_memorizer import NaiveMemorizer
from public_memorizer import public_memorizer
from torch import Tensor, nn

from shapelaw.errors import command_line
from shapelaw.jobs.resources import filled_up
from shapelaw.models import memorizer
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.training.hardware import keep_freed_memory
from shapelaw.training.memorizer_pack import (
    Gradients,
    MemorizerPack,
    choose_gradients,
    draw_examples,
    example_order,
)
from shapelaw.training.packs import can_compile

Step = Callable[[], object]
SHARED, EACH = "shared", "per_example"
CASES = [
    (4, 64, 550, SHARED),
    (20, 64, 2000, SHARED),
    (30, 8, 2000, SHARED),
    (4, 64, 550, EACH),
    (20, 64, 2000, EACH),
    (30, 8, 2000, EACH),
]
SEVERAL = (1, 5, 10, 20, 30)  # heads of models in one pack
LEAST_SECONDS = 0.3  # of a measurement


def run_of(heads: int, head_dim: int, examples: int, context_type: str, seed: int = 0) -> MemorizationRun:
    """A run of the paper's grid, with the conventions of its authors' code."""
    m = Memorizer(heads, 32, head_dim, value_dim=1, logit_scale="width")
    return MemorizationRun(m, "classification", context_type, examples, 50_000, seed)  # type: ignore[arg-type]


def naive(run: MemorizationRun, device: torch.device) -> Step:
    """A step of the naive model."""
    m = run.memorizer
    model = NaiveMemorizer(m, memorizer.initial_parameters(m, run.seed, torch.float32))
    return step_of(model, model, run, device)


def public(run: MemorizationRun, device: torch.device, folder: Path) -> Step:
    """A step of the public code's model, which is seen to give our outputs."""
    m = run.memorizer
    p = memorizer.initial_parameters(m, run.seed, torch.float32)
    model, ours = public_memorizer(folder, m, p), NaiveMemorizer(m, p)

    def outputs(tokens: Tensor) -> Tensor:
        every: Tensor = model(tokens, None)[0]
        return every[:, 0]

    tokens = torch.rand(8, m.context + 1, m.width)
    torch.testing.assert_close(outputs(tokens), ours(tokens), rtol=0, atol=1e-4)
    return step_of(model, outputs, run, device)


def step_of(
    model: nn.Module, outputs: Callable[[Tensor], Tensor], run: MemorizationRun, device: torch.device
) -> Step:
    """A step of one model by autograd and torch.optim.Adam, on tokens [B, n + 1, d] of each example."""
    examples = draw_examples(run)
    optimizer = torch.optim.Adam(model.to(device).parameters(), lr=run.learning_rate)
    contexts = (
        examples.contexts if run.context_type == EACH else examples.contexts.expand(run.examples, -1, -1)
    )
    tokens = torch.cat([examples.queries[:, None], contexts], 1).to(device)
    labels, order = examples.labels.to(device), torch.from_numpy(example_order(run, 0, 64)).to(device)
    count = iter(range(10**9))

    def step() -> None:
        at = order[next(count) % 64]
        optimizer.zero_grad()
        nn.functional.cross_entropy(outputs(tokens[at]), labels[at]).backward()
        optimizer.step()

    return step


def alone(run: MemorizationRun, device: torch.device) -> Step:
    """A step of one model with the folded algebra, by autograd and torch.optim.Adam."""
    m, examples = run.memorizer, draw_examples(run)
    drawn = memorizer.initial_parameters(m, run.seed, torch.float32)
    parameters = {name: value[None].to(device).requires_grad_() for name, value in drawn.items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=run.learning_rate)
    place, order = (
        memorizer.positions(m, torch.float32).to(device),
        torch.from_numpy(example_order(run, 0, 64)).to(device),
    )
    queries, labels, contexts = (x.to(device) for x in (examples.queries, examples.labels, examples.contexts))
    count = iter(range(10**9))

    def step() -> None:
        at = order[next(count) % 64]
        context = contexts if run.context_type == SHARED else contexts[at]
        optimizer.zero_grad()
        memorizer.losses(
            memorizer.forward(parameters, m, place, queries[at][None], context[None])[0], labels[at][None]
        ).sum().backward()
        optimizer.step()

    return step


def packed(
    runs: list[MemorizationRun], device: torch.device, compiled: bool, by: Gradients | None = None
) -> Step:
    """A step of a pack, with its own gradients or others."""
    return MemorizerPack(runs, device, compiled, by).step


def steps_of(
    case: tuple[int, int, int, str],
    sizes: list[int],
    device: torch.device,
    peer: Path | None,
) -> dict[str, tuple[Step, int]]:
    """All that is measured in a case, by name, with the models that a step of it steps."""
    run = run_of(*case)
    steps = {"naive": (naive(run, device), 1)}
    if peer:
        steps["public"] = (public(run, device, peer), 1)
    steps["one at a time"] = (alone(run, device), 1)
    shared = case[-1] == SHARED
    for models in sizes:
        runs = [run_of(*case, seed) for seed in range(models)]
        name = f"pack of {models}"
        steps[f"{name}, autograd"] = (packed(runs, device, False, memorizer.gradients), models)
        written = memorizer.shared_gradients if shared else memorizer.per_example_gradients
        steps[f"{name}, in PyTorch"] = (packed(runs, device, False, written), models)
        if can_compile(device):
            steps[f"{name}, compiled"] = (
                packed(runs, device, True, choose_gradients(run.memorizer, shared, True)),
                models,
            )
            if not shared and device.type == "cpu":
                steps[f"{name}, kernel"] = (packed(runs, device, False), models)
    return steps


def seconds_of(step: Step, device: torch.device) -> float:
    """CPU seconds of one call (wall seconds on a GPU), from as many as take a while."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    calls, start = 0, clock()
    while clock() - start < LEAST_SECONDS:
        for _ in range(1 if device.type == "cpu" else 5):
            step()
            calls += 1
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return (clock() - start) / calls


def main() -> None:
    """Measure and print the table."""
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--cases", type=int, nargs="+", default=range(len(CASES)), help="places in the list of cases"
    )
    parser.add_argument("--models", type=int, nargs="+", default=[1, 4, 8], help="sizes of packs")
    parser.add_argument(
        "--several", type=int, nargs="*", default=[1, 4], help="models of each shape in the second table"
    )
    parser.add_argument("--peer", type=Path, help="a checkout of the paper's public code")
    parser.add_argument("--target", default="native", help="whose instructions the kernel uses, as haswell")
    arguments = parser.parse_args()
    memorizer.KERNEL.target = arguments.target
    device = torch.device(arguments.device)
    torch.set_num_threads(1)
    keep_freed_memory()
    print(f"{machine()}, 1 thread, torch {torch.__version__}, {device}\n")
    print("Milliseconds a model-step, and how many times faster than each peer.\n")
    peers = ["naive", *(["public"] if arguments.peer else []), "one at a time"]
    print("| H | d_h | T | context | what | ms | " + " | ".join(f"x {peer}" for peer in peers) + " |")
    print("|" + "---|" * (6 + len(peers)))
    for case in (CASES[place] for place in arguments.cases):
        steps = steps_of(case, arguments.models, device, arguments.peer)
        for step, _ in steps.values():
            for _ in range(3):
                step()
        times: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(arguments.rounds):
            for name, (step, models) in steps.items():
                times[name].append(seconds_of(step, device) / models)
        where = "| " + " | ".join(map(str, case))
        for name, values in times.items():
            against = " | ".join(f"{ratio(times[peer], values):.3g}" for peer in peers)
            print(
                f"{where} | {name} | {1000 * statistics.median(values):.2f} | {against} |",
                flush=True,
            )
    heads = ", ".join(map(str, SEVERAL))
    print(
        f"\nA step of models with {heads} heads (d_h = 64, T = 2000, shared): in packs apart, in one filled up.\n"
        "\n| models of each | ms apart | ms in one | times faster | times the operations |\n|---|---|---|---|---|"
    )
    for models in arguments.several:
        print(several_shapes(device, models, arguments.rounds), flush=True)


def several_shapes(device: torch.device, models: int, rounds: int) -> str:
    """A row: milliseconds of a step of so many models of each of `SEVERAL` heads, in packs apart and in one pack."""
    packs = [[run_of(heads, 64, 2000, SHARED, seed) for seed in range(models)] for heads in SEVERAL]
    runs = [run for pack in packs for run in pack]
    compiled = can_compile(device)
    apart = [packed(pack, device, compiled) for pack in packs]
    together = packed(runs, device, compiled)
    for step in [*apart, together]:
        for _ in range(3):
            step()
    times = [
        (sum(seconds_of(step, device) for step in apart), seconds_of(together, device)) for _ in range(rounds)
    ]
    one, other = (list(column) for column in zip(*times, strict=True))
    alone, filled = (sum(run.step_flops for run in some) for some in (runs, filled_up(runs)))
    return (
        f"| {models} | {1000 * statistics.median(one):.2f} | {1000 * statistics.median(other):.2f} | "
        f"{ratio(one, other):.2f} | {filled / alone:.2f} |"
    )


if __name__ == "__main__":
    main()
