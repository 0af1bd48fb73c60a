"""The depth and width for a budget, with how sure that is.

  python scripts/advise.py --params 1.3B --vocab 50257
  python scripts/advise.py --params 1.3B --tied --context 2048 --depth 24 --width 2048
  python scripts/advise.py --params 6.7e9 --model FOLDER
  python scripts/advise.py --params 2e7 --vocab 257 --fit DIR --json

The law is the published one (Levine et al. 2020), or that of DIR, a folder of fit_transitions.py or of the study
of depth against width. --depth and --width are a shape to judge, --model one in a folder with a config.json of
transformers.
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
from shapelaw.specs.sizes import size_of
from shapelaw.specs.transformers_config import read_config
from shapelaw.studies.advice import PUBLISHED, answer, as_json, read_law, text_of

DEFAULT_VOCAB = 50257


def main() -> None:
    """Parse the command line, advise and print."""
    arguments = _parser().parse_args()
    given = _given(arguments)
    found = answer(_budget(arguments, given), read_law(arguments.fit), given)
    print(json.dumps(as_json(found), indent=2) if arguments.json else text_of(found))


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
        default=0,
        help="entries of a learned positional embedding (default: 0, rotary or none)",
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


def _budget(arguments: argparse.Namespace, given: Architecture | None) -> Budget:
    try:
        params = size_of(arguments.params)
    except ValueError:
        raise UserError(
            f"--params is {arguments.params}; give a number of parameters, such as 1.3B."
        ) from None
    known = DEFAULT_VOCAB if given is None or given.vocab_size is None else given.vocab_size
    vocab = known if arguments.vocab is None else arguments.vocab
    for name, value, least in (
        ("vocab", vocab, 2),
        ("rank", arguments.rank, 1),
        ("context", arguments.context, 0),
    ):
        if value is not None and value < least:
            raise UserError(f"--{name} is {value}; it must be at least {least}.")
    rank = arguments.rank
    if rank is None and given is not None:
        rank = given.embedding_rank
    if rank is not None and arguments.tied:
        raise UserError(
            "--rank and --tied exclude each other: a factored embedding is not the classifier's matrix."
        )
    return Budget(params, vocab, arguments.context, arguments.tied, rank)


def _given(arguments: argparse.Namespace) -> Architecture | None:
    numbers = {name: getattr(arguments, name) for name in ("depth", "width", "heads", "attention_dim")}
    if arguments.model is not None:
        if any(value is not None for value in numbers.values()):
            raise UserError("--model is a shape to judge, and so are --depth and --width; give one of them.")
        found = read_config(arguments.model)
        if found.depth is None:
            raise UserError(
                f"The config.json of {arguments.model} has no depth; give --depth and --width instead."
            )
        return found
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
