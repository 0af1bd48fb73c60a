"""Train one run and write its record; started again after a kill, it resumes by itself.

Exit codes: 0 finished, 1 the run can't go on (a sentence says why), 2 wrong input, 128 + n ended by signal n.
On several GPUs: `python scripts/launch.py --processes 4 scripts/train.py ...`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from shapelaw.specs.runs import Run, run_from_dict
from shapelaw.storage.files import fold
from shapelaw.training.command import exit_code_of, read_specs, runtime_of, stores_of, training_parser
from shapelaw.training.loop import train


def _run(spec: dict[str, Any]) -> Run:
    return run_from_dict({k: v for k, v in spec.items() if k not in ("schema_version", "key")})


def main() -> int:
    """Parse the command line and train."""
    parser = training_parser(__doc__)
    add = parser.add_argument
    add("--spec", required=True, help="the run as JSON, or @FILE (a spec.json)")
    add("--out", required=True, type=Path, help="folder for the finished record")
    add("--checkpoints", required=True, type=Path, help="folder for checkpoints and the live state")
    arguments = parser.parse_args()

    def train_it() -> None:
        run = read_specs("--spec", arguments.spec, _run, "the spec of a run")
        train(
            run, *stores_of(arguments), arguments.out, arguments.checkpoints, runtime_of(arguments, run.key)
        )
        if arguments.checkpoints != arguments.out and os.environ.get("RANK", "0") == "0":
            fold(arguments.checkpoints)

    return exit_code_of(train_it, arguments.linger_seconds)


if __name__ == "__main__":
    sys.exit(main())
