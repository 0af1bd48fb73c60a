"""Train packs of runs, each pack as one computation, one pack after the other: a job of the workflow.

Each run's finished record stays in its checkpoint folder, where scripts/take_record.py takes it from. Exit codes: 0
done (--out has the outcome of each run), 1 the disk is full, 2 wrong input, 128 + n stopped by signal n (started
again, the pack goes on where it was).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from shapelaw.errors import command_line
from shapelaw.specs.kinds import PackedRun, packed_run_from_dict
from shapelaw.storage.records import write_json
from shapelaw.training.command import add_execution_options, exit_code_of, read_specs, runtime_of
from shapelaw.training.pack_runs import train_packs


def _packs(packs: list[list[dict[str, Any]]]) -> list[list[PackedRun]]:
    return [[packed_run_from_dict(values) for values in pack] for pack in packs]


def main() -> int:
    """Parse the command line and train."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--packs", required=True, help="a JSON list of packs, lists of specs; or @FILE")
    add("--checkpoints", required=True, type=Path, help="folder of checkpoints, each run's in <key>")
    add("--out", required=True, type=Path, help="JSON file for the outcome of each run")
    add_execution_options(parser)
    arguments = parser.parse_args()

    def train_them() -> None:
        folder = arguments.checkpoints
        packs = read_specs("--packs", arguments.packs, _packs, "a JSON list of packs, each a list of specs")
        outcomes = train_packs(packs, folder, folder, runtime_of(arguments))
        write_json(arguments.out, outcomes)

    return exit_code_of(train_them, arguments.linger_seconds)


if __name__ == "__main__":
    sys.exit(main())
