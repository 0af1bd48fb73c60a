"""Command lines; a user's mistakes, each reported in one sentence; and the parts of an analysis that failed.

A part that fails takes nothing else with it.
"""

from __future__ import annotations

import argparse
import atexit
import codecs
import difflib
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO, TypeVar

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


_STAND_INS = {  # by how a file begins, what lies in the place of one that should have been downloaded
    b"version https://git-lfs": "a pointer of Git LFS, not the file itself; fetch that with git lfs pull",
    b"<!doctype html": "a web page, not the file itself; download that",
    b"<html": "a web page, not the file itself; download that",
}


def refuse_stand_in(path: Path, pages: bool = True) -> None:
    """Refuse what lies in the place of a file that was not downloaded.

    Args:
        pages: whether no web page can be meant.

    Raises:
        UserError: it is a web page or a pointer of Git LFS.
        OSError: it can't be read.
    """
    with path.open("rb") as file:
        begins = file.read(64).removeprefix(codecs.BOM_UTF8).lstrip().lower()
    for mark, what in _STAND_INS.items():
        if begins.startswith(mark) and (pages or b"html" not in mark):
            raise UserError(f"{path} is {what}.")


def say(sentence: object) -> None:
    """Print a message to standard error; drop it where that is a file on a full disk."""
    with suppress(OSError):
        print(sentence, file=sys.stderr, flush=True)


def say_last(*sentences: str) -> None:
    """Print messages to standard error when this process ends, after all that others print."""
    for sentence in reversed(sentences):  # the last one that is registered is called first
        atexit.register(say, sentence)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A hint at the known word nearest to a wrong one, as ` (did you mean X?)`; empty where none is near."""
    near = nearest(word, known)
    return f" (did you mean {near}?)" if near else ""


def nearest(word: object, known: Iterable[str]) -> str:
    """The known word nearest to a wrong one; empty where none is near."""
    return next(iter(difflib.get_close_matches(str(word), list(known), n=1)), "")


class _CommandLine(argparse.ArgumentParser):
    """A parser that hints at the options that unknown ones may mean."""

    def error(self, message: str) -> NoReturn:
        said, unknown, words = message.partition("unrecognized arguments:")
        known = [name for action in self._actions for name in action.option_strings]
        options = (word.partition("=")[0] for word in words.split() if word.startswith("--"))
        super().error(said + unknown + words + "".join(did_you_mean(one, known) for one in options))


def command_line(description: str | None, usage: str | None = None) -> argparse.ArgumentParser:
    """A parser of a command line whose help has the description as it is written.

    Args:
        usage: what stands behind the command's name, such as `RUNS [OPTIONS]`; None lists every option.
    """
    command = os.environ.pop(COMMAND_VARIABLE, None)
    return _CommandLine(
        prog=command and f"shapelaw {command}",
        usage=None if usage is None else f"%(prog)s {usage}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def refuse_below_one(given: argparse.Namespace, *names: str) -> None:
    """Check options that are at least 1 where they are given.

    Raises:
        UserError: one of them is less, or no number.
    """
    for name in names:
        value = getattr(given, name)
        if value is not None and not value >= 1:
            raise UserError(f"--{name} is {value:g}; it must be at least 1.")


INTERRUPTED = 130  # as of a process that ends by SIGINT


class _Output:
    """A standard stream that takes no work away where it can't be written: closed, full, or a pipe that nobody reads.

    Attributes:
        error: the first error, after which nothing is written.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # or a file gets its number
        self.error: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._attempt(lambda: self._stream.write(text)) or len(text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, work: Callable[[], int | None]) -> int | None:
        if self.error is None:
            try:
                return work()
            except OSError as error:
                self.error = error
                # what is left in the buffer goes there
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        return None


def exit_code(work: Callable[[], int | None]) -> int:
    """Run a command and return its exit code.

    Where its output or its messages can't be written, it does the rest of its work.

    Returns:
        Its own code, 0 when it has none; 2 where a user's mistake, a missing package, too little memory or an output on
        a full disk was reported; 130 after Ctrl-C. A reader who has read enough, such as `head`, changes nothing.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that is not UTF-8 is printed as on standard error
        with suppress(OSError):  # a pipe in the place of the file that it was opened as has no position
            sys.stdout.reconfigure(errors="backslashreplace")
    output = _Output(sys.stdout)
    with redirect_stdout(output), redirect_stderr(_Output(sys.stderr)):
        code = _code_of(work)
        output.flush()
        if output.error is None or isinstance(output.error, BrokenPipeError):
            return code
        say(f"What is printed can't be written: {output.error.strerror}.")
        return code or 2


def end_with(work: Callable[[], int | None]) -> NoReturn:
    """Run a command, and end this process with its exit code."""
    sys.exit(exit_code(work))


def _code_of(work: Callable[[], int | None]) -> int:
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.default_int_handler(number, frame)

    if outermost := signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        return work() or 0
    except SystemExit as ended:  # after the command line's help, or a mistake in it
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except UserError as error:
        say(error)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA_OF:
            raise
        extra = _EXTRA_OF[error.name.partition(".")[0]]
        say(f"This needs the package {error.name}; in the folder of the project: pip install '.[{extra}]'.")
    except MemoryError as error:
        say(f"There is too little memory ({reason_of(error)}); close other programs, or give less at once.")
    except RecursionError as error:
        say(f"What is read is nested too deeply ({reason_of(error)}).")
    except (Exception, KeyboardInterrupt) as error:
        # numpy, where Ctrl-C comes while it is imported, raises an error of its own
        if not interrupted and not isinstance(error, KeyboardInterrupt):
            raise
        say("Stopped.")
        return INTERRUPTED
    finally:
        if outermost:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    return 2


T = TypeVar("T")
Thing = TypeVar("Thing")


class PartFailed(Exception):
    """A part can't be done without another one that failed."""


class Parts:
    """The parts of one analysis that failed.

    Attributes:
        failed: for each of them, by its name, the reason.
    """

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self._inside: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """A sentence for each of them."""
        return [f"Failed: {part}: {why.removesuffix('.')}." for part, why in self.failed.items()]

    def attempt(self, part: str, work: Callable[[], T]) -> T | None:
        """Do a part: what comes of it, or None where it fails.

        A failure that is no user's mistake is printed to standard error with its traceback. Errors of the operating
        system, such as a full disk's, are no part's own.

        Args:
            part: its name, such as `table effects`; a part of a part has both names.

        Raises:
            OSError: the work raised it.
        """
        try:
            with self.inside(part):
                return work()
        except OSError:
            raise
        except Exception as error:
            self._tell(part, error)
            return None

    def each(
        self, things: Iterable[Thing], work: Callable[[Thing], T], name_of: Callable[[Thing], str]
    ) -> list[tuple[Thing, T]]:
        """Each thing with what comes of it, without those that fail, each a part of its name.

        Raises:
            Exception: nothing comes of any; the first one's.
        """
        found, errors = list[tuple[Thing, T]](), dict[str, Exception]()
        for thing in things:
            try:
                with self.inside(name_of(thing)):
                    found.append((thing, work(thing)))
            except OSError:
                raise
            except Exception as error:
                errors[name_of(thing)] = error
        if errors and not found:
            raise next(iter(errors.values()))
        for name, failure in errors.items():
            self._tell(name, failure)
        return found

    @contextmanager
    def inside(self, part: str) -> Iterator[None]:
        """Parts that fail in here are parts of this one."""
        outside = self._inside
        self._inside = (*outside, part)
        try:
            yield
        finally:
            self._inside = outside

    def _tell(self, part: str, error: Exception) -> None:
        if isinstance(error, UserError | PartFailed):
            reason = str(error)
        else:
            reason = f"{type(error).__name__}: {reason_of(error)}"
            say("".join(traceback.format_exception(error)))
        self.failed[", ".join((*self._inside, part))] = reason
