"""Train packs of runs, each pack as one computation, one pack after the other: a job of the workflow.

Each run's finished record stays in its checkpoint folder, where scripts/take_record.py takes it from. Exit codes: 0
done (--out has the outcome of each run), 1 the disk is full, 2 wrong input, 128 + n stopped by signal n (started
again, the pack goes on where it was).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from shapelaw.errors import UserError, command_line
from shapelaw.specs.kinds import PackedRun, packed_run_from_dict
from shapelaw.storage.records import write_json
from shapelaw.training.command import add_execution_options, exit_code_of, runtime_of, text_of
from shapelaw.training.pack_runs import train_packs


def _packs(text: str) -> list[list[PackedRun]]:
    try:
        return [[packed_run_from_dict(values) for values in pack] for pack in json.loads(text_of(text))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"--packs {text[:80]} is not a JSON list of packs, each a list of specs ({error!r})."
        ) from error


def main() -> int:
    """Parse the command line and train."""
    parser = command_line(__doc__)
    parser.add_argument("--packs", required=True, help="a JSON list of packs, lists of specs; or @FILE")
    parser.add_argument(
        "--checkpoints", required=True, type=Path, help="folder of checkpoints, each run's in <key>"
    )
    parser.add_argument("--out", required=True, type=Path, help="JSON file for the outcome of each run")
    add_execution_options(parser)
    arguments = parser.parse_args()

    def train_them() -> None:
        folder = arguments.checkpoints
        outcomes = train_packs(_packs(arguments.packs), folder, folder, runtime_of(arguments))
        write_json(arguments.out, outcomes)

    return exit_code_of(train_them, arguments.linger_seconds)


if __name__ == "__main__":
    sys.exit(main())
