"""The options, error sentences and exit codes that the training scripts share."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from shapelaw.corpora.token_store import TokenStore, open_token_store
from shapelaw.errors import UserError, command_line, reason_of, say
from shapelaw.storage.files import WriteFailed
from shapelaw.training.loop import Stopped
from shapelaw.training.trainer import COMPILED_PARTS, Runtime, TrainingFailed

Read = TypeVar("Read")
_OUT_OF_MEMORY = re.compile("can't allocate memory|out of memory|not enough memory", re.IGNORECASE)
_LESS = (
    "take a smaller width, depth, vocab_size or training.batch_size, or ask for more: "
    "--set-resources RULE:mem_mb=... on a cluster."
)


def training_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of the scripts that train language models."""
    parser = command_line(description)
    add = parser.add_argument
    add("--train-store", required=True, type=Path, help="header (.json) of the training tokens")
    add("--test-store", required=True, type=Path, help="header (.json) of the test tokens")
    add("--keep-weights", action="store_true", help="leave a checkpoint of the last step with --checkpoints")
    add("--keep-weights-of", default="", metavar="KEYS", help="the same for these, with spaces between")
    add("--micro-batch", type=int, help="sequences at once on a device (default: from its memory)")
    add(
        "--compiled-part",
        choices=COMPILED_PARTS,
        default="model",
        help="what is one graph where the step is compiled: model (default), blocks (one for all: compiles in a time "
        "that does not grow with depth) or graphs (the model, replayed as CUDA graphs)",
    )
    add_execution_options(parser)
    return parser


def read_specs(option: str, text: str, read: Callable[[Any], Read], what: str) -> Read:
    """What an option gives as JSON or as `@FILE`, read by `read`.

    Args:
        what: it should be, for the sentence where it isn't: `the spec of a run`.

    Raises:
        UserError: the file can't be read, or its content is something else.
    """
    try:
        given = Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text
        return read(json.loads(given))
    except OSError as error:
        raise UserError(f"{option} {text}: the file can't be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{option} {text[:80]} is not {what} ({error!r}); give JSON, or @ and its file."
        ) from error


def add_execution_options(parser: argparse.ArgumentParser) -> None:
    """Add the options on how to execute the training of language models and memorizers."""
    add = parser.add_argument
    add("--checkpoint-minutes", type=float, default=10.0, help="between two checkpoints (default 10)")
    add("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda or cuda:N")
    add("--threads", type=int, help="CPU threads (default: PyTorch's)")
    add("--compile", action=argparse.BooleanOptionalAction, help="torch.compile (default: where it pays)")
    add("--wait-minutes", type=float, default=0.0, help="for another process on the same run (default 0)")
    add(
        "--linger-seconds",
        type=float,
        default=0.0,
        help="stay after a SIGTERM and its checkpoint: a scheduler then sees a job that it stopped, not a failed one",
    )
    add("--tag", action="append", type=_tag, default=[], help="NAME=VALUE kept in the record")


def _tag(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def runtime_of(arguments: argparse.Namespace, key: str | None = None) -> Runtime:
    """The execution settings in parsed options, of the run with this key if it is one of several kinds."""
    return Runtime(
        arguments.device,
        arguments.threads,
        getattr(arguments, "micro_batch", None),
        arguments.compile,
        getattr(arguments, "compiled_part", "model"),
        60 * arguments.checkpoint_minutes,
        wait_seconds=60 * arguments.wait_minutes,
        keep_weights=getattr(arguments, "keep_weights", False)
        or key in getattr(arguments, "keep_weights_of", "").split(),
        tags=dict(arguments.tag),
    )


def stores_of(arguments: argparse.Namespace) -> tuple[TokenStore, TokenStore]:
    """The training and the test tokens.

    Raises:
        UserError: a store can't be read.
    """
    return open_token_store(arguments.train_store), open_token_store(arguments.test_store)


def exit_code_of(action: Callable[[], None], linger_seconds: float) -> int:
    """Run it, print any error as a sentence, and return the exit code.

    Returns:
        0 done, 1 training can't go on (its results can't be written, memory is short), 2 wrong input, 128 + n stopped
            by signal n. After a SIGTERM it returns only `linger_seconds` later, if nobody has killed the process by
            then: a scheduler that preempts a job sends SIGTERM first, counts a job that ends by itself as failed, and
            puts one that is still running back into the queue.
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
    except (MemoryError, RuntimeError) as error:  # PyTorch's allocators raise the second kind
        if not isinstance(error, MemoryError) and not _OUT_OF_MEMORY.search(str(error)):
            raise
        say(f"There is not enough memory ({reason_of(error)}); {_LESS}")
        return 1
    return 0


def say_failure(error: Exception) -> None:
    """Print an error's sentence; of several processes of one run, only the first prints the common one."""
    if isinstance(error, UserError) or os.environ.get("RANK", "0") == "0":
        say(error)
