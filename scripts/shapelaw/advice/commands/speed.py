"""Measure on this machine how long a step of each shape of one size takes, of training or of decoding.

  shapelaw speed 1.3B --depths 12,16,24,32,48 --device cuda
  shapelaw speed 20M --vocab 8192 --tied --depths 4,8,16 --out speed.csv
  shapelaw speed 1.3B --decode --batch 1 --context 4096

The shapes are those of `shapelaw shape`: a width for each depth, heads of 64 to 128, and a feed-forward width that
makes up the size. Each takes two or three steps to warm up and then at most 10 seconds; a GPU compiles the model first,
which takes longer the deeper it is (--compiled-part blocks is quicker). A step is our decoder's forward and backward
pass and AdamW on random tokens, in bfloat16 on a GPU. A shape that doesn't fit in memory is listed and skipped.
`shapelaw shape SIZE --speed speed.csv` sets loss against time by it. With --decode a step decodes a token of each
sequence after --context others, uncompiled; printed is the roofline that fits, as `shapelaw shape --serve` takes it.
Exit codes: 0 written, 2 unusable input or nothing fits.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from shapelaw.advice.answer.sizes import Counting, SizedShape, big, option_whole, shape_of_size
from shapelaw.advice.answer.text import aligned
from shapelaw.advice.evidence.clocks import decoding_weights, roofline_of
from shapelaw.errors import UserError, command_line, end_with, say
from shapelaw.specs.shapes import Block, Shape
from shapelaw.storage.files import check_writable, replacing

DEPTHS = "12,16,24,32,48"
CONTEXT = 1024
MOST_DEPTH = 1000


def main() -> None:
    """Parse the command line, measure the shapes one after the other, and write the table."""
    given = parser().parse_args()
    given.out = given.out or Path("decode.csv" if given.decode else "speed.csv")
    shapes = asked_shapes(given)
    check_writable(given.out)
    rows = measured(shapes, given)
    if not rows:
        fewer = "a smaller --batch or --context" if given.decode else "fewer --tokens-per-step"
        raise UserError(f"No shape of these fits in the memory; take a smaller SIZE or {fewer}.")
    with replacing(given.out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{table_of(rows)}\n\nWritten: {given.out}.")
    counted = f"shapelaw shape {given.size} --vocab {given.vocab} --block {given.block}"
    counted += " --tied" if given.tied else ""
    if given.decode:
        print(f"As a roofline: {counted} --size latency --serve {roofline_of(rows)}")
    else:
        print(f"Loss against time: {counted} --speed {given.out}")


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    found = command_line(__doc__, "SIZE [OPTIONS]")
    add = found.add_argument
    add("size", metavar="SIZE", help="all parameters of each shape, such as 1.3B or 20M")
    add("--depths", default=DEPTHS, metavar="L,L,...", help=f"numbers of layers (default: {DEPTHS})")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: a GPU where there is one)")
    add("--vocab", default="50257", metavar="V", help="size of the vocabulary (default: 50,257, GPT-2's)")
    add("--tied", action="store_true", help="the classifier is the embedding's matrix")
    add("--block", choices=get_args(Block)[:2], default="llama", help="block (default: llama)")
    add(
        "--tokens-per-step",
        metavar="N",
        help="tokens of a step (default: what fits up to 16,384; on a CPU what takes about a second)",
    )
    add("--context", metavar="N", help=f"tokens of a sequence (default: {CONTEXT:,}, or those of a step)")
    add("--precision", choices=("float32", "bfloat16"), help="default: bfloat16 on a GPU, float32 on a CPU")
    add("--compiled-part", choices=("model", "blocks"), help="what a GPU compiles at once (default: model)")
    add("--seconds", type=float, default=10.0, help="the most that is measured of a shape (default: 10)")
    add("--decode", action="store_true", help="decode tokens in place of training")
    add("--batch", metavar="N", help="sequences that are decoded together (default: 1)")
    add("--out", type=Path, metavar="FILE.csv", help="default: speed.csv, or decode.csv")
    return found


def asked_shapes(given: argparse.Namespace) -> list[SizedShape]:
    """The shapes that the options ask for; depths that the size has no room for are said and left out.

    Raises:
        UserError: an option is no such number, or no depth has room.
    """
    size = option_whole("SIZE", given.size, 1000)
    for option, other, wrong in (
        ("--batch", "--decode", given.batch is not None and not given.decode),
        ("--tokens-per-step", "training", given.tokens_per_step is not None and given.decode),
        ("--compiled-part", "training", given.compiled_part is not None and given.decode),
    ):
        if wrong:
            raise UserError(
                f"{option} is of {other}; leave it out, or {'add' if other[0] == '-' else 'leave out'} --decode."
            )
    if not 0 < given.seconds <= 3600:
        raise UserError(f"--seconds is {given.seconds:g}; it must be above 0 and at most 3,600.")
    if given.out.suffix != ".csv":
        raise UserError(f"--out is {given.out}; its name must end in .csv.")
    vocab = option_whole("--vocab", given.vocab, 2)
    depths = [option_whole("--depths", text) for text in given.depths.split(",")]
    if max(depths) > MOST_DEPTH:
        raise UserError(f"--depths has {max(depths)}; {MOST_DEPTH:,} layers are the most.")
    counting = Counting(vocab_size=vocab, tied=given.tied, block=given.block)
    found, reasons = [], []
    for depth in sorted(set(depths)):
        try:
            found.append(shape_of_size(size, depth, counting))
        except UserError as error:
            reasons.append(str(error))
    if not found:
        raise UserError(reasons[0])
    if given.decode and len(found) < 2:
        raise UserError(
            "--decode needs two --depths at least, far apart: a roofline goes through their times."
        )
    for reason in reasons:
        say(f"Left out: {reason}")
    for one in found:
        if not one.fits:
            off = f"{one.off:+.0%} of the size asked for"
            say(f"{one.shape.depth} layers: {big(one.size)} parameters, {off}.")
    return found


def measured(shapes: Sequence[SizedShape], given: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each shape that fits, with progress on the screen.

    Raises:
        UserError: this machine lacks the device, or the tokens don't make whole sequences.
    """
    import torch

    from shapelaw.advice.answer.speed import DoesNotFit, median_and_ends, step_times
    from shapelaw.training.hardware import device_name

    setting = setting_of(shapes, given)
    name = device_name(setting.device)
    where = name if setting.device.type == "cuda" else f"{name}, {torch.get_num_threads()} threads"
    say(
        f"{len(shapes)} shapes of {big(shapes[0].asked)} parameters on {where}, {setting.precision}: "
        + (
            f"decoding {setting.tokens:,} at once, each after {setting.context:,} tokens."
            if setting.decodes
            else f"{setting.tokens:,} tokens per step in sequences of {setting.context:,}."
        )
    )
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if setting.device.type == "cpu" and load > cores:
        say(
            f"Other processes use this machine (load {load:.0f} on {cores} cores): these times hold for now alone."
        )
    rows = []
    for index, one in enumerate(shapes, start=1):
        shape = one.shape
        said = f"[{index}/{len(shapes)}] {shape.depth} layers of width {shape.width:,}"
        try:
            seconds = step_times(shape, setting)
        except DoesNotFit as error:
            say(f"{said}: left out, {error}.")
            continue
        median, low, high = median_and_ends(seconds)
        say(
            f"{said}: {median:.3g} s per step (68% of {len(seconds)}: {low:.3g} to {high:.3g}), "
            f"{setting.tokens / median:,.0f} tokens per second."
        )
        rows.append(
            {
                **one.numbers,
                "total_params": one.size,
                "block_params": shape.block_params,
                **(_decoded(shape, setting) if setting.decodes else {}),
                "tokens_per_step": setting.tokens,
                "context_length": setting.context,
                "steps": len(seconds),
                "seconds_per_step": f"{median:.6g}",
                "seconds_per_token": f"{median / setting.tokens:.6g}",
                "low": f"{low / setting.tokens:.6g}",
                "high": f"{high / setting.tokens:.6g}",
                "tokens_per_second": f"{setting.tokens / median:.6g}",
                "device": name,
                "threads": torch.get_num_threads(),
                "precision": setting.precision,
                "block": shape.block,
                "vocab_size": shape.vocab_size,
                "tied": shape.tied,
            }
        )
    return rows


def _decoded(shape: Shape, setting: Any) -> dict[str, Any]:
    """What a step of decoding reads, for a roofline."""
    read = setting.bytes_read(shape, decoding_weights(shape))
    return {"read_bytes": f"{read:.6g}", "number_bytes": setting.dtype.itemsize}


def setting_of(shapes: Sequence[SizedShape], given: argparse.Namespace) -> Any:
    """What the steps of all shapes have in common.

    Raises:
        UserError: this machine lacks the device, or the tokens don't make whole sequences.
    """
    from shapelaw.advice.answer.speed import Precision, Setting, tokens_for
    from shapelaw.training.hardware import choose_device
    from shapelaw.training.trainer import CompiledPart

    device = choose_device(given.device, "float32")
    on_gpu = device.type == "cuda"
    precision: Precision = given.precision or ("bfloat16" if on_gpu else "float32")
    choose_device(given.device, precision)  # bfloat16 needs a GPU
    context = None if given.context is None else option_whole("--context", given.context)
    if given.decode:
        batch = option_whole("--batch", given.batch or "1")
        return Setting(device, precision, batch, context or CONTEXT, given.seconds, None, decodes=True)
    if given.tokens_per_step is not None:
        tokens = option_whole("--tokens-per-step", given.tokens_per_step)
    else:
        costly = max((one.shape for one in shapes), key=lambda shape: shape.step_flops(1))
        tokens = max(context or 1, tokens_for(costly, device, precision, context or CONTEXT))
        tokens -= tokens % (context or 1)
    context = context or min(CONTEXT, tokens)
    if tokens % context:
        raise UserError(
            f"--tokens-per-step is {tokens:,}, which sequences of {context:,} don't divide; take "
            f"{max(context, tokens // context * context):,}, or another --context."
        )
    part: CompiledPart = given.compiled_part or "model"
    return Setting(device, precision, tokens // context, context, given.seconds, part if on_gpu else None)


def table_of(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a small table, with the time of each over the least."""
    least = min(float(row["seconds_per_token"]) for row in rows)
    cells = [("depth", "width", "heads", "parameters", "in blocks", "s per step", "tokens/s", "time")]
    for row in rows:
        seconds, speed = float(row["seconds_per_step"]), float(row["tokens_per_second"])
        times = f"{seconds:.3g}", f"{speed:,.0f}", f"{float(row['seconds_per_token']) / least:.2f}"
        sizes = f"{row['total_params']:,}", f"{row['block_params']:,}"
        cells.append(
            (f"{row['depth']}", f"{row['width']:,}", f"{row['heads']} x {row['head_dim']}", *sizes, *times)
        )
    return aligned(cells)


if __name__ == "__main__":
    end_with(main)
