"""Train several small runs one after the other in one process: one job, one start of PyTorch, many runs.

Each run's finished record stays in its checkpoint folder, where scripts/take_record.py takes it from. A run that can't
be trained is noted and the others go on. Exit codes: 0 done (--out has the outcome of each run), 1 the disk is full,
2 wrong input, for all runs, 128 + n stopped by signal n (started again, the pack goes on where it was).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError
from shapelaw.specs.runs import Run, run_from_dict
from shapelaw.storage.files import WriteFailed
from shapelaw.storage.records import FINISHED, write_json
from shapelaw.training.command import (
    exit_code_of,
    read_specs,
    runtime_of,
    say_failure,
    stores_of,
    training_parser,
)
from shapelaw.training.loop import train
from shapelaw.training.trainer import NotWritten, Runtime, TrainingFailed

Stores = tuple[TokenStore, TokenStore]  # training, test


def _runs(specs: list[dict[str, Any]]) -> list[Run]:
    return [run_from_dict(values) for values in specs]


def _train_each(
    runs: list[Run], checkpoints: Path, stores: Stores, runtime_of_run: Callable[[str], Runtime]
) -> dict[str, str]:
    """Train each run and return its outcome by key: FINISHED, or the reason why not.

    Raises:
        UserError: none of the runs could begin; the message is the last one's.
        NotWritten, WriteFailed: the disk is full, also for the others.
        Stopped: a signal stopped the training.
    """
    outcomes, refused = {}, 0
    for run in runs:
        folder = checkpoints / run.key
        try:
            train(run, *stores, folder, folder, runtime_of_run(run.key))
            outcomes[run.key] = FINISHED
        except (NotWritten, WriteFailed):
            raise
        except (TrainingFailed, UserError) as error:
            refused += isinstance(error, UserError)
            if refused == len(runs):
                raise
            say_failure(error)
            outcomes[run.key] = str(error)
    return outcomes


def main() -> int:
    """Parse the command line and train."""
    parser = training_parser(__doc__)
    add = parser.add_argument
    add("--specs", required=True, help="the runs as a JSON list of specs, or @FILE")
    add("--checkpoints", required=True, type=Path, help="folder of checkpoints, each run's in <key>")
    add("--out", required=True, type=Path, help="JSON file for the outcome of each run")
    arguments = parser.parse_args()

    def train_them() -> None:
        runs = read_specs("--specs", arguments.specs, _runs, "a JSON list of specs of runs")
        stores = stores_of(arguments)
        outcomes = _train_each(runs, arguments.checkpoints, stores, partial(runtime_of, arguments))
        write_json(arguments.out, outcomes)

    return exit_code_of(train_them, arguments.linger_seconds)


if __name__ == "__main__":
    sys.exit(main())
