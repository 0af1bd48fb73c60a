"""One training step of ours against transformers' GPT2LMHeadModel, eager, float32, on the CPU.

    python benchmarks/training_step.py [--rounds 9] [--threads 2]

A step is: gradients to zero, forward, backward, AdamW. Both models have the same shape, the same random batch of
32 x 128 tokens and their own optimizer as a user would make it (ours fused; the peer's torch.optim.AdamW as it
comes). Ours goes through the batch in parts, as training does on a CPU. For what the model alone gives, the peer is
also measured with the fused optimizer and the same parts. The memory allocator is the C library's as it comes;
training itself also keeps what is freed (`shapelaw.training.hardware.keep_freed_memory`), which would speed up both.
Also measured: how much of a real step is waiting for data and writing the record, and the loss at V = 50,257 with and
without chunks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import torch
from machine import alternate, machine, ratio
from peers import gpt2_model, gpt2_step

from shapelaw.models.cross_entropy import CHUNK_ELEMENTS, linear_cross_entropy
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.runs import Training
from shapelaw.shapes import Shape, make_shape
from shapelaw.training.hardware import micro_batch_size
from shapelaw.training.trainer import make_optimizer

SHAPES = [(6, 128, 2000), (12, 88, 257), (12, 264, 2000)]
BATCH, CONTEXT = 32, 128


def our_step(shape: Shape, ids: torch.Tensor) -> Callable[[], object]:
    """Our model's step on `ids` [B, T + 1]."""
    model = Decoder(shape)
    initialise(model, 0)
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


def peer_step(shape: Shape, parts: Sequence[torch.Tensor], fused: bool) -> Callable[[], object]:
    """The peer's step: GPT-2 shifts the labels itself, so it gets the first T tokens and predicts T - 1."""
    return gpt2_step(gpt2_model(shape), parts, False, nullcontext, fused)


def steps_table(rounds: int) -> None:
    """Milliseconds a step and ratios at each shape."""
    print(
        "| depth | width | V | ours, ms | GPT2, ms | ratio | GPT2 with our optimizer and parts, ms | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for depth, width, vocab_size in SHAPES:
        shape = make_shape(depth, width, 2, vocab_size, CONTEXT)
        ids = torch.randint(0, vocab_size, (BATCH, CONTEXT + 1))
        alike = peer_step(shape, parts_of(shape, ids), True)
        ours, peer, fused = alternate(
            our_step(shape, ids), peer_step(shape, [ids], False), alike, rounds=rounds
        )
        ms = [1000 * statistics.median(times) for times in (ours, peer, fused)]
        print(
            f"| {depth} | {width} | {vocab_size} | {ms[0]:.0f} | {ms[1]:.0f} | {ratio(peer, ours):.2f} "
            f"| {ms[2]:.0f} | {ratio(fused, ours):.2f} |"
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
    from shapelaw.runs import Run
    from shapelaw.training.journal import Journal
    from shapelaw.training.loop import train
    from shapelaw.training.trainer import Execution, Trainer

    shape = make_shape(6, 128, 2, 2000, CONTEXT)
    run = Run("benchmark", "random", shape, Training(steps, BATCH, log_every=10, evaluate_every=10**9), 0)
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
            execution = Execution("cpu", checkpoint_seconds=60.0)
            train(run, store, store, folder / "out", folder / "checkpoints", execution)
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
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    print(f"{machine()}, {arguments.threads} threads, torch {torch.__version__}\n")
    steps_table(arguments.rounds)
    loss_table(arguments.rounds)
    overhead(arguments.steps)


if __name__ == "__main__":
    main()
