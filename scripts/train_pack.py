"""Train several small runs one after the other in one process: one job, one start of PyTorch, many runs.

Each run's finished record stays in its checkpoint folder, where scripts/take_record.py takes it from. A run that
fails for good is noted and the others go on. Exit codes: 0 every run was trained or failed for good, 1 the disk is
full, 2 wrong input, 128 + n stopped by signal n (started again, the pack goes on where it was).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from shapelaw.errors import UserError
from shapelaw.records import write_json
from shapelaw.runs import Run, run_from_dict
from shapelaw.training.command import execution_of, exit_code_of, say_failure, stores_of, training_parser
from shapelaw.training.loop import train
from shapelaw.training.trainer import DiskFull, TrainingFailed


def _runs(text: str) -> list[Run]:
    try:
        return [run_from_dict(values) for values in json.loads(text)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"--specs {text[:80]} is not a JSON list of specs of runs ({error!r}).") from error


def main() -> int:
    """Parse the command line and train."""
    parser = training_parser(__doc__)
    parser.add_argument("--specs", required=True, help="the runs as a JSON list of specs")
    parser.add_argument(
        "--checkpoints", required=True, type=Path, help="folder; each run has <study>/<key> in it"
    )
    parser.add_argument("--out", required=True, type=Path, help="JSON: what became of each run")
    arguments = parser.parse_args()

    def train_them() -> None:
        stores, outcomes = stores_of(arguments), {}
        for run in _runs(arguments.specs):
            folder = arguments.checkpoints / run.study / run.key
            try:
                train(run, *stores, folder, folder, execution_of(arguments))
                outcomes[run.key] = "FINISHED"
            except DiskFull:
                raise  # for the others too
            except TrainingFailed as error:
                say_failure(error)
                outcomes[run.key] = str(error)
        write_json(arguments.out, outcomes)

    return exit_code_of(train_them, arguments.linger_seconds)


if __name__ == "__main__":
    sys.exit(main())
