"""What each shape of one size costs, the best depth with how sure that is, and what people ship.

  shapelaw shape 1.3B --vocab 32k --tokens 30B
  shapelaw shape 1.3B --vocab 50257 --tied --depth 24 --width 2048
  shapelaw shape 350M --size block --block gpt2
  shapelaw shape 1.3B --size time --speed speed.csv
  shapelaw shape 6.7e9 --model FOLDER
  shapelaw shape 2e7 --vocab 257 --fit DIR --json

It rests on fits of public losses (workflow/reference/evidence.json, docs/advice/answer.md) and on the published law of
transitions (Levine et al. 2020). --fit DIR adds your own: a folder of `shapelaw fit`, of `shapelaw transitions`
or of the study of depth against width. --depth and --width are a shape to price, --model one in a folder with a
config.json of transformers. Numbers are read as people write them: 1.3B, 350M, 32k, 1300000000.
Exit codes: 0 answered, 2 unusable input.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from shapelaw.advice.answer.answer import Network, Own, ShapeAnswer, Transitions, transitions_of
from shapelaw.advice.answer.costs import LEAST_TOKENS, TOKENS_A_PARAMETER, WITHIN, Question
from shapelaw.advice.answer.text import as_json, text_of
from shapelaw.advice.evidence.clocks import read_clock
from shapelaw.advice.evidence.public import public_answer, public_evidence
from shapelaw.advice.models.described import Model, architecture_of, model_json, model_text, why_not_judged
from shapelaw.advice.models.pretrained import read_model
from shapelaw.errors import UserError, add_subject, command_line, exit_code
from shapelaw.specs.architectures import Architecture, make_architecture
from shapelaw.specs.shapes import Block, ShapeError, make_shape
from shapelaw.specs.sizes import Counting, SizeAxis, head_dim_of, shape_of_size, size_of
from shapelaw.theory.rank_bounds import bindings

DEFAULT_VOCAB = 50257
PUBLISHED = "published"
TIME = "time"
USUAL_CONTEXT = 2048  # tokens a window, for times


def main() -> None:
    """Parse the command line, answer and print."""
    arguments = _parser().parse_args()
    model = arguments.model and read_model(arguments.model)
    said: dict[str, Any] = {} if model is None else {"model": model_json(model)}
    size = _numbers(arguments)
    given = _given(arguments, model, size)
    if model is not None and (reason := why_not_judged(model)):
        said |= {"size": size, "given": None, "not_judged": reason}
        print(json.dumps(said, indent=2) if arguments.json else f"{model_text(model)}\n{reason}")
        return
    question = _question(arguments, size, model)
    network = None if given is None else _network(given, model, question.counting)
    laws, surfaces = _own(arguments.fit)
    found = public_answer(question, laws, network, surfaces)
    notes = bottlenecks(found, given)
    if arguments.json:
        print(json.dumps(as_json(found, notes) | said, indent=2))
    else:
        print(text_of(found, notes) if model is None else f"{model_text(model)}\n\n{text_of(found, notes)}")


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__, "SIZE [OPTIONS]")
    add = parser.add_argument
    one = parser.add_mutually_exclusive_group()
    add_subject(one, "size", "--params", "SIZE", "parameters, such as 1.3B, 350M or 6e7")
    add(
        "--size",
        dest="means",
        choices=[*(axis.value for axis in SizeAxis), TIME],
        default=SizeAxis.TOTAL.value,
        help="what SIZE counts, and what shapes are compared at: all parameters (total, default), those of the blocks, "
        "those that are multiplied for every token (flops), or time: shapes as slow as the best one of SIZE parameters",
    )
    add("--vocab", help=f"size of the vocabulary (default: {DEFAULT_VOCAB:,}, GPT-2's, or that of --model)")
    add("--tied", action="store_true", help="the classifier is the embedding's matrix")
    add(
        "--block",
        choices=["llama", "gpt2"],
        help="how parameters are counted, and which witness stands first (default: llama, or that of --model)",
    )
    add(
        "--tokens",
        help=f"to train on, such as 30B (default: {TOKENS_A_PARAMETER} a parameter, and at least 1B)",
    )
    add("--rank", help="rank of a factored token embedding; left out: full")
    add(
        "--context",
        help="tokens a window: learned positions of GPT-2's block, and time (default: those of --model, else none and "
        f"{USUAL_CONTEXT:,})",
    )
    add(
        "--within",
        type=float,
        default=WITHIN,
        metavar="NATS",
        help=f"a cost that is none, in nats (default: {WITHIN})",
    )
    add("--depth", type=int, help="layers of a shape to price")
    add("--width", type=int, help="width of a shape to price; needs --depth (default: what SIZE leaves)")
    add("--heads", type=int, help="heads of the shape to price")
    add("--attention-dim", type=int, help="dimension of one of its heads (default: width / heads)")
    add(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="a shape to price: a folder with a config.json of transformers",
    )
    add(
        "--speed",
        type=Path,
        metavar="FILE",
        help="times of your machine, of `shapelaw speed` (default: public ones)",
    )
    add(
        "--fit",
        default=PUBLISHED,
        metavar="DIR",
        help="a folder of `shapelaw fit` or `shapelaw transitions`, as a witness",
    )
    add("--json", action="store_true", help="print JSON")
    return parser


def _number(option: str, text: str, least: float, whole: bool = False) -> float:
    try:
        value = size_of(text)
    except ValueError:
        value = -1.0
    if value < least or (whole and not value.is_integer()):
        kind = "a whole number" if whole else "a number"
        raise UserError(
            f"{option} is {text}; give {kind} of at least {least:,g}, such as 1.3B, 32k or 1,300,000,000 (commas part "
            "groups of three digits; the decimal sign is a point)."
        )
    return value


def _numbers(arguments: argparse.Namespace) -> float:
    """SIZE, once all numbers that options have as people write them are numbers.

    Raises:
        UserError: one of them is none, or SIZE is missing.
    """
    if arguments.size is None:
        raise UserError("Give one SIZE, such as `shapelaw shape 1.3B`.")
    size = _number("SIZE", arguments.size, 1)
    for name, least in {"vocab": 2, "rank": 1, "context": 0}.items():
        if (text := getattr(arguments, name)) is not None:
            value = 0 if name == "context" and text == "0" else int(_number(f"--{name}", text, least, True))
            setattr(arguments, name, value)
    if arguments.tokens is not None:
        arguments.tokens = _number("--tokens", arguments.tokens, 1)
    return size


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
    return Counting(
        SizeAxis.TOTAL if arguments.means == TIME else SizeAxis(arguments.means),
        vocab,
        arguments.tied or (model is not None and model.tied),
        block,
        _first(arguments.context, model and model.context, 0) if block == "gpt2" else 0,
        rank,
    )


def _question(arguments: argparse.Namespace, size: float, model: Model | None) -> Question:
    """What the options ask, and where they don't say, the model."""
    counting = _counting(arguments, model)
    tokens = arguments.tokens or max(TOKENS_A_PARAMETER * size, LEAST_TOKENS)
    if not 0 < arguments.within < 1:
        raise UserError(f"--within is {arguments.within}; give nats between 0 and 1, such as {WITHIN}.")
    window = _first(arguments.context, model and model.context, 0) or USUAL_CONTEXT
    clock = public_evidence().clock
    if arguments.speed is not None:
        clock = read_clock(arguments.speed, counting.vocab_size, window, clock)
    return Question(size, counting, tokens, clock, window, arguments.means == TIME, arguments.within)


def _own(folder: str) -> tuple[list[Transitions], list[Own]]:
    """The law of transitions or the surface of a folder."""
    if folder == PUBLISHED:
        return [], []
    from shapelaw.advice.answer.laws import has_surface, own_law, own_surface

    if has_surface(folder):
        return [], [own_surface(folder)]
    return [transitions_of(own_law(folder), own=True)], []


def _network(one: Architecture, model: Model | None, counting: Counting) -> Network:
    """The network to price, whose embeddings are the question's.

    Raises:
        UserError: its numbers make no shape.
    """
    assert one.depth is not None
    if model is not None and model.block_params is not None and model.params is not None:
        return Network("Your shape", one.depth, one.width, model.block_params, model.params, counting)
    try:
        shape = make_shape(
            one.depth,
            one.width,
            one.heads or one.width // head_dim_of(one.width),
            counting.vocab_size,
            max(1, counting.positions),
            one.attention_dim,
            redundant_rank=True,
            embedding_rank=counting.rank,
            ff_width=one.ff_width,
            block=counting.block,
            tied=counting.tied,
        )
    except ShapeError as error:
        raise UserError(f"Your shape: {error}.") from None
    total = replace(counting, axis=SizeAxis.TOTAL).size(shape)
    return Network("Your shape", one.depth, one.width, shape.block_params, total, counting)


def _given(arguments: argparse.Namespace, model: Model | None, size: float) -> Architecture | None:
    """The shape to price, of --model or of numbers; of a depth alone with the width that the table has at this size."""
    numbers = {name: getattr(arguments, name) for name in ("depth", "width", "heads", "attention_dim")}
    if model is not None:
        if any(value is not None for value in numbers.values()):
            raise UserError("--model is a shape to price, and so are --depth and --width; give one of them.")
        if why_not_judged(model):
            return None
        if model.depth is None or model.width is None:
            raise UserError(f"{model.source} has no depth or no width; give --depth and --width instead.")
        return architecture_of(model)
    if arguments.depth is None and arguments.width is not None:
        raise UserError("--width is of a shape to price; give its --depth too.")
    if arguments.depth is None:
        if arguments.heads is not None or arguments.attention_dim is not None:
            raise UserError("--heads and --attention-dim belong to a shape to price; give its --depth too.")
        return None
    counting = _counting(arguments, None)
    if arguments.width is None:
        if arguments.depth < 1:
            raise UserError(f"--depth is {arguments.depth}; give a whole number of at least 1.")
        numbers["width"] = shape_of_size(size, arguments.depth, counting).shape.width
    return make_architecture(
        "Your shape", vocab_size=counting.vocab_size, embedding_rank=counting.rank, **numbers
    )


def bottlenecks(found: ShapeAnswer, given: Architecture | None) -> list[str]:
    """A sentence for each bottleneck of the advised and of the given shape.

    What a bottleneck costs is looked up only where one binds; that takes a second.
    """
    asked = [] if given is None else [given]
    if found.advised is not None:
        shape, counting = found.advised.shape, found.question.counting
        advised = make_architecture(
            "The shape below",
            vocab_size=counting.vocab_size,
            embedding_rank=counting.rank,
            width=shape.width,
            heads=shape.heads,
            attention_dim=shape.attention_dim,
            depth=shape.depth,
        )
        asked.insert(0, advised)
    binding = [one for one in asked if bindings(one)]
    said = []
    if binding:
        from shapelaw.advice.models.bottlenecks import findings_of, sentences  # pandas, and our measurements
        from shapelaw.studies.redundancies import known_redundancies

        measured = known_redundancies()
        said = [sentences(finding) for one in binding for finding in findings_of(one, measured)]
    free = [one.name for one in asked if one not in binding]
    if free:
        said.append(
            f"{' and '.join(free)}: no bottleneck of the vocabulary, the embedding's rank or the heads binds."
        )
    return said


if __name__ == "__main__":
    sys.exit(exit_code(main))
