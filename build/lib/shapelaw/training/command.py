"""The command line of training, its job files, error sentences and exit codes."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from shapelaw.errors import UserError, command_line, say
from shapelaw.specs.kinds import AnyRun, is_packed, spec_from_dict
from shapelaw.storage.files import WriteFailed
from shapelaw.training.driver import Stopped
from shapelaw.training.trainer import COMPILED_PARTS, Runtime, TrainingFailed


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


def training_parser(description: str | None) -> argparse.ArgumentParser:
    """The parser of `scripts/train.py`."""
    parser = command_line(description)
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


def exit_code_of(action: Callable[[], None], linger_seconds: float) -> int:
    """Run it, print any error as a sentence, and return the exit code.

    Returns:
        0 done, 1 some runs can't go on (the disk is full, memory is short, their data are damaged), 2 wrong input for
            all, 128 + n stopped by signal n. After a SIGTERM it returns only `linger_seconds` later, if nobody has
            killed the process by then: a scheduler that preempts a job sends SIGTERM first, counts a job that ends by
            itself as failed, and puts one that is still running back into the queue.
    """
    try:
        action()
    except (UserError, TrainingFailed, Stopped) as error:
        say_failure(error)
        if not isinstance(error, Stopped):
            return 1 if isinstance(error, TrainingFailed | WriteFailed) else 2
        if error.exit_code == 128 + signal.SIGTERM and linger_seconds:
            signal.signal(
                signal.SIGTERM, signal.SIG_IGN
            )  # schedulers and their wrappers send SIGTERM more than once
            time.sleep(linger_seconds)
        return error.exit_code
    return 0


def say_failure(error: Exception) -> None:
    """Print an error's sentence; of several processes of one run, only the first prints the common one."""
    if isinstance(error, UserError) or os.environ.get("RANK", "0") == "0":
        say(error)
