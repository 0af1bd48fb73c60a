"""One training step of k small decoders of one shape as one batched computation, against k steps one after the other.

    PYTHONPATH=scripts python benchmarks/packed_decoders.py [--together 4] [--rounds 15]
    PYTHONPATH=scripts python benchmarks/packed_decoders.py --gpu-estimate

Several seeds of one shape, or several ranks of one embedding behind it, are the same computation on other numbers. It
is packed by `torch.func.vmap` over the decoder as it is, and by batched products (`torch.baddbmm`) written out, on the
whole batches at once or in k parts of them, so that as many numbers are at work as in a single step. A step is:
gradients to zero, forward, backward, AdamW, on 16 x 128 tokens as at scale `laptop`, whose grids have all of these
sizes but the last. The steps one after the other are those of training: linear maps and GELU in C++ where that is
possible, freed memory kept.

All step by turns in one process on one thread. Before that, losses and gradients are compared with the single steps'.
A time is CPU time; a ratio is the median over rounds of (k single steps / one packed step) with its quartiles.

`--gpu-estimate` measures nothing: it counts the operations of a step, each of which is a kernel to start on a GPU, and
says how long k steps would take if starting them were all, or their floating point operations.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from machine import machine
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from shapelaw.models import decoder_kernel
from shapelaw.models.attention import attend_by_products
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.specs.runs import Training
from shapelaw.specs.shapes import Shape, make_shape
from shapelaw.training.adam import Adam
from shapelaw.training.hardware import keep_freed_memory
from shapelaw.training.trainer import make_optimizer

SHAPES = (  # depth, width, V, embedding rank: of workflow/scales/laptop.yaml, but for the last, a smaller one
    (1, 64, 257, None),
    (1, 128, 257, None),
    (2, 90, 257, None),
    (4, 64, 257, None),
    (1, 64, 500, 32),
    (2, 46, 500, 32),
    (2, 90, 500, 128),
    (2, 128, 2000, None),
    (2, 128, 2000, 16),
    (2, 16, 2000, 32),
)
BATCH, CONTEXT, HEADS = 16, 128, 2
WARM_UP = 2
TRAINING = Training(steps=1, batch_size=BATCH)
START_SECONDS = 5e-6  # of a kernel on a GPU, by the processor that feeds it: usual for PyTorch without graphs
GPU_FLOPS = 2e13  # reached by products as small as these in float32, a third of what an H100's data sheet has
Step = Callable[[], Tensor]  # one step of all k networks; returns their losses [k]


@dataclass(frozen=True)
class Way:
    """A way of training k networks at once, with the names of its parameters, each [k, ...]."""

    name: str
    losses: Callable[[dict[str, Tensor], Tensor], Tensor]


def networks(shape: Shape, together: int) -> list[Decoder]:
    """Decoders of seeds 0, 1, ..."""
    made = []
    for seed in range(together):
        model = Decoder(shape)
        initialise(model, seed)
        made.append(model)
    return made


def single_steps(models: Sequence[Decoder], ids_KBT: Tensor, in_cpp: bool = True) -> Step:
    """The steps one after the other, as training takes them: on a CPU in C++ where that is possible."""
    kernel = in_cpp and torch.get_num_threads() == 1 and decoder_kernel.is_possible()
    for model in models:
        if kernel:
            model.use_kernel()
    optimizers = [make_optimizer(model, TRAINING) for model in models]

    def step() -> Tensor:
        losses = []
        for model, optimizer, ids_BT in zip(models, optimizers, ids_KBT, strict=True):
            optimizer.zero_grad()
            loss = model(ids_BT[:, :-1], ids_BT[:, 1:])
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

    return step


def stacked(models: Sequence[Decoder]) -> dict[str, Tensor]:
    """The parameters of all models, each [k, ...]."""
    named = [dict(model.named_parameters()) for model in models]
    return {name: nn.Parameter(torch.stack([one[name].detach() for one in named])) for name in named[0]}


def packed_step(way: Way, parameters: dict[str, Tensor], ids_KBT: Tensor, parts: int = 1) -> Step:
    """One step of all models as one computation, on so many parts of the batches one after the other."""
    matrices = [p for p in parameters.values() if p.ndim > 2]
    others = [p for p in parameters.values() if p.ndim <= 2]
    groups = [(matrices, TRAINING.weight_decay, 1.0, 1.0), (others, 0.0, 1.0, 1.0)]
    optimizer = Adam(
        groups, TRAINING.optimizer == "adamw", TRAINING.learning_rate, (TRAINING.beta1, TRAINING.beta2)
    )

    def step() -> Tensor:
        optimizer.zero_grad()
        total = torch.zeros(len(ids_KBT))
        for ids_KbT in ids_KBT.split(BATCH // parts, dim=1):
            losses = way.losses(parameters, ids_KbT) / parts
            losses.sum().backward()
            total += losses.detach()
        optimizer.step()
        return total

    return step


def by_vmap(shape: Shape) -> Way:
    """`torch.func.vmap` over a decoder whose parameters are given from outside."""
    empty = Decoder(shape).to("meta")

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = empty

        def forward(self, ids_BT: Tensor) -> Tensor:
            return F.cross_entropy(self.model.logits(ids_BT[:, :-1]).flatten(0, 1), ids_BT[:, 1:].flatten())

    module = Loss()

    def loss(parameters: dict[str, Tensor], ids_BT: Tensor) -> Tensor:
        inside = {f"model.{name}": value for name, value in parameters.items()}
        out: Tensor = torch.func.functional_call(module, inside, (ids_BT,))
        return out

    return Way("vmap", torch.func.vmap(loss))


def by_hand(shape: Shape) -> Way:
    """The decoder's computation on [k, B T, D] by batched products."""

    def linear(x_KMD: Tensor, p: dict[str, Tensor], name: str) -> Tensor:
        weight_KDN = p[f"{name}.weight"].transpose(1, 2)
        bias = p.get(f"{name}.bias")
        return (
            torch.bmm(x_KMD, weight_KDN) if bias is None else torch.baddbmm(bias[:, None], x_KMD, weight_KDN)
        )

    def norm(x_KMD: Tensor, p: dict[str, Tensor], name: str) -> Tensor:
        y_KMD = F.layer_norm(x_KMD, x_KMD.shape[-1:])
        return torch.addcmul(p[f"{name}.bias"][:, None], y_KMD, p[f"{name}.weight"][:, None])

    def embedding(ids_KM: Tensor, p: dict[str, Tensor], name: str) -> Tensor:
        table_KVD = p.get(f"{name}.weight", p.get(f"{name}.down.weight"))
        assert table_KVD is not None
        firsts_K1 = torch.arange(len(ids_KM))[:, None] * table_KVD.shape[1]
        found_KMD = F.embedding(ids_KM + firsts_K1, table_KVD.flatten(0, 1))
        return linear(found_KMD, p, f"{name}.up") if f"{name}.up.weight" in p else found_KMD

    def losses(p: dict[str, Tensor], ids_KBT: Tensor) -> Tensor:
        k, b, t = len(ids_KBT), ids_KBT.shape[1], ids_KBT.shape[2] - 1
        positions = embedding(torch.arange(t).expand(k, t), p, "positions")
        x = (
            embedding(ids_KBT[:, :, :-1].reshape(k, b * t), p, "tokens").view(k, b, t, -1)
            + positions[:, None]
        )
        x = x.view(k, b * t, -1)
        for block in (f"blocks.{number}" for number in range(shape.depth)):
            qkv = linear(norm(x, p, f"{block}.norm1"), p, f"{block}.attention.qkv")
            mixed = attend_by_products(
                qkv.view(k * b, t, -1), shape.heads, shape.heads, shape.score_scale, 0.0
            )
            x = x + linear(mixed.reshape(k, b * t, -1), p, f"{block}.attention.out")
            hidden = F.gelu(linear(norm(x, p, f"{block}.norm2"), p, f"{block}.up"), approximate="tanh")
            x = x + linear(hidden, p, f"{block}.down")
        logits = linear(norm(x, p, "norm"), p, "classifier")
        targets = ids_KBT[:, :, 1:].flatten()
        return F.cross_entropy(logits.flatten(0, 1), targets, reduction="none").view(k, -1).mean(1)

    return Way("batched products", losses)


def check(way: Way, models: Sequence[Decoder], ids_KBT: Tensor) -> None:
    """Compare losses and gradients with those of the single models.

    Raises:
        AssertionError: they differ by more than rounding.
    """
    parameters = stacked(models)
    losses = way.losses(parameters, ids_KBT)
    losses.sum().backward()
    for place, (model, ids_BT) in enumerate(zip(models, ids_KBT, strict=True)):
        model.zero_grad()
        loss = model(ids_BT[:, :-1], ids_BT[:, 1:])
        loss.backward()
        torch.testing.assert_close(losses[place], loss, rtol=1e-4, atol=1e-5)
        for name, parameter in model.named_parameters():
            gradient = parameters[name].grad
            assert gradient is not None
            assert parameter.grad is not None
            torch.testing.assert_close(gradient[place], parameter.grad, rtol=1e-2, atol=1e-4)


def by_turns(steps: Sequence[Step], rounds: int) -> list[list[float]]:
    """CPU seconds of each step in each round, after a warm-up."""
    seconds: list[list[float]] = [[] for _ in steps]
    for number in range(rounds + WARM_UP):
        for step, times in zip(steps, seconds, strict=True):
            start = time.process_time()
            step()
            if number >= WARM_UP:
                times.append(time.process_time() - start)
    return seconds


def compared(single: Sequence[float], packed: Sequence[float]) -> str:
    """The median of the rounds' ratios, with its quartiles."""
    low, middle, high = statistics.quantiles([s / p for s, p in zip(single, packed, strict=True)], n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


class Kernels(TorchDispatchMode):
    """Counts the operations that are more than another view of a tensor: on a GPU each starts a kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def kernels(step: Step) -> int:
    """Kernels of a step, after one that makes what later ones find."""
    step()
    with Kernels() as counted:
        step()
    return counted.count


def print_estimate(together: int) -> None:
    """The kernels of single and packed steps, and what k of them would take on a GPU."""
    print(f"k = {together}, {1e6 * START_SECONDS:.0f} us to start a kernel, {GPU_FLOPS / 1e12:.0f} TFLOP/s\n")
    print(
        "| depth | width | V | rank | kernels, k single | kernels, packed | started, single and packed, ms "
        "| computed, ms | ratio |"
    )
    print("|" + "---|" * 9)
    for depth, width, vocab_size, rank in SHAPES:
        shape, models, ids_KBT = made(depth, width, vocab_size, rank, together)
        single = kernels(single_steps(models, ids_KBT, in_cpp=False))
        packed = kernels(packed_step(by_hand(shape), stacked(models), ids_KBT))
        computed = together * shape.step_flops(BATCH) / GPU_FLOPS
        one, other = (max(count * START_SECONDS, computed) for count in (single, packed))
        name = "full" if rank is None else rank
        print(
            f"| {depth} | {width} | {vocab_size} | {name} | {single} | {packed} | {1000 * single * START_SECONDS:.1f}"
            f", {1000 * packed * START_SECONDS:.1f} | {1000 * computed:.2f} | {one / other:.1f} |"
        )


def made(
    depth: int, width: int, vocab_size: int, rank: int | None, together: int
) -> tuple[Shape, list[Decoder], Tensor]:
    """A shape, k decoders of it, and their batches [k, B, T + 1]."""
    ranks = {"embedding_rank": rank, "positional_rank": rank, "redundant_rank": True}
    shape = make_shape(depth, width, HEADS, vocab_size, CONTEXT, **ranks)
    return shape, networks(shape, together), torch.randint(vocab_size, (together, BATCH, CONTEXT + 1))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--together", type=int, default=4, metavar="K", help="networks at once (default 4)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--gpu-estimate", action="store_true", help="count kernels; measure nothing")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if arguments.gpu_estimate:
        print_estimate(arguments.together)
        return
    keep_freed_memory()
    print(f"{machine()}, one thread, torch {torch.__version__}, k = {arguments.together}\n")
    print(
        "| depth | width | V | rank | k single steps, ms | vmap | products | vmap, in parts | products, in parts |"
    )
    print("|" + "---|" * 9)
    for depth, width, vocab_size, rank in SHAPES:
        shape, models, ids_KBT = made(depth, width, vocab_size, rank, arguments.together)
        ways = (by_vmap(shape), by_hand(shape))
        for way in ways:
            check(way, models, ids_KBT)
        parts = arguments.together
        packed = [packed_step(way, stacked(models), ids_KBT, number) for number in (1, parts) for way in ways]
        single, *others = by_turns([single_steps(models, ids_KBT), *packed], arguments.rounds)
        cells = " | ".join(compared(single, one) for one in others)
        name = "full" if rank is None else rank
        print(
            f"| {depth} | {width} | {vocab_size} | {name} | {1000 * statistics.median(single):.0f} | {cells} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
