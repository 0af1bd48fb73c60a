"""Options that several commands of advice have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence


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
