"""Random windows of a token store: the strided view of the memory map beside the usual list of slices.

    python benchmarks/batches.py [--tokens 10000000] [--rounds 50] [--json]

A batch is 512 x 128 of inputs and of targets, as int64. The usual way (nanoGPT's `get_batch`) cuts each row of the
memory map, converts it, and stacks the rows, once for the inputs and once for the targets; ours copies windows of
128 + 1 once, and both are views of it. That the batches are equal is checked before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import alternate, machine, ratio
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from shapelaw.corpora.token_store import (
    EncodedBatch,
    TokenStore,
    gather_windows,
    token_dtype,
    write_token_store,
)
from shapelaw.training.hardware import keep_freed_memory

BATCH, CONTEXT, VOCAB = 512, 128, 2000

Batch = tuple[torch.Tensor, torch.Tensor]


def ours(store: TokenStore, starts: NDArray[np.int64]) -> Batch:
    """Inputs and targets [512, 128] by one gather from the strided view."""
    windows = torch.from_numpy(gather_windows(store, starts, CONTEXT))
    return windows[:, :-1], windows[:, 1:]


def list_of_slices(data: NDArray[Any], starts: NDArray[np.int64]) -> Batch:
    """Inputs and targets [512, 128] row by row."""
    inputs = torch.stack([torch.from_numpy(data[i : i + CONTEXT].astype(np.int64)) for i in starts])
    targets = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + CONTEXT].astype(np.int64)) for i in starts])
    return inputs, targets


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tokens", type=int, default=10_000_000, help="length of the store (default 10 million)"
    )
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    keep_freed_memory()  # as training does; without it each way pays for the pages that the other one gave back
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        ids = generator.integers(0, VOCAB, arguments.tokens).astype(token_dtype(VOCAB))
        store = write_token_store(
            Path(folder) / "tokens.json",
            [EncodedBatch(ids, len(ids), 1)],
            end_of_text=0,
            token_bytes=np.ones(VOCAB, dtype=np.int64),
            tokenizer_sha256="random",
        )
        data = np.memmap(store.path.with_suffix(".bin"), dtype=token_dtype(VOCAB), mode="r")
        starts = generator.integers(0, arguments.tokens - CONTEXT, BATCH)
        for mine, theirs in zip(ours(store, starts), list_of_slices(data, starts), strict=True):
            if not torch.equal(mine, theirs):
                raise SystemExit("The batches differ; no time is worth printing.")
        fast, slow = alternate(
            lambda: ours(store, starts), lambda: list_of_slices(data, starts), rounds=arguments.rounds
        )
    result = {
        "ours_ms": 1000 * statistics.median(fast),
        "list_of_slices_ms": 1000 * statistics.median(slow),
        "ratio": ratio(slow, fast),
    }
    if arguments.json:
        print(json.dumps({"machine": machine(), "batch": [BATCH, CONTEXT], **result}, indent=1))
        return
    print(f"{machine()}\n\n| batch | strided view, ms | list of slices, ms | ratio |\n|---|---|---|---|")
    print(
        f"| {BATCH} x {CONTEXT} | {result['ours_ms']:.3f} | {result['list_of_slices_ms']:.2f} | {result['ratio']:.0f} |"
    )


if __name__ == "__main__":
    main()
