"""One training step of ours against transformers' models and nanoGPT, eager, float32, on the CPU.

    PYTHONPATH=scripts python benchmarks/training_step.py [--block gpt2|llama] [--nanogpt FOLDER] [--rounds 9]

The peer of GPT-2's block is GPT2LMHeadModel, that of Llama's LlamaForCausalLM, and nanoGPT one of the first alone.

A step is: gradients to zero, forward, backward, AdamW. All models have the same shape and the same random batch of
32 x 128 tokens. FOLDER is a clone of github.com/karpathy/nanoGPT, which then is a peer twice: with our function
(biases, our GELU, a classifier that is not the embedding), and with its own (no biases, exact GELU, one table for
both).

Each model has a process of its own and they step by turns; a number is CPU time, all threads together, and a ratio the
median of the rounds' ratios. Ours runs as training does on a CPU: the batch in parts, the C library told to keep what
is freed (`shapelaw.training.hardware.keep_freed_memory`), on one thread with the C++ of
`shapelaw.models.decoder_kernels`. Transformers' model gets the whole batch and
torch.optim.AdamW as it comes, nanoGPT's the whole batch and the fused AdamW. In the second table the peers keep freed
memory too, so that what is left is the model's own.
Also measured: how much of a real step is waiting for data and writing the record, and the loss at V = 50,257 with and
without chunks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import get_args

import torch
from machine import alternate, machine, ratio
from peers import (
    Step,
    gpt2_model,
    llama_model,
    nanogpt_like_ours,
    nanogpt_model,
    nanogpt_step,
    transformers_step,
)

from shapelaw.errors import UserError
from shapelaw.models import decoder_kernels
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.models.functions import CHUNK_ELEMENTS, linear_cross_entropy
from shapelaw.specs.runs import Training
from shapelaw.specs.shapes import Block, Gelu, Shape, make_shape
from shapelaw.training.hardware import keep_freed_memory, micro_batch_size
from shapelaw.training.trainer import make_optimizer

SHAPES = [(6, 128, 2000), (12, 88, 257), (12, 264, 2000)]
BATCH, CONTEXT = 32, 128
WARM_UP = 3
OURS, GPT2, LLAMA, ALIKE, OWN = "ours", "GPT2", "Llama", "nanoGPT with our function", "nanoGPT"

Times = list[list[float]]


def our_step(shape: Shape, ids: torch.Tensor) -> Callable[[], object]:
    """Our model's step on `ids` [B, T + 1]."""
    model = Decoder(shape)
    initialise(model, 0)
    if torch.get_num_threads() == 1 and decoder_kernels.has_products():
        model.use_kernel()
    optimizer = make_optimizer(model, Training(steps=1, batch_size=BATCH))
    parts = parts_of(shape, ids)

    def step() -> None:
        optimizer.zero_grad()
        for part in parts:
            (model(part[:, :-1], part[:, 1:]) / len(parts)).backward()
        optimizer.step()

    return step


def parts_of(shape: Shape, ids: torch.Tensor) -> Sequence[torch.Tensor]:
    """The batch in the parts that go through our model at once."""
    return ids.split(micro_batch_size(shape, len(ids), ids.device, "float32"))


def step_of(name: str, shape: Shape, ids: torch.Tensor, nanogpt: Path) -> Step:
    """The step of a contestant on `ids` [B, T + 1]."""
    if name == OURS:
        return our_step(shape, ids)
    if name == GPT2:
        return transformers_step(gpt2_model(shape), [ids], False, nullcontext, fused=False)
    if name == LLAMA:
        return transformers_step(llama_model(shape), [ids], False, nullcontext, fused=False)
    model = nanogpt_like_ours(nanogpt, shape) if name == ALIKE else nanogpt_model(nanogpt, shape, bias=False)
    return nanogpt_step(model, [ids], False, nullcontext)


def contestant(pipe: Connection, name: str, shape: Shape, nanogpt: Path, threads: int, keep: bool) -> None:
    """In a process of its own: make a step whenever asked, and answer with its CPU seconds."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    if keep:
        keep_freed_memory()
    step = step_of(name, shape, torch.randint(0, shape.vocab_size, (BATCH, CONTEXT + 1)), nanogpt)
    while pipe.recv():
        start = time.process_time()
        step()
        pipe.send(time.process_time() - start)


def steps_by_turns(names: Sequence[str], arguments: argparse.Namespace, shape: Shape, keep: bool) -> Times:
    """CPU seconds of each contestant in each round, after three rounds of warm-up."""
    pipes: list[Connection] = []
    processes = []
    for name in names:
        here, there = get_context("spawn").Pipe()
        options = (there, name, shape, arguments.nanogpt, arguments.threads, keep or name == OURS)
        processes.append(get_context("spawn").Process(target=contestant, args=options, daemon=True))
        processes[-1].start()
        there.close()  # so that the end of that process ends a wait for it
        pipes.append(here)
    times: Times = [[] for _ in names]
    for number in range(arguments.rounds + WARM_UP):
        for pipe, seconds in zip(pipes, times, strict=True):
            pipe.send(True)
            spent = pipe.recv()
            if number >= WARM_UP:
                seconds.append(spent)
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(False)
        process.join()
    return times


def steps_table(arguments: argparse.Namespace, keep: bool) -> None:
    """CPU milliseconds of a step of ours, and of how many of ours a peer's takes the time, at each shape."""
    names = [OURS, GPT2, *([ALIKE, OWN] if arguments.nanogpt else [])]
    if arguments.block == "llama":
        names = [OURS, LLAMA]
    print(f"\nPeers {'that keep freed memory as ours does' if keep else 'as they come'}:\n")
    print("| depth | width | V | ours, ms |", *(f"{name} / ours |" for name in names[1:]))
    print("|" + "---|" * (3 + len(names)))
    for depth, width, vocab_size in SHAPES:
        shape = make_shape(depth, width, 2, vocab_size, CONTEXT, gelu=arguments.gelu, block=arguments.block)
        ours, *peers = steps_by_turns(names, arguments, shape, keep)
        ratios = " | ".join(f"{ratio(peer, ours):.2f}" for peer in peers)
        print(
            f"| {depth} | {width} | {vocab_size} | {1000 * statistics.median(ours):.0f} | {ratios} |",
            flush=True,
        )


def loss_table(rounds: int) -> None:
    """The classifier's loss and gradients at V = 50,257, chunked against whole."""
    n, d, v = BATCH * CONTEXT, 128, 50257
    x, w = torch.randn(n, d, requires_grad=True), torch.randn(v, d, requires_grad=True)
    targets = torch.randint(0, v, (n,))
    chunk = CHUNK_ELEMENTS

    def chunked() -> None:
        linear_cross_entropy(x, w, targets, chunk).backward()

    def whole() -> None:
        torch.nn.functional.cross_entropy(torch.nn.functional.linear(x, w), targets).backward()

    ours, peer = alternate(chunked, whole, rounds=rounds)
    print(
        f"\nLoss and gradients at N = {n}, D = {d}, V = {v}: chunked {1000 * statistics.median(ours):.0f} ms, whole"
    )
    print(
        f"{1000 * statistics.median(peer):.0f} ms, ratio {ratio(peer, ours):.2f}; logits held at once: ",
        end="",
    )
    print(f"{chunk // v * v / (n * v):.1%} of the whole matrix (which the plain way holds three times).")


def overhead(steps: int) -> None:
    """Share of a real run's time that is not the step: batches, live records, checkpoints, the final record."""
    import numpy as np

    from shapelaw.corpora.token_store import EncodedBatch, write_token_store
    from shapelaw.specs.runs import Run
    from shapelaw.training.journal import Journal
    from shapelaw.training.loop import train
    from shapelaw.training.trainer import Runtime, Trainer

    shape = make_shape(6, 128, 2, 2000, CONTEXT)
    run = Run("random", shape, Training(steps, BATCH, log_every=10, evaluate_every=10**9), 0)
    spent = {"saving": 0.0, "noting": 0.0}

    def timed(name: str, action: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*arguments: object) -> object:
            start = time.perf_counter()
            try:
                return action(*arguments)
            finally:
                spent[name] += time.perf_counter() - start

        return wrapped

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ids = np.random.default_rng(0).integers(0, 2000, 2_000_000).astype(np.uint16)
        batch = EncodedBatch(ids, len(ids), 1)
        options = {"end_of_text": 0, "token_bytes": np.ones(2000, np.int64), "tokenizer_sha256": ""}
        store = write_token_store(folder / "tokens.json", [batch], **options)
        originals = Trainer.save, Journal.update, Journal.finish
        Trainer.save = timed("saving", Trainer.save)
        Journal.update, Journal.finish = timed("noting", Journal.update), timed("noting", Journal.finish)
        try:
            runtime = Runtime("cpu", checkpoint_seconds=60.0)
            train(run, store, store, folder / "out", folder / "checkpoints", runtime)
        finally:
            Trainer.save, Journal.update, Journal.finish = originals
        summary = json.loads((folder / "out" / "summary.json").read_text())
    training = summary["train_seconds"]
    data = summary["data_wait"] * training
    print(
        f"\nA run at (6, 128, V = 2000) of {steps} steps ({training:.0f} s), a checkpoint a minute: data "
        f"{data / training:.2%}, records "
        f"{spent['noting'] / training:.2%}, checkpoints {spent['saving'] / training:.2%}."
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=500, help="of the run whose waiting is measured")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--nanogpt", type=Path, metavar="FOLDER", help="a clone of nanoGPT")
    parser.add_argument("--block", choices=get_args(Block), default=Shape.block)
    parser.add_argument("--gelu", choices=get_args(Gelu), default=Shape.gelu)
    parser.add_argument("--steps-only", action="store_true", help="leave out the loss and the whole run")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    if arguments.nanogpt:
        nanogpt_model(arguments.nanogpt, make_shape(1, 2, 1, 2, 2))  # is it one?
    print(f"{machine()}, {arguments.threads} threads, torch {torch.__version__}")
    for keep in (False, True):
        steps_table(arguments, keep)
    if not arguments.steps_only:
        loss_table(arguments.rounds)
        overhead(arguments.steps)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
