"""What the user of shapelaw can get wrong, said in one sentence."""

import sys
from contextlib import suppress


class UserError(Exception):
    """A mistake in what the user gave: a config, a file, a corpus, a command line.

    The message is one or more full sentences: what is wrong, where, and what would be right.
    Scripts print it to standard error without a traceback and exit with code 2.
    """


def say(sentence: object) -> None:
    """Tell the user, on standard error; where that is a file on a full disk, there is no place left to say it."""
    with suppress(OSError):
        print(sentence, file=sys.stderr, flush=True)
