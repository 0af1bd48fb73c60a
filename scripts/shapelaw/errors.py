"""Command lines, and a user's mistakes, each reported in one sentence."""

import argparse
import atexit
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress


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


def command_line(description: str | None) -> argparse.ArgumentParser:
    """A parser of a command line whose help has the description as it is written."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def exit_code(work: Callable[[], int | None]) -> int:
    """Run a command and return its exit code.

    Returns:
        Its own code, 0 when it has none, 2 where a user's mistake was reported, 141 (as of SIGPIPE) where whoever reads
        the output, such as `head`, has read enough.
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
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at the end
        return 128 + signal.SIGPIPE
    return code
