"""The depth and width for a budget, with how sure that is.

  python scripts/advise.py --params 1.3B --vocab 50257
  python scripts/advise.py --params 1.3B --tied --context 2048 --depth 24 --width 2048
  python scripts/advise.py --params 6.7e9 --model FOLDER
  python scripts/advise.py --params 2e7 --vocab 257 --fit DIR --json

The law is the published one (Levine et al. 2020), or that of DIR, a folder of fit_transitions.py or of the study
of depth against width. --depth and --width are a shape to judge, --model one in a folder with a config.json of
transformers, which builds it without weights: its vocabulary, ties and positions are then those of the budget, and what
is no dense decoder is named and not judged.
Beside the shape stands which bottleneck binds (bottlenecks.py has more). Exit codes: 0 answered, 2 unusable input.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from shapelaw.errors import UserError, command_line, exit_code
from shapelaw.fits.advice import Budget
from shapelaw.specs.architectures import Architecture, make_architecture
from shapelaw.specs.pretrained import (
    Model,
    architecture_of,
    model_json,
    model_text,
    read_model,
    why_not_judged,
)
from shapelaw.specs.sizes import size_of
from shapelaw.studies.advice import PUBLISHED, answer, as_json, read_law, text_of

DEFAULT_VOCAB = 50257


def main() -> None:
    """Parse the command line, advise and print."""
    arguments = _parser().parse_args()
    model = None if arguments.model is None else read_model(arguments.model)
    given = _given(arguments, model)
    said: dict[str, object] = {} if model is None else {"model": model_json(model)}
    if model is not None and (reason := why_not_judged(model)):
        said |= {"params": _params(arguments), "given": None, "not_judged": reason}
        print(json.dumps(said, indent=2) if arguments.json else f"{model_text(model)}\n{reason}")
        return
    found = answer(_budget(arguments, model), read_law(arguments.fit), given)
    if arguments.json:
        print(json.dumps(as_json(found) | said, indent=2))
    else:
        print(text_of(found) if model is None else f"{model_text(model)}\n\n{text_of(found)}")


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    parser.add_argument("--params", required=True, metavar="SIZE", help="all parameters, such as 1.3B or 6e7")
    parser.add_argument(
        "--vocab",
        type=int,
        help=f"size of the vocabulary (default: {DEFAULT_VOCAB:,}, GPT-2's, or that of --model)",
    )
    parser.add_argument("--rank", type=int, help="rank of a factored token embedding; left out: full")
    parser.add_argument(
        "--context",
        type=int,
        help="entries of a learned positional embedding (default: those of --model, else 0, rotary or none)",
    )
    parser.add_argument("--tied", action="store_true", help="the classifier is the embedding's matrix")
    parser.add_argument("--depth", type=int, help="layers of a shape to judge; needs --width")
    parser.add_argument("--width", type=int, help="width of a shape to judge; needs --depth")
    parser.add_argument("--heads", type=int, help="heads of the shape to judge")
    parser.add_argument(
        "--attention-dim", type=int, help="dimension of one of its heads (default: width / heads)"
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="a shape to judge: a folder with a config.json of transformers",
    )
    parser.add_argument(
        "--fit",
        default=PUBLISHED,
        metavar="DIR",
        help=f"the law: `{PUBLISHED}` (default), or a folder of results",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _params(arguments: argparse.Namespace) -> float:
    try:
        return size_of(arguments.params)
    except ValueError:
        raise UserError(
            f"--params is {arguments.params}; give a number of parameters, such as 1.3B."
        ) from None


def _budget(arguments: argparse.Namespace, model: Model | None) -> Budget:
    """What the options say of the embeddings, and where they don't, the model."""
    params = _params(arguments)
    known = DEFAULT_VOCAB if model is None or model.vocab_size is None else model.vocab_size
    vocab = known if arguments.vocab is None else arguments.vocab
    for name, value, least in (
        ("vocab", vocab, 2),
        ("rank", arguments.rank, 1),
        ("context", arguments.context, 0),
    ):
        if value is not None and value < least:
            raise UserError(f"--{name} is {value}; it must be at least {least}.")
    if arguments.rank is not None and arguments.tied:
        raise UserError(
            "--rank and --tied exclude each other: a factored embedding is not the classifier's matrix."
        )
    context = 0 if arguments.context is None else arguments.context
    if model is None:
        return Budget(params, vocab, context, arguments.tied, arguments.rank)
    return Budget(
        params,
        vocab,
        model.context if arguments.context is None else context,
        arguments.tied or model.tied,
        model.embedding_rank if arguments.rank is None else arguments.rank,
    )


def _given(arguments: argparse.Namespace, model: Model | None) -> Architecture | None:
    numbers = {name: getattr(arguments, name) for name in ("depth", "width", "heads", "attention_dim")}
    if model is not None:
        if any(value is not None for value in numbers.values()):
            raise UserError("--model is a shape to judge, and so are --depth and --width; give one of them.")
        return None if why_not_judged(model) else architecture_of(model)
    if (arguments.depth is None) != (arguments.width is None):
        raise UserError("--depth and --width are one shape to judge; give both, or neither.")
    if arguments.depth is None:
        if arguments.heads is not None or arguments.attention_dim is not None:
            raise UserError(
                "--heads and --attention-dim belong to a shape to judge; give --depth and --width too."
            )
        return None
    return make_architecture(
        "Your shape", vocab_size=arguments.vocab or DEFAULT_VOCAB, embedding_rank=arguments.rank, **numbers
    )


if __name__ == "__main__":
    sys.exit(exit_code(main))
