"""Run a command of this folder in several processes of this machine, one a GPU.

Example: launch.py --processes 4 train.py --job FILE
The exit code is that of the command. On several machines use torchrun, which listens on the network.
"""

from __future__ import annotations

import argparse
import sys

from shapelaw.errors import UserError, command_line, end_with
from shapelaw.training.launch import launch


def main() -> int:
    """Parse the command line and launch."""
    parser = command_line(__doc__)
    parser.add_argument("--processes", type=int, required=True, help="number of processes, one for each GPU")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, help="the Python script to run, and its arguments"
    )
    arguments = parser.parse_args()
    if arguments.processes < 1 or not arguments.command:
        raise UserError("launch.py needs --processes of at least 1 and a Python script to run.")
    return launch(arguments.processes, [sys.executable, *arguments.command])


if __name__ == "__main__":
    end_with(main)
