"""Training of language models: ours against transformers' GPT2LMHeadModel and nanoGPT, on a GPU or a CPU.

    PYTHONPATH=scripts python benchmarks/language_training.py --out DIR [--peer nanoGPT] [--seconds 580]

One process; all contestants of a shape are alive together and take turns, medians of the rounds. A step is what a user
of each would run on 512 x 128 tokens: on a GPU under bfloat16 autocast with float32 weights and a fused AdamW, in as
many micro-batches as its memory wants. Ours are the steps of `shapelaw.training`, with the reading of windows, the
schedule and the reading of losses; a peer finds its batch on the device. What can't be imported is left out.

Written to --out after every shape: language_training.json, .md, and .csv, which scripts/fit_cost.py takes. With results
of an earlier call there, only what is missing is measured: stop it at any time, or give it --seconds, and call it
again. The most informative come first. A contestant that breaks the device (an illegal memory access) ends the call
with exit code 3; the next one leaves it out.

- MFU: FLOPs of the shape's matrix products over time and over this machine's own large product (8192 x 8192, bfloat16).
- compile: the first two steps, less two of the measured ones.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import alternate, machine
from peers import Step, gpt2_model, nanogpt_model, nanogpt_step, transformers_step

from shapelaw.corpora.token_store import EncodedBatch, TokenStore, open_token_store, write_token_store
from shapelaw.errors import UserError, command_line, exit_code
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run, Training
from shapelaw.specs.shapes import Shape
from shapelaw.storage.files import replacing
from shapelaw.training import hardware
from shapelaw.training.trainer import Runtime, Trainer

SHAPES = [(6, 376), (24, 704), (12, 264), (48, 1000), (6, 128), (24, 184), (48, 240)]  # by what they tell
VOCAB_SIZES = [2000, 50257, 257]
CONTEXT = 128
OURS = {"ours": None, "ours, model": "model", "ours, blocks": "blocks", "ours, graphs": "graphs"}
WAYS = ["ours", "ours, model", "ours, blocks", "GPT2", "GPT2, compiled", "nanoGPT", "nanoGPT, compiled"]
EXTRA = ["ours, graphs", "ours, blocks, products", "ours, blocks, fused"]  # only when named
WARM_UP = 2  # steps, of which the first one compiles
LOST = "CUDA error"  # in the message of an error after which the process can use its device no more


class DeviceLost(Exception):
    """A contestant's error that ends all of the shape in this process; `failed` has its sentence."""

    def __init__(self, failed: dict[str, str]) -> None:
        super().__init__(*failed.values())
        self.failed = failed


@dataclass(frozen=True)
class Setting:
    """What is the same for every contestant of a shape."""

    shape: Shape
    store: TokenStore
    batch: int
    micro_batch: int
    device: torch.device
    precision: str

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def autocast(self) -> Any:
        return torch.autocast("cuda", torch.bfloat16) if self.precision == "bfloat16" else nullcontext()


@dataclass
class Contestant:
    """Something that trains: a step, and what it took to get going."""

    step: Step
    micro_batch: int
    first_seconds: float  # of the warm-up


def our_step(setting: Setting, way: str, micro_batch: int, folder: Path) -> Step:
    """A step of ours; `way` may end in how it attends."""
    name, _, last = way.rpartition(", ")
    attention = last if last in ("products", "fused") else None
    part = OURS[name if attention else way]
    training = Training(10**6, setting.batch, precision=setting.precision, log_every=10**9, test_sequences=1)
    run = Run("tokens", setting.shape, training, 0)
    runtime = Runtime(
        micro_batch=micro_batch,
        compile=part is not None,
        compiled_part=part or "model",  # type: ignore[arg-type]
    )
    trainer = Trainer(
        run, setting.store, setting.store, folder / "none", runtime, hardware.Ranks(0, 1, setting.device)
    )
    for block in trainer.model.blocks:
        block.attention.way = attention or "auto"
    return trainer.step


def make_contestant(setting: Setting, way: str, peer: Path | None, folder: Path) -> Contestant:
    """Make it and warm it up, with half of the micro-batch where the memory does not hold it."""
    micro_batch = setting.micro_batch
    while True:
        gc.collect()
        start = time.perf_counter()
        try:
            if way.startswith("ours"):
                step = our_step(setting, way, micro_batch, folder)
            else:
                step = peer_step(setting, way, micro_batch, peer)
            for _ in range(WARM_UP):
                step()
            setting.synchronize()
        except torch.OutOfMemoryError:
            step = None  # type: ignore[assignment]
            if micro_batch == 1:
                raise
            micro_batch //= 2
            continue
        return Contestant(step, micro_batch, time.perf_counter() - start)


def peer_step(setting: Setting, way: str, micro_batch: int, peer: Path | None) -> Step:
    """A step of a peer on a batch that lies on the device."""
    ids = torch.from_numpy(
        np.stack([setting.store.tokens[i : i + CONTEXT + 1] for i in range(setting.batch)]).astype(np.int64)
    ).to(setting.device)
    parts = list(ids.split(micro_batch))
    compiled = way.endswith(", compiled")
    if way.startswith("GPT2"):
        return transformers_step(
            gpt2_model(setting.shape).to(setting.device), parts, compiled, setting.autocast
        )
    assert peer is not None
    return nanogpt_step(
        nanogpt_model(peer, setting.shape).to(setting.device), parts, compiled, setting.autocast
    )


def measure(
    setting: Setting, ways: Iterable[str], peer: Path | None, repeats: int, least_seconds: float, peak: float
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Every contestant's numbers at one shape, by way; and why the others can't run (a compiler's error, mostly).

    Raises:
        DeviceLost: one of them can't run, and the others can't either after it in this process.
    """
    hardware.start_afresh(setting.device)
    found: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        contestants: dict[str, Contestant] = {}
        for way in ways:
            try:
                contestants[way] = make_contestant(setting, way, peer, Path(name))
            except RuntimeError as error:
                failed[way] = str(error).strip().splitlines()[0]
                print(f"{way} can't run: {failed[way]}", flush=True)
                if LOST in failed[way]:
                    raise DeviceLost(failed) from error
        actions: list[Callable[[], object]] = []
        counts: dict[str, int] = {}
        for way, one in contestants.items():
            start = time.perf_counter()
            one.step()
            setting.synchronize()
            counts[way] = max(1, round(least_seconds / (time.perf_counter() - start)))
            actions.append(_several(one.step, counts[way], setting.synchronize))
        rounds = alternate(*actions, rounds=repeats)
        for (way, one), seconds in zip(contestants.items(), rounds, strict=True):
            each = [s / counts[way] for s in seconds]
            median = statistics.median(each)
            found[way] = {
                "seconds_per_step": median,
                "rounds": each,
                "tokens_per_second": setting.batch * CONTEXT / median,
                "mfu": setting.shape.step_flops(setting.batch) / median / peak,
                "micro_batch": one.micro_batch,
                "compile_seconds": max(0.0, one.first_seconds - WARM_UP * median),
            }
    return found, failed


def _several(step: Step, count: int, synchronize: Callable[[], None]) -> Step:
    def steps() -> None:
        for _ in range(count):
            step()
        synchronize()

    return steps


def store_of(vocab_size: int, given: Path | None, folder: Path) -> tuple[TokenStore, str]:
    """Tokens of that vocabulary: those given, scale gpu's corpus or the default one, or random ones; and a sentence."""
    stores = [Path(f"results/corpora/{corpus}/V{vocab_size}/train.json") for corpus in ("prose", "wiki")]
    for path in [given] if given else stores:
        if path.is_file() and (store := open_token_store(path)).vocab_size == vocab_size:
            return store, f"V = {vocab_size}: the tokens of {path}."
    ids = np.random.default_rng(0).integers(0, vocab_size, 2_000_000)
    store = write_token_store(
        folder / f"V{vocab_size}.json",
        [EncodedBatch(ids, len(ids), 1)],
        end_of_text=0,
        token_bytes=np.ones(vocab_size, np.int64),
        tokenizer_sha256="",
    )
    return store, f"V = {vocab_size}: random tokens, since no store of that vocabulary is here."


def available(ways: Iterable[str], peer: Path | None, device: torch.device) -> tuple[list[str], list[str]]:
    """The ways that can run here, and a sentence for each library that can't."""
    missing = []
    if importlib.util.find_spec("transformers") is None:
        missing.append(("GPT2", "transformers is not installed; GPT2 is left out."))
    if peer is None:
        missing.append(("nanoGPT", "no --peer FOLDER with nanoGPT's model.py; nanoGPT is left out."))
    left = [way for way in ways if not any(way.startswith(name) for name, _ in missing)]
    return left, [text for _, text in missing]


def table(results: dict[str, Any]) -> str:
    """All that was measured, in Markdown."""
    lines = [results["machine"], "", *results["notes"], ""]
    lines += [
        "| depth | width | V | batch | what | ms a step | tokens/s | MFU | micro-batch | compile, s "
        "| its time over our best |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        ours = best_of_ours(case)
        for way, one in case["ways"].items():
            against = "" if ours is None else f"{one['seconds_per_step'] / ours['seconds_per_step']:.2f}"
            lines.append(
                f"| {case['depth']} | {case['width']} | {case['vocab_size']} | {case['batch']} | {way} "
                f"| {1000 * one['seconds_per_step']:.3g} | {one['tokens_per_second']:,.0f} | {one['mfu']:.1%} "
                f"| {one['micro_batch']} | {one['compile_seconds']:.1f} | {against} |"
            )
    for case in results["cases"]:
        for way, why in case.get("failed", {}).items():
            lines.append(
                f"\n{way} can't run at ({case['depth']}, {case['width']}), V = {case['vocab_size']}: {why}"
            )
    return "\n".join(lines) + "\n"


def best_of_ours(case: dict[str, Any]) -> dict[str, Any] | None:
    """The fastest of ours at a shape."""
    ours = [one for way, one in case["ways"].items() if way.startswith("ours")]
    return min(ours, key=lambda one: float(one["seconds_per_step"]), default=None)


def as_runs(results: dict[str, Any]) -> str:
    """The fastest of ours as runs of one step, for scripts/fit_cost.py; compiling is what a run takes beside it."""
    lines = ["depth,width,heads,vocab_size,context_length,batch_size,steps,tokens_per_second,wall_seconds"]
    for case in results["cases"]:
        if (ours := best_of_ours(case)) is not None:
            shape = f"{case['depth']},{case['width']},2,{case['vocab_size']},{CONTEXT},{case['batch']},1"
            wall = ours["seconds_per_step"] + ours["compile_seconds"]
            lines.append(f"{shape},{ours['tokens_per_second']},{wall}")
    return "\n".join(lines) + "\n"


def write(results: dict[str, Any], out: Path) -> None:
    """All files, each whole or not at all."""
    texts = {"json": json.dumps(results, indent=1) + "\n", "md": table(results), "csv": as_runs(results)}
    for name, text in texts.items():
        with replacing(out / f"language_training.{name}") as temporary:
            temporary.write_text(text)


def main() -> int:
    """Measure what is missing, the most informative first, until the time is up."""
    started = time.monotonic()
    arguments = _parser().parse_args()
    device = hardware.choose_device(arguments.device, "float32")
    on_cpu = device.type == "cpu"
    precision = "float32" if on_cpu else "bfloat16"
    batch = arguments.batch or (8 if on_cpu else 512)
    shapes = arguments.shapes or ([(6, 128), (24, 184)] if on_cpu else SHAPES)
    vocab_sizes = arguments.vocab_sizes or ([257, 2000] if on_cpu else VOCAB_SIZES)
    default = [way for way in WAYS if not (on_cpu and ("compiled" in way or "," in way))]
    ways, notes = available(arguments.ways or default, arguments.peer, device)
    torch.manual_seed(0)
    path = arguments.out / "language_training.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"cases": []}
    peak = hardware.peak_flops(device, precision)
    here = f"{machine()}, {hardware.device_name(device)}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    if results.setdefault("device", hardware.device_name(device)) != hardware.device_name(device):
        raise UserError(
            f"{path} is from another device ({results['device']}), this is {hardware.device_name(device)}; give "
            "another --out."
        )
    results["machine"] = f"{here}; a large {precision} product: {peak:.3g} FLOP/s."
    results.setdefault("notes", [])
    done = {(c["depth"], c["width"], c["vocab_size"], c["batch"]): c for c in results["cases"]}
    longest = 0.0
    with tempfile.TemporaryDirectory() as name:
        for vocab_size, (depth, width) in ((v, s) for v in vocab_sizes for s in shapes):
            case = done.setdefault(
                (depth, width, vocab_size, batch),
                {"depth": depth, "width": width, "vocab_size": vocab_size, "batch": batch, "ways": {}},
            )
            missing = [way for way in ways if way not in case["ways"] and way not in case.get("failed", {})]
            if not missing:
                continue
            if time.monotonic() - started + longest > arguments.seconds:
                print("The time is up; call it again for the rest.")
                break
            begun = time.monotonic()
            shape = make_shape(depth, width, 2, vocab_size, CONTEXT)
            store, note = store_of(vocab_size, arguments.store, Path(name))
            micro_batch = arguments.micro_batch or hardware.micro_batch_size(shape, batch, device, precision)
            setting = Setting(shape, store, batch, micro_batch, device, precision)
            # a way that is measured later is measured beside ours again, which it is compared with
            again = [way for way in case["ways"] if way.startswith("ours")][:1]
            try:
                found, failed = measure(
                    setting,
                    [*again, *missing],
                    arguments.peer,
                    arguments.repeats,
                    arguments.least_seconds,
                    peak,
                )
            except DeviceLost as error:
                case["failed"] = case.get("failed", {}) | error.failed
                results["cases"] = list(done.values())
                write(results, arguments.out)
                print("The device is lost to this process; call it again for the rest, without what failed.")
                return 3
            case["ways"] |= found
            case["failed"] = case.get("failed", {}) | failed
            results["cases"] = list(done.values())
            results["notes"] = list(dict.fromkeys([*results["notes"], note, *notes]))
            write(results, arguments.out)
            longest = max(longest, time.monotonic() - begun)
            print(f"({depth}, {width}), V = {vocab_size}: {time.monotonic() - begun:.0f} s", flush=True)
    results["cases"] = [case for case in done.values() if case["ways"]]
    print(table(results))
    return 0


def shape_of(text: str) -> tuple[int, int]:
    """Depth and width of an option such as 6,128."""
    try:
        depth, width = map(int, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no depth and width such as 6,128") from None
    return depth, width


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="for the JSON and the table")
    add("--shapes", type=shape_of, nargs="+", metavar="L,d", help="(default: all seven; on a CPU two)")
    add(
        "--vocab-sizes", type=int, nargs="+", metavar="V", help="(default: 2000 50257 257; on a CPU 257 2000)"
    )
    add("--ways", nargs="+", choices=[*WAYS, *EXTRA], metavar="WAY", help=f"of {'; '.join([*WAYS, *EXTRA])}")
    add("--batch", type=int, help="sequences of 128 tokens a step (default: 512; on a CPU 8)")
    add(
        "--micro-batch",
        type=int,
        help="sequences at once (default: by the free memory; halved when it is full)",
    )
    add("--repeats", type=int, default=7, help="rounds (default 7)")
    add("--least-seconds", type=float, default=0.3, help="of a contestant's part of a round (default 0.3)")
    add("--seconds", type=float, default=float("inf"), help="of wall time, about; then call it again")
    add("--store", type=Path, help="header of a token store (default: the default corpus, if it is there)")
    add("--peer", type=Path, metavar="FOLDER", help="a checkout of nanoGPT")
    add("--device", default="auto")
    return parser


if __name__ == "__main__":
    sys.exit(exit_code(main))
