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
import importlib.util
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import alternate, machine, markdown, while_time_lasts
from peers import Step, gpt2_model, nanogpt_model, nanogpt_step, transformers_step

from shapelaw.corpora.token_store import EncodedBatch, TokenStore, open_token_store, write_token_store
from shapelaw.errors import UserError, command_line, end_with
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


def our_step(setting: Setting, way: str, folder: Path) -> Step:
    """A step of ours; `way` may end in how it attends."""
    name, _, last = way.rpartition(", ")
    attention = last if last in ("products", "fused") else None
    part = OURS[name if attention else way]
    training = Training(10**6, setting.batch, precision=setting.precision, log_every=10**9, test_sequences=1)
    run = Run("tokens", setting.shape, training, 0)
    runtime = Runtime(
        micro_batch=setting.micro_batch,
        compile=part is not None,
        compiled_part=part or "model",  # type: ignore[arg-type]
    )
    stores, ranks = (setting.store, setting.store), hardware.Ranks(0, 1, setting.device)
    trainer = Trainer(run, stores, folder / "none", runtime, ranks)
    for block in trainer.model.blocks:
        block.attention.by_products = None if attention is None else attention == "products"
    return trainer.step


def peer_step(setting: Setting, way: str, peer: Path | None) -> Step:
    """A step of a peer on a batch that lies on the device."""
    windows = [setting.store.tokens[i : i + CONTEXT + 1] for i in range(setting.batch)]
    ids = torch.from_numpy(np.stack(windows).astype(np.int64)).to(setting.device)
    parts = ids.split(setting.micro_batch)
    compiled = way.endswith(", compiled")
    if way.startswith("GPT2"):
        model = gpt2_model(setting.shape).to(setting.device)
        return transformers_step(model, parts, compiled, setting.autocast)
    assert peer is not None
    model = nanogpt_model(peer, setting.shape).to(setting.device)
    return nanogpt_step(model, parts, compiled, setting.autocast)


def make_contestant(setting: Setting, way: str, peer: Path | None, folder: Path) -> Contestant:
    """Make it and warm it up, with half of the micro-batch where the memory does not hold it."""
    step: Step | None = None
    while True:
        gc.collect()
        start = time.perf_counter()
        try:
            ours = way.startswith("ours")
            step = our_step(setting, way, folder) if ours else peer_step(setting, way, peer)
            for _ in range(WARM_UP):
                step()
            setting.synchronize()
            return Contestant(step, setting.micro_batch, time.perf_counter() - start)
        except torch.OutOfMemoryError:
            if setting.micro_batch == 1:
                raise
            step, setting = None, replace(setting, micro_batch=setting.micro_batch // 2)


def measure(
    setting: Setting, case: dict[str, Any], ways: Iterable[str], arguments: argparse.Namespace, peak: float
) -> bool:
    """Put every contestant's numbers at one shape into its `case`, and why the others can't run (mostly a compiler's).

    Returns:
        Whether this process can go on: not after an error that took its device away.
    """
    hardware.start_afresh(setting.device)
    with tempfile.TemporaryDirectory() as name:
        contestants: dict[str, Contestant] = {}
        for way in ways:
            try:
                contestants[way] = make_contestant(setting, way, arguments.peer, Path(name))
            except RuntimeError as error:
                case["failed"][way] = why = str(error).strip().splitlines()[0]
                print(f"{way} can't run: {why}", flush=True)
                if LOST in why:
                    return False
        rounds = alternate(
            *(one.step for one in contestants.values()),
            rounds=arguments.repeats,
            least_seconds=arguments.least_seconds,
            finish=setting.synchronize,
        )
    for (way, one), seconds in zip(contestants.items(), rounds, strict=True):
        median = statistics.median(seconds)
        case["ways"][way] = {
            "seconds_per_step": median,
            "rounds": seconds,
            "tokens_per_second": setting.batch * CONTEXT / median,
            "mfu": setting.shape.step_flops(setting.batch) / median / peak,
            "micro_batch": one.micro_batch,
            "compile_seconds": max(0.0, one.first_seconds - WARM_UP * median),
        }
    return True


def store_of(vocab_size: int, folder: Path) -> tuple[TokenStore, str]:
    """Tokens of that vocabulary: scale gpu's corpus or the default one, or random ones; and a sentence."""
    for corpus in ("prose", "wiki"):
        path = Path(f"results/corpora/{corpus}/V{vocab_size}/train.json")
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


def available(ways: Iterable[str], peer: Path | None) -> tuple[list[str], list[str]]:
    """The ways that can run here, and a sentence for each library that can't."""
    missing = {}
    if importlib.util.find_spec("transformers") is None:
        missing["GPT2"] = "transformers is not installed; GPT2 is left out."
    if peer is None:
        missing["nanoGPT"] = "no --peer FOLDER with nanoGPT's model.py; nanoGPT is left out."
    return [way for way in ways if not way.startswith(tuple(missing))], list(missing.values())


def table(results: dict[str, Any]) -> str:
    """All that was measured, in Markdown."""
    rows, failed = [], []
    for case in results["cases"]:
        ours = best_of_ours(case)
        for way, one in case["ways"].items():
            against = "" if ours is None else f"{one['seconds_per_step'] / ours['seconds_per_step']:.2f}"
            rows.append(
                {
                    "depth": case["depth"],
                    "width": case["width"],
                    "V": case["vocab_size"],
                    "batch": case["batch"],
                    "what": way,
                    "ms a step": f"{1000 * one['seconds_per_step']:.3g}",
                    "tokens/s": f"{one['tokens_per_second']:,.0f}",
                    "MFU": f"{one['mfu']:.1%}",
                    "micro-batch": one["micro_batch"],
                    "compile, s": f"{one['compile_seconds']:.1f}",
                    "its time over our best": against,
                }
            )
        at = f"({case['depth']}, {case['width']}), V = {case['vocab_size']}"
        failed += [f"\n{way} can't run at {at}: {why}" for way, why in case["failed"].items()]
    return "\n".join([results["machine"], "", *results["notes"], "", markdown(rows), *failed]) + "\n"


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


def case_of(results: dict[str, Any], depth: int, width: int, vocab_size: int, batch: int) -> dict[str, Any]:
    """What there is of a case among the results, or an empty one."""
    setting = {"depth": depth, "width": width, "vocab_size": vocab_size, "batch": batch}
    there = (case for case in results["cases"] if setting.items() <= case.items())
    return next(there, {**setting, "ways": {}, "failed": {}})


def main() -> int:
    """Measure what is missing, the most informative first, until the time is up."""
    arguments = _parser().parse_args()
    device = hardware.choose_device(arguments.device, "float32")
    on_cpu = device.type == "cpu"
    precision = "float32" if on_cpu else "bfloat16"
    batch = arguments.batch or (8 if on_cpu else 512)
    shapes = arguments.shapes or ([(6, 128), (24, 184)] if on_cpu else SHAPES)
    vocab_sizes = arguments.vocab_sizes or ([257, 2000] if on_cpu else VOCAB_SIZES)
    default = [way for way in WAYS if not (on_cpu and ("compiled" in way or "," in way))]
    ways, notes = available(arguments.ways or default, arguments.peer)
    torch.manual_seed(0)
    path, name = arguments.out / "language_training.json", hardware.device_name(device)
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"cases": [], "notes": []}
    peak = hardware.peak_flops(device, precision)
    if results.setdefault("device", name) != name:
        raise UserError(
            f"{path} is from another device ({results['device']}), this is {name}; give another --out."
        )
    here = f"{machine()}, {name}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    results["machine"] = f"{here}; a large {precision} product: {peak:.3g} FLOP/s."

    def missing(case: dict[str, Any]) -> list[str]:
        return [way for way in ways if way not in case["ways"] and way not in case["failed"]]

    cases = [case_of(results, *sizes, v, batch) for v, sizes in itertools.product(vocab_sizes, shapes)]
    for case in while_time_lasts([one for one in cases if missing(one)], arguments.seconds):
        begun = time.monotonic()
        shape = make_shape(case["depth"], case["width"], 2, case["vocab_size"], CONTEXT)
        # a way that is measured later is measured beside ours again, which it is compared with
        again = [way for way in case["ways"] if way.startswith("ours")][:1]
        micro_batch = arguments.micro_batch or hardware.micro_batch_size(shape, batch, device, precision)
        with tempfile.TemporaryDirectory() as folder:
            store, note = store_of(shape.vocab_size, Path(folder))
            setting = Setting(shape, store, batch, micro_batch, device, precision)
            can_go_on = measure(setting, case, [*again, *missing(case)], arguments, peak)
        results["notes"] = list(dict.fromkeys([*results["notes"], note, *notes]))
        if case not in results["cases"]:
            results["cases"].append(case)
        write(results, arguments.out)
        if not can_go_on:
            print("The device is lost to this process; call it again for the rest, without what failed.")
            return 3
        seconds = time.monotonic() - begun
        print(f"({shape.depth}, {shape.width}), V = {shape.vocab_size}: {seconds:.0f} s", flush=True)
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
    add("--peer", type=Path, metavar="FOLDER", help="a checkout of nanoGPT")
    add("--device", default="auto")
    return parser


if __name__ == "__main__":
    end_with(main)
