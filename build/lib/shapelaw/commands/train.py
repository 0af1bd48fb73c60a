"""Train a job: its runs one after the other, or those of a pack as one computation; started again, it resumes.

Each run leaves its record in RESULTS/runs/<key>. A run that has one is left as it is, and one that can't go on costs no
other. Exit codes: 0 all runs have their records, 1 some can't go on (sentences say why), 2 wrong input for all runs,
128 + n stopped by signal n. On several GPUs: `python scripts/launch.py --processes 4 scripts/train.py ...`.
"""

from __future__ import annotations

import os
import sys

from shapelaw.storage.records import write_json
from shapelaw.training.command import exit_code_of, read_job, runtime_of, training_parser
from shapelaw.training.driver import stores_in, train_job


def main() -> int:
    """Parse the command line and train."""
    arguments = training_parser(__doc__).parse_args()

    def work() -> None:
        tasks = read_job(arguments.job)
        stores_of = stores_in(arguments.corpora or arguments.results / "corpora")
        train_job(tasks, arguments.results, stores_of, runtime_of(arguments))
        if arguments.out is not None and os.environ.get("RANK", "0") == "0":
            write_json(arguments.out, {"runs": sum(map(len, tasks))})

    return exit_code_of(work, arguments.linger_seconds)


if __name__ == "__main__":
    sys.exit(main())
