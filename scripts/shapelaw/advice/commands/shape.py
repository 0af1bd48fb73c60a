"""What each shape of one size costs, the best depth with how sure that is, and what people ship.

  shapelaw shape 1.3B --vocab 32k --tokens 30B
  shapelaw shape 1.3B --vocab 50257 --tied --depth 24 --width 2048
  shapelaw shape 350M --size block --block gpt2
  shapelaw shape 1.3B --size time --machine h200
  shapelaw shape --model FOLDER
  shapelaw shape 1.3B --size latency --serve batch=1,context=4096,bandwidth=3.3TB/s --kv-heads 8
  shapelaw shape 2e7 --vocab 257 --fit DIR --json
  shapelaw shape --flops 1e20 --vocab 32k
  shapelaw shape 1.3B --vocab 32k --format hf > config.json

It rests on fits of public losses (workflow/reference/evidence.json, docs/advice/answer.md) and on the published law of
transitions (Levine et al. 2020). --fit DIR adds your own: a folder of `shapelaw fit`, of `shapelaw transitions`
or of the study of depth against width. --depth and --width are a shape to price, --model one in a folder with a
config.json of transformers. Numbers are read as people write them: 1.3B, 350M, 32k, 1300000000.
Exit codes: 0 answered, 2 unusable input.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from shapelaw.advice.answer.allocation import allocation_json, allocation_text, public_allocation
from shapelaw.advice.answer.answer import ShapeAnswer, public_answer, whole
from shapelaw.advice.answer.costs import CONTEXT, LEAST_TOKENS, TOKENS_A_PARAMETER, WITHIN, Question
from shapelaw.advice.answer.formats import FORMATS, config_of, shape_for
from shapelaw.advice.answer.numbers import as_json
from shapelaw.advice.answer.sizes import Counting, head_dim_of, option_number, option_whole, shape_of_size
from shapelaw.advice.answer.text import text_of
from shapelaw.advice.evidence.clocks import LATENCY, LAYER_SECONDS, SERVED, serving_of
from shapelaw.advice.evidence.public import MI250X, Network, machine_clock
from shapelaw.advice.models.architectures import Architecture, make_architecture
from shapelaw.advice.models.described import Model, architecture_of, model_text, why_not_judged
from shapelaw.advice.models.pretrained import read_model
from shapelaw.errors import UserError, command_line, end_with
from shapelaw.specs.making import shape_sentences
from shapelaw.specs.shapes import Block, Shape
from shapelaw.specs.sizes import SizeAxis

DEFAULT_VOCAB = 50257
PUBLISHED = "published"
TIME = "time"
NOT_SIZES = (TIME, LATENCY)  # what --size compares shapes at that is no size
OF_SHAPE = ("depth", "width", "heads", "attention_dim")  # options that name a shape to price


def main() -> None:
    """Parse the command line, answer and print."""
    arguments = _parser().parse_args()
    model = arguments.model and read_model(arguments.model)
    said: dict[str, Any] = {} if model is None else {"model": asdict(model)}
    if model is not None and arguments.format is not None:
        raise UserError("--format makes a config of a shape, and --model has one; leave out one of them.")
    _read_numbers(arguments)
    head = "" if model is None else model_text(model)
    flops, counting = _flops(arguments), _counting(arguments, model)
    if flops is None:
        size = _size(arguments, model, counting)
    else:
        budget = public_allocation(counting, flops, arguments.within)
        size, arguments.tokens = budget.size, budget.tokens
        said, head = {"budget": allocation_json(budget)}, allocation_text(budget)
    given = _given(arguments, model, size, counting)
    if model is not None and (reason := why_not_judged(model)):
        said |= {"size": size, "given": None, "not_judged": reason}
        print(json.dumps(said, indent=2) if arguments.json else f"{head}\n{reason}")
        return
    question = _question(arguments, size, model, counting)
    network = None if given is None else _network(given, model, counting)
    own = None
    if arguments.fit != PUBLISHED:
        from shapelaw.advice.answer.laws import read_own  # pandas, which no other answer needs

        own = read_own(arguments.fit)
    found = public_answer(question, own, network)
    notes = bottlenecks(found, given)
    if arguments.format is not None:
        print(_config(arguments, found, given))
    elif arguments.json:
        print(json.dumps(as_json(found, notes) | said, indent=2))
    else:
        print("\n\n".join([*filter(None, [head]), text_of(found, notes)]))


def _config(arguments: argparse.Namespace, found: ShapeAnswer, given: Architecture | None) -> str:
    """The config of the shape that is asked for, else of the advised one.

    Raises:
        UserError: there is none, or the library can't have it.
    """
    question, library = found.question, arguments.format
    if given is not None and arguments.width is not None:
        shape = _shape_of(given, question.counting)
    elif given is None and found.advised is None:
        raise UserError(
            "No best depth is told at this size, so there is no shape to format; give its --depth."
        )
    else:
        depth = arguments.depth or whole(found.best.depth)
        shape = shape_for(library, question.size, depth, question.counting)
    return config_of(shape, library, arguments.context or question.context)


def _flops(arguments: argparse.Namespace) -> float | None:
    """The budget in FLOPs, if one is asked.

    Raises:
        UserError: a number is none, the budget is given in part or twice, or beside what follows from it.
    """
    parts = {"hours": arguments.hours, "gpus": arguments.gpus, "flops-per-gpu": arguments.flops_per_gpu}
    if arguments.flops is None and not any(parts.values()):
        return None
    beside = {"SIZE": arguments.size, "--tokens": arguments.tokens, "--model": arguments.model}
    beside |= {"--depth": arguments.depth, "--width": arguments.width}
    if twice := [name for name, value in beside.items() if value is not None]:
        raise UserError(
            f"{' and '.join(twice)} can't stand beside a budget, from which size and tokens follow; leave out one."
        )
    if arguments.fit != PUBLISHED:
        raise UserError(
            "--fit can't answer a budget: its runs don't tell size from tokens; leave it out, or give SIZE."
        )
    if arguments.flops is not None:
        if any(parts.values()):
            raise UserError("--flops is the whole budget; leave out --hours, --gpus and --flops-per-gpu.")
        return option_number("--flops", arguments.flops, 1e15)
    if missing := [f"--{name}" for name in ("hours", "flops-per-gpu") if not parts[name]]:
        raise UserError(
            f"A budget by time needs {' and '.join(missing)} too: --hours 24 --gpus 8 --flops-per-gpu 4e14."
        )
    hours, gpus, each = (option_number(f"--{name}", text or "1", 1e-6) for name, text in parts.items())
    return 3600.0 * hours * gpus * each


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__, "SIZE [OPTIONS]")
    add = parser.add_argument
    one = parser.add_mutually_exclusive_group()
    one.add_argument("size", nargs="?", metavar="SIZE", help="parameters, such as 1.3B, 350M or 6e7")
    add(
        "--size",
        dest="means",
        choices=[*(axis.value for axis in SizeAxis), *NOT_SIZES],
        default=SizeAxis.TOTAL.value,
        help="what SIZE counts, and what shapes are compared at: all parameters (total, default), those of the blocks, "
        "those that are multiplied for every token (flops); or time or latency: shapes as slow to train, or to decode "
        "(needs --serve), as the best one of SIZE parameters",
    )
    add("--vocab", help=f"size of the vocabulary (default: {DEFAULT_VOCAB:,}, GPT-2's, or that of --model)")
    add("--tied", action="store_true", help="the classifier is the embedding's matrix")
    add(
        "--block",
        choices=["llama", "gpt2"],
        help="how parameters are counted, and which source comes first (default: llama, or that of --model)",
    )
    numbers = {
        "--flops": "a budget instead of SIZE: 6 for each token and parameter of blocks and classifier, such as 1e20",
        "--hours": "a budget by time, with --flops-per-gpu: hours of all GPUs",
        "--gpus": "their number (default: 1)",
        "--flops-per-gpu": "FLOP/s that each of them reaches in training, such as 4e14",
        "--tokens": f"to train on, such as 30B (default: {TOKENS_A_PARAMETER} a parameter, and at least 1B)",
        "--rank": "rank of a factored token embedding; left out: full",
        "--context": "tokens per window: learned positions of GPT-2's block, and time (default: of --model, else none "
        f"and {CONTEXT:,})",
    }
    for option, text in numbers.items():
        add(option, help=text)
    add(
        "--within",
        type=float,
        default=WITHIN,
        metavar="NATS",
        help=f"treat excess losses up to this as zero, in nats per token (default: {WITHIN})",
    )
    add("--depth", type=int, help="layers of a shape to price")
    add("--width", type=int, help="width of a shape to price; needs --depth (default: what SIZE leaves)")
    add("--heads", type=int, help="heads of the shape to price")
    add("--attention-dim", type=int, help="dimension of one of its heads (default: width / heads)")
    add(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="a shape to price: a folder with a config.json of transformers; SIZE is its own unless given",
    )
    add(
        "--kv-heads",
        help="heads of keys and values of Llama's block (default: as many as heads, or those of --model)",
    )
    add(
        *("--machine", "--speed"),
        metavar="NAME|FILE",
        help="whose training times: mi250x (default: Gemstones'), h200, or yours, a speed.csv of `shapelaw speed`",
    )
    add(
        "--serve",
        metavar=SERVED,
        help="tell bytes and milliseconds of decoding: sequences at once, tokens in each cache, what the memory reads "
        f"(also layer={1e6 * LAYER_SECONDS:g}us, the launches of a layer, and bytes=2, of a weight, key and value)",
    )
    add(
        "--format",
        choices=list(FORMATS),
        help="print the config of the shape for a library, and nothing else",
    )
    add(
        "--fit",
        default=PUBLISHED,
        metavar="DIR",
        help="a folder of `shapelaw fit` or `shapelaw transitions`, as another source",
    )
    add("--json", action="store_true", help="print JSON")
    return parser


def _read_numbers(arguments: argparse.Namespace) -> None:
    """Put a number in place of each option's text as people write it.

    Raises:
        UserError: one of them is none, or `--within` is no part of a nat.
    """
    for name, least in {"vocab": 2, "rank": 1, "context": 0, "kv_heads": 1}.items():
        if (text := getattr(arguments, name)) is not None:
            option = f"--{name.replace('_', '-')}"
            value = 0 if name == "context" and text == "0" else option_whole(option, text, least)
            setattr(arguments, name, value)
    if arguments.tokens is not None:
        arguments.tokens = option_number("--tokens", arguments.tokens, 1)
    if not 0 < arguments.within < 1:
        raise UserError(f"--within is {arguments.within}; give nats between 0 and 1, such as {WITHIN}.")


def _size(arguments: argparse.Namespace, model: Model | None, counting: Counting) -> float:
    """SIZE, or the model's.

    Raises:
        UserError: it is none, or missing.
    """
    if arguments.size is not None:
        return option_number("SIZE", arguments.size, 1)
    if model is None:
        raise UserError(
            "Give one SIZE, such as `shapelaw shape 1.3B`, or the --model that has it, or a budget: --flops."
        )
    if why_not_judged(model):
        return math.nan
    return _network(architecture_of(model), model, counting).size()


def _first(*values: Any) -> Any:
    """The first value that is given."""
    return next((value for value in values if value is not None), None)


def _counting(arguments: argparse.Namespace, model: Model | None) -> Counting:
    """How the options count a size, and where they don't say, the model."""
    vocab = _first(arguments.vocab, model and model.vocab_size, DEFAULT_VOCAB)
    own = model and model.vocab_size
    if model is not None and own is not None and (vocab != own or (arguments.tied and not model.tied)):
        raise UserError(
            f"A model is priced with its own embeddings, and {model.source} has {own:,} words, "
            f"{'tied' if model.tied else 'untied'}; leave out --vocab and --tied."
        )
    rank = _first(arguments.rank, model and model.embedding_rank)
    if rank is not None and arguments.tied:
        raise UserError(
            "--rank and --tied exclude each other: a factored embedding is not the classifier's matrix."
        )
    block: Block = arguments.block or ("gpt2" if model is not None and model.context else "llama")
    kv_heads = arguments.kv_heads
    if block != "llama" and kv_heads is not None:
        raise UserError("--kv-heads are of Llama's block; leave them out, or take --block llama.")
    if model is not None and block == "llama" and model.kv_heads != model.heads:
        kv_heads = kv_heads or model.kv_heads
    return Counting(
        SizeAxis.TOTAL if arguments.means in NOT_SIZES else SizeAxis(arguments.means),
        vocab,
        arguments.tied or (model is not None and model.tied),
        block,
        _first(arguments.context, model and model.context, 0) if block == "gpt2" else 0,
        rank,
        kv_heads,
    )


def _question(
    arguments: argparse.Namespace, size: float, model: Model | None, counting: Counting
) -> Question:
    """What the options ask, and where they don't say, the model."""
    tokens = arguments.tokens or max(TOKENS_A_PARAMETER * size, LEAST_TOKENS)
    window = _first(arguments.context, model and model.context, 0) or CONTEXT
    clock = machine_clock(arguments.machine or MI250X, counting.vocab_size, window)
    serving = None if arguments.serve is None else serving_of(arguments.serve, counting.kv_heads)
    if arguments.means == LATENCY and serving is None:
        raise UserError(f"--size latency needs --serve, such as --serve {SERVED}.")
    times = clock if serving is None or arguments.means != LATENCY else serving
    within, timed = arguments.within, arguments.means in NOT_SIZES
    return Question(size, counting, tokens, times, window, timed, within, serving=serving)


def _network(one: Architecture, model: Model | None, counting: Counting) -> Network:
    """The network to price, whose embeddings are the question's.

    Raises:
        UserError: its numbers make no shape.
    """
    assert one.depth is not None
    if model is not None and model.block_params is not None and model.params is not None:
        kv_width = (model.kv_heads or 0) * (model.key_dim or 0) or None
        numbers = model.block_params, model.params
    else:
        shape = _shape_of(one, counting)
        kv_width = shape.kv_width
        numbers = shape.block_params, replace(counting, axis=SizeAxis.TOTAL).size(shape)
    return Network("Your shape", one.depth, one.width, *numbers, counting, kv_width=kv_width)


def _shape_of(one: Architecture, counting: Counting) -> Shape:
    """The shape of an architecture, whose embeddings are the question's.

    Raises:
        UserError: its numbers make no shape.
    """
    assert one.depth is not None
    heads = one.heads or one.width // head_dim_of(one.width)
    shape = counting.shape(one.depth, one.width, one.attention_dim or one.width // heads, one.ff_width, heads)
    if problems := shape_sentences(shape, divided=one.attention_dim is None, redundant_rank=True):
        raise UserError(f"Your shape: {'; '.join(problems)}.")
    return shape


def _given(
    arguments: argparse.Namespace, model: Model | None, size: float, counting: Counting
) -> Architecture | None:
    """The shape to price, of --model or of numbers; of a depth alone with the width that the table has at this size."""
    numbers = {name: getattr(arguments, name) for name in OF_SHAPE}
    if model is not None:
        if any(value is not None for value in numbers.values()):
            raise UserError("--model is a shape to price, and so are --depth and --width; give one of them.")
        if why_not_judged(model):
            return None
        return architecture_of(model)
    if arguments.depth is None and arguments.width is not None:
        raise UserError("--width needs --depth: together they name the shape to price.")
    if arguments.depth is None:
        if arguments.heads is not None or arguments.attention_dim is not None:
            raise UserError("--heads and --attention-dim belong to a shape to price; give its --depth too.")
        return None
    if arguments.width is None:
        if arguments.depth < 1:
            raise UserError(f"--depth is {arguments.depth}; give a whole number of at least 1.")
        numbers["width"] = shape_of_size(size, arguments.depth, counting).shape.width
    return _architecture("Your shape", counting, numbers)


def _architecture(name: str, counting: Counting, numbers: dict[str, Any]) -> Architecture:
    """The architecture of a shape whose embeddings are the question's."""
    return make_architecture(name, vocab_size=counting.vocab_size, embedding_rank=counting.rank, **numbers)


def bottlenecks(found: ShapeAnswer, given: Architecture | None) -> list[str]:
    """A sentence for each bottleneck of the advised and of the given shape.

    What a bottleneck costs is looked up only where one binds; that takes a second.
    """
    asked = [] if given is None else [given]
    if found.advised is not None:
        shape, counting = found.advised.shape, found.question.counting
        numbers = {name: getattr(shape, name) for name in OF_SHAPE}
        asked.insert(0, _architecture("The shape below", counting, numbers))
    binding = [one for one in asked if one.bindings]
    said = []
    if binding:
        # which imports pandas
        from shapelaw.advice.models.bottlenecks import findings_of, known_redundancies, sentences

        measured = known_redundancies()
        said = [sentences(finding) for one in binding for finding in findings_of(one, measured)]
    free = [one.name for one in asked if one not in binding]
    if free:
        said.append(
            f"{' and '.join(free)}: no bottleneck of the vocabulary, the embedding's rank or the heads binds."
        )
    return said


if __name__ == "__main__":
    end_with(main)
