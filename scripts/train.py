"""Train a job: its runs one after the other, or those of a pack as one computation; started again, it resumes.

Each run leaves its record in RESULTS/runs/<key>. A run that has one is left as it is, and one that can't go on costs no
other. Exit codes: 0 all runs have their records, 1 some can't go on (sentences say why), 2 wrong input for all runs,
128 + n stopped by signal n. On several GPUs: `python scripts/launch.py --processes 4 scripts/train.py ...`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from shapelaw.errors import UserError, command_line
from shapelaw.specs.kinds import AnyRun, is_packed, spec_from_dict
from shapelaw.storage.records import write_json
from shapelaw.training.driver import exit_code_of, stores_in, train_job
from shapelaw.training.trainer import COMPILED_PARTS, Runtime


def main() -> int:
    """Parse the command line and train."""
    arguments = training_parser().parse_args()

    def work() -> None:
        tasks = read_job(arguments.job)
        stores_of = stores_in(arguments.corpora or arguments.results / "corpora")
        train_job(tasks, arguments.results, stores_of, runtime_of(arguments))
        if arguments.out is not None and os.environ.get("RANK", "0") == "0":
            write_json(arguments.out, {"runs": sum(map(len, tasks))})

    return exit_code_of(work, arguments.linger_seconds)


def read_job(path: Path) -> list[list[AnyRun]]:
    """The tasks of a job file, `{"tasks": [[SPEC, ...], ...]}`: each one decoder, or the runs of a pack.

    Raises:
        UserError: the file can't be read, or its content is something else.
    """
    try:
        tasks = [[spec_from_dict(spec) for spec in task] for task in json.loads(path.read_bytes())["tasks"]]
    except OSError as error:
        raise UserError(f"The job {path} can't be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f'{path} is not a job, {{"tasks": [[SPEC, ...], ...]}} ({error!r}).') from error
    if wrong := [task for task in tasks if not task or (len(task) > 1 and not all(map(is_packed, task)))]:
        raise UserError(f"{path} has a task of {len(wrong[0])} runs; a decoder is a task of its own.")
    return tasks


def training_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--job", required=True, type=Path, metavar="FILE", help='JSON: {"tasks": [[SPEC, ...], ...]}')
    add(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="for runs/ and checkpoints/ (default results)",
    )
    add("--corpora", type=Path, metavar="DIR", help="of token stores (default: corpora in --results)")
    add("--out", type=Path, metavar="FILE", help="file to write once all runs have their records")
    add(
        "--keep-weights-of",
        default="",
        metavar="KEYS",
        help="leave a checkpoint of their last step; spaces between",
    )
    add("--checkpoint-minutes", type=float, default=10.0, help="between two checkpoints (default 10)")
    add("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda or cuda:N")
    add("--threads", type=int, help="CPU threads (default: PyTorch's)")
    add("--micro-batch", type=int, help="sequences at once on a device (default: from its memory)")
    add("--compile", action=argparse.BooleanOptionalAction, help="torch.compile (default: where it pays)")
    add(
        "--compiled-part",
        choices=COMPILED_PARTS,
        default="model",
        help="what is one graph where a decoder's step is compiled: model (default), blocks (one for all: compiles "
        "in a time that does not grow with depth) or graphs (the model, replayed as CUDA graphs)",
    )
    add("--wait-minutes", type=float, default=0.0, help="for another process on the same run (default 0)")
    add(
        "--linger-seconds",
        type=float,
        default=0.0,
        help="stay after a SIGTERM and its checkpoint: a scheduler then sees a job that it stopped, not a failed one",
    )
    add("--tag", action="append", type=_tag, default=[], help="NAME=VALUE kept in the records")
    return parser


def _tag(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def runtime_of(arguments: argparse.Namespace) -> Runtime:
    """The execution settings in parsed options."""
    return Runtime(
        arguments.device,
        arguments.threads,
        arguments.micro_batch,
        arguments.compile,
        arguments.compiled_part,
        60 * arguments.checkpoint_minutes,
        wait_seconds=60 * arguments.wait_minutes,
        keep_weights_of=frozenset(arguments.keep_weights_of.split()),
        tags=dict(arguments.tag),
    )


if __name__ == "__main__":
    sys.exit(main())
