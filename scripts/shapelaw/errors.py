"""Command lines, and a user's mistakes, each reported in one sentence."""

import argparse
import atexit
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

COMMAND_VARIABLE = "SHAPELAW_COMMAND"  # in which `shapelaw` tells a script by which name it was called

# packages that not every installation has, and the extra of pyproject.toml that brings each
_EXTRA_OF = dict.fromkeys(("lmfit", "matplotlib", "pyarrow", "jinja2", "tabulate"), "fit") | dict.fromkeys(
    ("pydantic", "yaml", "flint", "torch", "tokenizers", "mlflow"), "studies"
)


class UserError(Exception):
    """A mistake in what the user gave: a config, a file, a corpus, a command line.

    The message is one or more full sentences: what is wrong, where, and what would be right.
    Scripts print it to standard error without a traceback and exit with code 2.
    """


def reason_of(error: Exception) -> str:
    """The first line of a library's message without its full stop, or the error's name where it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def say(sentence: object) -> None:
    """Print a message to standard error; drop it where that is a file on a full disk."""
    with suppress(OSError):
        print(sentence, file=sys.stderr, flush=True)


def say_last(*sentences: str) -> None:
    """Print messages to standard error when this process ends, after all that others print."""
    for sentence in reversed(sentences):  # the last one that is registered is called first
        atexit.register(say, sentence)


def command_line(description: str | None, usage: str | None = None) -> argparse.ArgumentParser:
    """A parser of a command line whose help has the description as it is written.

    Args:
        usage: what stands behind the command's name, such as `RUNS [OPTIONS]`; None lists every option.
    """
    command = os.environ.pop(COMMAND_VARIABLE, None)
    return argparse.ArgumentParser(
        prog=command and f"shapelaw {command}",
        usage=None if usage is None else f"%(prog)s {usage}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


class _Given(argparse.Action):
    """Keeps what is given; where nothing is, what an option of another name said stays."""

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: object, option_string: str | None = None
    ) -> None:
        if values is not None:
            setattr(namespace, self.dest, values)


def add_subject(
    group: argparse._ActionsContainer,
    name: str,
    older: str,
    shown: str,
    about: str,
    kind: Callable[[str], object] = str,
) -> None:
    """Add what a command is about to a group whose options exclude each other: its first argument.

    Args:
        older: the option that it also is, which help doesn't show.
        shown: its name in the help.
    """
    group.add_argument(name, nargs="?", action=_Given, metavar=shown, type=kind, help=about)
    group.add_argument(older, dest=name, type=kind, help=argparse.SUPPRESS)


def add_choice(
    group: argparse._ActionsContainer,
    name: str,
    older: str,
    choices: Sequence[str],
    default: str,
    about: str,
) -> None:
    """Add an option with a choice that is read by an older name too, which help doesn't show."""
    dest = older.lstrip("-").replace("-", "_")
    group.add_argument(name, dest=dest, choices=choices, default=default, help=about)
    group.add_argument(older, choices=choices, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


INTERRUPTED = 130  # as of a process that ends by SIGINT


def exit_code(work: Callable[[], int | None]) -> int:
    """Run a command and return its exit code.

    Returns:
        Its own code, 0 when it has none or where whoever reads the output, such as `head`, has read enough, 2 where a
        user's mistake or a missing package was reported, 130 after Ctrl-C.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that is not UTF-8 is printed as on standard error
        with suppress(OSError):  # a pipe in the place of the file that it was opened as has no position
            sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = work() or 0
        sys.stdout.flush()
    except UserError as error:
        say(error)
        return 2
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA_OF:
            raise
        extra = _EXTRA_OF[error.name.partition(".")[0]]
        say(f"This needs the package {error.name}; in the folder of the project: pip install '.[{extra}]'.")
        return 2
    except KeyboardInterrupt:
        say("Stopped.")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at the end
        return 0
    return code
